"""Sharing: which pods share a resource claim, and from what the claim is created."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live
from engine.reason import Reason
from engine.resource import Body
from resources.base import kinds, names
from resources.ports.references import TemplateReferences, claim_spec, is_shared_with, spec_digest, why_refused


class Share(Struct, frozen=True, eq=False):
    """One entry of a set's, a group's or a clique's `resourceSharing`."""

    name: str
    per_replica: bool
    """Whether each replica of the set, group or clique has its own claim; otherwise all replicas share one claim."""
    spec: Body
    """The spec of each claim; empty if it is not known."""
    blocker: str
    """Why no claim can be created; empty if it can."""
    reason: Reason | None
    """The same in one word; None if there is no word for it."""
    missing: bool
    """Whether that is because its template does not exist."""
    cliques: frozenset[str] | None
    """The cliques whose pods use it; None: all cliques of the set or group."""
    groups: frozenset[str]
    """The scaling groups whose pods use it as well."""

    def is_used_by(self, clique: str, group: str) -> bool:
        """Whether pods of a clique use it; `group` is the clique's scaling group, or empty."""
        return self.cliques is None or clique in self.cliques or group in self.groups


class Sharing(Struct, frozen=True, eq=False):
    """All `resourceSharing` entries of a template: the set's own, and those of its groups and cliques by name."""

    of_set: tuple[Share, ...]
    of_groups: Mapping[str, tuple[Share, ...]]
    of_cliques: Mapping[str, tuple[Share, ...]]
    foreign: frozenset[str]
    """The names of foreign resource claims."""
    copied: frozenset[str]
    """The digests of the specs that may be copied from other namespaces."""
    has_unobserved: bool
    """Whether a template of another namespace was not found: it may exist where nothing was observed."""

    @property
    def missing(self) -> frozenset[str]:
        """The blockers of the entries whose templates do not exist."""
        shares = (self.of_set, *self.of_groups.values(), *self.of_cliques.values())
        return frozenset(share.blocker for each in shares for share in each if share.missing)

    @property
    def is_empty(self) -> bool:
        """Whether the template has no entry at all."""
        return not (self.of_set or any(self.of_groups.values()) or any(self.of_cliques.values()))


def read(root: ResourceId, inner: Body, references: TemplateReferences) -> Sharing:
    """The entries of a template that has the right shape. `inner` is the set's `spec.template`."""

    def shares(holder: Mapping[str, Any]) -> tuple[Share, ...]:
        return tuple(_share(entry, inner, root.namespace, references) for entry in holder.get("resourceSharing") or ())

    lives = [references.resolved.get(id) for id in referenced_ids(inner, root.namespace) if id.namespace != root.namespace]
    return Sharing(
        of_set=tuple(_unblocked_if_created(share, root, references) for share in shares(inner)),
        of_groups={config["name"]: shares(config) for config in inner.get("podCliqueScalingGroups") or ()},
        of_cliques={clique["name"]: shares(clique) for clique in inner["cliques"]},
        foreign=references.foreign,
        copied=frozenset(
            spec_digest(claim_spec(live.body)) for live in lives if live is not None and _is_allowed(live, root.namespace, references)
        ),
        has_unobserved=None in lives,
    )


def _unblocked_if_created(share: Share, root: ResourceId, references: TemplateReferences) -> Share:
    """The share without its blocker if the one claim for all replicas exists: then the source of the claim does not matter."""
    is_created = not share.per_replica and names.claim(root.name, None, share.name) in references.claims
    return replace(share, blocker="", reason=None, missing=False) if is_created else share


def _share(entry: Mapping[str, Any], inner: Body, namespace: str, references: TemplateReferences) -> Share:
    spec, blocker, reason = _claim_spec(entry, inner, namespace, references)
    only = entry.get("filter")
    return Share(
        name=entry["name"],
        per_replica=entry["scope"] == "PerReplica",
        spec=spec,
        blocker=blocker,
        reason=reason,
        missing=_is_missing(entry, inner, namespace, references),
        cliques=None if only is None else frozenset(only.get("childCliqueNames") or ()),
        groups=frozenset((only or {}).get("childScalingGroupNames") or ()),
    )


def referenced_ids(inner: Body, namespace: str) -> Iterator[ResourceId]:
    """The external ResourceClaimTemplates that the entries of a template of the right shape refer to."""
    for holder in (inner, *(inner.get("podCliqueScalingGroups") or ()), *inner["cliques"]):
        templates = (_external_template(entry, inner, namespace) for entry in holder.get("resourceSharing") or ())
        yield from (template for template in templates if template is not None)


def _external_template(entry: Mapping[str, Any], inner: Body, namespace: str) -> ResourceId | None:
    """The ResourceClaimTemplate that an entry refers to; None if it refers to one of the set's own `resourceClaimTemplates`."""
    explicit = entry.get("namespace")
    own = any(template["name"] == entry["name"] for template in inner.get("resourceClaimTemplates") or ())
    return None if own and not explicit else kinds.RESOURCE_CLAIM_TEMPLATE.id(explicit or namespace, entry["name"])


def _claim_spec(entry: Mapping[str, Any], inner: Body, namespace: str, references: TemplateReferences) -> tuple[Body, str, Reason | None]:
    """The spec of an entry's claims; or an empty spec, why none can be created, and that in one word if there is one."""
    if kinds.RESOURCE_CLAIM.name in references.unserved | references.incomplete:
        return {}, references.why_missing(kinds.RESOURCE_CLAIM), None
    external = _external_template(entry, inner, namespace)
    if external is None:
        own = next(template for template in inner["resourceClaimTemplates"] if template["name"] == entry["name"])
        return own["templateSpec"]["spec"], "", None
    live = references.resolved.get(external)
    if live is None:
        why = references.why_missing(kinds.RESOURCE_CLAIM_TEMPLATE)
        return {}, f"failed to get external ResourceClaimTemplate {external.namespace}/{external.name}: {why}", None
    if not _is_allowed(live, namespace, references):
        return {}, why_refused(external, namespace), Reason.NOT_SHARED
    return claim_spec(live.body), "", None


def _is_missing(entry: Mapping[str, Any], inner: Body, namespace: str, references: TemplateReferences) -> bool:
    """Whether the template that an entry refers to is known not to exist: others than those of the set's namespace may be unobserved."""
    external = _external_template(entry, inner, namespace)
    unknown = references.unserved | references.incomplete
    is_known = unknown.isdisjoint((kinds.RESOURCE_CLAIM.name, kinds.RESOURCE_CLAIM_TEMPLATE.name))
    return external is not None and external.namespace == namespace and is_known and references.resolved.get(external) is None


def _is_allowed(template: Live, namespace: str, references: TemplateReferences) -> bool:
    """Whether claims in a namespace may be made from a template: it is of the same one, shared with it, or has been copied before."""
    return template.id.namespace == namespace or is_shared_with(template.body, namespace) or template.id in references.given
