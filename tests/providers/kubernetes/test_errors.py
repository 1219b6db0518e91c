"""What refused a request is a value: nothing behind the client reads the wording of a server."""

from typing import Any

import pytest

from engine.errors import ClusterError, DryRunUnsupported, Forbidden, Invalid, RefusedBy, ServerFault, TooLarge
from providers.kubernetes.errors import error_of_status


def refusal(message: str, *, kind: str = "Status", **details: Any) -> dict[str, Any]:
    """The body of a 403."""
    return {"kind": kind, "code": 403, "reason": "Forbidden", "message": message, "details": details}


RBAC = 'pods is forbidden: User "ann" cannot create resource "pods" in API group "" in the namespace "default"'
ESCALATION = 'roles.rbac.authorization.k8s.io "a" is forbidden: user "ann" is attempting to grant RBAC permissions not currently held: {}'
QUOTA = 'pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4'
UNSET = 'pods "a" is forbidden: failed quota: team: must specify limits.cpu for: main'
SECURITY = 'pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
WEBHOOK = 'admission webhook "images.example.com" denied the request: the image is not signed'
OWNER = (
    'pods "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you cannot set finalizers on: , <nil>'
)
UNCOUNTED = 'pods "a" is forbidden: status unknown for quota: team, resources: pods'
PATH = 'forbidden: User "ann" cannot get path "/metrics"'
ENDING = 'pods "a" is forbidden: unable to create new content in namespace x because it is being terminated'


@pytest.mark.parametrize(
    ("status", "by"),
    [
        (refusal(RBAC), RefusedBy.AUTHORIZATION),
        (refusal(ESCALATION), RefusedBy.AUTHORIZATION),
        (refusal(QUOTA), RefusedBy.QUOTA),
        (refusal(UNSET), RefusedBy.ADMISSION),
        (refusal(OWNER), RefusedBy.AUTHORIZATION),
        (refusal(PATH), RefusedBy.AUTHORIZATION),
        (refusal(UNCOUNTED), RefusedBy.QUOTA),
        (refusal(f"{WEBHOOK}: {RBAC}"), RefusedBy.ADMISSION),
        (refusal(f"{WEBHOOK}: {QUOTA}"), RefusedBy.ADMISSION),
        (refusal(SECURITY), RefusedBy.ADMISSION),
        (refusal(WEBHOOK), RefusedBy.ADMISSION),
        (refusal(ENDING, causes=[{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]), RefusedBy.NAMESPACE),
        (refusal("<html>denied</html>", kind=""), RefusedBy.UNKNOWN),
        ({"message": "denied", "details": "none", "code": 403}, RefusedBy.UNKNOWN),
    ],
)
def test_an_error_says_what_refused_the_request(status: dict[str, Any], by: RefusedBy) -> None:
    error = error_of_status(status)

    assert isinstance(error, Forbidden)
    assert error.by is by


@pytest.mark.parametrize("code", [403, 422])
@pytest.mark.parametrize(
    ("message", "name"),
    [
        (WEBHOOK, "images.example.com"),
        ("pods \"a\" is forbidden: ValidatingAdmissionPolicy 'signed' with binding 'all' denied request: no", "signed"),
        (SECURITY, ""),
        (QUOTA, ""),
        ('Pod "a" is invalid: spec: admission webhook "b" denied the request', ""),
    ],
)
def test_an_error_names_the_webhook_or_policy_that_refused_the_request(message: str, name: str, code: int) -> None:
    assert error_of_status({"kind": "Status", "code": code, "message": message}).refuser == name


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('admission webhook "images.example.com" does not support dry run', DryRunUnsupported),
        ('admission webhook "images.example.com" denied the request without explanation', Invalid),
        ('admission webhook "images.example.com" denied the request: admission webhook "b" does not support dry run', Invalid),
        ("json: cannot unmarshal string into Go struct field", Invalid),
    ],
)
def test_only_a_webhook_with_side_effects_cannot_answer_a_dry_run(message: str, expected: type[Invalid]) -> None:
    assert type(error_of_status({"kind": "Status", "code": 400, "message": message})) is expected


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (413, "Request entity too large: limit is 3145728", TooLarge),
        (500, "etcdserver: request is too large", TooLarge),
        (500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2240412 vs. 2097152)", TooLarge),
        (500, "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (9 vs. 4)", ServerFault),
        (500, "etcdserver: request timed out", ServerFault),
        (500, 'failed calling webhook "a": etcdserver: request is too large', ServerFault),
    ],
)
def test_an_object_that_no_server_stores_is_told_from_a_server_that_fails(code: int, message: str, expected: type[ClusterError]) -> None:
    error = error_of_status({"kind": "Status", "code": code, "message": message})

    assert (type(error), error.code) == (expected, code)
    assert ("stores at most 1.5 MiB" in str(error)) is (expected is TooLarge)


DEAD = 'conversion webhook for nvidia.com/v1alpha1, Kind=DynamoGraphDeployment failed: Post "https://a.b.svc/c": service "a" not found'


STORED = "failed to read one or more dynamographdeployments.nvidia.com from the storage: StorageError: corrupt object, Code: 7, Key: /k: "


NO_CACHE = f"storage is (re)initializing: failed to list <unspecified>: {STORED}"


@pytest.mark.parametrize(("code", "message"), [(500, DEAD), (500, STORED + DEAD), (429, NO_CACHE + DEAD)])
def test_a_conversion_webhook_that_does_not_answer_is_named_with_what_ends_it(code: int, message: str) -> None:
    error = str(error_of_status({"kind": "Status", "code": code, "message": message}))

    assert "start what answers it, or let engine run convert (engine manifests crds --converter" in error
    assert error.endswith(': conversion webhook of DynamoGraphDeployment: Post "https://a.b.svc/c": service "a" not found')
    assert "corrupt" not in error and len(error) < 300


def test_other_faults_of_a_server_are_told_in_its_words() -> None:
    error = error_of_status({"kind": "Status", "code": 500, "message": "etcdserver: request timed out"})

    assert str(error) == "etcdserver: request timed out"
