"""Namespaces in the API itself: what comes with them, and that nothing comes back while they go."""

import pytest

from engine.ids import Kind
from grove_sandbox.types.status import StatusError
from sandbox.tests.in_memory import POD, about, fresh, pod

NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False, status=True)
ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")


def test_pods_can_be_made_in_a_new_namespace_at_once() -> None:
    api = fresh()
    api.create(about(api, NAMESPACE), {"metadata": {"name": "new"}})

    made = api.create(about(api, POD, namespace="new"), pod("p"))

    assert made.body["spec"]["serviceAccountName"] == "default"


def test_a_namespace_that_goes_does_not_fill_up_again() -> None:
    api = fresh()
    api.create(about(api, NAMESPACE), {"metadata": {"name": "old"}})
    api.delete(about(api, NAMESPACE, "old"))
    api.delete(about(api, ACCOUNT, "default", namespace="old"))

    api.patch(about(api, NAMESPACE, "old"), {"metadata": {"labels": {"x": "y"}}}, "merge")

    assert api.list(about(api, ACCOUNT, namespace="old")).items == ()


def test_it_is_gone_when_its_own_finalizer_is() -> None:
    api = fresh()
    api.create(about(api, NAMESPACE), {"metadata": {"name": "old"}})
    dying = api.delete(about(api, NAMESPACE, "old")).body
    request = about(api, NAMESPACE, "old")
    finalize = type(request)(request.served, name="old", subresource="finalize", manager="test")

    api.replace(finalize, {**dying, "spec": {"finalizers": []}})

    with pytest.raises(StatusError, match='namespaces "old" not found'):
        api.get(request)
