"""Serving one request about a resource: may they, what do they send, what does the API say, and what goes wrong on purpose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from providers.sandbox.api import options
from providers.sandbox.api.request import Answer, Page, Request
from providers.sandbox.api.verbs import Api
from providers.sandbox.http import bodies, rendering
from providers.sandbox.http.access import Act, Identity
from providers.sandbox.http.faults import Fault
from providers.sandbox.http.negotiation import Form, negotiate
from providers.sandbox.http.reviews import review_of
from providers.sandbox.http.routes import Route
from providers.sandbox.http.streams import Stream
from providers.sandbox.http.world import World
from providers.sandbox.kinds.served import Served, no_such_subresource, verbs_of
from providers.sandbox.types.status import method_not_allowed, no_such_resource


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request, read."""

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
        """The form of the answer that the client wants."""
        return negotiate(self.accept)

    @property
    def include(self) -> str:
        """How much of each object the rows of a Table carry."""
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
_SUBRESOURCE_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}
_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_SUB_KINDS = {"binding": "Binding", "eviction": "Eviction", "token": "TokenRequest", "scale": "Scale"}


async def serve(world: World, call: Call) -> Response:
    """Answer one call. Raises `StatusError` for every refusal."""
    act = _act(call)
    world.access.check(call.identity, act)
    if review := review_of(call.route):
        return _reviewed(world, call, act, review)
    served = world.api.catalogue.find(call.route.group, call.route.version, call.route.plural)
    _must_make_sense(call.route, act, served)
    form = call.form
    payload = _READ.get(act.verb, _nothing)(call, served)
    name = act.name or _name_in(payload)
    request = _request(call, act, served, payload)
    if act.verb == "watch":
        return await _watched(world, call, act, request)
    fault = world.faults.take(act, name, ("answer", "cut", "slow"))
    if fault and not fault.committed:
        await _strike(world, fault)
    said = _DO[act.verb](world.api, request, payload, call.query)
    if fault and fault.committed:
        await _strike(world, fault)
    now = world.clock.now()
    if isinstance(said, Page):
        return rendering.many(said, form, call.include, now)
    return rendering.one(said, served, form, call.include, now)


class CutShort(Exception):
    """A fault asks for the connection to be cut instead of an answer."""


async def _strike(world: World, fault: Fault) -> None:
    if fault.how == "slow":
        await world.clock.sleep(fault.seconds)
    elif fault.how == "cut":
        raise CutShort
    else:
        raise fault.status()


def _act(call: Call) -> Act:
    route = call.route
    if route.subresource:
        verb = _SUBRESOURCE_VERBS.get(call.method)
    else:
        verb = _VERBS.get((call.method, bool(route.name)))
    if verb is None:
        raise method_not_allowed()
    if verb == "list" and options.watching(call.query):
        verb = "watch"
    namespace = route.name if (route.group, route.plural) == ("", "namespaces") else route.namespace
    return Act(verb, route.group, route.plural, route.subresource, namespace, route.name)


def _must_make_sense(route: Route, act: Act, served: Served) -> None:
    """A namespace where the kind has one and nowhere else, a subresource that exists, a verb that the kind knows."""
    if served.kind.namespaced and not route.namespace and act.verb in ("create", "deletecollection"):
        raise method_not_allowed()
    if served.kind.namespaced != bool(route.namespace) and not (served.kind.namespaced and not route.name):
        raise no_such_resource()
    if route.subresource and route.subresource not in served.subresources:
        raise no_such_subresource(served, route.name)
    if not route.subresource and act.verb not in verbs_of(served):
        raise method_not_allowed()


def _request(call: Call, act: Act, served: Served, payload: Any) -> Request:
    route, query = call.route, call.query
    kind_of_options = _OPTIONS.get(act.verb, "DeleteOptions")
    dry = [*query.get("dryRun", []), *(payload.get("dryRun") or [] if act.verb.startswith("delete") else [])]
    return Request(
        served,
        namespace=route.namespace,
        name=route.name,
        subresource=route.subresource,
        manager=options.text(query, "fieldManager") or call.agent.partition("/")[0],
        validation=options.validation(query, kind_of_options),
        dry_run=options.dry_run(dry, kind_of_options),
        force=bool(options.flag(query, "force")),
        user=call.identity.name,
    )


def _name_in(payload: Any) -> str:
    """The name that a create gives its object."""
    metadata = payload.get("metadata") if isinstance(payload, Mapping) else None
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


def _nothing(call: Call, served: Served) -> None:
    return None


def _read_object(call: Call, served: Served) -> Any:
    return bodies.read_object(call.content_type, call.data, _SUB_KINDS.get(call.route.subresource, served.kind.name))


def _read_patch(call: Call, served: Served) -> Any:
    how, patch = bodies.read_patch(call.content_type, call.data)
    options.check_patch(call.query, how)
    return how, patch


def _read_options(call: Call, served: Served) -> Any:
    given = bodies.read_options(call.content_type, call.data)
    options.check_deletion(given)
    return given


_READ: Mapping[str, Callable[[Call, Served], Any]] = {
    "create": _read_object,
    "update": _read_object,
    "patch": _read_patch,
    "delete": _read_options,
    "deletecollection": _read_options,
}
"""What the body of each verb is."""

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


async def _watched(world: World, call: Call, act: Act, request: Request) -> Response:
    fault = world.faults.take(act, act.name, ("answer", "slow"))
    if fault:
        await _strike(world, fault)
    frames = rendering.Frames(request.served, call.form, call.include)
    return Stream(world, world.api.watch(request, options.selection(call.query)), frames, act)


def _reviewed(world: World, call: Call, act: Act, review: Any) -> Response:
    if act.verb != "create":
        raise method_not_allowed()
    body = bodies.read_object(call.content_type, call.data, "Review")
    head = {name: body[name] for name in ("kind", "apiVersion") if name in body}
    return rendering.document({**head, "metadata": {}, **review(body, call.identity, world.access)}, 201)
