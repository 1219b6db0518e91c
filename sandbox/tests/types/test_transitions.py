"""What of a custom object may not change, in the words of a real server."""

from typing import Any

import pytest

from grove_sandbox.api.request import Request
from grove_sandbox.api.verbs import Api
from grove_sandbox.installation.installation import definitions
from grove_sandbox.types.status import StatusError
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from sandbox.tests.in_memory import CRD, about, fresh

SPEC = {"channel": {"resourceClaimTemplate": {"name": "d"}}}
IMMUTABLE = 'ComputeDomain.resource.nvidia.com "d" is invalid: spec: Invalid value: A computeDomain.spec is immutable'


def with_domain(spec: dict[str, Any] | None) -> tuple[Api, Request]:
    """An API with one domain, and a request about it."""
    api = fresh()
    api.create(about(api, CRD), definitions()[0])
    body = {"apiVersion": COMPUTE_DOMAIN.api_version, "kind": COMPUTE_DOMAIN.name, "metadata": {"name": "d"}}
    api.create(about(api, COMPUTE_DOMAIN), body | ({"spec": spec} if spec else {}))
    return api, about(api, COMPUTE_DOMAIN, "d")


def test_the_server_fills_in_what_a_domain_leaves_open() -> None:
    api, one = with_domain(SPEC)

    channel = {"allocationMode": "Single", "resourceClaimTemplate": {"name": "d"}}
    assert api.get(one).body["spec"] == {"numNodes": 0, "channel": channel}


@pytest.mark.parametrize(
    "change", [{"numNodes": 1}, {"channel": {"allocationMode": "All"}}, {"channel": {"resourceClaimTemplate": {"name": "q"}}}]
)
def test_what_must_stay_as_it_is_cannot_be_changed(change: dict[str, Any]) -> None:
    api, one = with_domain(SPEC)

    with pytest.raises(StatusError) as refused:
        api.patch(one, {"spec": change}, "merge")

    assert (refused.value.code, refused.value.message) == (422, IMMUTABLE)


def test_everything_beside_it_can_be_changed() -> None:
    api, one = with_domain(SPEC)

    api.patch(one, {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/hold"]}}, "merge")

    assert api.get(one).body["metadata"]["labels"] == {"a": "b"}


def test_what_was_not_there_may_come_and_what_was_there_may_go() -> None:
    api, one = with_domain(None)

    api.patch(one, {"spec": SPEC}, "merge")
    assert api.get(one).body["spec"]["numNodes"] == 0

    api.patch(one, {"spec": None}, "merge")
    assert "spec" not in api.get(one).body


def test_what_is_wrong_in_itself_is_told_first() -> None:
    api, one = with_domain(SPEC)

    with pytest.raises(StatusError, match='Unsupported value: "Some": supported values: "All", "Single"'):
        api.patch(one, {"spec": {"channel": {"allocationMode": "Some"}}}, "merge")
