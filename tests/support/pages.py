"""The Markdown pages as tests see them: fenced blocks, what is said above them, links, headings."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
RUNNER = Path(__file__).parents[1] / "docs" / "run_page.py"

DIRECTIVES = {"{eval-rst}", "{toctree}", "{include}", "{literalinclude}"}  # of Sphinx, by MyST
PYTHON, SHELL = {"python", "pycon"}, {"bash", "console"}
NOT_CODE = {"text", "toml", "json", "csv", "math", "html", "yaml"} | DIRECTIVES
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<language>[^\s`]*)(?: [^`]*)?$")
NOT_RUN = re.compile(r"^<!-- not run: (?P<reason>.+?) -->$")
NEEDS_DATA = "<!-- needs ADFS_DATA -->"  # anywhere on a page: its blocks use real data
WORDS_THAT_END_A_COMMAND = {"|", "||", "&&", ";", ">", ">>", "<", "&", "2>", "#"}


class Block(NamedTuple):
    """A fenced block: where its text starts, its language, and why it is not run, if it is not."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def place(self):
        return f"{name_of(self.page)}:{self.line}"


def blocks(page):
    """All fenced blocks of a page, in order."""
    lines, found, at = page.read_text().splitlines(), [], 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence is None:
            at += 1
            continue
        end = _closing(page, lines, at, fence)
        indent = len(fence["indent"])
        text = "".join(line[indent:] + "\n" for line in lines[at + 1 : end])
        reason = NOT_RUN.match(_above(lines, at))
        found.append(
            Block(page, at + 2, fence["language"], text, reason["reason"] if reason else None)
        )
        at = end + 1
    return found


def _closing(page, lines, at, fence):
    for end in range(at + 1, len(lines)):
        if lines[end].strip() == fence["ticks"]:
            return end
    raise AssertionError(f"{page}:{at + 1} opens a block that is never closed")


def _above(lines, at):
    """The nearest line above that is not empty."""
    return next((line.strip() for line in reversed(lines[:at]) if line.strip()), "")


def name_of(page):
    """How a page is called in reports of tests."""
    return str(page.relative_to(ROOT) if page.is_relative_to(ROOT) else page.name)


def with_code(pages):
    """Those that have a block to run."""
    code = PYTHON | SHELL
    return [
        page
        for page in pages
        if any(block.language in code and block.not_run is None for block in blocks(page))
    ]


def run(page, folder):
    """Run a page's blocks in a process of their own; skip where its data are missing."""
    if NEEDS_DATA in page.read_text() and not Path(os.environ.get("ADFS_DATA") or "-").is_dir():
        import pytest  # not at the top: the processes that run pages need no part of it

        pytest.skip("the page uses real data: set ADFS_DATA to the folder that holds them")
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(page)], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "ADFS_REPOSITORY": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def prose(page):
    """The page without its fenced blocks and code spans; lines stay where they were."""
    lines = page.read_text().splitlines()
    for block in blocks(page):
        first = block.line - 1
        for at in range(first - 1, first + len(block.text.splitlines()) + 1):
            lines[at] = ""
    return re.sub(r"`[^`\n]+`", "", "\n".join(lines))


def links(page):
    """Targets of the page's links and pictures that are not addresses of the network."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in targets if not re.match(r"\w+:", target)]


def anchors(page):
    """Names under which a page's headings are found, as hosts of repositories make them."""
    titles = re.findall(r"^#{1,6} (.+?)\s*$", _without_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _without_blocks(page):
    lines = page.read_text().splitlines()
    for block in blocks(page):
        for at in range(block.line - 1, block.line - 1 + len(block.text.splitlines())):
            lines[at] = ""
    return "\n".join(lines)


def commands(block):
    """Arguments of every ``adfs`` command in a shell block, whoever starts it."""
    if block.language not in SHELL:
        return []
    text = block.text.replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        line = line.removeprefix("$ ")
        if line.startswith("#"):
            continue
        words = shlex.split(line, comments=True)
        starts = [at for at, word in enumerate(words) if word == "adfs"]
        found += [_arguments(words[at + 1 :]) for at in starts]
    return found


def _arguments(words):
    """Words up to what belongs to the shell again."""
    ends = [at for at, word in enumerate(words) if word in WORDS_THAT_END_A_COMMAND]
    return words[: ends[0]] if ends else words
