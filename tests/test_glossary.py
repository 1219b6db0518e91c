"""The glossary names what there is, and the words that it replaced are nowhere."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.test_layout import PRODUCT, ROOT, SOURCES, Source, files

PAGE = ROOT / "docs" / "glossary.md"
ROW = re.compile(r"^\| (?P<term>[^|]+) \| `(?P<path>[\w.]+)` \| (?P<meaning>[^|]+) \|$", re.MULTILINE)
ROWS = [match.groupdict() for match in ROW.finditer(PAGE.read_text("utf-8"))]
MOST = 35

# Names of classes, functions, variables, arguments and attributes that have been replaced: old -> the field's word.
RETIRED_NAMES = {
    "Sighting": "Observation",
    "Survey": "Plans",
    "Reflection": "Informer",
    "Following": "Informer",
    "Agenda": "WorkQueue",
    "Pace": "Backoff",
    "Attentive": "WatchingProvider",
    "strays": "orphans",
    "strangers": "foreign",
    "neighbours": "references",
    "Neighbourhood": "References",
    "Surroundings": "TemplateReferences",
    "surroundings": "template_references",
    "Trouble": "FailedCall",
    "Troubles": "FailedCalls",
    "troubles": "failed_calls",
    "Occasion": "EventGroup",
    "occasion": "event_group",
    "narrate": "events_of_pass",
    "narrator": "event_builder",
    "told": "events, text, message",
    "Seat": "NewPod",
    "seat": "index",
    "Seating": "PodAssignment",
    "seating": "assignment",
    "Sentence": "Termination",
    "Charge": "Breach",
    "witness": "deleted_last",
    "witnesses": "deleted_last",
    "Wish": "DomainRequest",
    "wish": "request",
    "wishes": "domain_requests",
    "Planned": "RequestedDomain",
    "Leaving": "DomainRelease",
    "parting": "release",
    "bygone": "previous_template",
    "crowding": "capacity",
    "crowded": "capacity_notes",
    "Standing": "DomainStatus, ReplicaSummary, ApiSession",
    "standings": "domain_statuses",
    "Scene": "the thing itself",
    "Setup": "Configuration",
    "dress": "decorate_pod",
    "dressed": "decorate_pod",
    "prompt": "urgent",
    "as_seen": "bind_revision",
    "Question": "Query",
    "Offer": "ServedApis",
    "Exacting": "Scheduler",
    "Confined": "NodeSlots",
    "spare_the_collector": "tune_gc",
}

# Names of variables and arguments that do not say what they hold; the product has none.
EMPTY_NAMES = frozenset({"there", "told", "said", "found", "one", "mine", "around"})

# Programs of their own: what they call things is not confused with the product's words.
APART = ("cmd/initc/", "sandbox/src/")

# Words and phrases that stand nowhere, in no file: neither in prose, nor in messages, nor in names.
RETIRED_WORDS = (
    r"sightings?",
    r"bygone",
    r"narrat\w+",
    r"seating",
    r"spare_the_collector",
    r"make it so",
    r"makes? it so",
    r"as it is wanted",
    r"nothing wants it",
    r"of an old template",
    r"names the pods of replica",
    r"seat \d+ of",
    r"lead, look, plan",
)
RETIRED_WORD = re.compile(rf"\b(?:{'|'.join(RETIRED_WORDS)})\b", re.IGNORECASE)


def names(source: Source) -> Iterator[tuple[int, str]]:
    """Every name that a file defines or uses, with its line."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.lineno, node.arg


def retired_names(source: Source) -> Iterator[str]:
    """The places of a file where a retired name stands; a leading underscore makes it no other name."""
    for line, name in names(source):
        if (new := RETIRED_NAMES.get(name.lstrip("_"))) is not None:
            yield f"{source.path}:{line}: {name} (now: {new})"


def empty_names(source: Source) -> Iterator[str]:
    """The places of a file where a variable or an argument has an empty name."""
    for node in source.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY_NAMES:
            yield f"{source.path}:{node.lineno}: {node.id}"
        elif isinstance(node, ast.arg) and node.arg in EMPTY_NAMES:
            yield f"{source.path}:{node.lineno}: {node.arg}"


def defined(path: str) -> bool:
    """Whether a dotted path names something at the top of a module of ours."""
    module, _, name = path.rpartition(".")
    source = next((source for source in SOURCES if source.module == module), None)
    top = ast.parse(source.text).body if source is not None else []
    assigned = (target for node in top if isinstance(node, ast.Assign) for target in node.targets)
    return any(getattr(node, "name", None) == name for node in top) or any(ast.unparse(target) == name for target in assigned)


def test_the_glossary_is_short() -> None:
    assert 0 < len(ROWS) <= MOST
    assert len(ROWS) == len({row["term"] for row in ROWS})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["term"])
def test_a_term_of_the_glossary_exists(row: dict[str, str]) -> None:
    assert defined(row["path"]), f"{row['path']} is not defined"


@pytest.mark.parametrize("word", ["replica", "minimum", "breach", "held back", "settled", "stage", "waits for room"])
def test_the_glossary_has_the_words_of_reports(word: str) -> None:
    words = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", PAGE.read_text("utf-8").partition("## Words of reports")[2], re.MULTILINE)

    assert any(word in listed for listed in words)


@pytest.mark.parametrize("page", ["README.md", "docs/user-guide.md", "docs/architecture.md"])
def test_who_starts_reading_finds_the_glossary(page: str) -> None:
    assert "glossary.md" in (ROOT / page).read_text("utf-8")


def test_no_retired_name_is_left() -> None:
    assert [place for source in SOURCES for place in retired_names(source)] == []


def test_variables_are_named_after_what_they_hold() -> None:
    assert [place for source in PRODUCT for place in empty_names(source)] == []


@pytest.mark.parametrize("is_sandbox", [False, True], ids=["product", "sandbox"])
def test_no_two_classes_have_one_name(is_sandbox: bool) -> None:
    places: dict[str, list[str]] = {}
    for source in PRODUCT:
        if source.path.startswith("sandbox/src/") if is_sandbox else not source.path.startswith(APART):
            for node in ast.parse(source.text).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(source.path)

    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_retired_word_is_left() -> None:
    here = ROOT / "tests" / "test_glossary.py"
    texts = {path: path.read_text("utf-8") for path in files() if path != here}

    assert {str(path.relative_to(ROOT)): found for path, text in texts.items() if (found := RETIRED_WORD.findall(text))} == {}


def test_a_retired_name_is_seen() -> None:
    text = "class Seat: ...\ndef f(told):\n    return told.witness, g(prompt=1), _Scene()"

    assert len(list(retired_names(Source("engine/plan.py", text)))) == 6


def test_an_empty_name_is_seen() -> None:
    assert len(list(empty_names(Source("engine/plan.py", "def f(there):\n    one = there\n    return [found for found in one]")))) == 3


@pytest.mark.parametrize("text", ["the sighting before it", "Make it so, until settled", "2 pods are of an old template"])
def test_a_retired_word_is_seen(text: str) -> None:
    assert RETIRED_WORD.search(text)
