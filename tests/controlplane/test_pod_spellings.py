"""Two pod specs have one canonical form where a real API server makes the same pod of them, and only there."""

from functools import partial
from pathlib import Path

import pytest

from engine.canonical import canonical, digest
from resources.schema.pod_spec_form import KUBERNETES_SCHEDULER, canonical_form
from tests.controlplane.cluster import Missing, running
from tests.controlplane.fixtures import skip_unless_recorded
from tests.controlplane.pod_defaults import probed_fields
from tests.controlplane.pod_trials import FLAGS, at, tried, with_value
from tests.controlplane.spelled_pods import pairs

DEPENDING = {
    ("ContainerPort", "hostPort"),
    ("LabelSelector", "matchExpressions"),
    ("ResourceRequirements", "limits"),
    ("ResourceRequirements", "requests"),
}
"""Fields whose default depends on other fields: one that is spelled is another pod, as long as the others may change."""
OTHERWISE_WRITTEN = {"1024 and 1Ki"}
"""Equal amounts that a server keeps as they are written: other bytes, but the same pods."""


@pytest.mark.e2e
def test_for_every_field_a_zero_value_is_the_same_as_none_where_a_server_makes_the_same_pod_of_both(tmp_path: Path) -> None:
    probes = list(probed_fields())
    try:
        with running(tmp_path, flags=FLAGS) as plane:
            skip_unless_recorded(plane)
            answers = tried(plane, [spec for probe in probes for spec in (probe.absent, probe.zero)])
            pairs = list(zip(probes, answers[::2], answers[1::2], strict=True))
            spelled = [
                (probe, with_value(probe.absent, probe.path, at(absent.spec, probe.path)))
                for probe, absent, _ in pairs
                if absent.spec is not None and at(absent.spec, probe.path) is not None
            ]
    except Missing as missing:
        pytest.skip(str(missing))

    tried_pairs = [(probe, absent.spec == zero.spec) for probe, absent, zero in pairs if absent.spec and zero.spec]
    wrong = [
        (probe.type, probe.field, is_same)
        for probe, is_same in tried_pairs
        if (canonical_form(probe.zero) == canonical_form(probe.absent)) != is_same
    ]
    assert len(tried_pairs) > 300 and wrong == []
    of_cluster = partial(canonical_form, scheduler=KUBERNETES_SCHEDULER)
    taken_apart = {(probe.type, probe.field) for probe, spec in spelled if of_cluster(spec) != of_cluster(probe.absent)}
    assert taken_apart == DEPENDING


@pytest.mark.e2e
def test_two_spellings_have_one_form_where_a_server_makes_the_same_pod_of_both(tmp_path: Path) -> None:
    spelled = list(pairs())
    known = {canonical(spec): spec for _, left, right in spelled for spec in (left, right)}
    try:
        with running(tmp_path, flags=FLAGS) as plane:
            skip_unless_recorded(plane)
            answers = dict(zip(known, tried(plane, known.values()), strict=True))
    except Missing as missing:
        pytest.skip(str(missing))

    accepted = [
        (how, first == second, digest(canonical_form(left)) == digest(canonical_form(right)))
        for how, left, right in spelled
        if (first := answers[canonical(left)].spec) is not None and (second := answers[canonical(right)].spec) is not None
    ]
    assert len(accepted) > 1000
    assert [how for how, is_same, has_one_form in accepted if is_same and not has_one_form] == []
    assert {how.partition(" ")[2] for how, is_same, has_one_form in accepted if has_one_form and not is_same} <= OTHERWISE_WRITTEN
