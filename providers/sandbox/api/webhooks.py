"""Webhooks: our admission rules in front of the API, in the places, under the names and in the words of a real server's webhooks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.ids import ResourceId
from engine.observed import Live, live
from providers.sandbox.api.core import Operation
from providers.sandbox.api.request import ITSELF, Request
from providers.sandbox.api.verbs import Api
from providers.sandbox.types.status import StatusError
from resources.admission.admit import admit
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Decision
from resources.admission.request import Request as Question
from resources.admission.review import refusal
from resources.base.kinds import PODCLIQUESET, TOPOLOGY_BINDING
from resources.ports.configuration import Configuration

Body = Mapping[str, Any]

MUTATED = frozenset({(PODCLIQUESET.group, PODCLIQUESET.name)})
VALIDATED = {
    (PODCLIQUESET.group, PODCLIQUESET.name): "pcs.validating.webhooks.grove.io",
    (TOPOLOGY_BINDING.group, TOPOLOGY_BINDING.name): "clustertopology.validating.webhooks.grove.io",
}
AUTHORIZER = "authorizer.webhooks.grove.io"


@dataclass(frozen=True, slots=True)
class Rules:
    """How the operator whose webhooks these are is configured."""

    setup: Configuration
    protection: Protection = Protection()


@dataclass(frozen=True, slots=True)
class Present:
    """`resources.admission.request.Neighbourhood` of everything that the API holds."""

    api: Api

    def find(self, id: ResourceId) -> Live | None:
        """That object, if it is there."""
        of_kind = (served for served in self.api.catalogue if (served.kind.group, served.kind.name) == (id.group, id.kind))
        found = (self.api.core.lookup(*served.resource, id.namespace, id.name) for served in of_kind)
        return next((live(body) for body in found if body is not None), None)

    def knows(self, kind: str) -> bool:
        """Everything: what is not here is nowhere."""
        return True


def install(api: Api, rules: Rules) -> None:
    """Ask the rules before every write from now on: once to fill in what is missing, and once, of what comes of it, whether it may be."""
    around = Present(api)
    # What the server does of its own accord, and its actors with it, is no stranger's doing.
    protection = replace(rules.protection, exempt=rules.protection.exempt | {ITSELF})

    def filled(operation: Operation, request: Request, new: Body | None, old: Body | None) -> tuple[Body | None, tuple[str, ...]]:
        if new is None or request.subresource or _sort(request) not in MUTATED:
            return None, ()
        body = admit(_question(operation, request, new, old), rules.setup, around).body
        # The draft is written on: what rules hand out is shared.
        return (None if body is None else {**body, "metadata": {**body["metadata"]}}), ()

    def judged(operation: Operation, request: Request, new: Body | None, old: Body | None) -> tuple[str, ...]:
        if request.subresource or not (protection.enabled or (_sort(request) in VALIDATED and new is not None)):
            return ()
        question = _question(operation, request, new, old)
        decision = admit(question, rules.setup, around, protection)
        if not decision.allowed:
            raise _denied(_sort(request), question.id, decision)
        return decision.warnings

    api.core.admission += (filled,)
    api.core.validation += (judged,)


def _sort(request: Request) -> tuple[str, str]:
    return request.served.kind.group, request.served.kind.name


def _question(operation: Operation, request: Request, new: Body | None, old: Body | None) -> Question:
    metadata = (new or old or {}).get("metadata") or {}
    id = request.served.kind.id(request.namespace, request.name or metadata.get("name", ""))
    return Question(Act(operation), id, new, old, request.user, request.subresource)


def _denied(sort: tuple[str, str], id: ResourceId, decision: Decision) -> StatusError:
    """The webhook's own Status, with the server's word that it was the webhook's."""
    said = refusal(id, decision)
    webhook = AUTHORIZER if decision.denial else VALIDATED.get(sort, AUTHORIZER)
    message = f'admission webhook "{webhook}" denied the request: {said["message"]}'
    return StatusError(said["code"], said["reason"], message, details=said["details"], warnings=decision.warnings)
