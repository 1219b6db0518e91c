"""Webhooks: the admission webhooks of an installation: which requests an API server sends to which path.

Names, paths and rules are those of Grove, so that the two operators cannot be installed side by side by accident. Grove has no graphs.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ids import Kind
from resources.admission.request import Act
from resources.base import kinds, labels
from resources.install.installation import NAME, EngineInstallation, metadata

SERVICE: Final = "grove-engine"
"""The Service through which API servers call the webhooks."""
CREATE_AND_UPDATE: Final = (Act.CREATE, Act.UPDATE)
FURTHER_VERSIONS: Final[Mapping[Kind, tuple[str, ...]]] = {kinds.AUTOSCALER: ("v1",)}
"""Versions of a kind besides its own in which objects are written: with `matchPolicy: Exact` an API server converts none."""


class WebhookRule(Struct, frozen=True):
    """Requests that a webhook is asked about."""

    group: str
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    operations: tuple[Act, ...]
    namespaced: bool

    def body(self) -> dict[str, Any]:
        """The rule as a manifest has it."""
        return {
            "apiGroups": [self.group],
            "apiVersions": list(self.versions),
            "operations": [str(operation) for operation in self.operations],
            "resources": list(self.resources),
            "scope": "Namespaced" if self.namespaced else "Cluster",
        }


class Webhook(Struct, frozen=True):
    """One webhook, the only one in its configuration object."""

    configuration: str
    """The name of its MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""
    name: str
    path: str
    rules: tuple[WebhookRule, ...]
    mutates: bool = False
    """Whether its answers have patches. If so, they never deny; otherwise they have none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the objects that it is asked about; none: all objects."""
    failure_policy: str = "Fail"
    match_policy: str = "Exact"
    side_effects: str = "None"
    timeout_seconds: int = 10
    review_versions: tuple[str, ...] = ("v1",)

    @property
    def kind(self) -> str:
        """The kind of its configuration object."""
        return "MutatingWebhookConfiguration" if self.mutates else "ValidatingWebhookConfiguration"

    def body(self, client: Mapping[str, Any], namespaces: Sequence[str] = ()) -> dict[str, Any]:
        """The entry of `webhooks` in its configuration object; `client` is the `clientConfig`.

        `namespaces`: it is asked only about objects in these, and those that are in none; empty: about all.
        """
        selector: dict[str, Any] = {"objectSelector": {"matchLabels": dict(self.labels)}} if self.labels else {}
        if namespaces and any(rule.namespaced for rule in self.rules):
            selector["namespaceSelector"] = labels.selector_of_namespaces(namespaces)
        return {
            "name": self.name,
            "clientConfig": dict(client),
            "rules": [rule.body() for rule in self.rules],
            **selector,
            "failurePolicy": self.failure_policy,
            "matchPolicy": self.match_policy,
            "sideEffects": self.side_effects,
            "timeoutSeconds": self.timeout_seconds,
            "admissionReviewVersions": list(self.review_versions),
        }


def _written(kind: Kind) -> tuple[WebhookRule, ...]:
    """The creation and the change of objects of a kind."""
    return (WebhookRule(kind.group, _versions(kind), (kind.plural,), CREATE_AND_UPDATE, kind.namespaced),)


def _scaled(first: Kind, *others: Kind) -> WebhookRule:
    """The change of `scale` of objects of these kinds, which are of one group and have the same versions."""
    resources = tuple(f"{kind.plural}/scale" for kind in (first, *others))
    return WebhookRule(first.group, _versions(first), resources, (Act.UPDATE,), first.namespaced)


def _versions(kind: Kind) -> tuple[str, ...]:
    """The versions in which objects of a kind are written."""
    return (kind.version, *(newer.version for newer in kinds.newer(kind)))


def _protecting(protected: Mapping[Kind, frozenset[Act]]) -> Iterator[WebhookRule]:
    """These operations on managed objects, a rule for all kinds of a group with the same versions and operations."""
    resources: dict[tuple[str, tuple[str, ...], tuple[Act, ...]], list[str]] = {}
    for kind, acts in protected.items():
        operations = tuple(act for act in Act if act in acts)
        resources.setdefault((kind.group, (kind.version, *FURTHER_VERSIONS.get(kind, ())), operations), []).append(kind.plural)
    for (group, versions, operations), plurals in resources.items():
        yield WebhookRule(group, versions, tuple(plurals), operations, namespaced=True)


