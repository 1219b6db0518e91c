"""Managed rules: who may touch what the engine has made for a workload."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from engine.ids import Kind
from engine.paths import get
from engine.resource import Body
from resources.admission.request import Act, Decision, Request
from resources.base import kinds, labels
from resources.ports.references import References

LIFTED: Final = "grove.io/disable-managed-resource-protection"
"""The annotation by which a set gives up the protection of its children."""

CHANGED: Final = frozenset({Act.UPDATE, Act.DELETE})
EVER: Final = CHANGED | {Act.CREATE}

GUARDED: Final[Mapping[Kind, frozenset[Act]]] = {
    kinds.SECRET: CHANGED,
    kinds.SERVICE_ACCOUNT: CHANGED,
    kinds.SERVICE: CHANGED,
    kinds.ROLE: CHANGED,
    kinds.ROLE_BINDING: CHANGED,
    kinds.AUTOSCALER: CHANGED,
    kinds.POD: frozenset({Act.UPDATE}),
    kinds.PODCLIQUE: EVER,
    kinds.SCALING_GROUP: EVER,
    kinds.PODGANG: EVER,
}
"""What must not be done to objects of which kind. Anybody may delete a pod: it comes back."""

_GUARDED: Final = {(kind.group, kind.name): acts for kind, acts in GUARDED.items()}


@dataclass(frozen=True, slots=True)
class Protection:
    """Whether what we have made is protected, and from whom not."""

    enabled: bool = False
    operator: str = ""
    """The user that the engine itself is."""
    exempt: frozenset[str] = frozenset()
    """Users who may do what the engine may."""

    def trusts(self, user: str) -> bool:
        """Whether the user may do everything. Nobody in particular may not, even where nobody in particular is the operator."""
        return bool(user) and (user == self.operator or user in self.exempt)


def decide(request: Request, around: References, protection: Protection) -> Decision:
    """Whether something may be done to an object that might be managed."""
    free = Decision(body=request.body)
    if not protection.enabled or request.act not in _GUARDED.get((request.id.group, request.id.kind), ()) or not _is_managed(request):
        return free
    key = f"{request.id.namespace}/{request.id.name}"
    name = _label(_witness(request), labels.PART_OF)
    if not name:
        told = f"missing required label {labels.PART_OF} on resource {key}, could not determine parent PodCliqueSet"
        return Decision(body=request.body, warnings=(told,))
    id = kinds.PODCLIQUESET.id(request.id.namespace, name)
    parent, looked = around.find(id), around.knows(id.kind)
    if parent is None and looked:
        return Decision(body=request.body, warnings=(f"parent PodCliqueSet {name} not found for resource: {key}",))
    if protection.trusts(request.user) or (parent is not None and get(parent.body, ("metadata", "annotations", LIFTED)) == "true"):
        return free
    unseen = () if looked else (f"whether PodCliqueSet {name} has given up the protection of {key} was not looked at",)
    what = "deletion" if request.act is Act.DELETE else "creation/updation"
    return Decision(body=request.body, warnings=unseen, denial=f"admission denied, {what} of resource: {key} is not allowed")


def _is_managed(request: Request) -> bool:
    """Whether it bears our label or, before it is changed, has borne it: nobody gets past us by taking the label off."""
    return any(_label(body, labels.MANAGED_BY) == labels.MANAGER for body in _bodies(request))


def _witness(request: Request) -> Body:
    """The version of the object that says whose it is: the one that is stored, if there is one."""
    return next(_bodies(request), {})


def _bodies(request: Request) -> Iterator[Body]:
    return (body for body in (request.old, request.body) if isinstance(body, Mapping))


def _label(body: Body, key: str) -> str:
    said = get(body, ("metadata", "labels", key))
    return said if isinstance(said, str) else ""
