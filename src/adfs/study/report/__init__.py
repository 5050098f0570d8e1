"""Reports: one self-contained HTML page about a run or a comparison, readable without a network.

`train_page` and `compare_page` return the page as text; `adfs train --report` and
`adfs compare --report` write it.
"""

from adfs.study.report.pages import compare_page, train_page

__all__ = ["compare_page", "train_page"]