DEFAULT_SET: Final = Webhook(
    "podcliqueset-defaulting-webhook",
    "pcs.defaulting.webhooks.grove.io",
    "/webhooks/default-podcliqueset",
    _written(kinds.PODCLIQUESET),
    mutates=True,
)
VALIDATE_SET: Final = Webhook(
    "podcliqueset-validating-webhook",
    "pcs.validating.webhooks.grove.io",
    "/webhooks/validate-podcliqueset",
    (*_written(kinds.PODCLIQUESET), _scaled(kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP)),
)
VALIDATE_BINDING: Final = Webhook(
    "clustertopology-validating-webhook",
    "clustertopology.validating.webhooks.grove.io",
    "/webhooks/validate-clustertopology",
    _written(kinds.TOPOLOGY_BINDING),
)
ADAPTERS: Final = (kinds.SCALING_ADAPTER.plural, f"{kinds.SCALING_ADAPTER.plural}/scale")
"""What is judged where the number of a scaling adapter changes. A new one may have the number of what runs already."""
AUTHORIZER: Final = Webhook(
    "authorizer-webhook",
    "authorizer.webhooks.grove.io",
    "/webhooks/authorizer-webhook",
    (),  # What is protected depends on the configuration.
    labels={labels.MANAGED_BY: labels.MANAGER},
)
DEFAULT_GRAPH: Final = Webhook(
    "dynamographdeployment-defaulting-webhook",
    "mdynamographdeployment.kb.io",
    "/webhooks/default-dynamographdeployment",
    _written(kinds.DYNAMO_GRAPH),
    mutates=True,
)
VALIDATE_GRAPH: Final = Webhook(
    "dynamographdeployment-validating-webhook",
    "vdynamographdeployment.kb.io",
    "/webhooks/validate-dynamographdeployment",
    (*_written(kinds.DYNAMO_GRAPH), replace(_scaled(kinds.SCALING_ADAPTER), resources=ADAPTERS)),
)
CONVERT: Final = "/convert"
"""The path at which graphs are converted between their versions."""
GRAPH_DEFINITION: Final = f"{kinds.DYNAMO_GRAPH.plural}.{kinds.DYNAMO_GRAPH.group}"
"""The definition that names this path."""
WEBHOOKS: Final = (DEFAULT_SET, VALIDATE_SET, VALIDATE_BINDING, DEFAULT_GRAPH, VALIDATE_GRAPH, AUTHORIZER)
"""Every webhook that is served."""


def could_be_installed(*, graphs: bool) -> tuple[Webhook, ...]:
    """The webhooks that an installation may have at some time, with graphs or without: the CA is published in those that exist."""
    return tuple(webhook for webhook in WEBHOOKS if graphs or webhook not in (DEFAULT_GRAPH, VALIDATE_GRAPH))


def installed(protected: Mapping[Kind, frozenset[Act]], *, graphs: bool = True) -> tuple[Webhook, ...]:
    """The webhooks of an installation: that of managed objects only if any operations are protected, those of graphs only with `graphs`."""
    authorizer = replace(AUTHORIZER, rules=tuple(_protecting(protected)))
    webhooks = (authorizer if webhook is AUTHORIZER else webhook for webhook in could_be_installed(graphs=graphs))
    return tuple(webhook for webhook in webhooks if webhook.rules)


def convert_service(namespace: str, port: int) -> dict[str, Any]:
    """The reference to the Service at which graphs are converted between their versions."""
    return {"name": NAME, "namespace": namespace, "path": CONVERT, "port": port}


def webhook_configurations(installation: EngineInstallation, protected: Mapping[Kind, frozenset[Act]]) -> Iterator[dict[str, Any]]:
    """The configurations; that of managed objects is asked about the `protected` operations: kind -> operations.

    They have no CA: the engine adds that of its certificate, or the provider of the certificate does.
    """
    for webhook in installed(protected, graphs=installation.graphs):
        service = {
            "name": NAME,
            "namespace": installation.namespace,
            "path": webhook.path,
            "port": installation.port("webhooks"),
        }
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": webhook.kind,
            "metadata": metadata(webhook.configuration, component="webhooks"),
            "webhooks": [webhook.body({"service": service}, installation.namespaces)],
        }
