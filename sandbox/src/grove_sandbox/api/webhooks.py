"""Webhooks: the engine's admission rules as plugins of the API, with the names and messages of webhooks on a real server."""

from msgspec import Struct
from msgspec.structs import replace

from grove_sandbox.api.core import Operation
from grove_sandbox.api.request import SERVER_USER, Request
from grove_sandbox.api.verbs import Api
from grove_sandbox.product import (
    Act,
    AdmissionRequest,
    Body,
    Configuration,
    Decision,
    Live,
    Protection,
    ResourceId,
    admit,
    kinds,
    live,
    refusal,
)
from grove_sandbox.types.status import StatusError

MUTATED = frozenset((kind.group, kind.name) for kind in (kinds.PODCLIQUESET, kinds.DYNAMO_GRAPH))
VALIDATED = {
    (kinds.PODCLIQUESET.group, kinds.PODCLIQUESET.name): "pcs.validating.webhooks.grove.io",
    (kinds.TOPOLOGY_BINDING.group, kinds.TOPOLOGY_BINDING.name): "clustertopology.validating.webhooks.grove.io",
    (kinds.DYNAMO_GRAPH.group, kinds.DYNAMO_GRAPH.name): "vdynamographdeployment.kb.io",
}
AUTHORIZER = "authorizer.webhooks.grove.io"


class Webhooks(Struct, frozen=True):
    """The configuration of the operator whose webhooks these are."""

    configuration: Configuration
    protection: Protection = Protection()


class StoredReferences(Struct, frozen=True):
    """The objects of the API, as the references of admission rules."""

    api: Api

    def find(self, id: ResourceId) -> Live | None:
        """The object, or None."""
        of_kind = (served for served in self.api.catalogue if (served.kind.group, served.kind.name) == (id.group, id.kind))
        bodies = (self.api.core.lookup(*served.resource, id.namespace, id.name) for served in of_kind)
        return next((live(body) for body in bodies if body is not None), None)

    def knows(self, kind: str) -> bool:
        """Whether the API serves the kind: then an object that it does not have does not exist."""
        return any(kind in (served.kind.name, served.kind.key) for served in self.api.catalogue)

    def sizes(self, namespace: str) -> None:
        """Not known: sets are judged one by one."""


def install(api: Api, webhooks: Webhooks) -> None:
    """Let every write pass the rules: first for defaults, and after the validation of the kind for issues."""
    references = StoredReferences(api)
    # The server's own writes and those of the actors are not subject to the protection of managed objects.
    protection = replace(webhooks.protection, exempt=webhooks.protection.exempt | {SERVER_USER})

    def defaulted(operation: Operation, request: Request, new: Body | None, old: Body | None) -> tuple[Body | None, tuple[str, ...]]:
        if new is None or request.subresource or _group_kind(request) not in MUTATED:
            return None, ()
        body = admit(_admission_request(operation, request, new, old), webhooks.configuration, references).body
        # A copy of the metadata, because the server changes it in place.
        return (None if body is None else {**body, "metadata": {**body["metadata"]}}), ()

    def validated(operation: Operation, request: Request, new: Body | None, old: Body | None) -> tuple[str, ...]:
        if request.subresource or not (protection.enabled or (_group_kind(request) in VALIDATED and new is not None)):
            return ()
        admission_request = _admission_request(operation, request, new, old)
        decision = admit(admission_request, webhooks.configuration, references, protection)
        if not decision.allowed:
            raise _denied(_group_kind(request), admission_request.id, decision)
        return decision.all_warnings

    api.core.admission += (defaulted,)
    api.core.validation += (validated,)


def _group_kind(request: Request) -> tuple[str, str]:
    return request.served.kind.group, request.served.kind.name


def _admission_request(operation: Operation, request: Request, new: Body | None, old: Body | None) -> AdmissionRequest:
    metadata = (new or old or {}).get("metadata") or {}
    id = request.served.kind.id(request.namespace, request.name or metadata.get("name", ""))
    return AdmissionRequest(Act(operation), id, new, old, request.user, request.subresource)


def _denied(group_kind: tuple[str, str], id: ResourceId, decision: Decision) -> StatusError:
    """The webhook's Status, with the name of the webhook in the message."""
    body = refusal(id, decision)
    webhook = AUTHORIZER if decision.denial else VALIDATED.get(group_kind, AUTHORIZER)
    message = f'admission webhook "{webhook}" denied the request: {body["message"]}'
    return StatusError(body["code"], body["reason"], message, details=body["details"], warnings=decision.all_warnings)
