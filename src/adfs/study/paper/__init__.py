"""The paper's results by one command: what it claims, what was measured, whether that holds.

Imports no arithmetic, so that the help of `adfs reproduce` is quick.
"""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from adfs.study.paper.paper_report import Report
    from adfs.study.paper.study_context import StudyContext


class PaperResult(NamedTuple):
    """The module of a study, what it shows, and the data set that it needs, if any."""

    module: str
    about: str
    data: str = ""

    def load(self) -> "Callable[[StudyContext], Report]":
        """The function of the module that does the study."""
        study: Callable[[StudyContext], Report]
        study = importlib.import_module(f"adfs.study.paper.{self.module}").reproduce
        return study


class Panel(NamedTuple):
    """A panel of Figure 3 or 4."""

    data: str
    n_nodes: int
    tau: float

    @property
    def title(self) -> str:
        """Its setting."""
        return f"{self.data.capitalize()}, n = {self.n_nodes}, tau = {self.tau:g}"


FIGURE_3 = {
    "figure-3a": Panel("higgs", 4, 5.0),
    "figure-3b": Panel("higgs", 100, 5.0),
    "figure-3c": Panel("covtype", 100, 5.0),
}
FIGURE_4 = {
    "figure-4a": Panel("higgs", 100, 5.0),
    "figure-4b": Panel("covtype", 100, 5.0),
    "figure-4c": Panel("higgs", 100, 50.0),
}
CATALOGUE = {
    **{
        name: PaperResult("figures", f"{panel.title}: {what}", panel.data)
        for panels, what in (
            (FIGURE_3, "decentralized methods"),
            (FIGURE_4, "ADFS beside Katyusha"),
        )
        for name, panel in panels.items()
    },
    "table-1": PaperResult("table_1", "theory's times beside measured ones, all methods"),
    "theorem-2": PaperResult("theorem_2", "what waiting costs, beside the bound 24"),
    "scaling": PaperResult("scaling", "n machines in the time of one, up to the critical size"),
    "stragglers": PaperResult(
        "stragglers", "random delays and a slow node: which methods lose how much"
    ),
}
