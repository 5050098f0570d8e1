"""HTML pages from the templates: one file that holds its styles, scripts and data.

Jinja2 escapes every value that a template shows. The Content-Security-Policy of a page names the
digests of its style and its script: nothing else runs, and no connection, image, font or frame is
allowed.
"""

import base64
import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

import adfs

_LAYOUT = "\n\t"
LONGEST_UNBROKEN = 18  # characters of a cell that is never broken into lines
# Numbers, and the words that can replace one in a column of numbers.
_NUMBER = re.compile(r"[-−<>]? ?\d|-$|n/a|not finite|diverged|no theorem|none|$")


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows; ``css_class`` is that of the box around it."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    css_class: str = "scroll"

    @property
    def column_classes(self) -> list[str | None]:
        """One per column: ``n`` for numbers, ``short`` for cells without line breaks, None."""
        return [_column_class([str(row[k]) for row in self.rows]) for k in range(len(self.headers))]


def _column_class(cells: list[str]) -> str | None:
    if cells and all(map(_NUMBER.match, cells)):
        return "n"
    return "short" if all(len(cell) <= LONGEST_UNBROKEN for cell in cells) else None


def visible(text: str) -> str:
    r"""The text with control characters and lone surrogates written as Python escapes.

    Characters that reverse the direction of writing are among them: a file name must not look
    like another one.

    Examples
    --------
    >>> print(visible("a\u202eb"))
    a\u202eb
    """
    return "".join(
        each
        if each in _LAYOUT or unicodedata.category(each) not in ("Cc", "Cf", "Cs")
        else each.encode("unicode_escape").decode()
        for each in text
    )


def formula(text: object) -> Markup:
    """A line of mathematics: ``_`` makes the letters after it a subscript, ``^`` a superscript.

    Examples
    --------
    >>> print(formula("μ_ij < x^t"))
    μ<sub>ij</sub> &lt; x<sup>t</sup>
    """
    lowered = re.sub(r"_([A-Za-z0-9]+)", r"<sub>\1</sub>", str(escape(_finalize(text))))
    return Markup(re.sub(r"\^([A-Za-z0-9])", r"<sup>\1</sup>", lowered))


def _finalize(value: Any) -> Any:
    """A value as templates show it; a float is a coordinate, to a hundredth of a pixel."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return value if isinstance(value, Markup) else visible(str(value))


@cache
def environment() -> Environment:
    """The templates, with autoescape."""
    found = Environment(
        loader=PackageLoader("adfs.study.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_finalize,
    )  # fmt: skip
    found.filters["formula"] = formula
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return found


def render(template: str, **values: Any) -> str:
    """The whole document; see ``templates/page.html`` for the values that every page needs."""
    style, script = styles(), scripts()
    return environment().get_template(template).render(
        style=Markup(style), script=Markup(script), policy=policy(style, script),
        version=adfs.__version__, **values,
    )  # fmt: skip


@cache
def _asset(name: str) -> str:
    found = resources.files("adfs.study.report").joinpath("assets", name)
    return found.read_text(encoding="utf-8").replace("\r\n", "\n")


def styles() -> str:
    """All style sheets."""
    return _asset("uPlot.min.css") + "\n" + _asset("report.css")


def scripts() -> str:
    """All scripts, with the licence that uPlot asks to be passed on."""
    licence = _asset("uPlot.LICENSE").replace("*/", "* /")
    library = f"/* The charts are drawn by uPlot.\n\n{licence}*/\n{_asset('uPlot.iife.min.js')}"
    return f"{library}\n{_asset('report.js')}"


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy that allows these two texts and nothing else."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
