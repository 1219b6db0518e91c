"""Membership: the fabric domains of a live set are those that its objects record; an edit of the annotations has no effect (N24, N25)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct
from msgspec.structs import replace

from engine.conditions import condition
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.observed import live as live_of
from engine.plan import Alarm
from engine.report.printable import clipped
from engine.resource import Body
from resources.base import kinds, labels, names
from resources.base.fields import annotations_of, mapping
from resources.model.domain import domain_requests_of
from resources.model.withdrawn import proposed_metadata
from resources.ports.configuration import Configuration
from resources.ports.fabric import GROUP_INDEX, INDEX, Fabric, SpecifiedClique, SpecifiedSet
from resources.ports.membership import CliqueRecord, DomainRecord, GroupRecord, MembershipReader, MembershipRecord, ObjectRecord

STAYS: Final = "it has no effect: it stays as recorded until the set is deleted and created again"
CONDITION: Final = "FabricAnnotationsIgnored"
"""The type of the condition of a set with annotations that differ from the record."""
MAX_MESSAGE: Final = 2000
"""The largest number of characters of the condition's message."""

Records = tuple[tuple[Fabric, MembershipReader, MembershipRecord], ...]
"""What the objects of a set record, for each fabric that can read it."""


class EffectiveSet(Struct, frozen=True, eq=False):
    """A set as its objects are computed: with the recorded membership."""

    body: Body
    """The specified body itself if nothing differs."""
    faults: tuple[Alarm, ...] = ()
    """One for each annotation that differs from the record (N25)."""


def records_of(observed: Observed, configuration: Configuration, memo: Memo) -> Records:
    """What the objects of a set record; equal as long as they record the same.

    Objects that are being deleted count as well: their pods are still in their domains.
    """
    recording = ((fabric, fabric.membership) for fabric in configuration.fabrics if fabric.membership is not None)
    return tuple((fabric, reader, _record(observed, fabric, reader, memo)) for fabric, reader in recording)


def effective_set(body: Body, records: Records) -> EffectiveSet:
    """The set with the recorded membership in place of the annotations in `body`, which may be invalid."""
    faults: list[Alarm] = []
    for fabric, reader, record in records:
        if record.is_empty:
            continue
        recorded = reader.as_recorded(body, record)
        reason = f"{fabric.kind.name}AnnotationIgnored"
        faults += (Alarm(reason, str(replace(issue, message=f"{issue.message}; {STAYS}")), fault=True) for issue in recorded.issues)
        body = recorded.body
    return EffectiveSet(body, tuple(faults))


def specified_body(observed: Observed) -> Body:
    """The stored set; if there is a proposal, the proposal with its metadata laid on that of the stored set."""
    body = observed.root.body
    if observed.proposal is None:
        return body
    return {**observed.proposal, "metadata": proposed_metadata(body, observed.proposal)}


def effective_body(observed: Observed, configuration: Configuration) -> Body:
    """The set as specified, with the recorded membership. It may be invalid and lack its defaults."""
    return effective_set(specified_body(observed), records_of(observed, configuration, Memo())).body


def conditions(faults: Sequence[Alarm], generation: int) -> list[dict[str, Any]]:
    """The condition of a set with such faults as a list; empty without faults."""
    if not faults:
        return []
    message = "; ".join(fault.text for fault in faults)
    return [condition(CONDITION, True, faults[0].reason, clipped(message, MAX_MESSAGE), generation=generation)]


def _record(observed: Observed, fabric: Fabric, reader: MembershipReader, memo: Memo) -> MembershipRecord:
    root = observed.root.id
    read = partial(_part_record, root, fabric, reader)
    parts = tuple(part.index(f"membership of {fabric.name}", read) for part in observed.slices.values())
    facts = (parts, observed.references, root)
    domains = memo.recall(("recorded domains", fabric.name), facts, lambda: _domains(observed, fabric, parts))

    def make() -> MembershipRecord:
        cliques = [clique for part in parts for clique in part.cliques]
        existing = {clique.clique for clique in cliques}
        cliques += (clique for part in parts for clique in part.of_gang if clique.clique not in existing)
        groups = tuple(group for part in parts for group in part.groups)
        return MembershipRecord(root.name, tuple(cliques), groups, domains, any(part.has_plain_gang for part in parts))

    return memo.recall(("membership", fabric.name), (parts, domains, root), make)


