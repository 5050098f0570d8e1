"""Every block of the pages in folders of docs/ runs as it is written.

Two files instead of one, because tests are dealt to processes by files.
"""

import pytest

from support.pages import DOCS, name_of, run, with_code


@pytest.mark.parametrize("page", with_code(sorted(DOCS.glob("*/**/*.md"))), ids=name_of)
def test_every_block_runs(page, tmp_path):
    run(page, tmp_path)
