"""Every entry of docs/paper-map.md names a function and a test that exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?P<paper>[^|]+) \| `(?P<function>[\w.]+)` \| `(?P<test>[^`]+)` \|$")


def entries():
    """Rows of the table below its head."""
    lines = (ROOT / "docs" / "paper-map.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    return [ROW.match(line) or line for line in table]


def resolve(name):
    """The object behind a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name} is no module")


@pytest.mark.parametrize("entry", entries(), ids=lambda e: e["paper"] if hasattr(e, "group") else e)
def test_function_and_test_of_an_entry_exist(entry):
    assert hasattr(entry, "group"), f"row is not `paper | function | test`: {entry}"
    assert resolve(entry["function"]) is not None
    path, _, name = entry["test"].partition("::")
    source = (ROOT / path).read_text()
    assert re.search(rf"^def {name or 'test_'}", source, re.MULTILINE)


def test_the_map_is_not_empty():
    assert len(entries()) > 20
