"""Pages lead where they say, speak of what there is, and hold every rule that code and tests cite."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from resources.settings import read
from tests.test_layout import FOLDERS, GENERATED, ROOT, SOURCES, files

PAGES = sorted(path for path in files() if path.suffix == ".md")
RULE = re.compile(r"(?<![\w-])[RNTQCIMU][1-9]\d?(?![\w-])")
"""A rule by its number: R26, N9, T10, Q16."""
LINK = re.compile(r"\]\(([^)\s]+)\)")


ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
"""An anchor that a page sets itself."""


def anchors(page: Path) -> set[str]:
    """The anchors of a page: those that GitHub makes of its headings, and its own."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(ANCHOR.findall(text))


NOT_PROSE = re.compile(r"^```.*?^```$|`[^`\n]*`|^#.*?$|<a id=\"\w+\"></a>\**\w+", re.MULTILINE | re.DOTALL)
"""Code, headings, and a rule where it is stated."""


def broken(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for link in LINK.findall(page.read_text()):
        place, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_every_page_of_the_documentation_is_reached_from_the_readme() -> None:
    reached, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            places = (link.partition("#")[0] for link in LINK.findall(page.read_text()) if "://" not in link)
            ahead += [(page.parent / place).resolve() for place in places if place.endswith(".md")]

    assert [page for page in (ROOT / "docs").rglob("*.md") if page not in reached] == []


def test_the_tree_of_the_architecture_has_every_folder() -> None:
    tree = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    top = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in GENERATED and not path.name.startswith(".")}
    nested = {folder for parent in FOLDERS for folder in FOLDERS[parent]}

    assert (top | nested) - {"docs"} - set(re.findall(r"\w+", tree)) == set()


def test_every_rule_that_is_cited_has_an_anchor() -> None:
    stated = {anchor.upper() for page in (ROOT / "docs" / "behaviour").glob("*.md") for anchor in ANCHOR.findall(page.read_text())}
    cited = {rule: source.path for source in SOURCES for text in texts(source.text) for rule in RULE.findall(text)}

    assert {rule: path for rule, path in cited.items() if rule not in stated} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_that_cites_a_rule_links_to_it(page: Path) -> None:
    text = NOT_PROSE.sub("", page.read_text())
    linked = re.findall(rf"\[({RULE.pattern})\]\(([^)]*)\)", text)

    assert [(rule, link) for rule, link in linked if link.partition("#")[2] != rule.lower()] == []
    assert RULE.findall(re.sub(r"\[[^\]]*\]\([^)]*\)", "", text)) == []


def texts(code: str) -> list[str]:
    """Where code speaks to people: docstrings and comments."""
    return re.findall(r'"""(.*?)"""', code, re.DOTALL) + re.findall(r"# (.*)$", code, re.MULTILINE)


def test_every_rule_about_domains_has_a_row() -> None:
    page = (ROOT / "docs" / "behaviour" / "compute-domains.md").read_text()
    rows = re.findall(r"^\| <a id=\"\w+\"></a>([RNTC]\d+) \|", page, re.MULTILINE)

    expected = [f"{letter}{number}" for letter, last in (("R", 59), ("N", 35), ("T", 18), ("C", 12)) for number in range(1, last + 1)]
    assert sorted(rows) == sorted(expected)


