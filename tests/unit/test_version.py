"""One version: package, pyproject.toml, CITATION.cff and the newest section of the changelog."""

import re
from pathlib import Path

import pytest

import adfs

ROOT = Path(__file__).parents[2]
PLACES = {
    "pyproject.toml": r'^version = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## \[(\d.+?)\] - \d{4}-\d\d-\d\d$",
}


@pytest.mark.parametrize("name", PLACES)
def test_every_place_has_the_version_of_the_package(name):
    found = re.search(PLACES[name], (ROOT / name).read_text(), re.MULTILINE)
    assert found[1] == adfs.__version__


def test_the_changelog_has_a_place_for_what_comes_next():
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()
