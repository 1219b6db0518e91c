"""The documentation site has every page, leads where the pages lead, and is published one version beside another."""

import json
import os
import posixpath
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from docs.site.pages import IMAGES, LINK, main, moved, placed, prose, site, toctree
from docs.site.reference import document_page, kind_page
from docs.site.versions import menu, versions
from tests.test_layout import ROOT

SITE = site()
BELOW = re.compile(r"^```\{toctree\}\n:hidden:\n\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def navigation(pages: Mapping[str, str]) -> list[str]:
    """Every page that another one has below it."""
    return [f"{name[1:]}.md" for text in pages.values() for names in BELOW.findall(text) for name in names.split("\n")]


def test_the_navigation_has_every_page_of_the_documentation_once() -> None:
    documentation = {placed(path.relative_to(ROOT).as_posix()) for path in (ROOT / "docs").rglob("*.md")}

    assert documentation <= SITE.keys()
    assert Counter(navigation(SITE)) == Counter(SITE.keys() - {"index.md"})


def test_links_between_pages_hold_on_the_site_and_no_link_leaves_it_for_a_file() -> None:
    texts = ((name, re.sub(r"`[^`\n]+`", "", part)) for name, text in SITE.items() for part in prose(text))
    links = [(name, link["place"]) for name, text in texts for link in LINK.finditer(text) if link["place"]]
    inside = {(name, place) for name, place in links if ":" not in place and not place.endswith(IMAGES)}
    lost = [(name, place) for name, place in inside if posixpath.normpath(posixpath.join(posixpath.dirname(name), place)) not in SITE]

    assert len(inside) > 300 and lost == []


def test_a_link_to_a_source_leads_to_its_address_or_is_its_text() -> None:
    text = "See [the *rules*](../deploy/prometheus/rules.yaml), [all](../examples/ci#jobs) and [plans](schema/plan.json).\n"
    address = "https://git.example.com/grove/blob/v1"

    assert "See the *rules*, [all](../examples/ci/index.md#jobs) and [plans](../reference/plan.md)." in moved(
        text, "docs/x.md", "docs/x.md", ""
    )
    assert f"[the *rules*]({address}/deploy/prometheus/rules.yaml)" in moved(text, "docs/x.md", "docs/x.md", address)


def test_blocks_of_code_stay_as_they_are_and_anchors_become_attributes() -> None:
    text = '<a id="r1"></a>A [rule](README.md).\n\n```\n<a id="r2"></a>[a rule](README.md)\n```\n'

    assert moved(text, "docs/x.md", "x.md", "") == text.replace('<a id="r1"></a>', "[]{#r1}").replace("(README.md).", "(docs/index.md).")


def test_the_reference_has_a_page_for_each_kind_and_each_document() -> None:
    kinds = {
        yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]["names"]["kind"].lower() for path in (ROOT / "deploy" / "crds").glob("*.yaml")
    }
    documents = {path.stem for path in (ROOT / "docs" / "schema").glob("*.json")}

    assert {f"reference/{name}.md" for name in kinds | documents | {"index"}} == {name for name in SITE if name.startswith("reference/")}
    sets = SITE["reference/podcliqueset.md"]
    assert "## spec.template.cliques[].spec\n" in sets and "| `podSpec` | PodSpec |" in sets and "| `containers` |" not in sets
    assert "[DiffDocument]" not in SITE["reference/diff.md"].partition("## ")[0] and "| [Summary](#summary) |" in SITE["reference/diff.md"]


