"""The frame of a report: one file with its styles, scripts and data, and a policy that holds it.

The policy names the digest of each style and script, so that nothing else runs, should markup ever
slip into the page; and it allows no connection, picture, font or frame at all.
"""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import adfs
from adfs.report.markup import Markup, embed, scrolling, tag

DATA_ID = "report-data"
ONE_LINE = 6  # tiles


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading; ``title`` is short, for the list at the top as well."""

    key: str
    title: str
    content: Markup


@cache
def asset(name: str) -> str:
    """A file that travels with the package; its lines end as in the page."""
    found = resources.files("adfs.report").joinpath("assets", name)
    return found.read_text(encoding="utf-8").replace("\r\n", "\n")


def styles() -> str:
    """All style sheets."""
    return asset("uPlot.min.css") + "\n" + asset("report.css")


def scripts() -> str:
    """All scripts, with the licence that the library asks to be passed on."""
    licence = asset("uPlot.LICENSE").replace("*/", "* /")
    library = f"/* The charts are drawn by uPlot.\n\n{licence}*/\n{asset('uPlot.iife.min.js')}"
    return f"{library}\n{asset('report.js')}"


def page(title: str, header: Markup, sections: list[Section], data: dict[str, Any]) -> str:
    """The whole document."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(styles(), scripts())),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"adfs {adfs.__version__}"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(styles())),
    )
    body = tag(
        "body",
        _hatch(),
        tag("header", header, _contents(sections)),
        tag("main", *map(_section, sections)),
        tag("footer", tag("p", f"Made by adfs {adfs.__version__}. This file needs no network.")),
        embed(DATA_ID, data),
        tag("script", Markup(scripts())),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy: these two texts, and nothing from anywhere."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _contents(sections: list[Section]) -> Markup:
    links = [tag("li", tag("a", each.title, href=f"#{each.key}")) for each in sections]
    return tag("nav", tag("ul", *links), aria_label="Parts of this report")


def _section(section: Section) -> Markup:
    heading = tag("h2", section.title, id=f"{section.key}-title")
    return tag(
        "section", heading, section.content, id=section.key, aria_labelledby=f"{section.key}-title"
    )


def _hatch() -> Markup:
    """The pattern of waiting in all pictures, which a grey printer tells from work."""
    line = tag("path", d="M-1 5L5 -1M3 9L9 3", class_="hatch")
    look = {"width": "8", "height": "8", "patternUnits": "userSpaceOnUse"}
    pattern = tag("defs", tag("pattern", line, id="hatch", **look))
    return tag("svg", pattern, width="0", height="0", aria_hidden="true", class_="defs")


def tiles(facts: list[tuple[str, str, str]]) -> Markup:
    """The numbers one looks for first: name, value and a remark each."""
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, tag("small", remark) if remark else ""))
            for name, value, remark in facts
        ),
        class_="tiles" if len(facts) <= ONE_LINE else "tiles two-lines",
    )


def definitions(facts: list[tuple[object, object]], caption: str) -> Markup:
    """Facts as a table of two columns without a head."""
    rows = [
        tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in facts
    ]  # fmt: skip
    inner = tag("table", tag("caption", caption), tag("tbody", *rows), class_="facts")
    return scrolling(inner, caption)


def paragraph(*words: object) -> Markup:
    """A paragraph of text."""
    return tag("p", *words)
