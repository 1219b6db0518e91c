"""Admission: answers the AdmissionReviews of API servers with the decisions of the same rules as `engine review`."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

import anyio
import orjson
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from enginectl.serving.template_access import TemplateReader
from providers.http.address import AddressLimits
from providers.http.message import JSON, HttpResponse, IncomingRequest, Routes, refusal
from providers.reference_caches import NO_READS, CachedReferences, Reads, ReferenceCaches
from resources.admission.admit import admit
from resources.admission.consent_rules import TemplateAccess, new_references, with_consent
from resources.admission.managed_rules import Protection
from resources.admission.request import Decision, Request
from resources.admission.review import MAX_BYTES, MalformedReview, answered
from resources.install.webhooks import CONVERT, WEBHOOKS, Webhook
from resources.ports.configuration import Configuration


class ReviewObserver(Protocol):
    """Called in the serving thread; a call must return at once and raise nothing. `webhook` is the path of a webhook that is served."""

    def began(self, webhook: str) -> None:
        """A request has been received."""
        ...

    def ended(self, webhook: str, code: int, seconds: float) -> None:
        """The request has been answered with that HTTP status after that many seconds."""
        ...

    def decided(self, webhook: str, *, allowed: bool) -> None:
        """A review in the request has been answered."""
        ...


REVIEW_LIMITS: Final = AddressLimits(body_bytes=MAX_BYTES)
"""The limits of the address of the webhooks. A request beyond them is refused with 503 after a wait, which the API server reports to
the user: to admit what was not judged would be worse, and he can try again."""
LARGE: Final = 128 << 10
"""The size in bytes from which a review is judged in a worker thread, so that small ones need not wait for it."""
LARGE_AT_ONCE: Final = 2


class AdmissionRules(Struct, frozen=True):
    """What decisions depend on besides the request and the cluster."""

    configuration: Configuration
    protection: Protection


class Judge:
    """Decides with the rules in use. `use` may be called in any thread, everything else in that of the caches."""

    def __init__(
        self, rules: AdmissionRules, caches: ReferenceCaches, templates: TemplateReader, observer: ReviewObserver | None = None
    ) -> None:
        self.rules = rules
        self._caches, self._templates = caches, templates
        self._observer = observer
        self._large = anyio.CapacityLimiter(LARGE_AT_ONCE)

    async def answer(self, webhook: Webhook, request: IncomingRequest) -> HttpResponse:
        """The answer to the review in a request."""
        judge = partial(judged, webhook, request.body, self.rules, self._caches)
        run: Callable[[ReviewFacts], Awaitable[Judged]] = partial(self._in_worker if len(request.body) >= LARGE else _at_once, judge)
        try:
            result = await run(facts := ReviewFacts())
            if result.missing:
                result = await run(facts := replace(facts, reads=await self._caches.read(result.missing)))
            if result.request is not None:
                result = await run(replace(facts, access=await self._templates.access(result.request, result.templates)))
        except orjson.JSONDecodeError as error:
            return refusal(400, f"the body is not JSON: {error}")
        except MalformedReview as error:
            return refusal(400, str(error))
        if self._observer is not None:
            self._observer.decided(webhook.path, allowed=result.allowed)
        return HttpResponse(body=result.body, content_type=JSON)

    async def _in_worker(self, judge: "Callable[[ReviewFacts], Judged]", facts: "ReviewFacts") -> "Judged":
        return await to_thread.run_sync(judge, facts, limiter=self._large)


async def _at_once(judge: "Callable[[ReviewFacts], Judged]", facts: "ReviewFacts") -> "Judged":
    return judge(facts)


class ReviewFacts(Struct, frozen=True):
    """What was read and asked for one review."""

    reads: Reads = NO_READS
    access: Mapping[ResourceId, TemplateAccess] | None = None
    """What is known about the templates of other namespaces; None: nothing was asked yet."""


class Judged(Struct, frozen=True):
    """The answer to one review."""

    body: bytes
    allowed: bool
    missing: frozenset[Any] = frozenset()
    """The ids of objects that should be read before this answer is believed."""
    request: Request | None = None
    """The request, if this answer depends on whether its user may read `templates`; None otherwise."""
    templates: frozenset[ResourceId] = frozenset()
    """Templates of other namespaces to which it adds references."""


def judged(webhook: Webhook, body: bytes, rules: AdmissionRules, caches: ReferenceCaches, facts: ReviewFacts) -> Judged:
    """The answer of a webhook to the review in a body. Raises `JSONDecodeError`, and `MalformedReview` for a review without a uid."""
    references = CachedReferences(caches, facts.reads)
    asked: Request | None = None
    templates: frozenset[ResourceId] = frozenset()

    def decide(request: Request) -> Decision:
        nonlocal asked, templates
        decision = of_webhook(webhook, admit(request, rules.configuration, references, rules.protection), request)
        added = new_references(request, rules.protection.operator) if decision.allowed and not webhook.mutates else {}
        if not added:
            return decision
        if facts.access is None:
            asked, templates = request, frozenset(added)
        return with_consent(decision, request, added, facts.access or {})

    answer = answered(orjson.loads(body), decide)
    return Judged(orjson.dumps(answer), answer["response"]["allowed"], frozenset(references.missing), asked, templates)


def of_webhook(webhook: Webhook, decision: Decision, request: Request) -> Decision:
    """The part of a decision that a webhook answers: one that mutates only defaults, and any other changes nothing.

    Both have all warnings: those about values that the defaults correct are gone when the corrected object is judged. An API server shows
    each one once.
    """
    if webhook.mutates:
        return Decision(body=decision.body, warnings=decision.warnings)
    return replace(decision, body=request.body)


def admission_routes(judge: Judge) -> Routes:
    """A route for each webhook."""
    return {("POST", webhook.path): partial(judge.answer, webhook) for webhook in WEBHOOKS} | {("POST", CONVERT): convert}


async def convert(request: IncomingRequest) -> HttpResponse:
    """The answer to a ConversionReview: the same graphs in another version. A large one is converted in a worker thread."""
    try:
        answer = await to_thread.run_sync(_converted, request.body) if len(request.body) >= LARGE else _converted(request.body)
    except orjson.JSONDecodeError as error:
        return refusal(400, f"the body is not JSON: {error}")
    except MalformedReview as error:
        return refusal(400, str(error))
    return HttpResponse(body=answer, content_type=JSON)


def _converted(body: bytes) -> bytes:
    from resources.admission.conversion_review import converted  # Most clusters have no graph.

    return orjson.dumps(converted(orjson.loads(body)))
