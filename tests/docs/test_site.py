"""The site builds without a warning, and inside it every link and anchor leads somewhere."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.metadata import version
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import adfs
from support.limits import HANG
from support.pages import DOCS, anchors

NEEDED = ("sphinx", "myst_parser", "furo", "sphinx_design", "sphinx_copybutton", "sphinx_gallery")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"needs {', '.join(MISSING)}: pip install '.[docs]'"
)

FORMULA = re.compile(r'<(span|div) class="math[^"]*">.*?</\1>', re.DOTALL)
SCRIPTS = ("katex/katex.min.js", "math.js")


class Page(HTMLParser):
    """Targets of links, addresses of what is loaded, and names that links can lead to."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.loaded, self.names = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names.update(found[key] for key in ("id", "name") if key in found)
        if tag == "a" and "href" in found:
            self.targets.append(found["href"])
        if tag in ("img", "script") and "src" in found:
            self.loaded.append(found["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONWARNINGS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site):
    """All pages of the site by their paths."""
    return {path: Page(path) for path in site.rglob("*.html")}


def target_of(path, target):
    """The file and the anchor a link leads to; None if it leaves the site."""
    if urlsplit(target).scheme:
        return None
    address, anchor = urldefrag(target)
    address = unquote(urlsplit(address).path)
    return (path.parent / address).resolve() if address else path, unquote(anchor)


def test_every_link_and_anchor_inside_the_site_resolves(pages):
    lost = []
    for path, page in pages.items():
        for target in page.targets + page.loaded:
            found = target_of(path, target)
            if found is None:
                continue
            file, anchor = found
            if not file.exists() or (anchor and file in pages and anchor not in pages[file].names):
                lost.append(f"{path.name}: {target}")
    assert not lost


def test_every_page_is_reached_from_the_first(site, pages):
    first = site / "index.html"
    reached, waiting = {first}, [first]
    while waiting:
        path = waiting.pop()
        for target in pages[path].targets:
            found = target_of(path, target)
            if found and found[0] in pages and found[0] not in reached:
                reached.add(found[0])
                waiting.append(found[0])
    assert {site / p.relative_to(DOCS).with_suffix(".html") for p in DOCS.rglob("*.md")} <= reached


def test_everything_public_is_in_the_reference(pages):
    described = set().union(*(page.names for path, page in pages.items() if "api" in path.as_uri()))
    # One name stands for each module.
    modules = {
        "datasets": "load", "generators": "two_gaussians", "report": "train_page",
        "losses": "LOSSES", "plugins": "Algorithm",
    }  # fmt: skip
    names = [f"{name}.{modules[name]}" if name in modules else name for name in adfs.__all__]
    assert {f"adfs.{name}" for name in names} <= described


def test_every_heading_arrives(site, pages):
    # A fence or a comment that is not closed would swallow the rest of a page.
    if version("myst-parser").startswith("4."):
        pytest.skip("myst-parser 4 (Python 3.10) makes other anchors of some headings")
    for source in DOCS.rglob("*.md"):
        built = pages[(site / source.relative_to(DOCS)).with_suffix(".html")]
        assert anchors(source) <= built.names, source


def test_every_formula_is_drawn(site, pages):
    browser = shutil.which("chromium")
    if browser is None:
        assert not os.environ.get("CI"), "needs Chromium: .ci/browser installs it"
        pytest.skip("needs Chromium: .ci/browser installs it")
    formulas = [found[0] for path in pages for found in FORMULA.finditer(path.read_text())]
    scripts = "".join(f'<script defer src="_static/{x}"></script>' for x in SCRIPTS)
    page = site / "formulas.html"
    page.write_text(f"<!doctype html><meta charset=utf-8>{scripts}<body>{''.join(formulas)}</body>")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    drawn = subprocess.run(
        [browser, *flags, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=HANG
    ).stdout
    assert len(formulas) > 500
    assert drawn.count('class="katex-html"') == len(formulas)
    assert "katex-error" not in drawn
