"""The API server: the in-memory API over HTTP, for kubectl and for any other client."""

import logging
from collections.abc import Awaitable, Callable

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from providers.sandbox.api import options
from providers.sandbox.http import bodies, discovery, faults
from providers.sandbox.http.access import Act, Identity
from providers.sandbox.http.negotiation import wants_aggregated
from providers.sandbox.http.rendering import JSON, document, refusal
from providers.sandbox.http.routes import route
from providers.sandbox.http.serving import Call, CutShort, serve
from providers.sandbox.http.streams import Cut
from providers.sandbox.http.world import World
from providers.sandbox.types.status import StatusError, bad_request, method_not_allowed, no_such_resource

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_log = logging.getLogger(__name__)

Endpoint = Callable[[World, Request, Identity], Awaitable[Response]]


def application(world: World) -> Starlette:
    """The ASGI application that shows a world to the network. Every path, health included, asks for a bearer token."""
    routes = [
        Route("/healthz", _guarded(world, _healthy), methods=METHODS),
        Route("/livez", _guarded(world, _healthy), methods=METHODS),
        Route("/readyz", _guarded(world, _healthy), methods=METHODS),
        Route("/version", _guarded(world, _version), methods=METHODS),
        Route("/sandbox/faults", _guarded(world, _faults), methods=METHODS),
        Route("/openapi/v3", _guarded(world, _openapi_index), methods=METHODS),
        Route("/openapi/v3/{path:path}", _guarded(world, _openapi_document), methods=METHODS),
        Route("/{path:path}", _guarded(world, _api), methods=METHODS),
    ]
    return Starlette(routes=routes)


def _guarded(world: World, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint for those who have a token, with every refusal turned into its Status."""

    async def guarded(request: Request) -> Response:
        try:
            identity = world.access.identify(request.headers.get("authorization", ""), world.clock.now())
            return await endpoint(world, request, identity)
        except StatusError as error:
            return refusal(error)
        except CutShort:
            return Cut()
        except ClientDisconnect:
            return Response()
        except Exception as error:
            _log.exception("the sandbox failed to answer %s %r", request.method, request.scope["path"])
            return refusal(StatusError(500, "InternalError", f"Internal error occurred: {error}", details={}))

    return guarded


async def _healthy(world: World, request: Request, identity: Identity) -> Response:
    _only_get(request)
    return PlainTextResponse("ok")


async def _version(world: World, request: Request, identity: Identity) -> Response:
    _only_get(request)
    return document(discovery.VERSION)


async def _openapi_index(world: World, request: Request, identity: Identity) -> Response:
    _only_get(request)
    return document(world.openapi.index())


async def _openapi_document(world: World, request: Request, identity: Identity) -> Response:
    _only_get(request)
    found = world.openapi.document(request.path_params["path"].strip("/"))
    return _page_not_found() if found is None else Response(found, media_type=JSON)


async def _faults(world: World, request: Request, identity: Identity) -> Response:
    """GET the faults in wait, POST one or a list of them, DELETE them all."""
    if request.method == "POST":
        given = _json(await _body(request))
        world.faults.inject(*(faults.read(each) for each in (given if isinstance(given, list) else [given])))
    elif request.method == "DELETE":
        world.faults.clear()
    elif request.method != "GET":
        raise method_not_allowed()
    return document([faults.written(fault) for fault in world.faults.waiting])


async def _api(world: World, request: Request, identity: Identity) -> Response:
    """Discovery where the path is one of its own, a resource everywhere else. Where no group is, there is not even a Status."""
    path = request.scope["path"]
    if (found := _discovered(world, path, request.headers.get("accept", ""))) is not None:
        _only_get(request)
        world.access.check(identity, Act("get", path=path))
        return found
    if not _is_of_a_group(world, path):
        return _page_not_found()
    resource = route(path)
    if resource is None:
        raise no_such_resource()
    call = Call(
        method=request.method,
        route=resource,
        query=options.parse(request.scope["query_string"]),
        identity=identity,
        accept=request.headers.get("accept", ""),
        content_type=request.headers.get("content-type", ""),
        agent=request.headers.get("user-agent", ""),
        data=await _body(request),
    )
    return await serve(world, call)


def _discovered(world: World, path: str, accept: str) -> Response | None:
    catalogue = world.api.catalogue
    match path.strip("/").split("/"):
        case [""]:
            return document(discovery.root(catalogue))
        case ["api" | "apis" as root] if wants_aggregated(accept):
            return document(discovery.aggregated(catalogue, root == "api"), media_type=discovery.AGGREGATED_TYPE)
        case ["api"]:
            return document(discovery.versions())
        case ["apis"]:
            return document(discovery.group_list(catalogue))
        case ["apis", group]:
            found = discovery.group(catalogue, group)
            return _page_not_found() if found is None else document(found)
        case ["api", version]:
            return _resources(world, "", version)
        case ["apis", group, version] if discovery.serves(catalogue, group):
            return _resources(world, group, version)
    return None


def _is_of_a_group(world: World, path: str) -> bool:
    match path.strip("/").split("/"):
        case ["api", *_]:
            return True
        case ["apis", group, *_]:
            return discovery.serves(world.api.catalogue, group)
    return False


def _resources(world: World, group: str, version: str) -> Response:
    found = discovery.resource_list(world.api.catalogue, group, version)
    if found is None:
        raise no_such_resource()
    return document(found)


async def _body(request: Request) -> bytes:
    """The request's body. Raises 413 beyond the limit, before more of it is read."""
    if request.method in ("GET", "HEAD"):
        return b""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > bodies.LIMIT:
            raise bodies.too_large()
        chunks.append(chunk)
    return b"".join(chunks)


def _json(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"the body is not JSON: {error}") from error


def _only_get(request: Request) -> None:
    if request.method != "GET":
        raise method_not_allowed()


def _page_not_found() -> Response:
    return PlainTextResponse("404 page not found\n", 404)
