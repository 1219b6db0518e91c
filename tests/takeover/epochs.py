"""Grove's operator v0.1.0-alpha.12 or later in a cluster: PodGangMaps, and PodGangs that are named after epochs.

Written from what is documented of that release. A set is deployed as by the release before, and renamed as its operator does that.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from engine.ids import Kind
from resources.base import kinds
from tests.stories.stage import Stage
from tests.takeover.grove import Body, Child
from tests.takeover.grove_operator import Grove
from tests.takeover.stored_set import generation_hash
from tests.takeover.worlds import World, run_by_grove

POD_GANG_MAP: Final = Kind("grove.io", "v1alpha1", "PodGangMap", "podgangmaps")
FIRST: Final = 1_756_000_000_000_000_000
"""The epoch of the first replica's anchor: nanoseconds since 1970."""
MIGRATING: Final = {
    "type": "PodGangMigrationInProgress",
    "status": "True",
    "reason": "LegacyPodGangsPendingMigration",
    "message": "the PodGangs of the set are being renamed",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
TEXT: Final = {"type": "string"}
COUNT: Final = {"type": "integer", "format": "int32"}


def definition() -> Body:
    """The CustomResourceDefinition of PodGangMaps, with the fields that are documented."""
    entry = {
        "epoch": TEXT,
        "role": {"type": "string", "enum": ["Anchor", "Tail", "ScaleOut"]},
        "anchorIndex": COUNT,
        "dependsOn": {"type": "array", "items": TEXT},
        "podCliqueSetGenerationHash": TEXT,
        "podCliques": {"type": "object", "additionalProperties": COUNT},
        "pcsgReplicaIndices": {"type": "object", "additionalProperties": {"type": "array", "items": COUNT}},
    }
    entries = {
        "type": "array",
        "items": {"type": "object", "required": ["epoch"], "properties": entry},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["epoch"],
    }
    spec = {"type": "object", "properties": {"podCliqueSetReplicaIndex": COUNT, "entries": entries}}
    fields = {"apiVersion": TEXT, "kind": TEXT, "metadata": {"type": "object"}, "spec": spec}
    schema = {"openAPIV3Schema": {"type": "object", "properties": fields}}
    kind = POD_GANG_MAP
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": "podgangmap",
                "shortNames": ["pgm"],
            },
            "scope": "Namespaced",
            "versions": [{"name": kind.version, "served": True, "storage": True, "schema": schema}],
        },
    }


def leftover_map(root: Body) -> Body:
    """A PodGangMap without entries, of the first replica of a stored set."""
    name, uid = root["metadata"]["name"], root["metadata"]["uid"]
    owner = {"apiVersion": kinds.PODCLIQUESET.api_version, "kind": kinds.PODCLIQUESET.name, "name": name, "uid": uid, "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": name}
    meta = {"name": f"{name}-0", "namespace": root["metadata"]["namespace"], "labels": labels, "ownerReferences": [owner]}
    kind = {"apiVersion": POD_GANG_MAP.api_version, "kind": POD_GANG_MAP.name}
    return {**kind, "metadata": meta, "spec": {"podCliqueSetReplicaIndex": 0, "entries": []}}


@dataclass(frozen=True)
class Renamed:
    """One PodGang: its legacy name, its name with an epoch, and the labels that it gets besides."""

    legacy: str
    name: str
    labels: Mapping[str, str]


