"""Sphinx builds the site from this file: ``make docs``."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from api_pages import guide_table, inherited_table

project = "hilbin"
author = "The hilbin developers"
copyright = "The hilbin developers"
release = installed_version("hilbin")
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "matplotlib.sphinxext.plot_directive",
    "mathml",
    "measured",
    "short_names",
    "api_pages",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
html_math_renderer = "mathml"
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "_templates"]

# API pages: one per name, types as the docstrings give them.
autosummary_generate = True
autosummary_context = {"guides": guide_table(), "inherited": inherited_table()}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
# scikit-learn's, on every class with sample weights; their text refers to its own glossary
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_partial_fit_request, set_score_request, "
    "set_predict_request, set_decision_function_request, set_score_samples_request"
}
numpydoc_show_class_members = False
nitpicky = True  # every reference must be there; those to scikit-learn's pages are not fetched
nitpick_ignore_regex = [(r"py:.*", r"(sklearn|scipy|numpy|onnxruntime|dask)\..*")]

# Code blocks with prompts run by `sphinx-build -b doctest docs docs/_build/doctest`.
doctest_global_setup = "import numpy as np"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": ExplicitOrder(
        [
            "plot_kernel_matrices.py",
            "plot_sparse_gram.py",
            "plot_feature_maps.py",
            "plot_intersection_svm.py",
            "plot_outliers.py",
            "plot_which_description_counts.py",
            "plot_where_in_the_image.py",
            "plot_structured_outputs.py",
            "plot_find_faces.py",
            "plot_local_cluster.py",
            "plot_compressed_rows.py",
            "plot_own_kernel.py",
            "*",
        ]
    ),
    "doc_module": ("hilbin",),
    "reference_url": {"hilbin": None},
    "backreferences_dir": "gallery/backreferences",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
}

# Pictures of the guides are drawn at build by the scripts in docs/pictures.
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 110)]
plot_rcparams = {"figure.figsize": (7, 3), "figure.autolayout": True, "font.size": 9}
plot_apply_rcparams = True

html_theme = "pydata_sphinx_theme"
html_title = f"hilbin {release}"
html_static_path = ["_static"]
html_css_files = ["hilbin.css"]
html_js_files = ["scroll.js"]
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": f"hilbin {release}"},
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "quickstart")}
