"""What parameters say about themselves, as a table: each number with its formula, what binds."""

from typing import Any

from adfs.report.markup import Markup, formula, join, table, tag
from adfs.report.page import paragraph
from adfs.report.words import number, span
from adfs.theory.facts import Description, Fact, Place

HEADERS = ("parameter", "value", "formula", "what it is")
SHORT_HEADERS = ("parameter", "value", "what it is, and its formula")


def binding_place(parameters: Any) -> Place | None:
    """Which edge, or which node's samples, limit the rate; None where nothing is known."""
    return getattr(parameters, "binding_place", None)


def section(parameters: Any, how: str) -> Markup:
    """The table, the sentence that says what binds, and what the letters stand for."""
    if not hasattr(parameters, "description"):
        return tag("pre", str(parameters))
    told: Description = parameters.description()
    parts = [_table(told, how)]
    if told.closing:
        parts.append(paragraph(_sentence(told)))
    if told.symbols:
        parts.append(_letters(told))
    return join(parts)


def _table(told: Description, how: str) -> Markup:
    if not any(fact.formula for fact in told.facts):
        return table(told.title, SHORT_HEADERS, ((f.name, f.text, f.what) for f in told.facts))
    caption = f"Parameters by the rule {how}"
    return table(caption, HEADERS, map(_cells, told.facts), class_="scroll roomy")


def _cells(fact: Fact) -> tuple[object, ...]:
    how = tag("span", formula(fact.formula), class_="formula")
    return formula(fact.symbol or fact.name), _value(fact), how, formula(fact.meaning or fact.what)


def _value(fact: Fact) -> str:
    if fact.value is None:
        return ""
    return span(*fact.value) if isinstance(fact.value, tuple) else number(fact.value)


def _sentence(told: Description) -> str:
    words = (part if isinstance(part, str) else number(part) for part in told.closing)
    text = "".join(words)
    return text[:1].upper() + text[1:]


def _letters(told: Description) -> Markup:
    facts = (join([tag("dt", formula(a)), tag("dd", formula(b))]) for a, b in told.symbols)
    letters = tag("dl", *facts, class_="symbols")
    return tag("details", tag("summary", "What the letters stand for"), letters)