class EpochGrove:
    """The operator of the later release, in a cluster where `grove` has deployed a set."""

    def __init__(self, grove: Grove) -> None:
        self.grove, self.client, self.namespace = grove, grove.client, grove.namespace

    async def define(self) -> None:
        """Install the CustomResourceDefinition."""
        await self.client.create(kinds.CRD, "", definition())

    async def migrate(self) -> None:
        """Rename the PodGangs of all replicas, to the end."""
        for index in self.grove.rendering.indices:
            await self.plan(index)
            await self.move(index)
            await self.rename(index)
            await self.forget(index)

    async def begin(self) -> None:
        """The state in the middle: the first replica has both kinds of PodGangs and is moved in part; nothing is done for the others."""
        conditions = {"status": {"conditions": [MIGRATING]}}
        await self.client.patch(kinds.PODCLIQUESET, self.namespace, self.grove.rendering.name, conditions, subresource="status")
        await self.plan(0)
        await self.rename(0)
        await self.move(0, kinds.PODCLIQUE)

    def entries(self, index: int) -> Iterator[Body]:
        """The entries of the PodGangMap of a replica."""
        rendering = self.grove.rendering
        anchor, tail, later = (str(FIRST + 1000 * index + number) for number in range(3))
        revision = {"podCliqueSetGenerationHash": generation_hash(self.grove.pcs)}
        counts = {group["name"]: self._replicas(index, group) for group in rendering.groups}
        first = {group["name"]: list(range(min(group["minAvailable"], counts[group["name"]]))) for group in rendering.groups}
        rest = {name: [*range(len(first[name]), count)] for name, count in counts.items() if count > len(first[name])}
        cliques = {clique["name"]: clique["spec"]["replicas"] for clique in rendering.standalone}
        yield {"epoch": anchor, "role": "Anchor", "anchorIndex": 0, "podCliques": cliques, "pcsgReplicaIndices": first, **revision}
        if rest:
            yield {"epoch": tail, "role": "Tail", "dependsOn": [anchor], "pcsgReplicaIndices": rest, **revision}
        yield {"epoch": later, "role": "ScaleOut", "dependsOn": [anchor], **revision}

    def _replicas(self, index: int, group: Mapping[str, Any]) -> int:
        name = f"{self.grove.rendering.name}-{index}-{group['name']}"
        return int(self.grove.options.replicas.get(name, group["replicas"]))

    async def plan(self, index: int, entries: Iterable[Body] | None = None) -> None:
        """Create the PodGangMap of a replica."""
        name = self.grove.rendering.name
        own = {"app.kubernetes.io/component": "pcs-podgangmap", "grove.io/podcliqueset-replica-index": str(index)}
        meta = {"name": f"{name}-{index}", "namespace": self.namespace, "labels": {**self.grove.rendering.default, **own}}
        spec = {"podCliqueSetReplicaIndex": index, "entries": list(self.entries(index) if entries is None else entries)}
        body = {"apiVersion": POD_GANG_MAP.api_version, "kind": POD_GANG_MAP.name, "metadata": meta, "spec": spec}
        await self.grove.create(Child(POD_GANG_MAP, body, ("PodCliqueSet", name)))

    def renamed(self, index: int) -> list[Renamed]:
        """The PodGangs of a replica."""
        rendering = self.grove.rendering
        base, entries = f"{rendering.name}-{index}", list(self.entries(index))
        anchor = entries[0]["epoch"]
        result = [Renamed(base, f"{base}-{anchor}", self._labels(index, entries[0]))]
        for entry in entries[1:]:
            for group, indices in entry.get("pcsgReplicaIndices", {}).items():
                minimum = next(each["minAvailable"] for each in rendering.groups if each["name"] == group)
                for j in indices:
                    name = _fitted(f"{base}-{entry['epoch']}-{group}-{j}")
                    result.append(Renamed(f"{base}-{group}-{j - minimum}", name, self._labels(index, entry)))
        return result

    def _labels(self, index: int, entry: Body) -> dict[str, str]:
        return {
            "grove.io/epoch": entry["epoch"],
            "grove.io/podgang-role": entry["role"],
            "grove.io/podcliqueset-generation-hash": entry["podCliqueSetGenerationHash"],
            "grove.io/podcliqueset-replica-index": str(index),
        }

    async def move(self, index: int, *of: Kind) -> None:
        """Give PodCliques and pods of a replica (or only these kinds) the names of the PodGangs."""
        names = {each.legacy: each.name for each in self.renamed(index)}
        for kind in of or (kinds.PODCLIQUE, kinds.POD):
            for body in await self.grove.live(kind):
                meta = body["metadata"]
                if (name := names.get(meta["labels"]["grove.io/podgang"])) is None:
                    continue
                labels = {"grove.io/podgang": name, "grove.io/base-podgang": None}
                annotations = {key: name for key, value in (meta.get("annotations") or {}).items() if kind is kinds.POD and value in names}
                await self.client.patch(kind, self.namespace, meta["name"], {"metadata": {"labels": labels, "annotations": annotations}})

    async def rename(self, index: int) -> None:
        """Create the PodGangs of a replica with the names of epochs, and the PodGroups of the scheduler."""
        renamed = {each.legacy: each for each in self.renamed(index)}
        rendering = self.grove.rendering
        scheduled = {name: body for body in await self.grove.live(kinds.PODGANG) if (name := body["metadata"]["name"]) in renamed}
        for child in (*rendering.gangs(index), *rendering.pod_groups(index)):
            each = renamed[child.name]
            meta = child.body["metadata"]
            named = {**meta, "name": each.name, "labels": {**meta["labels"], **each.labels}}
            owner = child.owner if child.kind is kinds.PODGANG else (kinds.PODGANG.name, each.name)
            spec = scheduled[child.name]["spec"] if child.kind is kinds.PODGANG else child.body["spec"]
            await self.grove.create(Child(child.kind, {**child.body, "metadata": named, "spec": spec}, owner))
            if child.kind is kinds.PODGANG:
                status = {"status": scheduled[child.name].get("status") or {}}
                await self.client.patch(child.kind, self.namespace, each.name, status, subresource="status")

    async def gang(self, index: int, name: str) -> Child:
        """A PodGang of a replica under another name."""
        live = {body["metadata"]["name"]: body for body in await self.grove.live(kinds.PODGANG)}[self.renamed(index)[0].name]
        meta = {"name": name, "namespace": self.namespace, "labels": live["metadata"]["labels"]}
        kind = {"apiVersion": kinds.PODGANG.api_version, "kind": kinds.PODGANG.name}
        return Child(kinds.PODGANG, {**kind, "metadata": meta, "spec": live["spec"]}, self.grove.rendering.root)

    async def forget(self, index: int) -> None:
        """Delete the PodGangs of the release before. What belongs to them is collected."""
        for each in self.renamed(index):
            await self.client.delete(kinds.PODGANG, self.namespace, each.legacy)
        await self.grove.pause()


def _fitted(name: str) -> str:
    """A name of at most 63 characters: of a longer one the beginning and a digest."""
    return name if len(name) <= 63 else f"{name[:29]}-h{sha256(name.encode()).hexdigest()[:32]}"


async def _deploy_and_migrate(grove: Grove, world: World) -> None:
    await grove.deploy(world.manifest)
    later = EpochGrove(grove)
    await later.define()
    await later.migrate()


@asynccontextmanager
async def run_by_later_grove(world: World) -> AsyncIterator[tuple[Stage, EpochGrove]]:
    """A cluster in which the later release has brought the set of a world to rest."""
    world = replace(world, options=replace(world.options, pod_index=True))
    async with run_by_grove(world, _deploy_and_migrate) as (cluster, grove):
        yield cluster, EpochGrove(grove)
