"""The paper's results by one command: what it claims, what was measured, whether that holds.

Imports no arithmetic, so that the help of `adfs reproduce` is quick.
"""

import importlib
from typing import Any, NamedTuple


class PaperResult(NamedTuple):
    """The module of a study, what it shows, and the data set that it needs, if any."""

    module: str
    about: str
    data: str = ""

    def load(self) -> Any:
        """The function that does the study: from a StudyContext to a Report."""
        return importlib.import_module(f"adfs.study.paper.{self.module}").reproduce


class StudyCase(NamedTuple):
    """Logistic regression on a graph whose nodes draw ``m`` samples each, and a delay."""

    name: str
    graph: str
    m: int
    tau: float = 5.0
    sigma: float = 1.0
    data: str = "higgs"


TEXT = "reuters-money-fx"
FIGURE_3 = {
    "figure-3a": StudyCase("Higgs, n = 4, tau = 5", "grid:2x2", 10_000),
    "figure-3b": StudyCase("Higgs, n = 100, tau = 5", "grid:10x10", 10_000),
    "figure-3c": StudyCase("Covtype, n = 100, tau = 5", "grid:10x10", 10_000, data="covtype"),
}
FIGURE_4 = {
    "figure-4a": FIGURE_3["figure-3b"],
    "figure-4b": FIGURE_3["figure-3c"],
    "figure-4c": StudyCase("Higgs, n = 100, tau = 50", "grid:10x10", 10_000, tau=50.0),
}
CATALOGUE = {
    name: PaperResult("figures", f"{case.name}: {what}", case.data)
    for cases, what in ((FIGURE_3, "decentralized methods"), (FIGURE_4, "ADFS beside Katyusha"))
    for name, case in cases.items()
} | {
    "table-1": PaperResult("table_1", "theory's times beside measured ones, all methods"),
    "theorem-2": PaperResult("theorem_2", "what waiting costs, beside the bound 24"),
    "scaling": PaperResult("scaling", "n machines in the time of one, up to the critical size"),
    "stragglers": PaperResult(
        "stragglers", "random delays and a slow node: which methods lose how much"
    ),
    "where-adfs-wins": PaperResult(
        "where_adfs_wins", "where ADFS is the fastest of all methods, and where not: a map"
    ),
}
ALL = "all"  # the name that stands for every entry of the catalogue


def is_on_disk(name: str) -> bool:
    """Whether the named data set needs no download."""
    from adfs.data import datasets

    return any(found.name == name and path is not None for found, path in datasets.available())
