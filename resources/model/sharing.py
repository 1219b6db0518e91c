"""Sharing: which pods use a resource claim together, and what the claim is made from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.ids import ResourceId
from engine.resource import Body
from resources.base import kinds, names
from resources.model.template_references import TemplateReferences


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """One entry of a set's, a group's or a clique's `resourceSharing`."""

    name: str
    per_replica: bool
    """One claim for each replica of its level, not one for all of them."""
    spec: Body
    """What each claim is; empty where that is not known."""
    trouble: str
    """Why it is not known, or why no such claim can be made."""
    cliques: frozenset[str] | None
    """Whose pods use it; None: everybody's."""
    groups: frozenset[str]
    """The scaling groups whose pods use it as well."""

    def is_used_by(self, clique: str, group: str) -> bool:
        """Whether pods of a clique (in a group, if it is in one) use it."""
        return self.cliques is None or clique in self.cliques or group in self.groups


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """All entries of a template, level by level; those of groups and cliques by name."""

    of_set: tuple[Share, ...]
    of_groups: Mapping[str, tuple[Share, ...]]
    of_cliques: Mapping[str, tuple[Share, ...]]
    foreign: frozenset[str]
    """Names of claims that belong to others."""

    @property
    def is_empty(self) -> bool:
        """Whether nobody shares anything, as in most sets."""
        return not (self.of_set or any(self.of_groups.values()) or any(self.of_cliques.values()))


def read(root: ResourceId, inner: Body, around: TemplateReferences) -> Sharing:
    """The entries of a template whose shape is sound."""

    def shares(holder: Mapping[str, Any]) -> tuple[Share, ...]:
        return tuple(_share(entry, inner, root.namespace, around) for entry in holder.get("resourceSharing") or ())

    return Sharing(
        of_set=tuple(_without_trouble(share, root, around) for share in shares(inner)),
        of_groups={config["name"]: shares(config) for config in inner.get("podCliqueScalingGroups") or ()},
        of_cliques={clique["name"]: shares(clique) for clique in inner["cliques"]},
        foreign=around.foreign,
    )


def _without_trouble(share: Share, root: ResourceId, around: TemplateReferences) -> Share:
    """Once the one claim for the whole set is there, what it was made from does not matter any more."""
    is_made = not share.per_replica and names.claim(root.name, None, share.name) in around.claims
    return replace(share, trouble="") if is_made else share


def _share(entry: Mapping[str, Any], inner: Body, namespace: str, around: TemplateReferences) -> Share:
    spec, trouble = _resolved(entry, inner, namespace, around)
    only = entry.get("filter")
    return Share(
        name=entry["name"],
        per_replica=entry["scope"] == "PerReplica",
        spec=spec,
        trouble=trouble,
        cliques=None if only is None else frozenset(only.get("childCliqueNames") or ()),
        groups=frozenset((only or {}).get("childScalingGroupNames") or ()),
    )


def references(inner: Body, namespace: str) -> Iterator[ResourceId]:
    """The ResourceClaimTemplates that the entries of a template whose shape is sound mean, where they mean somebody else's."""
    for holder in (inner, *(inner.get("podCliqueScalingGroups") or ()), *inner["cliques"]):
        templates = (_template_of(entry, inner, namespace) for entry in holder.get("resourceSharing") or ())
        yield from (template for template in templates if template is not None)


def _template_of(entry: Mapping[str, Any], inner: Body, namespace: str) -> ResourceId | None:
    """The ResourceClaimTemplate that an entry means; None where it means a template of the set's own."""
    elsewhere = entry.get("namespace")
    own = any(template["name"] == entry["name"] for template in inner.get("resourceClaimTemplates") or ())
    return None if own and not elsewhere else kinds.RESOURCE_CLAIM_TEMPLATE.id(elsewhere or namespace, entry["name"])


def _resolved(entry: Mapping[str, Any], inner: Body, namespace: str, around: TemplateReferences) -> tuple[Body, str]:
    """What claims of this entry are, or why that is not to be had."""
    if kinds.RESOURCE_CLAIM.name in around.unserved | around.unseen:
        return {}, around.why_missing(kinds.RESOURCE_CLAIM)
    template = _template_of(entry, inner, namespace)
    if template is None:
        own = next(one for one in inner["resourceClaimTemplates"] if one["name"] == entry["name"])
        return own["templateSpec"]["spec"], ""
    found = around.found.get(template)
    if found is None:
        why = around.why_missing(kinds.RESOURCE_CLAIM_TEMPLATE)
        return {}, f"failed to get external ResourceClaimTemplate {template.namespace}/{template.name}: {why}"
    return found.body["spec"]["spec"], ""