class _PartRecord(Struct, frozen=True):
    """What the objects of one part of a set record."""

    cliques: tuple[CliqueRecord, ...]
    groups: tuple[GroupRecord, ...]
    domains: tuple[DomainRecord, ...]
    of_gang: tuple[CliqueRecord, ...]
    """What the base PodGang of its replica records."""
    has_plain_gang: bool
    """Whether that PodGang exists and records nothing."""


def _part_record(root: ResourceId, fabric: Fabric, reader: MembershipReader, part: Slice) -> _PartRecord:
    """Equal records are listed once: the PodCliques of one clique in all replicas of a scaling group usually record the same."""
    of_gangs = [tuple(recorded_in_gang(gang, fabric, index)) for index, gang in _base_gangs(root, part)]
    return _PartRecord(
        tuple(dict.fromkeys(_clique_records(root, reader, part))),
        tuple(dict.fromkeys(_group_records(root, reader, part))),
        tuple(DomainRecord(live.id.name, fabric.template_name(live, live.id.name), True, False) for live in part.of(fabric.kind.name)),
        tuple(record for records in of_gangs for record in records),
        any(not records for records in of_gangs),
    )


def _base_gangs(root: ResourceId, part: Slice) -> Iterator[tuple[int, Live]]:
    """The base PodGangs in a part of a set, each with the index of its replica."""
    for live in part.of(kinds.PODGANG.name):
        index = names.replica_of(root, live.id)
        if index is not None and live.id.name == names.base_gang(root.name, index):
            yield index, live


def _clique_records(root: ResourceId, reader: MembershipReader, part: Slice) -> Iterator[CliqueRecord]:
    for live in part.of(kinds.PODCLIQUE.name):
        index = names.replica_of(root, live.id)
        if index is not None:
            clique, group_replica = _clique_of(root, index, live)
            yield CliqueRecord(clique, index, reader.record_of(live), group_replica)


def _clique_of(root: ResourceId, index: int, live: Live) -> tuple[str, int | None]:
    """The clique of the template that a PodClique belongs to, and its replica of the scaling group; from its name and its controller's."""
    owner = live.controller
    if owner is None or owner.kind != kinds.SCALING_GROUP.name:
        return live.id.name.removeprefix(names.podclique(root.name, index, "")), None
    replica, _, clique = live.id.name.removeprefix(f"{owner.name}-").partition("-")
    return clique, names.index_in(replica)


def _group_records(root: ResourceId, reader: MembershipReader, part: Slice) -> Iterator[GroupRecord]:
    for live in part.of(kinds.SCALING_GROUP.name):
        index = names.replica_of(root, live.id)
        if index is not None:
            yield GroupRecord(live.id.name.removeprefix(names.scaling_group(root.name, index, "")), index, reader.record_of(live))


def _domains(observed: Observed, fabric: Fabric, parts: Sequence[_PartRecord]) -> tuple[DomainRecord, ...]:
    """The domains that the set owns, and those whose templates its PodCliques claim, each once, by name."""
    namespace, index = observed.root.id.namespace, _domain_index(observed, fabric)
    records = {domain.name: domain for part in parts for domain in part.domains}
    templates = {template for part in parts for clique in part.cliques for template in clique.record.templates}
    claimed = (live for template in templates for live in index.by_template.get((namespace, template), ()))
    for live in (*index.by_owner.get(observed.root.uid, ()), *claimed):
        shared = any(owner.uid == observed.root.uid for owner in live.owners)
        records.setdefault(live.id.name, DomainRecord(live.id.name, fabric.template_name(live, live.id.name), False, shared))
    return tuple(records[name] for name in sorted(records))


class _DomainIndex(NamedTuple):
    """The domains of one fabric that have no controller."""

    by_owner: Mapping[str, tuple[Live, ...]]
    """Uid of an owner -> its domains."""
    by_template: Mapping[tuple[str, str], tuple[Live, ...]]
    """Namespace and ResourceClaimTemplate -> the domains with that template."""


