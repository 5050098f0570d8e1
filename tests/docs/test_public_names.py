"""Pages and examples use public names only: those of `adfs`, `adfs.apcg` and `adfs.plugins`."""

import ast
import doctest
import importlib

import pytest

import adfs
from support.pages import PAGES, PYTHON, ROOT, blocks, name_of

MODULES = ("adfs", "adfs.apcg", "adfs.plugins")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def code_of(page):
    """Texts of Python on a page; of an interactive session, what was typed."""
    found = [block.text for block in blocks(page) if block.language in PYTHON]
    session = doctest.script_from_examples
    return [session(text) if ">>> " in text else text for text in found]


def private_names(text):
    """Names of `adfs` that a program uses and that are not public."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (n for n in names if n.startswith("adfs.") and n not in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "adfs":
            yield from (f"{node.module}.{a.name}" for a in node.names if not public(node.module, a))
        elif isinstance(node, ast.Attribute) and is_private(node):
            yield f"adfs.{node.attr}"


def is_private(node):
    """Whether an attribute of `adfs` itself is not public."""
    known = (*adfs.__all__, "__version__")
    return ast.unparse(node.value) == "adfs" and node.attr not in known


def public(module, alias):
    return module in MODULES and alias.name in importlib.import_module(module).__all__


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_use_public_names_only(page):
    assert not [name for text in code_of(page) for name in private_names(text)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_use_public_names_only(example):
    assert not list(private_names(example.read_text()))


@pytest.mark.parametrize("name", adfs.__all__)
def test_every_public_name_exists(name):
    assert getattr(adfs, name) is not None
