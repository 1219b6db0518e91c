"""PersistentVolumeClaims and Ingresses: their defaults, and what the server rejects of them."""

from typing import Any

import pytest

from grove_sandbox.types.status import StatusError
from resources.base.kinds import INGRESS, PVC
from sandbox.tests.in_memory import about, fresh


def claim(**spec: Any) -> dict[str, Any]:
    """A claim of 1 GiB."""
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"metadata": {"name": "c"}, "spec": body}


def ingress(**path: Any) -> dict[str, Any]:
    """An ingress of one path."""
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    return {"metadata": {"name": "i"}, "spec": {"rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "backend": backend, **path}]}}]}}


def causes_of(error: pytest.ExceptionInfo[StatusError]) -> list[str]:
    """Field and message of each cause."""
    return [f"{cause['field']}: {cause['message']}" for cause in error.value.body["details"]["causes"]]


def test_a_claim_is_pending_and_has_a_volume_mode() -> None:
    api = fresh()

    made = api.create(about(api, PVC), claim()).body

    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["status"] == {"phase": "Pending"}


def test_a_claim_without_access_modes_and_size_is_rejected() -> None:
    api = fresh()

    with pytest.raises(StatusError) as refused:
        api.create(about(api, PVC), {"metadata": {"name": "c"}})

    assert causes_of(refused) == [
        "spec.accessModes: Required value: at least 1 access mode is required",
        "spec.resources[storage]: Required value",
    ]


def test_of_a_claim_only_the_size_may_change() -> None:
    api = fresh()
    api.create(about(api, PVC), claim())

    with pytest.raises(StatusError, match="spec is immutable after creation except resources.requests"):
        api.patch(about(api, PVC, "c"), {"spec": {"storageClassName": "fast"}}, "merge")
    api.patch(about(api, PVC, "c"), {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, "merge")

    assert api.get(about(api, PVC, "c")).body["spec"]["resources"]["requests"] == {"storage": "2Gi"}


def test_an_ingress_has_generations_and_a_status_of_its_own() -> None:
    api = fresh()
    api.create(about(api, INGRESS), ingress(pathType="Prefix"))
    api.patch(about(api, INGRESS, "i"), {"spec": {"ingressClassName": "nginx"}, "status": {"loadBalancer": {"ingress": []}}}, "merge")

    changed = api.get(about(api, INGRESS, "i")).body

    assert (changed["metadata"]["generation"], changed["status"]) == (2, {"loadBalancer": {}})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"metadata": {"name": "i"}}, "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"),
        (ingress(), "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"),
        (
            ingress(pathType="x"),
            'spec.rules[0].http.paths[0].pathType: Unsupported value: "x": supported values: "Exact", "ImplementationSpecific", "Prefix"',
        ),
    ],
)
def test_an_ingress_without_rules_or_path_type_is_rejected(body: dict[str, Any], expected: str) -> None:
    api = fresh()

    with pytest.raises(StatusError) as refused:
        api.create(about(api, INGRESS), body)

    assert causes_of(refused) == [expected]
