"""Queries: many reads of an API server at once. A read that is refused is a result too, not an exception."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import anyio
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden, Invalid, NotFound, Unauthorized, Unreachable
from engine.ids import Kind
from engine.mask import masked
from engine.observed import Live, live
from engine.paths import get
from engine.report.printable import clipped
from engine.runtime.provider import Client
from providers.kubernetes.discovery import Discovery
from resources.install.permissions import Permission
from resources.ports.checks import Query, QueryResult, QueryResults, ServedApis

ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
MAX_ERROR = 400
"""Characters of an error message that are kept."""
CONCURRENCY = 16
"""How many reads are under way at a time."""


@runtime_checkable
class DiscoveryClient(Protocol):
    """A client that can discover what its server serves."""

    async def discover(self) -> Discovery:
        """All kinds that the server serves, in every version."""
        ...

    async def version(self) -> Mapping[str, Any]:
        """The server's answer to `/version`."""
        ...


async def served_apis(client: Client) -> ServedApis:
    """The kinds that the server serves, and its version. Raises `Unauthorized`, and `Unreachable` if it does not answer at all."""
    if not isinstance(client, DiscoveryClient):
        return ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in await client.kinds()))
    try:
        discovery = await client.discover()
    except (Unauthorized, Unreachable):
        raise
    except ClusterError as error:
        return ServedApis(error=f"failed to discover API resources: {clipped(str(error), MAX_ERROR)}")
    kinds = frozenset((served.kind.group, served.kind.version, served.kind.plural) for served in discovery.served)
    try:
        version = await client.version()
    except ClusterError:
        version = {}
    return ServedApis(kinds, discovery.incomplete, version=version)


async def run_queries(client: Client, queries: Iterable[Query], apis: ServedApis) -> QueryResults:
    """The result of every query; equal queries are made once. Raises `Unauthorized`, because then every query would fail."""
    results: dict[Query, QueryResult] = {}
    slots = anyio.Semaphore(CONCURRENCY)

    async def run_one(query: Query) -> None:
        async with slots:
            results[query] = await _run(client, query, apis)

    try:
        async with anyio.create_task_group() as tasks:
            for query in dict.fromkeys(queries):
                tasks.start_soon(run_one, query)
    except* Unauthorized as errors:
        raise errors.exceptions[0] from None
    return QueryResults(results)


async def _run(client: Client, query: Query, apis: ServedApis) -> QueryResult:
    """The result of one query in the best served version. Raises `Unauthorized` only."""
    kind = best_version(query, apis)
    if apis.kinds and not apis.serves(kind):
        unknown = apis.why_unknown(kind)
        error = f"it is not known whether the cluster serves {kind.name}: {clipped(unknown, MAX_ERROR)}" if unknown else ""
        return QueryResult(error=error, served=False)
    try:
        return QueryResult(tuple(await _objects(client, kind, query)))
    except NotFound as error:
        # A 404 that names the object means that the object does not exist; any other means that the kind is not served.
        return QueryResult(served=bool(query.name and get(error.status, ("details", "name"))))
    except Unauthorized:
        raise
    except ClusterError as error:
        # An invalid name cannot be that of an object: there is none.
        if query.name and isinstance(error, Invalid):
            return QueryResult()
        return QueryResult(error=clipped(str(error), MAX_ERROR), is_forbidden=isinstance(error, Forbidden))


def best_version(query: Query, apis: ServedApis) -> Kind:
    """The kind in the first of the query's versions that is served; in its own version if none is, or if that is not known."""
    versions = (replace(query.kind, version=version) for version in (query.kind.version, *query.versions))
    return next((kind for kind in versions if apis.serves(kind)), query.kind)


async def _objects(client: Client, kind: Kind, query: Query) -> Sequence[Live]:
    """The objects of a query, Secrets masked. Raises `ClusterError`."""
    if query.name:
        bodies = [await client.get(kind, query.namespace, query.name)]
    else:
        bodies = (await client.list(kind, query.namespace, labels=query.labels, fields=query.fields)).items
    # Items of a list do not repeat their kind.
    type_meta = {"apiVersion": kind.api_version, "kind": kind.name}
    return [live(masked({**type_meta, **body})) for body in bodies]


async def missing_verbs(client: Client, permissions: Iterable[Permission], namespace: str) -> Mapping[Permission, tuple[str, ...] | str]:
    """Permission -> those of its verbs that we are not allowed, or why that is not known.

    A permission without a namespace of its own is checked in `namespace` (empty: in all).
    """
    missing: dict[Permission, tuple[str, ...] | str] = {}
    slots = anyio.Semaphore(CONCURRENCY)

    async def check(permission: Permission) -> None:
        async with slots:
            try:
                place = permission.namespace or namespace
                missing[permission] = tuple([verb for verb in permission.verbs if not await _all_allowed(client, permission, verb, place)])
            except ClusterError as error:
                missing[permission] = clipped(str(error), MAX_ERROR)

    async with anyio.create_task_group() as tasks:
        for permission in permissions:
            tasks.start_soon(check, permission)
    return missing


async def _all_allowed(client: Client, permission: Permission, verb: str, namespace: str) -> bool:
    """Whether the verb is allowed on every object that the permission is about. Raises `ClusterError`."""
    return all([await _is_allowed(client, permission, verb, namespace, name) for name in permission.names or ("",)])


async def _is_allowed(client: Client, permission: Permission, verb: str, namespace: str, name: str) -> bool:
    """Whether a SelfSubjectAccessReview allows the verb on the object of that name (empty: on all). Raises `ClusterError`."""
    kind = permission.kind
    attributes = {
        "verb": verb,
        "group": kind.group,
        "version": kind.version,
        "resource": kind.plural,
        "subresource": permission.subresource,
        "namespace": namespace if kind.namespaced else "",
        "name": name,
    }
    spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
    answer = await client.create(ACCESS_REVIEW, "", {"apiVersion": ACCESS_REVIEW.api_version, "kind": ACCESS_REVIEW.name, "spec": spec})
    status = answer.get("status")
    return bool(isinstance(status, Mapping) and status.get("allowed"))
