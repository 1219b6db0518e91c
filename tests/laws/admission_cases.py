"""Sets and bindings for admission that are valid or broken in few places: values for single fields, put into valid objects."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from hypothesis import assume
from hypothesis import strategies as st
from msgspec import Struct

from providers.fabrics.nvidia.fabric import Nvidia
from resources.ports.configuration import Configuration
from tests.resources.admission.mutations import SETUPS
from tests.resources.admission.requests import GONE, SCHEDULERS, binding, clique, created, pod_spec, put, small, whole

Body = dict[str, Any]
Values = Mapping[str, Sequence[Any]]
"""A field -> values for it; `GONE` removes it."""

USUAL: Final = 4
CONFIGURATIONS: Final = (*SETUPS[:USUAL], Configuration(SCHEDULERS, "volcano", topology=True, fabrics=(Nvidia(auto=True),)))
"""With and without topology-aware scheduling and automatic domains; and one whose default scheduler is not enabled."""
SETUP_NUMBERS: Final = st.integers(0, len(CONFIGURATIONS) - 1)
CLIQUES, GROUPS, TOPOLOGY = "spec.template.cliques", "spec.template.podCliqueScalingGroups", "spec.template.topologyConstraint"
AUTO, GROUP, NAMED = "grove.io/auto-mnnvl", "grove.io/mnnvl-group", "nvidia.com/computedomain"
KEYS: Final = ({"a": "b"}, {"-": ""}, {"x/y/z": ""}, {"/a": ""}, {f"{'a' * 254}/x": ""}, {"a" * 64: ""}, {"Example.com/Note": "b"})
SHARES: Final[Sequence[Any]] = (
    [],
    [{"name": "x", "scope": "AllReplicas"}],
    [{"name": "x", "scope": "PerReplica"}] * 2,
    [{"name": "", "scope": "AllReplicas"}, {"name": "", "scope": "AllReplicas"}],
    [{"name": "own", "scope": "AllReplicas", "namespace": "ml"}],
)
FILTERS: Final[Sequence[Any]] = (
    {},
    {"childCliqueNames": []},
    {"childCliqueNames": ["work"]},
    {"childCliqueNames": ["work", "none"]},
    {"childCliqueNames": ["none"], "childScalingGroupNames": ["model", "none"]},
    {"childScalingGroupNames": ["model"]},
    {"childCliqueNames": ["front"], "childScalingGroupNames": []},
)
FILTERED: Final = tuple([{"name": "own", "scope": "AllReplicas", "filter": each}] for each in FILTERS)
CONSTRAINTS: Final = (
    GONE,
    {"pack": {"required": "zone"}},
    {"pack": {"required": "rack", "preferred": "host"}},
    {"topologyName": "racks", "pack": {"required": "zone", "preferred": "rack"}},
    {"topologyName": "racks", "pack": {"required": "host"}},
    {"topologyName": "other", "pack": {"preferred": "zone"}},
    {"packDomain": "zone"},
    {"topologyName": "racks", "packDomain": "rack"},
    {"topologyName": "other", "packDomain": "rack"},
)
ROLLING: Final[Sequence[Any]] = (
    GONE,
    {"maxUnavailable": 0},
    {"maxUnavailable": 2, "progressDeadline": "10m"},
    {"progressDeadline": "0s"},
    {"maxUnavailable": -1, "progressDeadline": "-1s"},
    {},
)
SCALINGS: Final = (
    GONE,
    {"maxReplicas": 3},
    {"minReplicas": 0, "maxReplicas": 5},
    {"minReplicas": 4, "maxReplicas": 3},
    {"minReplicas": 1, "maxReplicas": 1},
    {"maxReplicas": 2**31 - 1},
)
VARIABLES: Final = ([{"name": "1"}], [{"name": "A"}, {"name": "A"}], [{"name": ".."}], [{"name": "."}], [{"name": "a.b"}])
CLAIM: Final = [{"name": "mnnvl-claim", "resourceClaimTemplateName": "x"}]
OWN_CLAIMS: Final = [{"name": name, "resourceClaimTemplateName": "rack-a"} for name in ("one", "two")]
DOMAINS: Final = ("", "rack-a", "Rack", "rack-$(GROVE_PCS_INDEX)", "rack-$(GROVE_PCSG_INDEX)", "web-0-model")
GROUP_NAMES: Final = ("", "none", "model", "Bad", "m" * 64)

OF_CLIQUE: Final[Values] = {
    "name": ("", "front", "work", "other", "A_b", "a" * 46, "x.y"),
    "labels": (*KEYS, {"a": "-"}, {"a": "b" * 64}, {"a": "b/c"}),
    "annotations": (
        *KEYS,
        *({NAMED: name} for name in DOMAINS),
        *({GROUP: group} for group in GROUP_NAMES),
        {GROUP: "none", NAMED: "rack-a"},
        {GROUP: "model", NAMED: "rack-a"},
    ),
    "resourceSharing": SHARES,
    "topologyConstraint": CONSTRAINTS,
    "rollingUpdate": ROLLING,
    "spec.roleName": ("", "front", "work", "other", GONE),
    "spec.replicas": (-1, 0, 1, 3, 60_000, 2**31 - 1, GONE),
    "spec.minAvailable": (-1, 0, 1, 2, 3, GONE),
    "spec.startsAfter": ([], [""], ["front"], ["lead", "lead"], ["none", ""], ["work"], ["lead", "front"]),
    "spec.autoScalingConfig": SCALINGS,
    "spec.podSpec": (
        {"containers": []},
        pod_spec(nodeName="n1"),
        pod_spec(nodeName=""),
        pod_spec(topologySpreadConstraints=[]),
        pod_spec(schedulerName="other"),
        pod_spec(schedulerName="default-scheduler"),
        pod_spec(schedulerName=""),
        pod_spec(resourceClaims=CLAIM),
        pod_spec(resourceClaims=OWN_CLAIMS),
        *({"containers": [{"name": "m", "image": "i", "env": env}]} for env in VARIABLES),
        *(pod_spec(initContainers=[{"name": "m", "image": "i", "env": env}]) for env in VARIABLES),
        *({"containers": [{"name": "m", "image": "i", "resources": {"limits": {"nvidia.com/gpu": n}}}]} for n in (8, "0", "8")),
        {"containers": [{"name": "m", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 8}}}], "resourceClaims": CLAIM},
    ),
}
OF_GROUP: Final[Values] = {
    "name": ("", "other", "second", "A_b", "g" * 42),
    "cliqueNames": ([], ["work"], ["work", "lead"], ["lead", "lead"], ["lead", "none"], ["front", "work"], [""]),
    "annotations": (*KEYS, *({GROUP: group} for group in GROUP_NAMES)),
    "replicas": (-1, 0, 1, 4, 60_000, 2**31 - 1, GONE),
    "minAvailable": (-1, 0, 2, 3, GONE),
    "scaleConfig": SCALINGS,
    "rollingUpdate": ROLLING,
    "resourceSharing": (*SHARES, *FILTERED[:4]),
    "topologyConstraint": CONSTRAINTS,
}
TEMPLATES: Final[Sequence[Any]] = (
    [],
    [{"name": name, "templateSpec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}} for name in ("own", "own")],
    [{"name": "", "templateSpec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}}] * 2,
    [{"name": "own", "templateSpec": {"spec": {}}}],
)
OF_SET: Final[Values] = {
    "metadata.name": ("w" * 42, "w" * 30, "Web", GONE),
    "metadata.generateName": ("w" * 40, "Web-"),
    "metadata.namespace": ("Ml",),
    "metadata.labels": ({"-": ""}, {"a": "-"}),
    "metadata.finalizers": (["-"],),
    "metadata.creationTimestamp": ("now",),
    "metadata.annotations": (
        GONE,
        *({AUTO: mode} for mode in ("enabled", "disabled", "Enabled", "")),
        *({GROUP: group} for group in GROUP_NAMES),
        *({AUTO: mode, GROUP: group} for mode in ("enabled", "disabled") for group in ("none", "model")),
        *({"engine.grove.io/domain-placement": value} for value in ("required", "Required", "")),
        *({"engine.grove.io/release-domains": value} for value in ("on-completion", "true")),
        {"a": "b" * 270_000},
    ),
    "spec.replicas": (-1, 0, 3, 10_001, 30_000, 2**31 - 1, GONE),
    "spec.template.cliques": ([], [clique("front"), clique("new")]),
    "spec.template.cliqueStartupType": ("CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit", GONE),
    "spec.updateStrategy": ({"type": "OnDelete"}, {"type": "RollingRecreate"}, GONE),
    "spec.template.terminationDelay": ("0s", "-1s", "5m", "", GONE),
    "spec.template.topologyConstraint": CONSTRAINTS,
    "spec.template.resourceClaimTemplates": TEMPLATES,
    "spec.template.resourceSharing": (*SHARES, *FILTERED),
    "spec.template.podCliqueScalingGroups": ([],),
}
FIELDS: Final[Values] = {
    **OF_SET,
    **{f"{CLIQUES}.{number}.{field}": values for number in (0, 2) for field, values in OF_CLIQUE.items()},
    **{f"{GROUPS}.{number}.{field}": values for number in (0, 1) for field, values in OF_GROUP.items()},
}
"""Every field that the rules for sets are about, with values that break them or not. The definition of the kind allows all of them."""


class Case(Struct, frozen=True):
    """A new set, or a new version of a stored one."""

    setup: int
    """The number of the configuration."""
    new: Body
    old: Body | None = None


def grouped() -> Body:
    """A set with GPUs that says nothing about domains: `front` is outside groups, `lead` and `work` are in one each."""
    pods = {"podSpec": {"containers": [{"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}}
    cliques = [clique(name, spec={**pods, "roleName": name}) for name in ("front", "lead", "work")]
    groups = [{"name": name, "cliqueNames": [member]} for name, member in (("model", "lead"), ("second", "work"))]
    return small(cliques=cliques, podCliqueScalingGroups=groups)


def annotated() -> Body:
    """That set with a domain for each group of cliques, and one that is named."""
    changes = {f"{CLIQUES}.0.annotations": {NAMED: "rack-a"}, f"{GROUPS}.0.annotations": {GROUP: "model"}}
    return put(grouped(), {**changes, f"{CLIQUES}.2.annotations": {GROUP: "none"}, "metadata.annotations": {GROUP: "none"}})


def deprecated() -> Body:
    """That set as it was admitted when `packDomain` was not deprecated."""
    of_parts = {f"{holder}.0.topologyConstraint": {"packDomain": "zone"} for holder in (CLIQUES, GROUPS)}
    return put(grouped(), {TOPOLOGY: {"topologyName": "racks", "packDomain": "zone"}, **of_parts})


def undefaulted() -> Body:
    """That set without what has a default."""
    fields = ("minAvailable", "replicas")
    return put(grouped(), {f"{CLIQUES}.{number}.spec.{field}": GONE for number in (0, 1, 2) for field in fields})


VALID: Final = (whole(), grouped(), annotated(), undefaulted())
STORED: Final = (*VALID, deprecated())
TOGETHER: Final[Sequence[tuple[Body, Body]]] = (
    (grouped(), {f"{CLIQUES}.0.annotations": {NAMED: "rack-a"}}),
    (annotated(), {f"{CLIQUES}.0.annotations": {NAMED: "rack-b"}, f"{GROUPS}.0.annotations": {GROUP: "other"}}),
    (whole(), {CLIQUES: [whole()["spec"]["template"]["cliques"][number] for number in (1, 0, 2)]}),
    (whole(), {f"{holder}.resourceSharing": SHARES[-1] for holder in ("spec.template", f"{CLIQUES}.0", f"{GROUPS}.0")}),
    (whole(), {f"{CLIQUES}.0.spec.roleName": GONE, f"{CLIQUES}.1.spec.roleName": ""}),
    (whole(), {f"{CLIQUES}.2.spec.startsAfter": ["lead", "lead"]}),
    (whole(), {f"{CLIQUES}.0.spec.startsAfter": ["work"], f"{CLIQUES}.2.spec.startsAfter": ["front"]}),
    (whole(), {f"{CLIQUES}.0.topologyConstraint.topologyName": "racks"}),
    (whole(), {f"{GROUPS}.0.scaleConfig": {"maxReplicas": 1}}),
    (whole(), {f"{GROUPS}.0.topologyConstraint": {"topologyName": "other", "pack": {"required": "rack"}}}),
    (deprecated(), {f"{GROUPS}.0.topologyConstraint": {"pack": {"required": "rack"}}}),
    (grouped(), {"metadata.annotations": {GROUP: "model"}, f"{CLIQUES}.0.annotations": {GROUP: "model"}}),
    (grouped(), {"metadata.annotations": {GROUP: "model"}, f"{CLIQUES}.0.annotations": {GROUP: "none", NAMED: "web-0-model"}}),
    (annotated(), {f"{CLIQUES}.0.spec.podSpec": pod_spec(resourceClaims=OWN_CLAIMS)}),
    (small(), {f"{CLIQUES}.+": clique("b")}),
    (put(grouped(), {f"{CLIQUES}.0.spec.minAvailable": 2}), {f"{CLIQUES}.0.spec.minAvailable": GONE, f"{CLIQUES}.0.spec.replicas": 1}),
    (grouped(), {f"{CLIQUES}.0.spec.roleName": GONE, f"{CLIQUES}.2.spec.roleName": "front"}),
    (grouped(), {f"{CLIQUES}.0.name": "model-0-lead"}),
    (grouped(), {TOPOLOGY: {"pack": {"required": "zone"}}}),
    (whole(), {TOPOLOGY: {"topologyName": "racks", "pack": {"required": "host"}}}),
    (whole(), {TOPOLOGY: {"topologyName": "racks", "pack": {"required": "row"}}}),
    (whole(), {f"{CLIQUES}.0.topologyConstraint": {"topologyName": "other", "pack": {"required": "rack"}}}),
    (
        deprecated(),
        {
            f"{CLIQUES}.0.topologyConstraint": {"pack": {"required": "zone"}},
            TOPOLOGY: {"topologyName": "racks", "pack": {"required": "zone"}},
        },
    ),
)
"""Bodies, and values that break them together."""


def changed(body: Body, field: str, value: Any) -> Body | None:
    """The body with another value; None if it does not have the field's holder, or not the field that is to be removed."""
    try:
        return put(body, {field: value})
    except (KeyError, IndexError):
        return None


