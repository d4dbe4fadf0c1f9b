"""The site that `make docs` builds from these pages.

README.md is its first page; the pages that the tables there link to are its contents, section by
section, so that a page that is not listed fails the build.
"""

import re

project = "marin-profile"
html_title = project
extensions = ["myst_parser"]
root_doc = "README"
exclude_patterns = ["images"]
myst_heading_anchors = 4
highlight_language = "none"
html_theme = "furo"
html_copy_source = False
html_show_copyright = False

_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_PAGE = re.compile(r"^\| \[[^\]]+\]\((\S+)\.md\)", re.MULTILINE)


def with_contents(app, docname: str, source: list[str]) -> None:
    if docname != root_doc:
        return
    for caption, text in _SECTION.findall(source[0]):
        pages = "\n".join(_PAGE.findall(text))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def setup(app) -> None:
    app.connect("source-read", with_contents)
