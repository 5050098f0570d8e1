"""Whatever text comes in, the page stays the page: escaping, embedded data, the policy."""

import base64
import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adfs.report import page as pages
from adfs.report.markup import Markup, embed, escape, formula, plain, table, tag
from adfs.report.page import Section
from reports_for_tests import EVIL, Page

ANY_TEXT = st.text() | st.sampled_from([EVIL, "</script>", "<!--", "]]>", "\x00", "\ud800", "'\"&"])


@given(ANY_TEXT)
def test_any_text_is_read_back_as_text_and_nothing_else(text):
    found = Page(tag("p", text, title=text))
    ((name, attributes, _),) = found.elements
    assert name == "p"
    assert set(attributes) == {"title"}
    assert found.words("p") == attributes["title"]


@given(ANY_TEXT)
def test_embedded_data_is_read_back_and_ends_where_it_ends(text):
    markup = embed("report-data", {text: [text]})
    ((name, _, words),) = Page(markup).elements
    assert name == "script"
    assert json.loads("".join(words)).popitem()[1][0] == plain(text)
    assert markup.count("<") == 2
    assert not set("&\u2028\u2029") & set(markup)


@pytest.mark.parametrize("text", ["a\u202eb", "\x1b[31m", "\x00", "\ud800", "\u200b"])
def test_what_has_no_shape_is_written_out(text):
    shown = escape(text)
    assert shown.isascii()
    assert "\\" in shown
    shown.encode("utf-8")


def test_names_keep_their_letters_in_any_script():
    assert escape("données-数据.svm") == "données-数据.svm"


def test_formulas_are_lowered_after_they_are_escaped():
    assert formula("x_<b>") == "x_&lt;b&gt;"
    assert formula("a_ij^t") == "a<sub>ij</sub><sup>t</sup>"


@pytest.mark.parametrize("name", ["p onclick", "p><script", ""])
def test_an_element_has_a_name(name):
    with pytest.raises(ValueError, match="no name of an element"):
        tag(name)


def test_an_attribute_has_a_name():
    with pytest.raises(ValueError, match="no name of an attribute"):
        tag("p", **{"x=1 onclick": "y"})


def test_numbers_that_json_lacks_become_null():
    odd = {"a": [math.nan, math.inf, -math.inf, np.float64("nan"), 1.5], "b": np.array([1, 2])}
    found = json.loads("".join(Page(embed("report-data", odd)).elements[0][2]))
    assert found == {"a": [None, None, None, None, 1.5], "b": [1, 2]}


def test_columns_of_numbers_lean_to_the_right_and_words_do_not():
    page = Page(table("t", ("name", "value"), [("a", "1.5"), ("b", "not finite")]))
    assert [each[1].get("class") for each in page.all("td")] == ["n", "n"]
    page = Page(table("t", ("name", "value"), [("a", "1.5"), ("b", "words")]))
    assert "n" not in [each[1].get("class") for each in page.all("td")]


def test_the_policy_allows_the_two_texts_of_the_page_and_nothing_else():
    text = pages.page("t", Markup("<h1>x</h1>"), [Section("a", "A", Markup("<p>b</p>"))], {})
    page = Page(text)
    (policy,) = page.all("meta", http_equiv="Content-Security-Policy")
    rules = dict(each.split(" ", 1) for each in policy[1]["content"].split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy[1]["content"]
    (script,) = [each for each in page.all("script") if "type" not in each[1]]
    for rule, words in (("script-src", script[2]), ("style-src", page.all("style")[0][2])):
        digest = base64.b64encode(hashlib.sha256("".join(words).encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_no_element_of_the_page_points_outside_and_no_style_hides_in_attributes():
    text = pages.page("t", Markup("<h1>x</h1>"), [Section("a", "A", Markup("<p>b</p>"))], {})
    for _, attributes, _ in Page(text).elements:
        assert not {"src", "style", "srcset", "action"} & set(attributes)
        assert attributes.get("href", "#a").startswith("#")
        assert not any(name.startswith("on") for name in attributes)


def test_the_licence_of_the_chart_library_travels_with_it():
    assert "Permission is hereby granted" in pages.scripts()
    assert "</script" not in pages.scripts().lower()
    assert "</style" not in pages.styles().lower()
