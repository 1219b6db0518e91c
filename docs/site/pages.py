"""The pages of the documentation site: those that the README leads to, as they are, a reference, and the navigation.

    python -m docs.site.pages FOLDER       # `make docs`, which then builds the site from the folder

Writes each page at its own path, with links that hold on the site: those to other pages, to pages of the reference for the schemas in
docs/schema, and to sources at the address that DOCS_SOURCE names. Without an address a link to a source is only its text.
"""

import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from docs.site.reference import references

ROOT: Final = Path(__file__).parents[2]
HOME: Final = "README.md"
GUIDE: Final = "docs/README.md"
"""The page whose headings are the sections of the site, e.g. `## Users: run workloads`."""
REFERENCE: Final = "reference/index.md"
SCHEMAS: Final = "docs/schema"
IMAGES: Final = (".svg", ".png")
LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<place>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
ANCHOR: Final = re.compile(r'<a id="([^"]+)"></a>')
"""An anchor that a page sets itself. Links find it if it is written as an attribute."""
CODE: Final = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
HEADING: Final = re.compile(r"^## (?P<title>[^:\n]+): (?P<purpose>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A section of the site: its page, and the names of the pages below it, in their order."""

    name: str
    text: str
    pages: tuple[str, ...]


def main(folder: Path) -> None:
    """Write what the site is built from into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in sorted(site(os.environ.get("DOCS_SOURCE", "")).items()):
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
    for image in sorted(images()):
        (folder / image).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / image, folder / image)


def site(source: str = "") -> Mapping[str, str]:
    """Every page of the site by its name there. `source` is the address of the project's tree, or empty."""
    pages = {placed(page): moved(text_of(page), page, placed(page), source) for page in reached()}
    below = {placed(page): [placed(child) for child in found] for page, found in children().items()}
    for section in sections():
        name = f"{section.name}.md"
        pages[name] = moved(section.text, GUIDE, name, source)
        below[name] = [placed(page) for page in section.pages]
    reference = references(ROOT)
    below[REFERENCE] = [name for name in reference if name != REFERENCE]
    *tops, project = (f"{section.name}.md" for section in sections())
    below[placed(HOME)] = [*tops, REFERENCE, project]
    return {name: text + toctree(below.get(name, ())) for name, text in (pages | reference).items()}


def placed(page: str) -> str:
    """Where a page of the project is on the site: a README is the index of its folder."""
    folder, name = posixpath.split(page)
    return posixpath.join(folder, "index.md" if name == "README.md" else name)


def toctree(pages: Iterable[str]) -> str:
    """The directive that puts pages of the site below the one that has it; empty without any."""
    names = "\n".join(f"/{page.removesuffix('.md')}" for page in pages)
    return f"\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n" if names else ""


@cache
def text_of(page: str) -> str:
    """The text of a page of the project."""
    return (ROOT / page).read_text()


@cache
def reached() -> tuple[str, ...]:
    """The pages that links lead to, from the README on, in the order in which they are found."""
    found, ahead = dict[str, None](), [HOME]
    while ahead:
        page = ahead.pop(0)
        if page not in found:
            found[page] = None
            ahead += targets(text_of(page), page)
    return tuple(found)


def targets(text: str, page: str) -> list[str]:
    """The pages of the project that a text of a page links to, in their order; a folder is its README."""
    places = (target(page, link["place"]) for part in prose(text) for link in LINK.finditer(part))
    return [place for place in places if place.endswith(".md")]


def target(page: str, place: str) -> str:
    """What a link leads to, as a path in the project; empty for another site, for the page itself, and for what does not exist."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), place))
    if not place or ":" in place or path.startswith("..") or not (ROOT / path).exists():
        return ""
    readme = posixpath.join(path, "README.md")
    return readme if (ROOT / readme).exists() else path


def prose(text: str) -> Iterator[str]:
    """The parts of a page outside of blocks of code."""
    end = 0
    for block in CODE.finditer(text):
        yield text[end : block.start()]
        end = block.end()
    yield text[end:]


@cache
def children() -> Mapping[str, Sequence[str]]:
    """Pages that are below the README of their folder, by that README: first those that it links to, then the others by name."""
    found: dict[str, list[str]] = {}
    for page in reached():
        if readme := parent(page):
            found.setdefault(readme, []).append(page)
    for readme, pages in found.items():
        linked = targets(text_of(readme), readme)
        pages.sort(key=lambda page: (linked.index(page) if page in linked else len(linked), page))
    return found


def parent(page: str) -> str:
    """The README that a page is below: of a folder of docs/. Empty for pages of sections."""
    folder, name = posixpath.split(page)
    readme = posixpath.join(folder, "README.md")
    return readme if name != "README.md" and folder.startswith("docs/") and (ROOT / readme).exists() else ""


@cache
def sections() -> tuple[Section, ...]:
    """The sections: those of the guide, the examples, and the project with every page that no other has."""
    found = list[Section]()
    left = [page for page in reached() if page != HOME and not parent(page)]
    headings = [*HEADING.finditer(text_of(GUIDE))]
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        body = text_of(GUIDE)[heading.end() : following.start() if following else None]
        pages = tuple(dict.fromkeys(page for page in targets(body, GUIDE) if page in left))
        left = [page for page in left if page not in pages]
        purpose = heading["purpose"][0].upper() + heading["purpose"][1:]
        found.append(Section(heading["title"].lower(), f"# {heading['title']}\n\n{purpose}.\n{body}", pages))
    examples = tuple(sorted(page for page in left if page.startswith("examples/")))
    project = tuple(page for page in left if page not in examples)
    return (*found, listed("Examples", examples), listed("Project", project))


def listed(title: str, pages: tuple[str, ...]) -> Section:
    """A section whose page is a list of its pages by their headings."""
    headings = {page: re.sub(r"^# ", "", text_of(page).partition("\n")[0]) for page in pages}
    lines = [f"- [{heading}]({posixpath.relpath(page, posixpath.dirname(GUIDE))})" for page, heading in headings.items()]
    return Section(title.lower(), f"# {title}\n\n" + "\n".join(lines) + "\n", pages)


def moved(text: str, page: str, name: str, source: str) -> str:
    """A text of a page of the project, with links that hold where it is on the site."""
    parts, end = [], 0
    for block in CODE.finditer(text):
        parts += [linked(text[end : block.start()], page, name, source), block.group()]
        end = block.end()
    return "".join([*parts, linked(text[end:], page, name, source)])


def linked(text: str, page: str, name: str, source: str) -> str:
    """A text without blocks of code, with its links and anchors replaced."""

    def replaced(link: re.Match[str]) -> str:
        path, anchor = target(page, link["place"]), link["anchor"] or ""
        if not path or (link["image"] and path.endswith(IMAGES)):
            return link.group()
        if path in reached() or path.startswith(SCHEMAS):
            return f"[{link['text']}]({posixpath.relpath(on_site(path), posixpath.dirname(name) or '.')}{anchor})"
        return f"[{link['text']}]({source}/{path}{anchor})" if source else link["text"]

    return ANCHOR.sub(r"[]{#\1}", LINK.sub(replaced, text))


def on_site(path: str) -> str:
    """The page of the site that shows a page of the project, or a schema."""
    if path.startswith(SCHEMAS):
        return f"reference/{Path(path).stem}.md" if path.endswith(".json") else REFERENCE
    return placed(path)


def images() -> set[str]:
    """The pictures that pages show."""
    shown = ((page, link) for page in reached() for link in LINK.finditer(text_of(page)) if link["image"])
    return {path for page, link in shown if (path := target(page, link["place"])).endswith(IMAGES)}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