def _domain_index(observed: Observed, fabric: Fabric) -> _DomainIndex:
    def make(references: Slice) -> _DomainIndex:
        by_owner: dict[str, list[Live]] = {}
        by_template: dict[tuple[str, str], list[Live]] = {}
        for live in references.of(fabric.kind.name):
            by_template.setdefault((live.id.namespace, fabric.template_name(live, live.id.name)), []).append(live)
            for owner in live.owners if live.controller is None else ():
                by_owner.setdefault(owner.uid, []).append(live)
        return _DomainIndex(_frozen(by_owner), _frozen(by_template))

    return observed.references.index(f"recorded domains of {fabric.name}", make)


def _frozen(lists: Mapping[Any, list[Live]]) -> dict[Any, tuple[Live, ...]]:
    return {key: tuple(lives) for key, lives in lists.items()}


def gang_record(id: ResourceId, specified: SpecifiedSet, configuration: Configuration) -> str:
    """The value of the annotation `labels.DOMAIN_MEMBERSHIP` for the base PodGangs of a set.

    Empty for a set that requests no domains, neither for pods that it has nor for pods that an edit may add (R14). `specified` is the set
    with its recorded membership.
    """
    recording = ((fabric, fabric.membership) for fabric in configuration.fabrics if fabric.membership is not None)
    by_fabric = {fabric.name: cliques for fabric, reader in recording if (cliques := _cliques(fabric, reader, id, specified))}
    return orjson.dumps(by_fabric, option=orjson.OPT_SORT_KEYS).decode() if by_fabric else ""


def _cliques(fabric: Fabric, reader: MembershipReader, id: ResourceId, specified: SpecifiedSet) -> dict[str, Any]:
    """Clique -> what its PodCliques record; empty if the set has nothing to do with domains."""
    domains = {clique: request.name for request in domain_requests_of(fabric, id.name, specified) for clique in request.cliques}
    cliques = {clique.name: clique for clique in specified.cliques}
    records = {name: _entry(reader.record_of(_podclique(clique)), domains.get(name, "")) for name, clique in cliques.items()}
    is_marked = bool(fabric.group_annotations(specified.annotations))
    return records if is_marked or any(entry.keys() & {"annotations", "domain"} for entry in records.values()) else {}


def _podclique(clique: SpecifiedClique) -> Live:
    """The PodClique of a clique as far as fabrics read it, before it has a claim."""
    metadata = {"name": clique.name, "annotations": clique.annotations}
    spec = {"podSpec": clique.pod_spec}
    return live_of({"apiVersion": kinds.PODCLIQUE.api_version, "kind": kinds.PODCLIQUE.name, "metadata": metadata, "spec": spec})


def _entry(record: ObjectRecord, domain: str) -> dict[str, Any]:
    fields = {"annotations": dict(record.annotations), "domain": domain, "eligible": record.eligible}
    return {key: value for key, value in fields.items() if value}


def recorded_in_gang(gang: Live, fabric: Fabric, index: int) -> Iterator[CliqueRecord]:
    """What the base PodGang of the replica `index` records for each clique. Nothing of what people have edited into something else."""
    for name, entry in mapping(mapping(_parsed(gang)).get(fabric.name)).items():
        fields = mapping(entry)
        domain = fields.get("domain")
        templates = (domain.replace(INDEX, str(index)).replace(GROUP_INDEX, "0"),) if isinstance(domain, str) else ()
        annotations = ((key, value) for key, value in mapping(fields.get("annotations")).items() if isinstance(value, str))
        record = ObjectRecord(tuple(annotations), templates, fields.get("eligible") is True)
        yield CliqueRecord(name, index, record, 0 if isinstance(domain, str) and GROUP_INDEX in domain else None)


def _parsed(gang: Live) -> Any:
    text: Mapping[str, Any] = annotations_of(gang.body)
    try:
        return orjson.loads(text.get(labels.DOMAIN_MEMBERSHIP, ""))
    except (TypeError, ValueError):  # absent, no text, or no JSON
        return None
