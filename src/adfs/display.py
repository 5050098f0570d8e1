"""How results and graphs show themselves in a notebook: tables, data frames, figures."""

import html
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adfs.errors import AdfsError


def html_table(rows: Sequence[Sequence[Any]], title: str = "", header: Sequence[Any] = ()) -> str:
    """A table of HTML; every cell is escaped.

    Examples
    --------
    >>> html_table([["a < b", 1]])
    '<table><tr><td>a &lt; b</td><td>1</td></tr></table>'
    """
    lines = [f"<caption>{html.escape(title)}</caption>"] if title else []
    if header:
        lines.append(_row(header, "th"))
    return "<table>" + "".join([*lines, *(_row(row, "td") for row in rows)]) + "</table>"


def _row(cells: Sequence[Any], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def data_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A pandas DataFrame with these columns; pandas is optional."""
    try:
        import pandas
    except ImportError:
        raise AdfsError("This needs pandas; install it with `pip install pandas`.") from None
    return pandas.DataFrame(dict(columns))


def plot_function(module: str, name: str) -> Callable[..., Any]:
    """A function of `adfs.study.plots`, by name: packages below do not import matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        raise AdfsError("plot() needs matplotlib; install it with `pip install '.[plots]'`.")
    found: Callable[..., Any] = getattr(importlib.import_module(f"adfs.study.plots.{module}"), name)
    return found
