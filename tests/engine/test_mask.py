"""The values of Secrets are masked."""

from engine.mask import MASKED, OTHER, masked, masked_change


def test_a_secret_keeps_its_keys_and_loses_its_values() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"token": "eA=="},
        "stringData": {"a": "b"},
        "type": "Opaque",
    }

    assert masked(body) == {**body, "data": {"token": MASKED}, "stringData": {"a": MASKED}}


def test_an_empty_value_is_shown_as_empty() -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"token": "", "other": None}}

    assert masked(body) == body


def test_the_copy_that_kubectl_keeps_is_masked_too() -> None:
    key = "kubectl.kubernetes.io/last-applied-configuration"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {key: "all of it", "mine": "kept"}}}

    assert masked(body)["metadata"]["annotations"] == {key: MASKED, "mine": "kept"}


def test_objects_of_other_kinds_are_returned_unchanged() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    foreign = {"apiVersion": "example.com/v1", "kind": "Secret", "data": {"a": "b"}}

    assert masked(config) is config
    assert masked(foreign) is foreign


def test_a_changed_secret_value_shows_only_that_it_changed() -> None:
    assert masked_change("Secret", ("data", "token"), "one", "two") == (MASKED, OTHER)
    assert masked_change("Secret", ("data",), None, {"token": "two"}) == (None, {"token": MASKED})
    assert masked_change("Secret", ("data", "token"), "one", None) == (MASKED, None)
    assert masked_change("Secret", ("metadata", "labels", "a"), "1", "2") == ("1", "2")
    assert masked_change("Pod", ("data",), "1", "2") == ("1", "2")
