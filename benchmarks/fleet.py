"""Fleet: settled sets of 25 replicas with five pods each, and what they consist of, as an API server has them. Copies of a few originals.

In a mixed one every tenth set has a ComputeDomain for each replica, the first is a Dynamo graph instead, and all have native gangs. There
is one graph: hashes of its templates depend on its name, so copies would be outdated.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, Final

import orjson
from msgspec.structs import replace

from benchmarks.memory import RUNNING, as_pod_is_stored, fields_of
from engine.ids import Kind
from engine.ownership import MANAGER
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import AUTO, COMPUTE_DOMAIN
from providers.schedulers.kube import KubeScheduler, kube_scheduler
from resources.base import kinds
from resources.ports.configuration import Configuration, GangMode
from tests.builders import clique, podcliqueset
from tests.laws.graphs import GraphToy
from tests.laws.native import HIERARCHIES, Native
from tests.laws.rack import Rack
from tests.mnnvl.sets import gpu, said
from tests.stories.graphs import graph, service

REPLICAS, PODS = 25, 5
"""Replicas of a set, and pods of a replica."""
PODS_OF_A_NODE: Final = 30
PLAIN: Final = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler")
MIXED: Final = replace(PLAIN, schedulers={"default-scheduler": kube_scheduler(GangMode.AUTO)}, fabrics=(Nvidia(auto=True),))
SERVED: Final = {(kind.api_version, kind.name): kind for kind in (*kinds.KINDS, COMPUTE_DOMAIN) if kind.key not in HIERARCHIES}
UID: Final = re.compile(rb"uid-\d+")
ORIGINAL: Final = "set-original"
PLACE: Final = b"node-original"
CONTAINER: Final = re.compile(rb"containerd://\w+")
REVISION: Final = re.compile(rb'"resourceVersion":"\d+"')


class Original(GraphToy, Rack, Native):
    """A cluster with one root, in which whoever writes a field owns it."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self.configuration = configuration

    def put(self, body: Any) -> dict[str, Any]:
        """Store an object, and who owns its fields."""
        fields = {"f:metadata": fields_of(body["metadata"]), "f:spec": fields_of(body.get("spec", {}))}
        entry = {"manager": MANAGER, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
        return super().put({**body, "metadata": {**body["metadata"], "managedFields": [entry]}})


def originals(*, mixed: bool) -> list[list[bytes]]:
    """The objects of one set of each sort, as JSON, in the proportions of the fleet."""
    workers = clique("worker", PODS, minAvailable=PODS)
    plain = podcliqueset(ORIGINAL, workers, replicas=REPLICAS)
    if not mixed:
        return [_settled(PLAIN, plain)]
    domains = said(podcliqueset(ORIGINAL, gpu("worker", PODS, minAvailable=PODS), replicas=REPLICAS), {AUTO: "enabled"})
    return [_settled(MIXED, domains), *[_settled(MIXED, plain)] * 9]


def _settled(configuration: Configuration, root: dict[str, Any]) -> list[bytes]:
    cluster = Original(configuration)
    cluster.put(root)
    cluster.settle()
    return [orjson.dumps(_as_stored(body)) for body in cluster.objects.values()]


def _as_stored(body: dict[str, Any]) -> dict[str, Any]:
    if body["kind"] != kinds.POD.name:
        return body
    return {**as_pod_is_stored(body), "spec": {**as_pod_is_stored(body)["spec"], "nodeName": PLACE.decode()}, "status": RUNNING}


def fleet(pods: int, *, mixed: bool = False) -> Iterator[tuple[Kind, str, bytes]]:
    """The kind, the name and the JSON of each object of sets with that many pods, and of what they refer to. Revisions count from 10."""
    found, revisions, places = originals(mixed=mixed), count(10), count()
    components = _settled(MIXED, graph(ORIGINAL, decode=service(REPLICAS, nodes=PODS))) if mixed else []
    for number in range(-(-pods // (REPLICAS * PODS))):
        is_graph = mixed and not number
        name = ORIGINAL.encode() if is_graph else b"set-%05d" % number
        for original in components if is_graph else found[number % len(found)]:
            named = original.replace(ORIGINAL.encode(), name)
            placed = named.replace(PLACE, b"node-%04d" % (next(places) // PODS_OF_A_NODE)) if PLACE in named else named
            placed = CONTAINER.sub(b"containerd://%s" % hashlib.sha256(name + placed[:200]).hexdigest().encode(), placed)
            revised = REVISION.sub(b'"resourceVersion":"%d"' % next(revisions), placed)
            content = UID.sub(partial(_uid, name), revised)
            head = orjson.loads(content)
            yield SERVED[head["apiVersion"], head["kind"]], head["metadata"]["name"], content


def _uid(name: bytes, match: re.Match[bytes]) -> bytes:
    digits = hashlib.md5(name + match[0], usedforsecurity=False).hexdigest().encode()
    return b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
