"""Reports name every field whose change restarts pods: for all fields of the recorded pod specs, in every format, and no other."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from engine.blueprint import Desired
from engine.canonical import digest
from engine.graph import graph, part
from engine.memo import Memo
from engine.observed import Observed, live, slice_of
from engine.ownership import MANAGER
from engine.planner import plan
from engine.report.html.document import html
from engine.report.json import document, printed
from engine.report.markdown.document import markdown
from engine.report.meaning import meanings
from engine.report.model import Report, compose
from engine.report.text import text
from engine.resource import Want
from resources.base import kinds, labels
from resources.children.podclique import POLICY
from resources.model.pod_match import spelled_as
from resources.model.template import hashed_content
from tests.controlplane.pod_defaults import probed_fields
from tests.controlplane.pod_trials import Spec, at, typed_objects, with_value, without
from tests.controlplane.sample_pods import SHAPES
from tests.laws.toy import START

ROOT: Final = kinds.PODCLIQUESET.id("default", "web")
CLIQUE: Final = kinds.PODCLIQUE.id("default", "web-0-a")
AT: Final = datetime(2026, 1, 2, tzinfo=UTC)


def clique(spec: Spec, template: Mapping[str, Any]) -> dict[str, Any]:
    """A PodClique with a pod spec; `template`: labels and annotations of its pods."""
    hash = digest(hashed_content({**template, "spec": {"podSpec": spec}}, ""))
    metadata = {"name": CLIQUE.name, "namespace": "default", "finalizers": list(POLICY.finalizers), **template}
    metadata["labels"] = {**template.get("labels", {}), labels.TEMPLATE_HASH: hash}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": metadata, "spec": {"podSpec": spec}}


def report_of(before: Spec, after: Spec, old: Mapping[str, Any] | None = None, new: Mapping[str, Any] | None = None) -> Report:
    """The report of a plan that gives a PodClique another pod spec."""
    existing = clique(before, old or {})
    owned: dict[str, Any] = {"f:metadata": {f"f:{key}": {f"f:{name}": {} for name in given} for key, given in (old or {}).items()}}
    managed = [{"manager": MANAGER, "operation": "Update", "fieldsV1": owned}]
    existing["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": managed}
    desired = clique(after, new or {})
    desired["spec"] = {"podSpec": spelled_as(before, after, "")}
    root = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "web", "namespace": "default", "uid": "r"}}
    world = Observed(live(root), {"0": slice_of([live(existing)])})
    resource = Want(CLIQUE, "clique a", body=desired, policy=POLICY)
    planned = plan(Desired(graph([part("0", [resource])])), world, START, {}, Memo())
    return compose([planned], lambda root, id: "")


def formats_of(report: Report) -> dict[str, str]:
    """The report in every format that lists fields."""
    return {
        "text": "\n".join(line.text for line in text(report)),
        "verbose text": "\n".join(line.text for line in text(report, verbose=True)),
        "markdown": markdown(report, values=True),
        "html": html(report, AT, values=True),
        "json": printed(document(report)),
    }


def hides(report: Report, field: str) -> Iterator[str]:
    """The formats that do not name the field, or name a hash in its place."""
    for name, content in formats_of(report).items():
        if not re.search(rf"\b{re.escape(field)}\b", content) or "template hash" in content.lower():
            yield name


def moves_the_hash(before: Spec, after: Spec) -> bool:
    return bool(hashed_content({"spec": {"podSpec": before}}, "") != hashed_content({"spec": {"podSpec": after}}, ""))


ZEROS: Final = tuple({(probe.type, probe.field): probe for probe in probed_fields()}.values())
"""For each field of each type the sample pod in which it is last, without it and with its zero value."""


def removals() -> Iterator[tuple[str, Spec, Spec]]:
    """For each field of each type that the sample pods set: the pod with it and without it."""
    seen: set[tuple[str, str]] = set()
    for spec in SHAPES.values():
        for path, type_, value in typed_objects(spec):
            for field in value:
                if (type_, field) not in seen:
                    seen.add((type_, field))
                    yield field, spec, without(spec, (*path, field))


def reorders() -> Iterator[tuple[str, Spec, Spec]]:
    """For each list of each type with two entries or more: the pod with it and with the list in reverse."""
    seen: set[tuple[str, str]] = set()
    for spec in SHAPES.values():
        for path, type_, value in typed_objects(spec):
            for field, entries in value.items():
                if isinstance(entries, list) and len(entries) > 1 and (type_, field) not in seen:
                    seen.add((type_, field))
                    yield field, spec, with_value(spec, (*path, field), entries[::-1])


def test_for_every_field_its_zero_value_has_a_line_in_every_format_where_it_is_another_pod_and_none_elsewhere() -> None:
    moved = [probe for probe in ZEROS if moves_the_hash(probe.absent, probe.zero)]
    same = [probe for probe in ZEROS if not moves_the_hash(probe.absent, probe.zero)]

    assert len(moved) > 100 and len(same) > 100
    assert [(probe, name) for probe in moved for name in hides(report_of(probe.absent, probe.zero), probe.field)] == []
    assert [(probe, name) for probe in moved for name in hides(report_of(probe.zero, probe.absent), probe.field)] == []
    assert [probe for probe in same if report_of(probe.absent, probe.zero).changes or report_of(probe.zero, probe.absent).changes] == []


def test_the_zero_value_itself_is_shown() -> None:
    for probe in ZEROS:
        zero = at(probe.zero, probe.path)
        if moves_the_hash(probe.absent, probe.zero) and at(probe.absent, probe.path) is None and zero in (0, "", False):
            lines = formats_of(report_of(probe.absent, probe.zero))["text"]
            assert f"{probe.field}: (absent) → {json.dumps(zero)}" in lines, lines


def test_for_every_field_its_removal_has_a_line_in_every_format() -> None:
    edits = list(removals())

    assert len(edits) > 200
    for field, before, after in edits:
        report = report_of(before, after)
        assert list(hides(report, field)) == [] if moves_the_hash(before, after) else report.changes == 0, field


def test_for_every_list_another_order_is_one_line_in_every_format_where_it_is_another_pod_and_none_elsewhere() -> None:
    edits = list(reorders())

    assert {"containers", "initContainers", "env", "args", "volumes", "tolerations"} <= {field for field, _, _ in edits}
    for field, before, after in edits:
        report = report_of(before, after)
        if moves_the_hash(before, after):
            (root,) = report.roots
            (line,) = meanings(root.steps)
            assert f"{field}: order [" in line.text and list(hides(report, field)) == []
        else:
            assert report.changes == 0, field


@pytest.mark.parametrize("of", ["labels", "annotations"])
@pytest.mark.parametrize(("old", "new"), [(None, ""), ("", None), ("", "x"), ("0", "")])
def test_empty_labels_and_annotations_have_a_line_in_every_format(of: str, old: str | None, new: str | None) -> None:
    templates = [{of: {"team": "a", **({"sidecar": value} if value is not None else {})}} for value in (old, new)]
    spec = SHAPES["plain"]
    report = report_of(spec, spec, *templates)

    assert list(hides(report, "sidecar")) == []


def test_labels_of_users_that_are_called_like_hashes_are_shown_and_the_engine_s_is_not() -> None:
    spec = SHAPES["plain"]
    formats = formats_of(report_of(spec, spec, {"annotations": {"config-hash": "a"}}, {"annotations": {"config-hash": ""}}))

    assert all("config-hash" in content for content in formats.values())
    assert all(labels.TEMPLATE_HASH not in content for name, content in formats.items() if name != "json")
