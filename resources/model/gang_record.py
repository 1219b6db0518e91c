"""Gang record: what the base PodGang of a replica says about the fabric domains of its cliques (N24).

It counts for cliques without a PodClique. A replacement of the only replica of a scaling group, and the recycling of a replica, delete
PodCliques before they are created again; the PodGang stays.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from engine.ids import ResourceId
from engine.observed import Live, live
from resources.base import kinds, labels
from resources.base.fields import annotations_of, mapping
from resources.model.domain import domain_requests_of
from resources.ports.configuration import Configuration
from resources.ports.fabric import GROUP_INDEX, INDEX, Fabric, SpecifiedClique, SpecifiedSet
from resources.ports.membership import CliqueRecord, MembershipReader, ObjectRecord


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
    return live({"apiVersion": kinds.PODCLIQUE.api_version, "kind": kinds.PODCLIQUE.name, "metadata": metadata, "spec": spec})


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
