"""The names that `adfs reproduce` knows. Imports no arithmetic, so that help is quick."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from adfs.errors import ParameterError

if TYPE_CHECKING:
    from adfs.reproduce.order import Order
    from adfs.reproduce.report import Report

ALL = "all"


class Entry(NamedTuple):
    """Where a reproduction lives, what it shows, and the data sets without which it refuses."""

    home: str
    about: str
    data: tuple[str, ...] = ()

    def load(self) -> "Callable[[Order], Report]":
        """The function."""
        module, _, function = self.home.partition(":")
        found: Callable[[Order], Report] = getattr(
            importlib.import_module(f"adfs.reproduce.{module}"), function
        )
        return found


CATALOGUE = {
    "figure-3a": Entry("figure_3:figure_3a", "Higgs, n = 4, tau = 5: decentralized methods",
                       ("higgs",)),
    "figure-3b": Entry("figure_3:figure_3b", "Higgs, n = 100, tau = 5: decentralized methods",
                       ("higgs",)),
    "figure-3c": Entry("figure_3:figure_3c", "Covtype, n = 100, tau = 5: decentralized methods",
                       ("covtype",)),
    "figure-4a": Entry("figure_4:figure_4a", "Higgs, n = 100, tau = 5: ADFS beside Katyusha",
                       ("higgs",)),
    "figure-4b": Entry("figure_4:figure_4b", "Covtype, n = 100, tau = 5: ADFS beside Katyusha",
                       ("covtype",)),
    "figure-4c": Entry("figure_4:figure_4c", "Higgs, n = 100, tau = 50: ADFS beside Katyusha",
                       ("higgs",)),
    "table-1": Entry("table_1:table_1", "theory's times beside measured ones, all methods"),
    "theorem-2": Entry("theorem_2:theorem_2", "what waiting costs, beside the bound 24"),
    "scaling": Entry("scaling:scaling", "n machines in the time of one, up to the critical size"),
    "stragglers": Entry("stragglers:stragglers", "random delays and a slow node: who is hurt"),
}  # fmt: skip


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
