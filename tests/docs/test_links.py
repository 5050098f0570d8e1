"""Links between pages lead somewhere, as files of the repository (the site has its own test)."""

import pytest

from pages_for_tests import DOCS, PAGES, anchors, links, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings_that_exist(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target}: no such file"
        if anchor:
            assert anchor in anchors(file), f"{target}: {sorted(anchors(file))}"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_pages_of_the_site_do_not_link_to_folders(page):
    # A host of repositories shows a folder; the site has nothing to show there.
    paths = [target.partition("#")[0] for target in links(page)]
    assert not [path for path in paths if path and (page.parent / path).is_dir()]


def test_every_page_is_linked_from_an_index():
    # These links are the site's table of contents (docs/conf.py).
    tables = [DOCS / "index.md", *DOCS.glob("*/index.md")]
    listed = {(table.parent / target).resolve() for table in tables for target in links(table)}
    missing = set(DOCS.rglob("*.md")) - listed - {DOCS / "index.md"}
    assert not missing, f"link them from docs/index.md: {sorted(map(name_of, missing))}"


def test_every_picture_is_shown_by_a_page():
    shown = {(page.parent / target).resolve() for page in PAGES for target in links(page)}
    pictures = {path for path in (DOCS / "pictures").rglob("*.*")}
    assert pictures <= shown
