"""HTML that cannot be broken by what it shows: everything is escaped unless `Markup` made it."""

import html
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:-]*")
_ALONE = {"meta", "br", "link"}  # elements without an end tag
_LAYOUT = "\n\t"
SHORT = 18  # letters of a name that never breaks
# Numbers, and the words that stand in their columns.
_NUMBER = re.compile(r"[-−<>]? ?\d|[–-]$|n/a|not finite|diverged|no theorem|none")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Text as HTML shows it, in an element or in a quoted attribute.

    Control characters, and those that turn the direction of writing around, appear as Python
    writes them: a file's name must look like what it is.

    Examples
    --------
    >>> escape('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(visible(str(value)), quote=True))


def visible(text: str) -> str:
    """The text with what has no shape of its own, or no place in UTF-8, written out."""
    return "".join(
        each
        if each in _LAYOUT or unicodedata.category(each) not in ("Cc", "Cf", "Cs")
        else each.encode("unicode_escape").decode()
        for each in text
    )


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """An element; ``class_`` stands for class, ``_`` in other names for a hyphen.

    Attributes that are None or False are left out, those that are True have no value.

    Examples
    --------
    >>> tag("td", "a < b", class_="number", title=None)
    '<td class="number">a &lt; b</td>'
    """
    head = "".join(_attribute(key, value) for key, value in attributes.items())
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name of an element.")
    if name in _ALONE:
        return Markup(f"<{name}{head}>")
    return Markup(f"<{name}{head}>{join(content)}</{name}>")


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name of an attribute.")
    return f" {name}" if value is True else f' {name}="{escape(_shortened(value))}"'


def _shortened(value: object) -> object:
    """Coordinates to a hundredth of a pixel: nobody sees more, and pages stay small."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def formula(text: object) -> Markup:
    """A line of mathematics: ``_`` before letters lowers them, ``^`` before one raises it.

    Examples
    --------
    >>> formula("μ_ij < x^t")
    'μ<sub>ij</sub> &lt; x<sup>t</sup>'
    """
    lowered = re.sub(r"_([A-Za-z0-9]+)", r"<sub>\1</sub>", escape(text))
    return Markup(re.sub(r"\^([A-Za-z0-9])", r"<sup>\1</sup>", lowered))


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Parts one after the other, each escaped unless it is markup."""
    return Markup(escape(between).join(escape(part) for part in parts))


def table(
    caption: object, headers: Iterable[object], rows: Iterable[Iterable[object]], **attributes: Any
) -> Markup:
    """A table whose first column names its rows; columns of numbers lean to the right."""
    names, body = list(headers), [list(row) for row in rows]
    looks = [_look([row[k] for row in body]) for k in range(len(names))]
    head = [
        tag("th", name, scope="col", class_=look) for name, look in zip(names, looks, strict=True)
    ]
    lines = [_row(row, looks) for row in body]
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)),
                tag("tbody", *lines))  # fmt: skip
    return scrolling(inner, caption, **attributes)


def scrolling(content: object, name: object, **attributes: Any) -> Markup:
    """A box in which what is too wide for the screen scrolls; the keyboard can reach it."""
    look = {"class_": "scroll", "tabindex": "0", "role": "region", **attributes}
    return tag("div", content, aria_label=str(name), **look)


def _look(cells: list[object]) -> str | None:
    """How a column is set: numbers to the right, short names in one line."""
    words = [str(cell) for cell in cells]
    if words and all(_NUMBER.match(word) or word == "" for word in words):
        return "n"
    return "short" if all(len(word) <= SHORT for word in words) else None


def _row(cells: list[object], looks: list[str | None]) -> Markup:
    first = tag("th", cells[0], scope="row", class_=looks[0])
    rest = (
        tag("td", cell, class_=look) for cell, look in zip(cells[1:], looks[1:], strict=True)
    )  # fmt: skip
    return tag("tr", first, *rest)


def embed(identifier: str, value: Any) -> Markup:
    """Data for scripts: JSON in which no character can end the element or start another."""
    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for each in "<>&":  # U+2028 and U+2029 are escaped already, as all that is not ASCII
        text = text.replace(each, f"\\u{ord(each):04x}")
    return Markup(f'<script type="application/json" id="{escape(identifier)}">{text}</script>')


def plain(value: Any) -> Any:
    """Plain values for JSON: seven digits of a number, None for what is not finite.

    Examples
    --------
    >>> plain({"gap": [1 / 3, float("nan"), 7]})
    {'gap': [0.3333333, None, 7]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return visible(value) if isinstance(value, str) else value
