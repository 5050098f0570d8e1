"""Every block of README.md and of the pages at the top of docs/ runs as it is written."""

import pytest

from support.pages import DOCS, ROOT, name_of, run, with_code

HERE = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", with_code(HERE), ids=name_of)
def test_every_block_runs(page, tmp_path):
    run(page, tmp_path)
