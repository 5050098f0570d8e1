"""`import adfs` is light: what is heavy, or optional, comes when it is used."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_importing_the_package_imports_nothing_heavy_and_nothing_optional():
    heavy = "{'sklearn', 'numba', 'scipy', 'matplotlib', 'mpi4py'}"
    code = f"import sys, adfs; print(sorted({heavy} & set(sys.modules)), 'Ridge' in dir(adfs))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[] True"
