"""Template: the spec of a PodCliqueSet, parsed once per edit and shared by all its replicas."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.canonical import digest
from engine.duration import parse
from engine.ids import ResourceId
from engine.memo import Memo
from engine.resource import Body
from resources.base import labels
from resources.model import sharing, topology
from resources.model.domain import DomainPlacement, domain_requests_of, placement_of, specified_in
from resources.model.membership import gang_record
from resources.model.sharing import Sharing
from resources.model.topology import Topology
from resources.ports.configuration import Configuration
from resources.ports.fabric import DomainRequest, Fabric
from resources.ports.references import TemplateReferences
from resources.schema.pod_spec_form import canonical_form
from resources.schema.podcliqueset import ON_DELETE

HASH_VERSION = "v3"
"""The prefix of every hash. It changes with the hash function, so that new hash values are not mistaken for an edit of the template."""

HASH_LENGTH = 40
"""The number of hexadecimal digits of a hash, without the prefix."""
ANY_ORDER, IN_ORDER, EXPLICIT = "CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"


def is_our_hash(hash: Any) -> bool:
    """Whether a recorded hash was computed by this version of the hash function, so that it can be compared."""
    return isinstance(hash, str) and hash.startswith(f"{HASH_VERSION}-")


class UpdateBudget(Struct, frozen=True):
    """How a clique outside scaling groups, or a scaling group, is updated."""

    max_unavailable: int = 1
    """The largest number of its pods, or of its replicas, that an update makes unavailable at a time."""
    progress_deadline: timedelta | None = None
    """The time without progress after which an update is reported as stuck; None: never."""


DEFAULT_BUDGET = UpdateBudget()


class Clique(Struct, frozen=True, eq=False):
    """One clique of the template."""

    name: str
    replicas: int
    min_available: int
    role: str
    pod_spec: Body
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    hash: str
    starts_after: tuple[str, ...]
    """The cliques of the template that this one starts after, by the set's start-up type or its own `startsAfter`."""
    autoscaling: Mapping[str, Any] | None
    scheduler: str
    budget: UpdateBudget


class Group(Struct, frozen=True, eq=False):
    """One scaling group of the template, with its cliques in its own order."""

    name: str
    cliques: tuple[Clique, ...]
    replicas: int
    min_available: int
    annotations: Mapping[str, str]
    autoscaling: Mapping[str, Any] | None
    budget: UpdateBudget

    @property
    def pods(self) -> int:
        """The number of pods in one replica of the group, by the template."""
        return sum(clique.replicas for clique in self.cliques)


class Template(Struct, frozen=True, eq=False):
    """The desired content of each replica of a PodCliqueSet. Compared by identity: only an edit creates a new one, not a scale."""

    id: ResourceId
    identity: str
    """The set's part of generated pod names: its uid or, before it has one, its namespace and name."""
    standalone: tuple[Clique, ...]
    groups: tuple[Group, ...]
    hash: str
    priority_class: str
    publish_not_ready: bool
    termination_delay: timedelta
    """How long a gang may be below minAvailable before it is recycled."""
    on_delete: bool
    """Whether the update strategy is OnDelete: outdated pods are replaced only after they were deleted."""
    gang_labels: Mapping[str, str]
    gang_annotations: Mapping[str, str]
    sharing: Sharing
    topology: Topology
    domain_requests: tuple[tuple[Fabric, DomainRequest], ...]
    """The fabric domains that it requests, each with the fabric that provides it."""
    domain_placement: DomainPlacement | None
    """How strictly the pods of each domain are kept together; None: not at all (R57)."""
    spread_groups: frozenset[str]
    """The scaling groups of which every replica has its pods on different nodes."""
    releases_domains: bool
    """Whether a domain is released when all its pods have completed (N33)."""
    gang_record: str
    """The annotation of base PodGangs that records the membership in domains; empty if no domain is requested (N24)."""
    is_edited: bool
    """Whether annotations of the set differ from what its objects record, and have no effect (N25)."""

    @property
    def is_ordered(self) -> bool:
        """Whether any clique starts after another."""
        return any(clique.starts_after for clique in self.cliques)

    @property
    def pods(self) -> int:
        """The number of pods in one replica of the set, by the template."""
        return sum(clique.replicas for clique in self.standalone) + sum(group.replicas * group.pods for group in self.groups)

    @property
    def cliques(self) -> Iterator[Clique]:
        """All cliques: those outside scaling groups, then the groups'."""
        yield from self.standalone
        for group in self.groups:
            yield from group.cliques


