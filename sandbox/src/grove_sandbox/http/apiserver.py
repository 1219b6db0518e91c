"""The API server: an ASGI application that serves the in-memory API to kubectl and any other client."""

import logging
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from grove_sandbox.api import options
from grove_sandbox.http import bodies, discovery
from grove_sandbox.http.access import Action, Identity
from grove_sandbox.http.backend import Backend
from grove_sandbox.http.negotiation import wants_aggregated
from grove_sandbox.http.rendering import JSON, document, refusal
from grove_sandbox.http.routes import route
from grove_sandbox.http.serving import Call, ConnectionCut, serve
from grove_sandbox.http.streams import Disconnect
from grove_sandbox.types.status import StatusError, method_not_allowed, no_such_resource

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_log = logging.getLogger(__name__)

Endpoint = Callable[[Backend, Request, Identity], Awaitable[Response]]


def application(backend: Backend) -> Starlette:
    """The ASGI application of a backend. Every path, health included, needs a bearer token."""
    endpoints = {
        "/healthz": _health,
        "/livez": _health,
        "/readyz": _health,
        "/version": _version,
        "/openapi/v3": _openapi_index,
        "/openapi/v3/{path:path}": _openapi_document,
        "/{path:path}": _api,
    }
    return Starlette(routes=[Route(path, _authenticated(backend, endpoint), methods=METHODS) for path, endpoint in endpoints.items()])


def _authenticated(backend: Backend, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint for requests with a valid token. Every refusal becomes a Status, every defect a 500."""

    async def authenticated(request: Request) -> Response:
        try:
            identity = backend.access.identify(request.headers.get("authorization", ""), backend.clock.now())
            return await endpoint(backend, request, identity)
        except StatusError as error:
            return refusal(error)
        except ConnectionCut:
            return Disconnect()
        except ClientDisconnect:
            return Response()
        except Exception as error:
            _log.exception("the sandbox failed to answer %s %r", request.method, request.scope["path"])
            return refusal(StatusError(500, "InternalError", f"Internal error occurred: {error}", details={}))

    return authenticated


async def _health(backend: Backend, request: Request, identity: Identity) -> Response:
    _require_get(request)
    return PlainTextResponse("ok")


async def _version(backend: Backend, request: Request, identity: Identity) -> Response:
    _require_get(request)
    return document(discovery.VERSION)


async def _openapi_index(backend: Backend, request: Request, identity: Identity) -> Response:
    _require_get(request)
    return document(backend.openapi.index())


async def _openapi_document(backend: Backend, request: Request, identity: Identity) -> Response:
    _require_get(request)
    text = backend.openapi.document(request.path_params["path"].strip("/"))
    return _page_not_found() if text is None else Response(text, media_type=JSON)


async def _api(backend: Backend, request: Request, identity: Identity) -> Response:
    """Discovery, or a request about a resource. A path outside every served group is a plain 404 without a Status."""
    path, accept = request.scope["path"], request.headers.get("accept", "")
    if (response := _discovery(backend, path, accept)) is not None:
        _require_get(request)
        backend.access.check(identity, Action("get", path=path))
        return response
    if not _is_in_served_group(backend, path):
        return _page_not_found()
    resource = route(path)
    if resource is None:
        raise no_such_resource()
    call = Call(
        method=request.method,
        route=resource,
        query=options.parse(request.scope["query_string"]),
        identity=identity,
        accept=accept,
        content_type=request.headers.get("content-type", ""),
        agent=request.headers.get("user-agent", ""),
        data=await _body(request),
    )
    return await serve(backend, call)


def _discovery(backend: Backend, path: str, accept: str) -> Response | None:
    """The discovery document at the path, or None for any other path."""
    catalogue = backend.api.catalogue
    match path.strip("/").split("/"):
        case [""]:
            return document(discovery.root(catalogue))
        case ["api" | "apis" as root] if wants_aggregated(accept):
            return document(discovery.aggregated(catalogue, core=root == "api"), media_type=discovery.AGGREGATED_TYPE)
        case ["api"]:
            return document(discovery.versions())
        case ["apis"]:
            return document(discovery.group_list(catalogue))
        case ["apis", group]:
            description = discovery.group(catalogue, group)
            return _page_not_found() if description is None else document(description)
        case ["api", version]:
            return _resources(backend, "", version)
        case ["apis", group, version] if discovery.serves(catalogue, group):
            return _resources(backend, group, version)
    return None


def _is_in_served_group(backend: Backend, path: str) -> bool:
    match path.strip("/").split("/"):
        case ["api", *_]:
            return True
        case ["apis", group, *_]:
            return discovery.serves(backend.api.catalogue, group)
    return False


def _resources(backend: Backend, group: str, version: str) -> Response:
    resources = discovery.resource_list(backend.api.catalogue, group, version)
    if resources is None:
        raise no_such_resource()
    return document(resources)


async def _body(request: Request) -> bytes:
    """The request's body. Raises 413 as soon as more than the limit has been read."""
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


def _require_get(request: Request) -> None:
    if request.method != "GET":
        raise method_not_allowed()


def _page_not_found() -> Response:
    return PlainTextResponse("404 page not found\n", 404)