def each_value() -> Iterator[Case]:
    """New sets and edits with each value of each field, each in one of the bodies that can have it; and `TOGETHER`, in every setup."""
    yield Case(USUAL, small())
    for body, changes in TOGETHER:
        for setup in range(USUAL):
            yield Case(setup, put(body, changes))
            yield Case(setup, put(body, changes), body)
    for number, (field, value) in enumerate((field, value) for field, values in FIELDS.items() for value in values):
        setup = number % USUAL
        for _, new in _with_value(VALID, number, field, value):
            yield Case(setup, new)
        for old, new in _with_value(STORED, number, field, value):
            yield Case(setup, new, old)


def _with_value(bodies: Sequence[Body], number: int, field: str, value: Any) -> Iterator[tuple[Body, Body]]:
    """The first of the bodies, beginning with that of a number, that can have this value: without it and with it."""
    start = number % len(bodies)
    found = ((body, new) for body in (*bodies[start:], *bodies[:start]) if (new := changed(body, field, value)) is not None)
    return islice(found, 1)


@st.composite
def broken(draw: st.DrawFn, bodies: Sequence[Body], most: int = 3) -> Body:
    """One of these bodies, with up to so many other values."""
    body = draw(st.sampled_from(bodies))
    for field in draw(st.lists(st.sampled_from(list(FIELDS)), max_size=most)):
        body = changed(body, field, draw(st.sampled_from(FIELDS[field]))) or body
    return body


@st.composite
def new_sets(draw: st.DrawFn) -> Case:
    """A new set."""
    return Case(draw(SETUP_NUMBERS), draw(broken(VALID)))


@st.composite
def edits(draw: st.DrawFn) -> Case:
    """An edit of a stored set, which is valid or deprecated."""
    setup, old = draw(SETUP_NUMBERS), draw(broken(STORED, 1))
    assume(old in STORED or created(old, CONFIGURATIONS[setup]).allowed)
    return Case(setup, draw(broken((old,))), old)


def bindings() -> Iterator[Body]:
    """Bindings that are valid or not."""
    yield binding("zone", "rack")
    yield put(binding("zone"), {"metadata.namespace": "ml"})
    yield put(binding("zone", "rack"), {"spec.levels.1.domain": "zone"})
    yield put(binding("zone", "rack"), {"spec.levels.1.key": "example.com/zone"})
    for names in ((), ("racked",), ("racked", "racked"), ("other",), ("default-scheduler",), ("other", "default-scheduler", "other")):
        references = [{"schedulerName": name, "topologyReference": "mine"} for name in names]
        yield put(binding("zone"), {"spec.schedulerTopologyBindings": references})