def test_a_field_of_a_kind_has_its_type_its_default_and_its_limits() -> None:
    colour = {"type": "string", "description": "Red | <blue>.", "enum": ["red", "blue"], "default": "red"}
    many = {"type": "array", "items": {"type": "object", "properties": {"port": {"x-kubernetes-int-or-string": True}}}, "maxItems": 3}
    spec = {"type": "object", "properties": {"colour": colour, "many": many}, "required": ["colour"]}
    names = {"kind": "Thing", "plural": "things", "shortNames": ["th"]}
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"description": "A thing.", "properties": {"spec": spec}}}}

    name, page = kind_page({"spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}})

    assert name == "thing" and page.startswith(
        "# Thing\n\nA thing.\n\n`apiVersion: example.com/v1`, in a namespace, for kubectl `things`, `th`."
    )
    assert [line for line in page.splitlines() if line.startswith(("## ", "| `"))] == [
        "## spec",
        "| `colour` | string | Required. Red \\| \\<blue\\>. One of `red`, `blue`. Default: `red`. |",
        "| `many` | list of object | Number of entries at most 3. |",
        "## spec.many[]",
        "| `port` | integer or string |  |",
    ]


def test_a_document_shows_its_own_fields_first_and_then_its_definitions() -> None:
    part = {"type": "object", "description": "A part.", "properties": {"size": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}
    whole = {"type": "object", "description": "All.", "properties": {"parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}}}}

    page = document_page({"title": "engine x -o json", "$ref": "#/$defs/Whole", "$defs": {"Part": part, "Whole": whole}})

    assert re.findall(r"^#+ .*$", page, re.MULTILINE) == ["# engine x -o json", "## Whole", "## Part"]
    assert "| `parts` | list of [Part](#part) |  |" in page and "| `size` | integer or null |  |" in page


def test_the_newest_release_comes_first_and_main_last() -> None:
    assert versions(["main", "0.9.0", "0.10.0", "0.9.11"]) == ["0.10.0", "0.9.11", "0.9.0", "main"]
    assert menu(["0.2.0", "main"], "https://x.example") == [
        {"name": "0.2.0", "version": "0.2.0", "url": "https://x.example/0.2.0/", "preferred": True},
        {"name": "main", "version": "main", "url": "https://x.example/main/", "preferred": False},
    ]


def test_versions_are_published_beside_one_another_and_a_later_one_of_the_same_name_replaces_it(tmp_path: Path) -> None:
    remote, built = tmp_path / "remote.git", tmp_path / "built"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    built.mkdir()

    def publish(version: str, text: str) -> None:
        (built / "index.html").write_text(text)
        arguments = (str(built), version, str(remote), "https://x.example/")
        subprocess.run([str(ROOT / "docs" / "site" / "publish"), *arguments], check=True, capture_output=True)

    def published(name: str) -> str:
        return subprocess.run(["git", "show", f"gh-pages:{name}"], cwd=remote, check=True, capture_output=True, text=True).stdout

    publish("main", "first")
    assert 'url=main/"' in published("index.html")
    publish("0.1.0", "released")
    publish("main", "second")
    publish("main", "second")

    assert [published(f"{version}/index.html") for version in ("0.1.0", "main")] == ["released", "second"]
    assert [each["name"] for each in json.loads(published("versions.json"))] == ["0.1.0", "main"]
    assert 'url=0.1.0/"' in published("index.html")
    log = subprocess.run(["git", "log", "--format=%s", "gh-pages"], cwd=remote, check=True, capture_output=True, text=True).stdout
    assert log.splitlines() == ["Publish main", "Publish 0.1.0", "Publish main"]


def built(folder: Path, address: str = "") -> tuple[int, str]:
    """Build `folder/site` from `folder/pages`: the exit code and the warnings."""
    options = ("--quiet", "--fail-on-warning", "-c", str(ROOT / "docs" / "site"), "-d", str(folder / "doctrees"))
    command = [sys.executable, "-m", "sphinx", *options, str(folder / "pages"), str(folder / "site")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "DOCS_ADDRESS": address})
    return done.returncode, done.stderr


@pytest.mark.skipif(not find_spec("sphinx"), reason="needs the extra `docs`, which `make docs` installs")
def test_the_site_is_built_without_a_warning_searches_and_asks_no_other_host(tmp_path: Path) -> None:
    main(tmp_path / "pages")

    assert built(tmp_path, address="https://x.example") == (0, "")
    page = (tmp_path / "site" / "docs" / "tutorial.html").read_text()
    assert "https://x.example/versions.json" in page
    assert re.findall(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//[^"]+', page) == []
    assert re.findall(r'<link[^>]+rel="(?:stylesheet|preload)"[^>]+href="(?:https?:)?//[^"]+', page) == []
    assert "podcliqueset" in (tmp_path / "site" / "searchindex.js").read_text()
    assert lost_links(tmp_path / "site") == []


def lost_links(folder: Path) -> list[tuple[str, str]]:
    """The links of built pages to files that are not there: the page and the link."""
    links = ((page, link) for page in folder.rglob("*.html") for link in re.findall(r'\b(?:href|src)="([^"#?:]+)[^":]*"', page.read_text()))
    return [(page.name, link) for page, link in links if not (page.parent / unquote(link)).exists()]


@pytest.mark.skipif(not find_spec("sphinx"), reason="needs the extra `docs`, which `make docs` installs")
@pytest.mark.parametrize("link", ["missing.md", "#nowhere", "other.md#nowhere"])
def test_a_link_that_leads_nowhere_fails_the_build(link: str, tmp_path: Path) -> None:
    pages = {"index.md": f"# Index\n\n[link]({link}) [rule](other.md#r1){toctree(['other.md'])}", "other.md": "# Other\n\n[]{#r1}A rule.\n"}
    (tmp_path / "pages").mkdir()
    for name, text in pages.items():
        (tmp_path / "pages" / name).write_text(text)

    assert built(tmp_path)[0] != 0
    (tmp_path / "pages" / "index.md").write_text(pages["index.md"].replace(link, "other.md"))
    assert built(tmp_path) == (0, "")
