"""Canonical form of pod specs: what counts as the same pods, and what does not."""

from typing import Any

import pytest

from resources.base.fields import mapping
from resources.model.template import hashed_content
from resources.schema.pod_spec_form import KUBERNETES_SCHEDULER, canonical_form, respelled
from resources.schema.published import pod_defaults
from tests.controlplane.pod_defaults import Probed, probed_fields
from tests.controlplane.pod_trials import Spec, at, typed_objects, with_value
from tests.controlplane.sample_pods import SHAPES

Body = dict[str, Any]


def container(**fields: Any) -> Body:
    return {"containers": [{"name": "main", "image": "a:1", **fields}]}


def container_affinity(**term: Any) -> Body:
    terms = [{"topologyKey": "rack", **term}]
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


SAME = {
    "amounts": (container(resources={"limits": {"nvidia.com/gpu": 4}}), container(resources={"limits": {"nvidia.com/gpu": "4"}})),
    "units": (container(resources={"requests": {"memory": "1024Mi"}}), container(resources={"requests": {"memory": "1Gi"}})),
    "fractions": (container(resources={"requests": {"cpu": "0.5"}}), container(resources={"requests": {"cpu": "500m"}})),
    "empty resources": (container(resources={}), container()),
    "protocol": (container(ports=[{"containerPort": 80, "protocol": "TCP"}]), container(ports=[{"containerPort": 80}])),
    "empty value": (container(env=[{"name": "A", "value": ""}]), container(env=[{"name": "A"}])),
    "null": (container(command=None), container()),
    "empty texts": ({"serviceAccountName": "", "schedulerName": "", "hostname": ""}, {}),
    "policy": ({"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "terminationGracePeriodSeconds": 30}, {}),
    "pull policy by tag": (container(imagePullPolicy="IfNotPresent"), container()),
    "message": (container(terminationMessagePath="/dev/termination-log"), container(terminationMessagePath="")),
    "old name": ({"serviceAccount": "a", "serviceAccountName": "a"}, {"serviceAccountName": "a"}),
    "old name only": ({"serviceAccount": "a"}, {"serviceAccountName": "a"}),
    "another old name": ({"serviceAccount": "b", "serviceAccountName": "a"}, {"serviceAccountName": "a"}),
    "no ephemeral containers": ({"ephemeralContainers": []}, {}),
    "null in a map": ({"nodeSelector": {"a": None}}, {"nodeSelector": {"a": ""}}),
    "null amount": (container(resources={"limits": {"cpu": None}}), container(resources={"limits": {"cpu": "0"}})),
    "null in a list": (container(args=[None]), container(args=[""])),
    "less than a milli": (container(resources={"limits": {"cpu": 0.0005}}), container(resources={"limits": {"cpu": "1m"}})),
    "rounded up": (container(resources={"limits": {"cpu": "1.0005"}}), container(resources={"limits": {"cpu": "1001m"}})),
    "less than a nano": (
        {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "0.1n"}}]},
        {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1n"}}]},
    ),
    "disk": ({"volumes": [{"name": "v", "azureDisk": {"kind": "Shared"}}]}, {"volumes": [{"name": "v", "azureDisk": {}}]}),
    "volume": ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumes": [{"name": "v"}]}),
    "flags": (container(tty=False) | {"hostNetwork": False}, container()),
    "order of tolerations": ({"tolerations": [{"key": "a"}, {"key": "b"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]}),
}
DIFFERENT = {
    "amounts": (container(resources={"limits": {"nvidia.com/gpu": 4}}), container(resources={"limits": {"nvidia.com/gpu": 8}})),
    "protocol": (container(ports=[{"containerPort": 80, "protocol": "UDP"}]), container(ports=[{"containerPort": 80}])),
    "order of variables": (container(env=[{"name": "A"}, {"name": "B"}]), container(env=[{"name": "B"}, {"name": "A"}])),
    "null in a map": ({"nodeSelector": {"a": None}}, {}),
    "more than a milli": (container(resources={"limits": {"cpu": "1.1m"}}), container(resources={"limits": {"cpu": "1m"}})),
    "old names": ({"serviceAccount": "a"}, {"serviceAccount": "b"}),
    "node selector": ({"nodeSelector": {"value": "", "protocol": "TCP"}}, {"nodeSelector": {}}),
    "empty selector": (container_affinity(labelSelector={}), container_affinity()),
    "scheduler": ({"schedulerName": "default-scheduler"}, {}),
    "volume": ({"volumes": [{"name": "v", "downwardAPI": {}}]}, {"volumes": [{"name": "v"}]}),
    "token": ({"automountServiceAccountToken": False}, {}),
    "user": (container(securityContext={"runAsUser": 0}), container(securityContext={})),
    "order of init containers": (
        {"initContainers": [{"name": "a"}, {"name": "b"}]},
        {"initContainers": [{"name": "b"}, {"name": "a"}]},
    ),
    "pull policy of another tag": (container(imagePullPolicy="Always"), container()),
    "privileges": (container(securityContext={"privileged": False}), container(securityContext={})),
    "true and one": ({"hostNetwork": True}, {"hostNetwork": 1}),
}


@pytest.mark.parametrize(("left", "right"), SAME.values(), ids=SAME)
def test_spellings_of_the_same_pods_have_one_form(left: Body, right: Body) -> None:
    assert repr(canonical_form(left)) == repr(canonical_form(right))


@pytest.mark.parametrize(("left", "right"), DIFFERENT.values(), ids=DIFFERENT)
def test_other_pods_have_another_form(left: Body, right: Body) -> None:
    assert repr(canonical_form(left)) != repr(canonical_form(right))


@pytest.mark.parametrize(
    "shape", [7, "x", ["a", 1], {"containers": 3}, {"limits": {"cpu": ["a"]}}, {"ports": [None]}, {"limits": {"cpu": "1e999999999"}}]
)
def test_wrong_shapes_are_kept(shape: Any) -> None:
    assert canonical_form(shape) is not None


PROBES = list(probed_fields())


def is_recorded_as_absent(probe: Probed) -> bool:
    """Whether servers treat the zero value of the field as absent, by what is recorded of them."""
    return probe.field in pod_defaults().zero.get(probe.type, ()) or at(probe.zero, probe.path) == static_default(probe)


def static_default(probe: Probed) -> Any:
    return pod_defaults().defaults.get(probe.type, {}).get(probe.field, "none")


def test_for_every_field_a_zero_value_is_the_same_as_none_where_servers_treat_it_so_and_nowhere_else() -> None:
    forms = {id(spec): canonical_form(spec) for spec in SHAPES.values()}
    wrong = []
    for probe in PROBES:
        is_same = canonical_form(probe.zero) == (forms.get(id(probe.absent)) or canonical_form(probe.absent))
        if is_same != (is_recorded_as_absent(probe) or probe.zero == probe.absent):
            wrong.append((probe.type, probe.field))

    assert len(PROBES) > 500 and wrong == []


def test_for_every_field_a_default_that_is_spelled_is_the_same_as_none() -> None:
    spelled = [probe for probe in PROBES if static_default(probe) != "none"]
    pods = [(with_value(probe.absent, probe.path, static_default(probe)), probe.absent) for probe in spelled]

    assert len(spelled) > 50
    forms = [tuple(canonical_form(spec, scheduler=KUBERNETES_SCHEDULER) for spec in pair) for pair in pods]
    assert all(left == right for left, right in forms)


def test_for_every_field_another_value_is_another_pod() -> None:
    for spec in SHAPES.values():
        for path, _, value in typed_objects(spec):
            for field, old in value.items():
                if isinstance(old, str | int) and not isinstance(old, bool):
                    other = with_value(spec, (*path, field), f"{old}1" if isinstance(old, str) else old + 1)
                    assert canonical_form(other) != canonical_form(spec), (path, field)


def test_for_every_field_the_hash_moves_only_with_the_meaning() -> None:
    def content(spec: Spec) -> Any:
        return hashed_content({"spec": {"podSpec": spec}}, "")

    for probe in PROBES[::7]:
        assert (content(probe.zero) == content(probe.absent)) == (respelled(probe.zero, probe.absent) is probe.absent)


def test_for_every_field_a_change_is_shown_without_what_only_another_spelling_changes() -> None:
    for spec in SHAPES.values():
        plain = canonical_form(spec)
        assert respelled(plain, spec) == spec and respelled(spec, plain) == plain
        edited = with_value(plain, ("containers", 0, "image"), "another:1")
        spelled = respelled(edited, spec)

        assert canonical_form(spelled) == canonical_form(edited)
        assert [key for key in {**spec, **spelled} if spec.get(key) != spelled.get(key)] == ["containers"]
        changed = [key for key, value in spelled["containers"][0].items() if value != mapping(spec["containers"][0]).get(key)]
        assert set(changed) <= {"image", "imagePullPolicy"}
