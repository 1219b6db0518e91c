"""Sharing: resource claims that several pods use together, at the level of a set, a group or a clique."""

from typing import Literal

from resources.schema.meta import ClaimTemplateSpec
from resources.schema.wire import Seq, Wire


class ResourceClaimTemplate(Wire):
    """A claim template that lives inside the set."""

    name: str
    """What resourceSharing entries call it."""
    template_spec: ClaimTemplateSpec
    """What each claim made from it will be."""


class ResourceSharing(Wire):
    """A claim that the pods below share."""

    name: str
    """A template of this set, or a ResourceClaimTemplate of the cluster."""
    namespace: str | None = None
    """Where the ResourceClaimTemplate lives; by default beside the set. Must be empty for a template of this set."""
    scope: Literal["AllReplicas", "PerReplica"]
    """One claim for all replicas together, or one for each."""


class CliqueFilter(Wire):
    """Who shares: the cliques named here."""

    child_clique_names: Seq[str] = ()
    """Names of cliques."""


class Filter(CliqueFilter):
    """Who shares: the cliques named here, and those of the groups named here."""

    child_scaling_group_names: Seq[str] = ()
    """Names of scaling groups."""


class GroupResourceSharing(ResourceSharing):
    """A claim that pods of a scaling group share."""

    filter: CliqueFilter | None = None
    """Who shares it; by default all."""


class SetResourceSharing(ResourceSharing):
    """A claim that pods of the set share."""

    filter: Filter | None = None
    """Who shares it; by default all."""
