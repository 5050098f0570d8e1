"""How the documentation becomes a site with `make docs`: Sphinx, MyST and the theme furo."""

import re
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "adfs"
author = "The ADFS developers"
project_copyright = "The ADFS developers, BSD-3-Clause"
version = release = re.search(
    r'__version__ = "([^"]+)"', (ROOT / "src" / "adfs" / "__init__.py").read_text()
)[1]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",  # writes formulas as \( \) and \[ \]; KaTeX draws them, see below
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["deflist", "dollarmath", "amsmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say types in words
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # keeps the underscore of coef_
toc_object_entries_show_parents = "hide"
templates_path = ["_templates"]
exclude_patterns = ["_templates"]
default_role = "py:obj"
nitpicky = True
# Only our own public names have to resolve: there is no network to look others up.
nitpick_ignore_regex = [("py:.*", r"(?!adfs\.).*")]
# Modules that docstrings name for readers of the source.
INTERNAL = ("losses", "kernels.loss_functions", "apcg.solver.apcg")
nitpick_ignore = [("py:obj", f"adfs.{name}") for name in INTERNAL]

copybutton_exclude = ".linenos, .gp, .go"  # copy commands without prompts and output

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder(
        [
            "demo.py",
            "graph.py",
            "timeline.py",
            "convergence.py",
            "comparison.py",
            "ranks.py",
            "own_method.py",
        ]
    ),
    "download_all_examples": False,
    "show_memory": False,
    "capture_repr": (),
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

html_theme = "furo"
html_title = f"adfs {release}"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["katex/katex.min.css", "site.css"]
html_js_files = [("katex/katex.min.js", {"defer": "defer"})]
mathjax_path = "math.js"
mathjax_options = {"defer": "defer"}
html_theme_options = {"navigation_with_keys": True}
