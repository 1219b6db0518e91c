"""Access: who may see plans and pages: clients on the same machine, and callers with a bearer token that the API server permits."""

import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

import anyio
from msgspec import Struct

from engine.errors import ClusterError, Forbidden
from engine.ids import Kind
from engine.report.printable import clipped
from engine.runtime.clock import Clock
from engine.runtime.provider import Client
from enginectl.serving.debug import HEADERS
from providers.http.message import Handler, HttpResponse, IncomingRequest, Routes, refusal
from resources.base.fields import mapping
from resources.install.permissions import ACCESS_REVIEW, TOKEN_REVIEW
from resources.install.roles import PLAN_URL

LOCAL_HOST: Final = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]+)?", re.IGNORECASE)
FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers of proxies: behind one, the client is another one."""
TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]{1,16384}=*")
KEPT_SECONDS: Final = 10.0
KEPT_ANSWERS: Final = 500
AT_ONCE: Final = 4
"""Tokens that are checked at a time, so that no client can send many requests to the API server through us."""
PLAN: Final = {"nonResourceAttributes": {"path": PLAN_URL, "verb": "get"}}
GRANT: Final = f"kubectl create clusterrole engine-plan --verb=get --non-resource-url={PLAN_URL}, and bind it"


class AccessAnswer(Struct, frozen=True):
    """Whether a caller may see what it asks for: 200, or the status and the reason of the refusal."""

    status: int
    reason: str = ""


ALLOWED: Final = AccessAnswer(200)
UNKNOWN_TOKEN: Final = AccessAnswer(401, "the API server does not recognise the bearer token")
NO_TOKEN: Final = AccessAnswer(401, "a bearer token is needed")


def for_loopback(routes: Routes) -> Routes:
    """The routes, for clients on the same machine only; `kubectl port-forward` makes its user one.

    The Host header must name the machine too: a page of another site cannot ask in the name of its reader by a name that it has pointed
    to the loopback address.
    """

    def protected(handler: Handler) -> Handler:
        async def answer(request: IncomingRequest) -> HttpResponse:
            if not is_loopback(request):
                reason = (
                    "this is for clients on the same machine, by its name localhost: use kubectl port-forward, or the TLS port with a token"
                )
                return refusal(403, reason, **HEADERS)
            return await handler(request)

        return answer

    return {key: protected(handler) for key, handler in routes.items()}


def is_loopback(request: IncomingRequest) -> bool:
    """Whether a request comes from this machine, was sent to it by a local name, and has not passed a proxy."""
    try:
        peer = ip_address(request.peer.partition("%")[0])
    except ValueError:
        return False
    address = getattr(peer, "ipv4_mapped", None) or peer
    is_direct = not any(header in request.headers for header in FORWARDED)
    return bool(address.is_loopback) and is_direct and LOCAL_HOST.fullmatch(request.headers.get("host", "")) is not None


def with_token(routes: Routes, reviewer: "TokenReviewer") -> Routes:
    """The routes, for callers whose bearer token `reviewer` accepts. All need the permission for `/debug/plan`, which shows the same."""

    def protected(handler: Handler) -> Handler:
        async def answer(request: IncomingRequest) -> HttpResponse:
            access = await reviewer.access(request.headers.get("authorization", ""))
            if access.status == 200:
                return await handler(request)
            challenge = {"WWW-Authenticate": 'Bearer realm="engine"'} if access.status == 401 else {}
            return refusal(access.status, access.reason, **HEADERS, **challenge)

        return answer

    return {key: protected(handler) for key, handler in routes.items()}


class TokenReviewer:
    """Asks the API server who a bearer token belongs to, and whether that user may get `/debug/plan`.

    Answers are kept for `KEPT_SECONDS` by a keyed digest: neither tokens nor anything to try them against is kept.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._key = secrets.token_bytes(32)
        self._answers: OrderedDict[bytes, tuple[float, AccessAnswer]] = OrderedDict()
        """Digest of a token -> until when (monotonic) its answer counts, and the answer; the oldest first."""
        self._slots = anyio.CapacityLimiter(AT_ONCE)

    async def access(self, authorization: str) -> AccessAnswer:
        """The answer for an `Authorization` header."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return NO_TOKEN
        if not TOKEN.fullmatch(token):
            return UNKNOWN_TOKEN
        digest = hmac.digest(self._key, token.encode(), "sha256")
        async with self._slots:
            until, kept = self._answers.get(digest, (0.0, NO_TOKEN))
            if self._clock.monotonic() < until:
                return kept
            try:
                answer = await self._ask(token)
            except ClusterError as error:
                # The text of an error may quote the request.
                hint = ": this process may not create tokenreviews and subjectaccessreviews" if isinstance(error, Forbidden) else ""
                return AccessAnswer(503, f"the API server could not be asked about the token ({type(error).__name__}){hint}")
            self._keep(digest, answer)
            return answer

    def _keep(self, digest: bytes, answer: AccessAnswer) -> None:
        self._answers.pop(digest, None)
        self._answers[digest] = (self._clock.monotonic() + KEPT_SECONDS, answer)
        while len(self._answers) > KEPT_ANSWERS:
            self._answers.popitem(last=False)

    async def _ask(self, token: str) -> AccessAnswer:
        """The API server's answer. Raises `ClusterError`."""
        review = mapping((await self._create(TOKEN_REVIEW, {"token": token})).get("status"))
        user = mapping(review.get("user"))
        name = user.get("username")
        if review.get("authenticated") is not True or not isinstance(name, str) or not name:
            return UNKNOWN_TOKEN
        access = mapping((await self._create(ACCESS_REVIEW, access_spec(name, user, PLAN))).get("status"))
        if is_allowed(access):
            return ALLOWED
        reason = access.get("reason")
        why = f" ({clipped(reason, 200)})" if isinstance(reason, str) and reason else ""
        return AccessAnswer(403, f"{clipped(name, 200)} may not get {PLAN_URL}{why}: {GRANT}")

    async def _create(self, kind: Kind, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._client.create(kind, "", {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {}, "spec": dict(spec)})


def access_spec(name: str, user: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of the SubjectAccessReview about a user, with the `uid`, `groups` and `extra` of a TokenReview or of an AdmissionReview.

    `attributes`: what the user wants to do. Fields of the user of a wrong shape are left out.
    """
    spec: dict[str, Any] = {"user": name, **attributes}
    if isinstance(user.get("uid"), str):
        spec["uid"] = user["uid"]
    groups = user.get("groups")
    if isinstance(groups, Sequence) and not isinstance(groups, str):
        spec["groups"] = [group for group in groups if isinstance(group, str)]
    extra = {key: list(values) for key, values in mapping(user.get("extra")).items() if isinstance(values, list | tuple)}
    return spec | ({"extra": extra} if extra else {})


def is_allowed(status: Mapping[str, Any]) -> bool:
    """Whether the status of a SubjectAccessReview allows it."""
    return status.get("allowed") is True and status.get("denied") is not True
