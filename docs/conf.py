"""How the documentation becomes a site: `make docs`, that is Sphinx with MyST and the theme furo.

Pages are plain Markdown that also reads well where the repository is hosted. So the table of
contents is not written twice: the links of `index.md`, heading by heading, are the table, and so
are the links of a folder's `index.md` to the pages beside it.
"""

import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "adfs"
author = "The ADFS developers"
project_copyright = "The ADFS developers, BSD-3-Clause"
version = release = re.search(
    r'__version__ = "([^"]+)"', (ROOT / "src" / "adfs" / "__init__.py").read_text()
)[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say types in words
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"
default_role = "py:obj"
nitpicky = True
# Only our own public names have to resolve: there is no network to look others up.
nitpick_ignore_regex = [("py:.*", r"(?!adfs\.).*")]
nitpick_ignore = [("py:obj", "adfs.estimators.elimination"), ("py:obj", "adfs.losses")]  # rooms

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"adfs {release}"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}

LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:|\.\./)([\w./-]+)\.md\)")


def contents(text: str) -> str:
    """The table of contents that a text's links make; their words are the entries."""
    entries = {page: words.replace("`", "") for words, page in reversed(LINK.findall(text))}
    lines = [f"{words} <{page}>" for page, words in reversed(entries.items())]
    return "\n".join(lines)


def toctree(entries: str, caption: str = "") -> str:
    """MyST's directive for a part of the table that is shown at the side only."""
    options = f":caption: {caption}\n:hidden:\n" if caption else ":hidden:\n"
    return f"\n\n```{{toctree}}\n{options}\n{entries}\n```\n" if entries else ""


def add_contents(app, name, source):
    """Give the first page, and those of folders, their tables of contents."""
    text = source[0]
    if name == "index":
        parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
        for caption, body in zip(parts[::2], parts[1::2], strict=True):
            source[0] += toctree(contents(body), caption)
    elif name.endswith("/index"):
        source[0] += toctree(contents(text))


BARS = re.compile('<mo(?: class="mathopen")?>\u2016</mo>')  # of norms: as high as what they embrace


def spelled_out(tex: str) -> str:
    """Two habits of TeX that the converter does not know: sizes without a side, bare fractions."""
    tex = re.sub(r"\\([bB]igg?)(?![A-Za-z])", r"\\\1l", tex)
    return re.sub(r"\\([td]?frac)\s*(\w)\s*(\w|\\[A-Za-z]+)", r"\\\1{\2}{\3}", tex)


def as_mathml(as_block: bool):
    """What writes a formula: browsers draw MathML themselves, so no page loads anything."""

    def visit(writer, node):
        try:
            drawn = tex2mathml(spelled_out(node.astext()), as_block=as_block)
            drawn = BARS.sub('<mo stretchy="false">\u2016</mo>', drawn)
            writer.body.append(f'<div class="math">{drawn}</div>\n' if as_block else drawn)
        except MathError as error:
            logging.getLogger(__name__).warning("%s in %s", error, node.astext(), location=node)
        raise nodes.SkipNode

    return visit, None


def setup(app):
    """Sphinx calls this."""
    app.connect("source-read", add_contents)
    app.add_html_math_renderer("mathml", as_mathml(as_block=False), as_mathml(as_block=True))
