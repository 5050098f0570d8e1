"""Fenced blocks say what they are; those that are not run say why, and are few."""

import re

import pytest

from adfs.cli.commands import parse as parse_words
from support.own_losses import forget_own_losses, make  # noqa: F401  (the first is a fixture)
from support.pages import (
    DOCS,
    NOT_CODE,
    PAGES,
    PYTHON,
    ROOT,
    SHELL,
    blocks,
    commands,
    name_of,
    with_code,
)

MOST_NOT_RUN = 10
PATHS = re.compile(
    r"(?<![\w/.])(?:tests|benchmarks|src|docs|integrations)/[\w/*.-]+\.(?:py|md|png)"
)


def not_run():
    """All blocks that a comment above them excuses."""
    return [block for page in PAGES for block in blocks(page) if block.not_run is not None]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_language_that_is_known(page):
    known = PYTHON | SHELL | NOT_CODE
    unknown = [f"{b.place}: {b.language!r}" for b in blocks(page) if b.language not in known]
    assert not unknown, f"say what these blocks are, one of {sorted(known)}: {unknown}"


def test_blocks_that_are_not_run_are_few_and_have_a_reason():
    excused = [f"{block.place} {block.not_run}" for block in not_run()]
    assert len(excused) <= MOST_NOT_RUN, "\n".join(excused)
    assert all(len(block.not_run.split()) >= 3 for block in not_run()), "\n".join(excused)
    assert all(block.language in PYTHON | SHELL for block in not_run()), "\n".join(excused)


@pytest.mark.parametrize("block", not_run(), ids=lambda block: block.place)
def test_commands_that_are_not_run_have_options_that_exist(block):
    make("log-cosh")  # of the package in docs/how-to/add-an-algorithm.md
    for arguments in commands(block):
        parse(arguments, block.place)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_indented_lines_have_options_that_exist(page):
    lines = re.findall(r"^    (adfs .+)$", page.read_text(), re.MULTILINE)
    for line in lines:
        words = line.partition("#")[0].split()
        parse(words[1:], f"{name_of(page)}: {line}")


def parse(arguments, place):
    """Fail unless the command line's own parser takes the arguments."""
    try:
        parse_words(list(arguments))
    except SystemExit as stop:
        if stop.code:
            pytest.fail(f"{place}: adfs {' '.join(arguments)}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_exist(page):
    named = [path for path in PATHS.findall(page.read_text()) if "NAME" not in path]
    assert not [path for path in named if not list(ROOT.glob(path))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_that_a_page_names_exist(page):
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text())
    packages = {path.name for path in (ROOT / "src" / "adfs").iterdir()}
    ours = [path for path in named if path.split("/")[0] in packages]
    ours = [path for path in ours if "NAME" not in path]
    assert not [path for path in ours if not (ROOT / "src" / "adfs" / path).exists()]


def test_pages_that_teach_have_code():
    teaching = {"tutorial.md", "scaling.md", "faq.md", "estimators.md"}
    assert teaching <= {page.name for page in with_code(sorted(DOCS.glob("*.md")))}
