"""Asking: questions to an API server, many at once; what is refused is an answer like any other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import anyio

from engine.errors import ClusterError, Invalid, NotFound, Unauthorized, Unreachable
from engine.ids import Kind
from engine.mask import masked
from engine.observed import Live, live
from engine.paths import get
from engine.report.printable import clipped
from engine.runtime.client import Client
from providers.kubernetes.discovery import Discovery
from resources.install.permissions import Permission
from resources.ports.queries import Query, QueryResult, QueryResults, ServedApis

ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
TOLD = 200
"""Characters of a refusal that are worth repeating."""
AT_ONCE = 16
"""How many questions are under way at a time."""


@runtime_checkable
class DiscoveryClient(Protocol):
    """A client that tells what its server is."""

    async def discover(self) -> Discovery:
        """All that it serves, in every version."""
        ...

    async def version(self) -> Mapping[str, Any]:
        """What it says of itself."""
        ...


async def offer(client: Client) -> ServedApis:
    """What the server serves and what it is. Raises `Unauthorized`, and `Unreachable` when there is no answer at all."""
    if not isinstance(client, DiscoveryClient):
        return ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in await client.kinds()))
    try:
        found = await client.discover()
    except (Unauthorized, Unreachable):
        raise
    except ClusterError as error:
        return ServedApis(fault=f"failed to discover API resources: {clipped(str(error), TOLD)}")
    kinds = frozenset((one.kind.group, one.kind.version, one.kind.plural) for one in found.served)
    try:
        version = await client.version()
    except ClusterError:
        version = {}
    return ServedApis(kinds, found.incomplete, version=version)


async def ask(client: Client, questions: Iterable[Query], offered: ServedApis) -> QueryResults:
    """The answers, asked for at once. Raises `Unauthorized`, for then none of them would mean anything."""
    found: dict[Query, QueryResult] = {}
    wanted = list(dict.fromkeys(questions))
    slots = anyio.Semaphore(AT_ONCE)

    async def one(question: Query) -> None:
        async with slots:
            found[question] = await _answer(client, question, offered)

    try:
        async with anyio.create_task_group() as tasks:
            for question in wanted:
                tasks.start_soon(one, question)
    except* Unauthorized as errors:
        raise errors.exceptions[0] from None
    return QueryResults(found)


async def _answer(client: Client, question: Query, offered: ServedApis) -> QueryResult:
    kind = best(question, offered)
    if offered.kinds and not offered.serves(kind):
        doubt = offered.doubt(kind)
        why = f"it is not known whether the cluster serves {kind.name}: {clipped(doubt, TOLD)}" if doubt else ""
        return QueryResult(fault=why, served=False)
    try:
        return QueryResult(tuple(await _objects(client, kind, question)))
    except NotFound as error:
        # Of one object it may mean that it is not there; otherwise nobody has ever heard of the kind.
        return QueryResult(served=bool(question.name and get(error.status, ("details", "name"))))
    except Unauthorized:
        raise
    except ClusterError as error:
        # No object can have such a name: so there is none.
        return QueryResult() if question.name and isinstance(error, Invalid) else QueryResult(fault=clipped(str(error), TOLD))


def best(question: Query, offered: ServedApis) -> Kind:
    """The kind in the best version that is served; as it is asked for where none is, or nobody knows."""
    versions = (replace(question.kind, version=version) for version in (question.kind.version, *question.versions))
    return next((kind for kind in versions if offered.serves(kind)), question.kind)


async def _objects(client: Client, kind: Kind, question: Query) -> Sequence[Live]:
    if question.name:
        bodies = [await client.get(kind, question.namespace, question.name)]
    else:
        bodies = (await client.list(kind, question.namespace, labels=question.labels, fields=question.fields)).items
    frame = {"apiVersion": kind.api_version, "kind": kind.name}
    return [live(masked({**frame, **body})) for body in bodies]


async def allowed(client: Client, permissions: Iterable[Permission], namespace: str) -> Mapping[Permission, tuple[str, ...] | str]:
    """Permission -> the verbs of it that we may not, or why nobody can tell; wherever workloads are stands for `namespace`."""
    found: dict[Permission, tuple[str, ...] | str] = {}
    slots = anyio.Semaphore(AT_ONCE)

    async def one(permission: Permission) -> None:
        async with slots:
            try:
                verbs = [verb for verb in permission.verbs if not await _may(client, permission, verb, permission.namespace or namespace)]
                found[permission] = tuple(verbs)
            except ClusterError as error:
                found[permission] = clipped(str(error), TOLD)

    async with anyio.create_task_group() as tasks:
        for permission in permissions:
            tasks.start_soon(one, permission)
    return found


async def _may(client: Client, permission: Permission, verb: str, namespace: str) -> bool:
    kind = permission.kind
    attributes = {
        "verb": verb,
        "group": kind.group,
        "version": kind.version,
        "resource": kind.plural,
        "subresource": permission.subresource,
        "namespace": namespace if kind.namespaced else "",
    }
    told = {key: value for key, value in attributes.items() if value}
    review = {"apiVersion": ACCESS_REVIEW.api_version, "kind": ACCESS_REVIEW.name, "spec": {"resourceAttributes": told}}
    answer = await client.create(ACCESS_REVIEW, "", review)
    status = answer.get("status")
    return bool(isinstance(status, Mapping) and status.get("allowed"))