def referenced_ids(id: ResourceId, spec: Body, configuration: Configuration) -> tuple[ResourceId, ...]:
    """The objects that a set of the right shape refers to, each once: ResourceClaimTemplates and its topology binding."""
    inner = spec["template"]
    claim_templates = sharing.referenced_ids(inner, id.namespace)
    return tuple(dict.fromkeys((*claim_templates, *topology.referenced_ids(inner, enabled=configuration.topology))))


def read(
    id: ResourceId,
    identity: str,
    metadata: Body,
    spec: Body,
    references: TemplateReferences,
    configuration: Configuration,
    hashes: Memo,
    *,
    is_edited: bool = False,
) -> Template:
    """The template of a set that has its defaults, the recorded membership, and satisfies `resources.admission.computable_rules`.

    `hashes` remembers those of the cliques: the same for all templates of one version of the set.
    """
    inner = spec["template"]
    priority = inner.get("priorityClassName", "")
    order = _order(inner.get("cliqueStartupType") or ANY_ORDER, inner["cliques"])
    cliques = {entry["name"]: _clique(entry, priority, after, hashes) for entry, after in zip(inner["cliques"], order, strict=True)}
    configs = inner.get("podCliqueScalingGroups") or ()
    annotations = metadata.get("annotations") or {}
    inherited = {key: value for fabric in configuration.fabrics for key, value in fabric.group_annotations(annotations).items()}
    members = {name for config in configs for name in config["cliqueNames"]}
    specified = specified_in({"metadata": metadata, "spec": spec})
    return Template(
        id=id,
        identity=identity,
        standalone=tuple(clique for name, clique in cliques.items() if name not in members),
        groups=tuple(_group(config, cliques, inherited) for config in configs),
        hash=_hash({name: clique.hash for name, clique in cliques.items()}),
        priority_class=priority,
        publish_not_ready=bool((inner.get("headlessServiceConfig") or {}).get("publishNotReadyAddresses", False)),
        termination_delay=parse(inner["terminationDelay"]),
        on_delete=(spec.get("updateStrategy") or {}).get("type") == ON_DELETE,
        gang_labels=labels.without_grove(metadata.get("labels") or {}),
        gang_annotations=labels.without_grove(annotations),
        sharing=sharing.read(id, inner, references),
        topology=topology.read(inner, references, enabled=configuration.topology),
        domain_requests=tuple(
            (fabric, request) for fabric in configuration.fabrics for request in domain_requests_of(fabric, id.name, specified)
        ),
        domain_placement=placement_of(annotations),
        spread_groups=frozenset(annotations.get(labels.SPREAD_GROUPS, "").split(",")) - {""},
        releases_domains=annotations.get(labels.RELEASE_DOMAINS) == labels.ON_COMPLETION,
        is_edited=is_edited,
        gang_record=gang_record(id, specified, configuration),
    )


def in_other_spellings(
    spec: Body, spelled: Mapping[str, Sequence[Body]], scheduler: str, hashes: Memo
) -> Mapping[str, tuple[tuple[str, bool], ...]]:
    """Each of these cliques -> its hashes in other spellings, and whether the scheduler of each is spelled in the other way: none, or
    `scheduler`, which pods without get.

    `spelled`: the cliques, each with other spellings of its pod spec that mean the same. Every spelling has a hash of the former form too,
    which took more spellings apart. `hashes`: those of this revision.
    """
    inner = spec["template"]
    priority = inner.get("priorityClassName", "")
    entries = (entry for entry in inner["cliques"] if entry["name"] in spelled)
    return {entry["name"]: tuple(_other_hashes(entry, priority, spelled[entry["name"]], scheduler, hashes)) for entry in entries}


def _other_hashes(
    entry: Mapping[str, Any], priority: str, spelled: Sequence[Body], scheduler: str, hashes: Memo
) -> Iterator[tuple[str, bool]]:
    for number, spelling in enumerate((entry["spec"]["podSpec"], *spelled)):
        for is_moved in (False, True):
            for is_former in (False, True):
                if not (number or is_moved or is_former):
                    continue  # The clique's own hash.
                facts = (entry.get("labels"), entry.get("annotations"), spelling, priority, scheduler)
                make = partial(_hash_in_spelling, entry, priority, spelling, scheduler if is_moved else None, is_former=is_former)
                yield hashes.recall((entry["name"], number, is_moved, is_former), facts, make), is_moved


