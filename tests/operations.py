"""Operations for tests that make them of any verb."""

from collections.abc import Mapping
from typing import Any, Final

from engine.ids import ResourceId
from engine.operation import Cause, Create, Delete, Operation, Patch, Release, Replace, Scale, WriteStatus
from engine.verb import Verb

TYPES: Final[Mapping[Verb, type[Operation]]] = {
    type_.verb: type_ for type_ in (Create, Replace, Patch, Scale, WriteStatus, Release, Delete)
}


def operation_of(verb: Verb, id: ResourceId, why: str = "why", cause: Cause = Cause.INTENT, body: Any = None, **fields: Any) -> Operation:
    """An operation of that verb, with those of the fields that it has. `body`: what the call sends, as `body_of` returns it."""
    body = body or {}
    made = TYPES[verb]
    finalizers = tuple(body.get("finalizers", ()))
    sent = {
        "manifest": body,
        "patch": body,
        "replicas": body.get("spec", {}).get("replicas", 1),
        "finalizers": finalizers,
        "existing": tuple(body.get("of", finalizers)),
    }
    return made(id, why, cause, **{name: value for name, value in (sent | fields).items() if name in made.__struct_fields__})


def as_patch(operation: Operation) -> Operation:
    """The operation; of a scaling the patch of the object itself that it amounts to, for servers without the subresource."""
    if not isinstance(operation, Scale):
        return operation
    common = operation.id, operation.why, operation.cause, operation.reason, operation.after, operation.expect
    return Patch(*common, patch=operation.patch, changes=operation.changes, controller=operation.controller)
