"""How Sphinx builds the site from the pages that pages.py writes (`make docs`).

DOCS_VERSION names the version (default: the one of the engine), DOCS_ADDRESS the address under which all versions are published, for the
menu of versions; without it there is no menu.
"""

import os
from pathlib import Path
from typing import Any, Final

from engine.version import VERSION

project = "grove-engine"
version = release = os.environ.get("DOCS_VERSION") or VERSION
address: Final = os.environ.get("DOCS_ADDRESS", "")

extensions = ["myst_parser"]
root_doc = "index"
highlight_language = "text"
# Options have two hyphens.
smartquotes = False
# A block is highlighted as far as its lexer goes: `yaml` with a template, output of a terminal.
suppress_warnings = ["misc.highlighting_failure"]

# Links to headings are those of GitHub; anchors that a page sets itself are attributes (pages.py).
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]

html_theme = "pydata_sphinx_theme"
html_title = f"grove-engine {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options: dict[str, Any] = {
    "header_links_before_dropdown": 8,
    "navbar_end": ["version-switcher", "theme-switcher"] if address else ["theme-switcher"],
    "show_toc_level": 2,
    "footer_start": [],
    "footer_end": [],
    # The list is read by the browser: it is that of all versions that are published, also of later ones.
    "check_switcher": False,
}
if address:
    html_theme_options["switcher"] = {"json_url": f"{address}/versions.json", "version_match": version}


def setup(app: Any) -> None:
    """Leave out what the theme stores beside its files: a template, whose links lead nowhere."""
    app.connect("build-finished", lambda built, error: (Path(built.outdir) / "_static" / "webpack-macros.html").unlink(missing_ok=True))
