"""The webhooks of an installation: Grove's names, paths and rules."""

import pytest

from resources.admission.request import Act
from resources.base import kinds
from resources.children.table import CHILDREN
from resources.install.webhooks import WEBHOOKS, Webhook, installed
from resources.schema.crds import crds
from tests.resources.admission.requests import SETUP

GROVE = {
    "podcliqueset-defaulting-webhook": ("pcs.defaulting.webhooks.grove.io", "/webhooks/default-podcliqueset"),
    "podcliqueset-validating-webhook": ("pcs.validating.webhooks.grove.io", "/webhooks/validate-podcliqueset"),
    "clustertopology-validating-webhook": ("clustertopology.validating.webhooks.grove.io", "/webhooks/validate-clustertopology"),
    "authorizer-webhook": ("authorizer.webhooks.grove.io", "/webhooks/authorizer-webhook"),
}
PROTECTED = CHILDREN.protected(SETUP)
CHANGES, ANY = ["UPDATE", "DELETE"], ["CREATE", "UPDATE", "DELETE"]


def test_names_and_paths_are_groves() -> None:
    named = {webhook.configuration: (webhook.name, webhook.path) for webhook in WEBHOOKS}

    assert {key: value for key, value in named.items() if key in GROVE} == GROVE
    assert {key for key in named if key not in GROVE} == {
        "dynamographdeployment-defaulting-webhook",
        "dynamographdeployment-validating-webhook",
    }


def test_protected_operations_are_groves_and_the_deletion_of_domains() -> None:
    (authorizer,) = (webhook for webhook in installed(PROTECTED) if webhook.configuration == "authorizer-webhook")
    rules = {
        (group, resource): sorted(rule.operations, key=ANY.index)
        for rule in authorizer.rules
        for group in (rule.group,)
        for resource in rule.resources
    }

    assert rules == {
        ("", "secrets"): CHANGES,
        ("", "serviceaccounts"): CHANGES,
        ("", "services"): CHANGES,
        ("", "pods"): ["UPDATE"],
        ("rbac.authorization.k8s.io", "roles"): CHANGES,
        ("rbac.authorization.k8s.io", "rolebindings"): CHANGES,
        ("autoscaling", "horizontalpodautoscalers"): CHANGES,
        ("grove.io", "podcliques"): ANY,
        ("grove.io", "podcliquescalinggroups"): ANY,
        ("scheduler.grove.io", "podgangs"): ANY,
        ("resource.nvidia.com", "computedomains"): ["DELETE"],
    }
    assert {rule.versions for rule in authorizer.rules if rule.group == "autoscaling"} == {("v2", "v1")}
    assert authorizer.labels == {"app.kubernetes.io/managed-by": "grove-operator"}


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda webhook: webhook.configuration)
def test_a_request_that_is_not_judged_fails(webhook: Webhook) -> None:
    body = webhook.body({"url": "https://x"})

    assert {key: body[key] for key in ("failurePolicy", "matchPolicy", "sideEffects", "timeoutSeconds", "admissionReviewVersions")} == {
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
    }


def test_every_number_that_can_be_scaled_is_judged_where_it_is_written() -> None:
    scaled = {
        (definition["spec"]["group"], f"{definition['spec']['names']['plural']}/scale", version["name"])
        for definition in crds()
        for version in definition["spec"]["versions"]
        if "scale" in version["subresources"]
    }
    judged = {
        (rule.group, resource, version)
        for webhook in WEBHOOKS
        for rule in webhook.rules
        for resource in rule.resources
        for version in rule.versions
        if not webhook.mutates and Act.UPDATE in rule.operations
    }

    assert scaled <= judged and len(scaled) == 4


def test_a_new_scaling_adapter_is_not_judged() -> None:
    rules = [rule for webhook in WEBHOOKS for rule in webhook.rules if any(kinds.SCALING_ADAPTER.plural in each for each in rule.resources)]

    assert [(rule.operations, rule.resources) for rule in rules if rule.group == kinds.SCALING_ADAPTER.group] == [
        ((Act.UPDATE,), (kinds.SCALING_ADAPTER.plural, f"{kinds.SCALING_ADAPTER.plural}/scale"))
    ]


def test_bindings_belong_to_the_cluster_and_what_is_not_wanted_is_left_out() -> None:
    scopes = {rule.resources: rule.body()["scope"] for webhook in installed({}, graphs=False) for rule in webhook.rules}

    scaled = tuple(f"{kind.plural}/scale" for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP))
    assert scopes == {(kinds.PODCLIQUESET.plural,): "Namespaced", scaled: "Namespaced", (kinds.TOPOLOGY_BINDING.plural,): "Cluster"}
    assert [webhook.name for webhook in installed(PROTECTED)] == [webhook.name for webhook in WEBHOOKS]
