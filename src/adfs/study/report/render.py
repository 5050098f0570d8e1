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
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

import adfs
from adfs.study import numbers
from adfs.study.plots.timeline_plot import name_of, time_share

LONGEST_UNBROKEN = 18  # characters of a cell that is never broken into lines
# Numbers, and the words that can replace one in a column of numbers.
_NUMBER = re.compile(r"[-−<>]? ?\d|-$|n/a|not finite|diverged|no theorem|none|$")


def column_classes(rows: Sequence[Sequence[object]]) -> list[str | None]:
    """One per column: ``n`` for numbers, ``short`` for cells without line breaks, None."""
    columns = [[str(cell) for cell in column] for column in zip(*rows, strict=True)]
    return [
        "n" if all(map(_NUMBER.match, cells))
        else "short" if max(map(len, cells)) <= LONGEST_UNBROKEN else None
        for cells in columns
    ]  # fmt: skip


def thinned(length: int, most: int) -> list[int]:
    """At most that many indices below ``length``, evenly; the first and the last always.

    Examples
    --------
    >>> thinned(4, 10), thinned(9, 3)
    ([0, 1, 2, 3], [0, 4, 8])
    """
    if length <= most:
        return list(range(length))
    return sorted({int(k) for k in np.rint(np.linspace(0, length - 1, max(2, most)))})


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
        if each in "\n\t" or unicodedata.category(each) not in ("Cc", "Cf", "Cs")
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


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def environment() -> Environment:
    found = Environment(
        loader=PackageLoader("adfs.study.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_finalize, extensions=["jinja2.ext.do"],
    )  # fmt: skip
    for function in (
        numbers.count, numbers.listing, numbers.number, numbers.number_range, numbers.percent,
        numbers.seconds, column_classes, formula, name_of, thinned, time_share,
    ):  # fmt: skip
        found.filters[function.__name__] = function
    found.filters["digest"] = _digest
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return found


@cache
def _asset(name: str) -> str:
    found = resources.files("adfs.study.report").joinpath("assets", name)
    return found.read_text(encoding="utf-8").replace("\r\n", "\n")


def render(template: str, **values: Any) -> str:
    """The whole document; see ``templates/page.html`` for the values that every page needs."""
    licence = _asset("uPlot.LICENSE").replace("*/", "* /")  # which uPlot asks to be passed on
    library = f"/* The charts are drawn by uPlot.\n\n{licence}*/\n{_asset('uPlot.iife.min.js')}"
    return environment().get_template(template).render(
        style=Markup(_asset("uPlot.min.css") + "\n" + _asset("report.css")),
        script=Markup(f"{library}\n{_asset('report.js')}"),
        version=adfs.__version__, **values,
    )  # fmt: skip
