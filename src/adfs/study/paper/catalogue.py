"""The names that `adfs reproduce` knows. Imports no arithmetic, so that help is quick."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.study.paper.paper_report import Report
    from adfs.study.paper.study_context import StudyContext

ALL = "all"


class PaperResult(NamedTuple):
    """Module and function of a study, what it shows, and the data sets that it needs."""

    function: str
    about: str
    data: tuple[str, ...] = ()

    def load(self) -> "Callable[[StudyContext], Report]":
        """The function."""
        module, _, name = self.function.partition(":")
        home = importlib.import_module(f"adfs.study.paper.{module}")
        found: Callable[[StudyContext], Report] = getattr(home, name)
        return found


def _figure(name: str, about: str, data: str) -> PaperResult:
    return PaperResult(f"figures:{name}", about, (data,))


CATALOGUE = {
    "figure-3a": _figure("figure_3a", "Higgs, n = 4, tau = 5: decentralized methods", "higgs"),
    "figure-3b": _figure("figure_3b", "Higgs, n = 100, tau = 5: decentralized methods", "higgs"),
    "figure-3c": _figure(
        "figure_3c", "Covtype, n = 100, tau = 5: decentralized methods", "covtype"
    ),
    "figure-4a": _figure("figure_4a", "Higgs, n = 100, tau = 5: ADFS beside Katyusha", "higgs"),
    "figure-4b": _figure("figure_4b", "Covtype, n = 100, tau = 5: ADFS beside Katyusha", "covtype"),
    "figure-4c": _figure("figure_4c", "Higgs, n = 100, tau = 50: ADFS beside Katyusha", "higgs"),
    "table-1": PaperResult("table_1:table_1", "theory's times beside measured ones, all methods"),
    "theorem-2": PaperResult("theorem_2:theorem_2", "what waiting costs, beside the bound 24"),
    "scaling": PaperResult(
        "scaling:scaling", "n machines in the time of one, up to the critical size"
    ),
    "stragglers": PaperResult(
        "stragglers:stragglers", "random delays and a slow node: which methods lose how much"
    ),
}


def names_of(name: str) -> list[str]:
    """The names that ``name`` stands for: itself, or all of them.

    Examples
    --------
    >>> names_of("scaling")
    ['scaling']
    """
    if name == ALL:
        return list(CATALOGUE)
    if name not in CATALOGUE:
        raise ParameterError(
            f"{name!r} is nothing that can be reproduced; choose all or one of "
            f"{', '.join(CATALOGUE)}."
        )
    return [name]
