"""The page about estimators runs as it is written, and `import adfs` stays light."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"


def test_every_code_block_of_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(block, names)  # later blocks use what earlier ones made


def test_importing_the_package_imports_no_scikit_learn():
    code = "import sys, adfs; assert 'sklearn' not in sys.modules; assert 'Ridge' in dir(adfs)"
    subprocess.run([sys.executable, "-c", code], check=True)