RECORDS = sorted(path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md")
RECORD = re.compile(
    r"# .+\n\n\d{4}-\d\d-\d\d\n\n## Context\n\n.+\n## Decision\n\n.+\n## Alternatives\n\n- .+\n## Consequences\n\n.+", re.DOTALL
)
"""A record of a decision: its title, its date and its four parts."""
LONGEST_LINE, SHORTEST_RECORD, LONGEST_RECORD = 120, 80, 300


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_decision_has_a_date_a_context_its_alternatives_and_its_consequences(record: Path) -> None:
    text = record.read_text()

    assert RECORD.fullmatch(text)
    assert SHORTEST_RECORD <= len(text.split()) <= LONGEST_RECORD
    assert [line for line in text.splitlines() if len(line) > LONGEST_LINE] == []


WITHOUT_PROSE = re.compile(r"^(`{3,}).*?^\1$|^\|.*?$|^ {4}.*?$", re.MULTILINE | re.DOTALL)
"""Code and tables, whose lines are as long as they must be."""


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lines_of_prose_end_at_120_characters(page: Path) -> None:
    lines = WITHOUT_PROSE.sub("", page.read_text()).splitlines()

    assert [line for line in lines if len(line) > LONGEST_LINE and " " in line.strip()] == []


def test_the_index_has_a_line_for_each_decision() -> None:
    lines = re.findall(r"^- (\S+) \[(.+)\]\((.+)\)$", (ROOT / "docs" / "decisions" / "README.md").read_text(), re.MULTILINE)
    heads = (tuple(record.read_text().split("\n\n")[:2]) for record in RECORDS)

    assert sorted(lines) == sorted(
        (date, title.removeprefix("# "), record.name) for (title, date), record in zip(heads, RECORDS, strict=True)
    )


def configurations() -> Iterator[object]:
    """Every operator configuration in a page or an example."""
    blocks = (block for page in PAGES for block in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))
    shipped = (path.read_text() for path in (ROOT / "examples").rglob("operator.yaml"))
    yield from (yaml.load(text, yaml.CSafeLoader) for text in (*blocks, *shipped) if "kind: OperatorConfiguration" in text)


def test_configurations_that_are_shown_are_understood() -> None:
    found = [read(configuration) for configuration in configurations()]

    assert len(found) >= 2
    assert all(unknown == () for _, unknown in found)
    assert sum(settings.network.auto_mnnvl_enabled for settings, _ in found) >= 2


def explained() -> list[str]:
    """The messages that the user guide explains."""
    table = (ROOT / "docs" / "user-guide.md").read_text().partition("\n## Troubleshooting\n")[2]
    return [message for row in re.findall(r"^\| (`.*?) \| ", table, re.MULTILINE) for message in re.findall(r"`([^`]+)`", row)]


def test_the_messages_that_the_user_guide_explains_are_ours() -> None:
    code = "\n".join(source.text for source in SOURCES if not source.path.startswith("tests/"))
    parts = {part.strip(" :") for message in explained() for part in re.split(r"…|: |denied by ", message)}

    assert len(explained()) >= 20
    assert sorted(part for part in parts if part not in code) == []


COMPUTED = {
    "architecture.md": r"^```python$.*?^```$",
    "operations.md": r"^\| `\w+` \| (?:counter|gauge|histogram) \|.*?$",
    "permissions.md": r"^<!-- permissions -->$.*?^<!-- end -->$",
    "performance.md": r"^<!-- (?P<section>bench-cluster|bench-cluster-profile|growth) -->$.*?^<!-- /(?P=section) -->$",
    "policy.md": r"^\| `\w+` \| `(?:string|int|bool|[A-Z]\w+|\w+\(.*?\))` \|.*?$",
}
"""What is computed, or held equal to code line by line: an example, metrics, permissions, benchmarks, types of policies."""
MOST_WORDS = 50_000


def words(page: Path) -> int:
    """The words of a page outside of computed tables; what has neither letter nor digit, e.g. the bars of tables, is none."""
    computed = COMPUTED.get(page.relative_to(ROOT / "docs").as_posix(), r"(?!)")
    return len(re.findall(r"\S*\w\S*", re.sub(computed, "", page.read_text(), flags=re.MULTILINE | re.DOTALL)))


def test_the_documentation_without_its_decisions_is_short() -> None:
    counted = {page: words(page) for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts}

    assert sum(counted.values()) <= MOST_WORDS, sorted(((number, page.name) for page, number in counted.items()), reverse=True)


def test_every_page_with_computed_tables_has_them() -> None:
    assert all(re.search(table, (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL) for page, table in COMPUTED.items())
