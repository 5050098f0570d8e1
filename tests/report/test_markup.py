"""Any text may be in a page: escaping, embedded data, the Content-Security-Policy."""

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adfs.study.report.render import environment, formula, render
from support.reports import EVIL, Page, make_problem

ANY_TEXT = st.text() | st.sampled_from([EVIL, "</script>", "<!--", "]]>", "\x00", "\ud800", "'\"&"])
EMBEDDED = '<script type="application/json">{{ data|tojson }}</script>'


def show(source, **values):
    """A template as the pages use it, from its source."""
    return environment().from_string(source).render(**values)


def empty_page():
    """The frame of all pages."""
    names = "title kicker heading status ending proof subject features remark"
    texts = dict.fromkeys(names.split(), "t")
    frame = {"tiles": [], "titles": {}, "halves": [], "chart": None}
    return render("page.html", **texts, **frame, problem=make_problem())


@given(ANY_TEXT)
def test_any_text_is_read_back_as_text_and_nothing_else(text):
    found = Page(show('<p title="{{ text }}">{{ text }}</p>', text=text))
    ((name, attributes, _),) = found.elements
    assert name == "p"
    assert set(attributes) == {"title"}
    assert found.words("p") == attributes["title"]


@given(ANY_TEXT)
def test_embedded_data_is_read_back_and_ends_where_it_ends(text):
    markup = show(EMBEDDED, data={text: [text]})
    ((name, _, words),) = Page(markup).elements
    assert name == "script"
    assert json.loads("".join(words)).popitem()[1][0] == text
    assert markup.count("<") == 2
    assert not set("&\u2028\u2029") & set(markup)


@pytest.mark.parametrize("text", ["a\u202eb", "\x1b[31m", "\x00", "\ud800", "\u200b"])
def test_what_has_no_shape_is_written_out(text):
    shown = show("{{ text }}", text=text)
    assert shown.isascii()
    assert "\\" in shown
    shown.encode("utf-8")


def test_names_keep_their_letters_in_any_script():
    assert show("{{ text }}", text="données-数据.svm") == "données-数据.svm"


def test_formulas_are_lowered_after_they_are_escaped():
    assert formula("x_<b>") == "x_&lt;b&gt;"
    assert formula("a_ij^t") == "a<sub>ij</sub><sup>t</sup>"


def test_a_value_that_was_forgotten_is_an_error():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        show("{{ text }}")


def test_columns_of_numbers_lean_to_the_right_and_words_do_not():
    draw = environment().get_template("parts.html").module.table
    page = Page(draw("t", ("name", "value"), [("a", "1.5"), ("b", "not finite")]))
    assert [each[1].get("class") for each in page.all("td")] == ["n", "n"]
    page = Page(draw("t", ("name", "value"), [("a", "1.5"), ("b", "words")]))
    assert "n" not in [each[1].get("class") for each in page.all("td")]


def test_the_policy_allows_the_two_texts_of_the_page_and_nothing_else():
    page = Page(empty_page())
    (policy,) = page.all("meta", http_equiv="Content-Security-Policy")
    rules = dict(each.split(" ", 1) for each in policy[1]["content"].split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy[1]["content"]
    (script,) = [each for each in page.all("script") if "type" not in each[1]]
    for rule, words in (("script-src", script[2]), ("style-src", page.all("style")[0][2])):
        digest = base64.b64encode(hashlib.sha256("".join(words).encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_no_element_of_the_page_points_outside_and_no_style_hides_in_attributes():
    for _, attributes, _ in Page(empty_page()).elements:
        assert not {"src", "style", "srcset", "action"} & set(attributes)
        assert attributes.get("href", "#a").startswith("#")
        assert not any(name.startswith("on") for name in attributes)


def test_the_licence_of_the_chart_library_travels_with_it():
    text = empty_page()
    (script,) = [each for each in Page(text).all("script") if "type" not in each[1]]
    assert "Permission is hereby granted" in "".join(script[2])
    assert text.lower().count("</script") == 2
    assert text.lower().count("</style") == 1
