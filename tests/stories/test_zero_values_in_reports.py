"""Reports name every field of a set whose edit writes something, outside pod specs too: zero values, removals, other orders."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from engine.report.html.document import html
from engine.report.json import document, printed
from engine.report.markdown.document import markdown
from engine.report.model import Report
from engine.report.text import text
from engine.verb import Verb
from enginectl.actions.planning import report_of_pass
from resources.schema.crds import schema
from resources.schema.podcliqueset import PodCliqueSet
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio

Path = tuple[str | int, ...]
ZEROS: Final[Mapping[str, Any]] = {"string": "", "integer": 0, "boolean": False, "array": [], "object": {}}
GIVEN: Final = ("labels", "annotations")
"""Maps whose keys are the user's."""


def rich_set() -> dict[str, Any]:
    """A set with something in every part: labels, annotations, a group, autoscaling, an order of start, shared claims, a Service."""
    scaling = {"minReplicas": 1, "maxReplicas": 3}
    body = podcliqueset(
        "rich",
        clique("a", 2, labels={"team": "x", "tier": "1"}, annotations={"note": "y"}, minAvailable=1),
        clique("b", 1, startsAfter=["a"], resourceSharing=[share("shared", "PerReplica")]),
        clique("c", 1, labels={"team": "z"}),
        clique("d", 1, autoScalingConfig=scaling),
        groups=(group("g", "c", annotations={"note": "z"}, scaleConfig=scaling), group("h", "b")),
        cliqueStartupType="CliqueStartupTypeExplicit",
        headlessServiceConfig={"publishNotReadyAddresses": True},
        priorityClassName="high",
        terminationDelay="1h",
        resourceClaimTemplates=[claim_template("shared")],
    )
    body["metadata"] |= {"labels": {"app": "web", "team": "x"}, "annotations": {"owner": "me"}}
    body["spec"]["updateStrategy"] = {"type": "RollingRecreate"}
    return body


def edited(body: Any, path: Path, edit: Any) -> Any:
    """A copy of the body with this value at the path; None: without the field."""
    changed = copy.deepcopy(body)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    if edit is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = edit
    return changed


def edits(value: Any, types: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The path of each field of a set outside pod specs, and how it is edited: a zero value, another order, or None for its removal."""
    if isinstance(value, list):
        yield from ((path, value[::-1]) for _ in value[1:2])
        for number, entry in enumerate(value):
            yield from edits(entry, types.get("items", {}), (*path, number))
    if not isinstance(value, Mapping):
        return
    for name, field in types.get("properties", {}).items():
        if name == "podSpec":
            continue
        yield (*path, name), ZEROS[field.get("type", "string")]
        if name in value:
            yield (*path, name), None
            yield from edits(value[name], field, (*path, name))
    if path and path[-1] in GIVEN:
        for name in value:
            yield from (((*path, name), edit) for edit in ("", None))
        yield (*path, "example.com/new"), ""


def edits_of_the_set() -> Iterator[tuple[Path, Any]]:
    """The edits of the whole set."""
    types = {**schema(PodCliqueSet)["properties"], "metadata": {"properties": dict.fromkeys(GIVEN, {"type": "object"})}}
    return (each for part in ("spec", "metadata") for each in edits(rich_set()[part], types[part], (part,)))


def formats_of(report: Report) -> dict[str, str]:
    """The report in every format that lists fields."""
    return {
        "text": "\n".join(line.text for line in text(report)),
        "verbose text": "\n".join(line.text for line in text(report, verbose=True)),
        "markdown": markdown(report),
        "html": html(report, None),
        "json": printed(document(report)),
    }


async def test_for_every_field_of_a_set_an_edit_that_patches_something_has_a_line_in_every_format() -> None:
    named = set()
    async with stage() as cluster:
        await cluster.sync(manifests=[rich_set()])
        assert report_of_pass(await cluster.look([rich_set()])).changes == 0
        for path, edit in edits_of_the_set():
            report = report_of_pass(await cluster.look([edited(rich_set(), path, edit)]))
            if report.faulty or not report.counts[Verb.PATCH]:
                continue
            field, formats = next(str(step) for step in reversed(path) if isinstance(step, str)), formats_of(report)
            patches = [line.partition("~ patch ")[2] for line in formats["text"].splitlines() if "~ patch " in line]

            assert [name for name, content in formats.items() if field not in content or "template hash" in content] == [], (path, edit)
            assert all(": " in line for line in patches), (path, edit, patches)
            named.add((*(step for step in path if isinstance(step, str)), str(edit)))

    assert len(named) > 50
