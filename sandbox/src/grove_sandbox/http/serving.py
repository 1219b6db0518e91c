"""Serving: one request about a resource, from authorization to the response, with the faults that tests inject."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from grove_sandbox.api import options
from grove_sandbox.api.request import Answer, Page, Request
from grove_sandbox.api.verbs import Api
from grove_sandbox.http import bodies, rendering
from grove_sandbox.http.access import Action, Identity
from grove_sandbox.http.backend import Backend
from grove_sandbox.http.faults import InjectedFault
from grove_sandbox.http.negotiation import Form, negotiate
from grove_sandbox.http.reviews import ACCESS_REVIEW, reviewed
from grove_sandbox.http.routes import Route
from grove_sandbox.http.streams import WatchResponse
from grove_sandbox.kinds.served import Served, no_such_subresource, verbs_of
from grove_sandbox.types.status import method_not_allowed, no_such_resource


class Call(Struct, frozen=True):
    """An HTTP request about a resource."""

    method: str
    route: Route
    query: options.Query
    identity: Identity
    accept: str
    content_type: str
    agent: str
    data: bytes

    @property
    def form(self) -> Form:
        """The form of the answer that the client asks for. Raises 406."""
        return negotiate(self.accept)

    @property
    def include(self) -> str:
        """How much of each object the rows of a Table contain (`includeObject`)."""
        return options.text(self.query, "includeObject")


_VERBS = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
"""The verb of a method, by whether the path names an object."""
_SUBRESOURCE_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}
_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_SUB_KINDS = {"binding": "Binding", "eviction": "Eviction", "token": "TokenRequest", "scale": "Scale"}


async def serve(backend: Backend, call: Call) -> Response:
    """The response to a call. Raises `StatusError` for every refusal, `ConnectionCut` for an injected fault."""
    action = _action(call)
    backend.access.check(call.identity, action)
    if (call.route.group, call.route.version, call.route.plural) == (ACCESS_REVIEW.group, ACCESS_REVIEW.version, ACCESS_REVIEW.plural):
        return _review(backend, call, action)
    served = backend.api.catalogue.find(call.route.group, call.route.version, call.route.plural)
    _check_route(call.route, action, served)
    form = call.form
    payload = _READ.get(action.verb, _nothing)(call, served)
    request = _request(call, action, served, payload)
    if action.verb == "watch":
        return await _watch(backend, call, action, request)
    fault = backend.faults.take(action, action.name or _name_in(payload), ("answer", "cut", "slow"))
    if fault and not fault.committed:
        await _fail(backend, fault)
    answer = _DO[action.verb](backend.api, request, payload, call.query)
    if fault and fault.committed:
        await _fail(backend, fault)
    now = backend.clock.now()
    if isinstance(answer, Page):
        return rendering.many(answer, form, call.include, now)
    return rendering.one(answer, served, form, call.include, now)


class ConnectionCut(Exception):
    """An injected fault drops the connection instead of an answer."""


async def _fail(backend: Backend, fault: InjectedFault) -> None:
    if fault.how == "slow":
        await backend.clock.sleep(fault.seconds)
    elif fault.how == "cut":
        raise ConnectionCut
    else:
        raise fault.status()


def _action(call: Call) -> Action:
    route = call.route
    verb = _SUBRESOURCE_VERBS.get(call.method) if route.subresource else _VERBS.get((call.method, bool(route.name)))
    if verb is None:
        raise method_not_allowed()
    if verb == "list" and options.watching(call.query):
        verb = "watch"
    namespace = route.name if (route.group, route.plural) == ("", "namespaces") else route.namespace
    return Action(verb, route.group, route.plural, route.subresource, namespace, route.name)


def _check_route(route: Route, action: Action, served: Served) -> None:
    """Raises 404 or 405 unless the namespace fits the kind's scope, the subresource exists and the kind has the verb."""
    if served.kind.namespaced and not route.namespace and action.verb in ("create", "deletecollection"):
        raise method_not_allowed()
    if served.kind.namespaced != bool(route.namespace) and not (served.kind.namespaced and not route.name):
        raise no_such_resource()
    if route.subresource and route.subresource not in served.subresources:
        raise no_such_subresource(served, route.name)
    if not route.subresource and action.verb not in verbs_of(served):
        raise method_not_allowed()


def _request(call: Call, action: Action, served: Served, payload: Any) -> Request:
    route, query = call.route, call.query
    kind_of_options = _OPTIONS.get(action.verb, "DeleteOptions")
    dry_run = [*query.get("dryRun", []), *(payload.get("dryRun") or [] if action.verb.startswith("delete") else [])]
    return Request(
        served,
        namespace=route.namespace,
        name=route.name,
        subresource=route.subresource,
        manager=options.text(query, "fieldManager") or call.agent.partition("/")[0],
        validation=options.validation(query, kind_of_options),
        dry_run=options.dry_run(dry_run, kind_of_options),
        force=bool(options.flag(query, "force")),
        user=call.identity.name,
    )


def _name_in(payload: Any) -> str:
    """The name of the object that a create sends."""
    metadata = payload.get("metadata") if isinstance(payload, Mapping) else None
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


def _nothing(call: Call, served: Served) -> None:
    return None


def _read_object(call: Call, served: Served) -> Any:
    return bodies.read_object(call.content_type, call.data, _SUB_KINDS.get(call.route.subresource, served.kind.name))


def _read_patch(call: Call, served: Served) -> Any:
    patch_type, patch = bodies.read_patch(call.content_type, call.data)
    options.check_patch(call.query, patch_type)
    return patch_type, patch


def _read_options(call: Call, served: Served) -> Any:
    delete_options = bodies.read_options(call.content_type, call.data)
    options.check_deletion(delete_options)
    return delete_options


_READ: Mapping[str, Callable[[Call, Served], Any]] = {
    "create": _read_object,
    "update": _read_object,
    "patch": _read_patch,
    "delete": _read_options,
    "deletecollection": _read_options,
}
"""How the body of each verb is read."""

_DO: Mapping[str, Callable[[Api, Request, Any, options.Query], Answer | Page]] = {
    "get": lambda api, request, payload, query: api.get(request),
    "list": lambda api, request, payload, query: api.list(request, options.selection(query)),
    "create": lambda api, request, payload, query: api.create(request, payload),
    "update": lambda api, request, payload, query: api.replace(request, payload),
    "patch": lambda api, request, payload, query: api.patch(request, payload[1], payload[0]),
    "delete": lambda api, request, payload, query: api.delete(request, options.deletion(query, payload)),
    "deletecollection": lambda api, request, payload, query: api.delete_collection(
        request, options.selection(query), options.deletion(query, payload)
    ),
}


async def _watch(backend: Backend, call: Call, action: Action, request: Request) -> Response:
    fault = backend.faults.take(action, action.name, ("answer", "slow"))
    if fault:
        await _fail(backend, fault)
    encoder = rendering.EventEncoder(request.served, call.form, call.include)
    return WatchResponse(backend, backend.api.watch(request, options.selection(call.query)), encoder, action)


def _review(backend: Backend, call: Call, action: Action) -> Response:
    if action.verb != "create":
        raise method_not_allowed()
    body = bodies.read_object(call.content_type, call.data, ACCESS_REVIEW.name)
    return rendering.document(reviewed(body, call.identity, backend.access), 201)
