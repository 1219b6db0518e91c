"""Issues: paths, values and messages as text."""

import pytest

from resources.schema.issues import ErrorType, Issue, Path, Rejected, shown, spelled


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec",), "spec"),
        (("spec", "template", "cliques", 1, "name"), "spec.template.cliques[1].name"),
        (("metadata", "labels", "grove.io/x"), "metadata.labels[grove.io/x]"),
        (("metadata", "labels", "app-name"), "metadata.labels.app-name"),
        (("a b",), "[a b]"),
        (("\x1b[31m",), "[\\x1b[31m]"),
    ],
)
def test_a_path_as_text(path: Path, text: str) -> None:
    assert spelled(path) == text


@pytest.mark.parametrize(
    ("issue", "text"),
    [
        (
            Issue(("spec", "replicas"), ErrorType.INVALID, "must be greater than 0", 0),
            "spec.replicas: Invalid value: 0: must be greater than 0",
        ),
        (Issue(("spec", "name"), ErrorType.REQUIRED, "field cannot be empty"), "spec.name: Required value: field cannot be empty"),
        (Issue(("spec", "name"), ErrorType.DUPLICATE, value="a"), 'spec.name: Duplicate value: "a"'),
        (Issue(("spec",), ErrorType.FORBIDDEN, "not now"), "spec: Forbidden: not now"),
        (Issue(("spec", "x"), ErrorType.UNKNOWN), "spec.x: unknown field"),
        (Issue((), ErrorType.MALFORMED, "must be an object"), "must be an object"),
    ],
)
def test_an_issue_has_the_words_of_kubernetes(issue: Issue, text: str) -> None:
    assert str(issue) == text


@pytest.mark.parametrize(
    ("value", "text"), [("a", '"a"'), (None, "null"), (True, "true"), (1.5, "1.5"), ([1], "a list"), ((), "a list"), ({}, "an object")]
)
def test_a_value_is_shown_as_json(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize("value", ["x" * 10_000, "\u202e" * 1_000, "\n" * 1_000, "\ud800", 10**1_000])
def test_a_shown_value_is_short_and_printable(value: object) -> None:
    assert len(shown(value)) <= 80
    assert shown(value).isprintable()


def test_the_text_of_many_issues_is_limited_and_counts_the_rest() -> None:
    rejected = Rejected(Issue(("spec", "list", number), ErrorType.UNKNOWN) for number in range(1_000))

    lines = str(rejected).splitlines()

    assert len(rejected.issues) == 1_000
    assert lines[0] == "spec.list[0]: unknown field"
    assert lines[-1] == "and 980 more"
    assert len(lines) == 21
