"""Consent rules: a set may refer to a claim template of another namespace if its user may read it and its namespace shares it.

They apply to what requests add, and only where a user is known: in reviews. Other claims without consent wait (`resources.model.sharing`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.paths import get
from engine.report.printable import clipped
from engine.resource import Body
from resources.admission.request import Act, Decision, Request
from resources.base import kinds
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE, mappings
from resources.ports.references import References, is_shared_with, why_refused
from resources.schema.issues import MAX_TEXT, ErrorType, Issue, Path

MAX_USER: Final = 100
"""The largest number of characters of a user name that are shown."""
RESOURCE: Final = f"{kinds.RESOURCE_CLAIM_TEMPLATE.plural}.{kinds.RESOURCE_CLAIM_TEMPLATE.group}"


class TemplateAccess(Struct, frozen=True):
    """What is known about a template of another namespace and the user who refers to it."""

    template: Body | None = None
    """The template; None if it does not exist or could not be read."""
    unread: str = "does not exist"
    """Without a template: why there is none."""
    is_permitted: bool | None = None
    """Whether the user may get it; None if the API server was not asked."""
    unchecked: str = ""
    """Why the API server gave no answer, although it was asked; empty if it gave one."""


def new_references(request: Request, operator: str = "") -> Mapping[ResourceId, Path]:
    """Template of another namespace -> the field that refers to it, for those that a request adds to a set.

    None for what the engine itself writes (`operator`: its user name), for subresources, and for a set that is being deleted.
    """
    is_set = (request.id.group, request.id.kind) == (kinds.PODCLIQUESET.group, kinds.PODCLIQUESET.name)
    is_written = request.act in (Act.CREATE, Act.UPDATE) and not request.subresource
    is_own = bool(operator) and request.user == operator
    old = request.old if request.act is Act.UPDATE else None
    if not is_set or not is_written or is_own or (isinstance(old, Mapping) and get(old, ("metadata", "deletionTimestamp"))):
        return {}
    before = dict(references_of(old, request.id.namespace))
    added: dict[ResourceId, Path] = {}
    for id, path in references_of(request.body, request.id.namespace):
        if id not in before:
            added.setdefault(id, path)
    return added


def references_of(body: Any, namespace: str) -> Iterator[tuple[ResourceId, Path]]:
    """The templates of other namespaces that a set of any shape refers to, with the fields."""
    if not isinstance(body, Mapping):
        return
    for holder, path in _holders(body):
        for number, entry in enumerate(mappings(holder.get("resourceSharing"))):
            name, explicit = entry.get("name"), entry.get("namespace")
            if isinstance(name, str) and isinstance(explicit, str) and explicit not in ("", namespace):
                yield kinds.RESOURCE_CLAIM_TEMPLATE.id(explicit, name), (*path, "resourceSharing", number, "namespace")


def _holders(body: Body) -> Iterator[tuple[Body, Path]]:
    """The objects that may have `resourceSharing`: the template, its groups and its cliques."""
    yield from ((template, TEMPLATE) for template in mappings([get(body, TEMPLATE, {})]))
    for path in (GROUPS, CLIQUES):
        yield from ((entry, (*path, number)) for number, entry in enumerate(mappings(get(body, path, ()))))


def listed_access(references: References, ids: Mapping[ResourceId, Path]) -> Mapping[ResourceId, TemplateAccess]:
    """What is known about templates from references that were listed, without a question about the user."""
    is_known = references.knows(kinds.RESOURCE_CLAIM_TEMPLATE.key)
    lives = {id: references.find(id) for id in ids}
    return {
        id: TemplateAccess(live.body if live is not None else None, "was not found" if is_known else "was not read")
        for id, live in lives.items()
    }


def with_consent(
    decision: Decision, request: Request, added: Mapping[ResourceId, Path], access: Mapping[ResourceId, TemplateAccess]
) -> Decision:
    """The decision on a request that is allowed otherwise, given what is known about the templates that it adds (`new_references`)."""
    findings = [_finding(request, id, path, access.get(id, TemplateAccess(unread="was not read"))) for id, path in added.items()]
    issues = tuple(finding for finding in findings if isinstance(finding, Issue))
    warnings = tuple(clipped(finding, MAX_TEXT) for finding in findings if isinstance(finding, str) and finding)
    return replace(decision, issues=(*decision.issues, *issues), warnings=(*decision.warnings, *warnings)) if findings else decision


def _finding(request: Request, id: ResourceId, path: Path, access: TemplateAccess) -> Issue | str:
    """Why one reference is refused; or a warning about it, empty if there is none."""
    user = clipped(request.user, MAX_USER) or "without a name"
    right = f"get {RESOURCE} {id.namespace}/{id.name}"
    if access.unchecked:
        message = f"whether user {user} may {right} could not be checked ({access.unchecked}); do: try again"
        return Issue(path, ErrorType.FORBIDDEN, message)
    if access.is_permitted is False:
        message = f"user {user} may not {right}; do: ask for that right, or let a user who has it create the set"
        return Issue(path, ErrorType.FORBIDDEN, message)
    if access.template is None:
        return f"ResourceClaimTemplate {id.namespace}/{id.name} {access.unread}: the pods that need it wait until it is there and shared"
    if not is_shared_with(access.template, request.id.namespace):
        return Issue(path, ErrorType.FORBIDDEN, why_refused(id, request.id.namespace))
    return "" if access.is_permitted else f"whether user {user} may {right} was not checked: a webhook asks the API server"
