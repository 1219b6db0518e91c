"""Managed rules: who may change the objects that the engine manages."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from engine.ids import Kind
from engine.paths import get
from engine.resource import Body
from resources.admission.request import Act, Decision, Request
from resources.base import kinds, labels
from resources.ports.references import References

DISABLE_PROTECTION: Final = "grove.io/disable-managed-resource-protection"
"""The annotation with which a set disables the protection of its children."""


class Protection(Struct, frozen=True):
    """Which managed objects are protected, and which users may change them nevertheless."""

    protected: Mapping[Kind, frozenset[Act]] = field(default_factory=dict)
    """Kind -> its protected operations; empty: nothing is protected."""
    operator: str = ""
    """The user name of the engine itself; empty if it is not known."""
    exempt: frozenset[str] = frozenset()
    """The names of further users who may change managed objects."""

    @property
    def enabled(self) -> bool:
        """Whether anything is protected."""
        return bool(self.protected)

    def protects(self, request: Request) -> bool:
        """Whether the operation is protected, in whatever version of its kind the object is written."""
        acts = (acts for kind, acts in self.protected.items() if (kind.group, kind.name) == (request.id.group, request.id.kind))
        return request.act in next(acts, ())

    def trusts(self, user: str) -> bool:
        """Whether the user may change managed objects. An unknown user (empty name) may not, even if the operator is unknown."""
        return bool(user) and (user == self.operator or user in self.exempt)


def decide(request: Request, references: References, protection: Protection) -> Decision:
    """The decision on a request for an object that may be managed: protected operations are denied to untrusted users.

    It is allowed nevertheless if the parent PodCliqueSet is not named, does not exist or disables the protection.
    """
    allowed = Decision(body=request.body)
    is_managed = any(_label(body, labels.MANAGED_BY) == labels.MANAGER for body in _bodies(request))
    if not protection.protects(request) or not is_managed:
        return allowed
    key = f"{request.id.namespace}/{request.id.name}"
    name = _label(_current(request), labels.PART_OF)
    if not name:
        warning = f"missing required label {labels.PART_OF} on resource {key}, could not determine parent PodCliqueSet"
        return Decision(body=request.body, warnings=(warning,))
    id = kinds.PODCLIQUESET.id(request.id.namespace, name)
    parent, is_known = references.find(id), references.knows(id.kind)
    if parent is None and is_known:
        return Decision(body=request.body, warnings=(f"parent PodCliqueSet {name} not found for resource: {key}",))
    if protection.trusts(request.user) or (parent is not None and _disables_protection(parent.body)):
        return allowed
    unchecked = () if is_known else (f"PodCliqueSet {name} was not read: whether it disables the protection of {key} is not known",)
    what = "deletion" if request.act is Act.DELETE else "creation/updation"
    return Decision(body=request.body, warnings=unchecked, denial=f"admission denied, {what} of resource: {key} is not allowed")


def _disables_protection(parent: Body) -> bool:
    return bool(get(parent, ("metadata", "annotations", DISABLE_PROTECTION)) == "true")


def _current(request: Request) -> Body:
    """The stored object, or the new one if there is none: its labels name the owner."""
    return next(_bodies(request), {})


def _bodies(request: Request) -> Iterator[Body]:
    return (body for body in (request.old, request.body) if isinstance(body, Mapping))


def _label(body: Body, key: str) -> str:
    value = get(body, ("metadata", "labels", key))
    return value if isinstance(value, str) else ""
