"""Sphinx's configuration for the site, whose sources ``tools/reference`` puts together; see ``make docs``."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import anydml
from anydml.operators import OPERATORS

project = "anydml"
author = "the authors of anydml"
copyright = "the authors of anydml, MIT licence"
version = release = anydml.__version__

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 3
nitpicky = True
python_maximum_signature_line_length = 80
add_module_names = False
toc_object_entries_show_parents = "hide"
highlight_language = "none"
exclude_patterns = ["_templates"]

html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_title = "anydml"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_js_files = [("filter.js", {"defer": "defer"}), ("charts.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    "index": [],
    "benchmarks": [],
    "operators/index": [],
    "operators/*": ["family.html"],
}
html_theme_options: dict[str, Any] = {
    "logo": {"text": "anydml"},
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "operators/index": [], "benchmarks": ["page-toc"]},
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_depth": 2,
    "show_toc_level": 2,
    "back_to_top_button": False,
}


def add_family(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Gives an operator's page the operators of its family, for the column beside it."""
    folder, _, name = page.rpartition("/")
    operator = name.upper()
    if folder == "operators" and operator in OPERATORS:
        families = defaultdict(list)
        for each, op in OPERATORS.items():
            families[op.family].append(each)
        family = OPERATORS[operator].family
        context["family"] = family.replace("_", " ")
        context["family_query"] = family
        # A name is broken where its words end.
        heading = f"<h1>{operator}<"
        context["body"] = context["body"].replace(heading, heading.replace("_", "_<wbr>"), 1)
        context["siblings"] = [(each, each.lower(), each == operator) for each in families[family]]


def setup(app: Any) -> dict[str, Any]:
    app.connect("html-page-context", add_family)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