def _hash_in_spelling(entry: Mapping[str, Any], priority: str, spelling: Body, scheduler: str | None, *, is_former: bool) -> str:
    """The hash of a clique with another spelling of its pod spec; with its scheduler in the other spelling unless that is None."""
    if scheduler is not None:
        spelling = {**spelling, "schedulerName": "" if spelling.get("schedulerName") else scheduler}
    return _hash(hashed_content({**entry, "spec": {**entry["spec"], "podSpec": spelling}}, priority, is_former=is_former))


def with_hashes(template: Template, hashes: Mapping[str, str]) -> Template:
    """The template with other hashes of some cliques."""
    cliques = {clique.name: replace(clique, hash=hashes.get(clique.name, clique.hash)) for clique in template.cliques}
    return replace(
        template,
        standalone=tuple(cliques[clique.name] for clique in template.standalone),
        groups=tuple(replace(group, cliques=tuple(cliques[clique.name] for clique in group.cliques)) for group in template.groups),
        hash=_hash({name: clique.hash for name, clique in cliques.items()}),
    )


def _order(startup_type: str, entries: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """For each clique of the list, the cliques that it starts after. With InOrder, that is the previous one only."""
    if startup_type == IN_ORDER:
        return [(), *((entry["name"],) for entry in entries[:-1])]
    return [tuple(entry["spec"].get("startsAfter") or ()) if startup_type == EXPLICIT else () for entry in entries]


def _clique(entry: Mapping[str, Any], priority: str, starts_after: tuple[str, ...], hashes: Memo) -> Clique:
    spec = entry["spec"]
    pod_spec = spec["podSpec"]
    own_labels, annotations = entry.get("labels") or {}, entry.get("annotations") or {}
    return Clique(
        name=entry["name"],
        replicas=spec["replicas"],
        min_available=spec["minAvailable"],
        role=spec["roleName"],
        pod_spec=pod_spec,
        labels=own_labels,
        annotations={key: value for key, value in annotations.items() if key != labels.TOPOLOGY_NAME},
        hash=_hash_of(entry, priority, hashes),
        starts_after=starts_after,
        autoscaling=spec.get("autoScalingConfig"),
        scheduler=pod_spec.get("schedulerName", ""),
        budget=_budget(entry),
    )


def _hash_of(entry: Mapping[str, Any], priority: str, hashes: Memo) -> str:
    """The hash of a clique, computed once."""
    facts = (entry.get("labels"), entry.get("annotations"), entry["spec"]["podSpec"], priority)
    return hashes.recall(entry["name"], facts, lambda: _hash(hashed_content(entry, priority)))


def hashed_content(entry: Mapping[str, Any], priority: str, *, is_former: bool = False) -> Any:
    """What the pods of a clique are created from, the same for all spellings. `priority` is the priority class of the set.

    `is_former`: as hashes were computed before more spellings were the same.
    """
    pod_spec = entry["spec"]["podSpec"]
    named = {**pod_spec, "priorityClassName": pod_spec.get("priorityClassName") or priority}
    return {
        "labels": entry.get("labels") or {},
        "annotations": entry.get("annotations") or {},
        "spec": canonical_form(named, is_former=is_former),
    }


def _group(config: Mapping[str, Any], cliques: Mapping[str, Clique], inherited: Mapping[str, str]) -> Group:
    return Group(
        name=config["name"],
        cliques=tuple(cliques[name] for name in config["cliqueNames"]),
        replicas=config["replicas"],
        min_available=config["minAvailable"],
        annotations={**inherited, **(config.get("annotations") or {})},
        autoscaling=config.get("scaleConfig"),
        budget=_budget(config),
    )


def _budget(entry: Mapping[str, Any]) -> UpdateBudget:
    """The budget of a clique or a scaling group. It is no part of the hash: pods do not depend on it."""
    given = entry.get("rollingUpdate")
    if not given:
        return DEFAULT_BUDGET
    deadline = given.get("progressDeadline")
    return UpdateBudget(max(1, given.get("maxUnavailable") or 1), parse(deadline) if deadline else None)


def _hash(value: Any) -> str:
    """A hash of the value, short enough for a label value."""
    return f"{HASH_VERSION}-{digest(value)[:HASH_LENGTH]}"
