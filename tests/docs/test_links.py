"""Links between pages lead somewhere, as files of the repository (the site has its own test)."""

import pytest

from support.pages import DOCS, PAGES, anchors, links, name_of


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


def test_every_picture_is_shown_by_a_page():
    shown = {(page.parent / target).resolve() for page in PAGES for target in links(page)}
    pictures = {path for path in (DOCS / "pictures").rglob("*.*")}
    assert pictures <= shown
