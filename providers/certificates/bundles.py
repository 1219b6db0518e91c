"""Bundles: the authorities that API servers trust when they call a webhook: `caBundle` in webhook configurations."""

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any, Final

from cryptography import x509
from msgspec import Struct
from msgspec.structs import replace

from engine.ids import Kind
from engine.paths import get
from engine.resource import Body
from providers.certificates.judging import authorities_in
from providers.certificates.making import pem_of
from resources.base.fields import annotations_of, mapping, mappings
from resources.base.kinds import CRD
from resources.install.permissions import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from resources.install.webhooks import Webhook

INJECTORS: Final = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca")
"""Annotations by which cert-manager writes `caBundle` itself."""


CONVERSION: Final = "conversion"
"""What the webhook of a definition is called here."""


class WebhookTarget(Struct, frozen=True):
    """A webhook configuration, and the names of those of its webhooks that we serve."""

    kind: Kind
    name: str
    webhooks: frozenset[str]

    def __str__(self) -> str:
        return f"{self.kind.name}/{self.name}"


def targets_of(webhooks: Iterable[Webhook], definitions: Iterable[str] = ()) -> tuple[WebhookTarget, ...]:
    """The configurations of these webhooks, and the definitions whose objects we convert."""
    names: dict[tuple[str, str], set[str]] = {}
    for webhook in webhooks:
        names.setdefault((webhook.kind, webhook.configuration), set()).add(webhook.name)
    kinds = {kind.name: kind for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}
    converted = (WebhookTarget(CRD, name, frozenset({CONVERSION})) for name in definitions)
    return (*(WebhookTarget(kinds[kind], name, frozenset(each)) for (kind, name), each in names.items()), *converted)


class ServedService(Struct, frozen=True):
    """The Service through which API servers reach this process."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Bundles(Struct, frozen=True):
    """What a webhook configuration says about our webhooks."""

    target: WebhookTarget
    revision: str
    texts: tuple[tuple[str, str], ...]
    """Each of our webhooks with its `caBundle`, as it is written there."""

    def trusted(self) -> tuple[x509.Certificate, ...]:
        """The authorities that all of our webhooks trust."""
        each = [_authorities(text) for _, text in self.texts]
        return tuple(authority for authority in each[0] if all(authority in others for others in each[1:])) if each else ()

    def with_authorities(self, authorities: Iterable[x509.Certificate]) -> "Bundles":
        """The same when all of our webhooks trust exactly these."""
        text = _text(authorities)
        return replace(self, texts=tuple((name, text) for name, _ in self.texts))

    def named(self) -> Iterator[x509.Certificate]:
        """The authorities that any of our webhooks trusts."""
        for _, text in self.texts:
            yield from _authorities(text)


def bundles_of(body: Body, target: WebhookTarget, service: ServedService) -> Bundles | str:
    """The bundles in a webhook configuration, or why it is none of our business."""
    annotations = annotations_of(body)
    if injectors := [key for key in INJECTORS if key in annotations]:
        return f"cert-manager writes its caBundle ({injectors[0]})"
    texts = []
    for webhook in _webhooks(body, target):
        if webhook.get("name") not in target.webhooks:
            continue
        client = mapping(webhook.get("clientConfig"))
        if other := _other_service(client, service):
            return f"its webhook {webhook['name']} calls the Service {other}, not {service}"
        texts.append((str(webhook["name"]), str(client.get("caBundle") or "")))
    return Bundles(target, str(get(body, ("metadata", "resourceVersion"), "")), tuple(texts))


def _webhooks(body: Body, target: WebhookTarget) -> Iterator[Body]:
    """The webhooks in a configuration; of a definition the one that converts its objects, if it has one."""
    if target.kind != CRD:
        yield from mappings(body.get("webhooks"))
    elif webhook := mapping(get(body, ("spec", "conversion", "webhook"))):
        yield {**webhook, "name": CONVERSION}


def change_of(bundles: Bundles, authorities: Iterable[x509.Certificate]) -> Body | None:
    """The strategic merge patch after which our webhooks trust exactly these authorities, bound to the revision; None if they do."""
    wanted = _text(authorities)
    changed = [{"name": name, "clientConfig": {"caBundle": wanted}} for name, text in bundles.texts if text != wanted]
    if not changed:
        return None
    frame = {"metadata": {"resourceVersion": bundles.revision}}
    if bundles.target.kind == CRD:
        return {**frame, "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": wanted}}}}}
    return {**frame, "webhooks": changed}


def _other_service(client: Any, service: ServedService) -> str:
    """The Service that a webhook calls if it is another one; empty if it is ours, or if the webhook has a URL."""
    reference = mapping(client.get("service"))
    name = f"{reference.get('namespace')}/{reference.get('name')}"
    return name if reference and name != str(service) else ""


def _text(authorities: Iterable[x509.Certificate]) -> str:
    """A `caBundle` that contains the authorities."""
    return base64.b64encode(pem_of(*authorities)).decode()


def _authorities(text: str) -> tuple[x509.Certificate, ...]:
    try:
        return authorities_in(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return ()
