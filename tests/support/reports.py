"""Reports as tests see them: the page as a tree, its data, and problems to make pages from."""

import dataclasses
import importlib.util
import json
import os
import shutil
from html.parser import HTMLParser

import pytest
from sklearn.datasets import dump_svmlight_file

import adfs
from support.problems import gaussian_problem

EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>&lt;\u2028'
WITHOUT_END = {"meta", "br", "link"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "apt-get install chromium chromium-driver, and pip install selenium"


class Page(HTMLParser):
    """Elements, their attributes and texts; fails if tags are not closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.text = text
        self.elements = []  # (name, attributes, list with its own text)
        self._open = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {[each[0] for each in self._open]}"

    def handle_starttag(self, tag, attrs):
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in WITHOUT_END:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open[-1][0] == tag, f"</{tag}> closes <{self._open[-1][0]}>"
        self._open.pop()

    def handle_data(self, data):
        for element in self._open:
            element[2].append(data)

    def all(self, name, **attributes):
        """Elements of a name with these attributes (``class_`` holds the word)."""
        wanted = attributes.items()
        return [
            each
            for each in self.elements
            if each[0] == name and all(_has(each[1], key, value) for key, value in wanted)
        ]

    def words(self, name, **attributes):
        """Text inside the one such element."""
        (element,) = self.all(name, **attributes)
        return "".join(element[2])

    @property
    def data(self):
        """What scripts read."""
        return json.loads(self.words("script", id="report-data"))


def _has(attributes, key, value):
    found = attributes.get(key.rstrip("_").replace("_", "-"))
    return found is not None and (value in found.split() if key == "class_" else found == value)


def make_problem(n_nodes=4, loss="logistic", graph="grid", n_samples=80, **options):
    """A small problem on a named graph."""
    name = "single" if n_nodes == 1 else adfs.Topology.parse(graph, n_nodes).name
    return gaussian_problem(name, loss, 0.5, samples=(n_samples, 3), **options)


def with_last_row(result, **values):
    """The result with other numbers in the last row of its trace."""
    columns = result.trace.to_dict()
    for name, value in values.items():
        columns[name][-1] = value
    return dataclasses.replace(result, trace=type(result.trace).from_dict(columns))


def write_data(path, n_samples=120):
    """A small LIBSVM file."""
    X, y = adfs.generators.two_gaussians(n_samples, 4, seed=3)
    with open(path, "wb") as file:
        dump_svmlight_file(X, y, file, zero_based=False)


def find_browser():
    """Paths of the browser and its driver; without them a skip, or a failure where CI has to."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if browser and driver and importlib.util.find_spec("selenium"):
        return browser, driver
    reason = f"needs Chromium with its driver and selenium: {INSTALL}"
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"CI has to test reports in a browser, and {reason}")
    pytest.skip(reason)
