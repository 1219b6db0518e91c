"""Endpoint permissions: what `engine run` needs for what it serves: its certificate, its webhooks, and the callers that it checks."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.ids import Kind
from resources.base import kinds
from resources.install.permissions import Permission

MUTATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
TOKEN_REVIEW: Final = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEW: Final = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)


class ServedEndpoints(Struct, frozen=True):
    """What a process serves, as far as that needs permissions."""

    namespace: str
    """The namespace of its certificate."""
    certificate: str = ""
    """The Secret in which it keeps the certificate that it makes; empty: the certificate is given to it."""
    mutating: tuple[str, ...] = ()
    """The names of the MutatingWebhookConfigurations into which it writes its CA."""
    validating: tuple[str, ...] = ()
    """The names of the ValidatingWebhookConfigurations into which it writes its CA."""
    look_ups: tuple[Kind, ...] = ()
    """The kinds of objects that its reviews look up."""
    checks_callers: bool = False
    """Whether it asks what users may do: callers with a bearer token, and those who refer to claim templates of other namespaces."""


def endpoint_permissions(endpoints: ServedEndpoints) -> Iterator[Permission]:
    """The permissions for these endpoints. Everything that has a name is limited to it, except creating, which cannot be."""
    if endpoints.certificate:
        yield Permission(kinds.SECRET, ("create",), namespace=endpoints.namespace)
        yield Permission(kinds.SECRET, ("get", "patch"), namespace=endpoints.namespace, names=(endpoints.certificate,))
        for kind, names in ((MUTATING_WEBHOOKS, endpoints.mutating), (VALIDATING_WEBHOOKS, endpoints.validating)):
            if names:
                yield Permission(kind, ("get", "patch"), names=names)
    for kind in endpoints.look_ups:
        yield Permission(kind, ("get", "list", "watch"))
    if endpoints.checks_callers:
        yield Permission(TOKEN_REVIEW, ("create",))
        yield Permission(ACCESS_REVIEW, ("create",))
        yield Permission(kinds.RESOURCE_CLAIM_TEMPLATE, ("get",))
