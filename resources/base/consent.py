"""Consent: whether a set may have claims made from a ResourceClaimTemplate of another namespace."""

import re
from collections.abc import Iterable
from typing import Final

from engine.canonical import digest
from engine.ids import ResourceId
from engine.resource import Body
from resources.base.fields import annotations_of, mapping
from resources.base.labels import COPIED_CLAIMS, SHARED_WITH

EVERY_NAMESPACE: Final = "*"
DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def is_shared_with(template: Body, namespace: str) -> bool:
    """Whether the annotation of a template names the namespace, or all with `*`. Names are compared whole: there are no patterns."""
    value = annotations_of(template).get(SHARED_WITH)
    entries = {entry.strip() for entry in value.split(",")} if isinstance(value, str) else set[str]()
    return bool(namespace) and bool(entries & {namespace, EVERY_NAMESPACE})


def why_refused(template: ResourceId, namespace: str) -> str:
    """What is said about a template that its namespace does not share with another one, and the way out."""
    return (
        f"ResourceClaimTemplate {template.namespace}/{template.name} is not shared with namespace {namespace}; "
        f"do: add {namespace} to its annotation {SHARED_WITH}"
    )


def claim_spec(template: Body) -> Body:
    """The spec of the claims that a template describes; empty if it has none."""
    return mapping(mapping(template.get("spec")).get("spec"))


def copied(body: Body) -> frozenset[str]:
    """The digests of the claim specs that a set has been given, as its annotation records them. Whatever is no digest is left out."""
    value = annotations_of(body).get(COPIED_CLAIMS)
    return frozenset(entry for entry in value.split(",") if DIGEST.fullmatch(entry)) if isinstance(value, str) else frozenset()


def record(digests: Iterable[str]) -> str:
    """The value of the annotation that records these digests (`copied`)."""
    return ",".join(sorted(digests))


def spec_digest(spec: Body) -> str:
    """The digest of the spec of a claim. Who has it without having been given the spec must know the spec."""
    return digest(spec)
