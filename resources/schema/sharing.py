"""Sharing: resource claims that several pods share, at the level of a set, a group or a clique."""

from typing import Literal

from resources.schema.meta import ClaimTemplateSpec
from resources.schema.wire import Seq, Wire


class ResourceClaimTemplate(Wire):
    """A template of resource claims within the set."""

    name: str
    """The name, to which resourceSharing entries refer."""
    template_spec: ClaimTemplateSpec
    """The content of the claims that are created from it."""


class ResourceSharing(Wire):
    """A resource claim that pods share."""

    name: str
    """The name of a template in resourceClaimTemplates, or of a ResourceClaimTemplate."""
    namespace: str | None = None
    """The namespace of the ResourceClaimTemplate; by default the set's. Must be empty for a template in resourceClaimTemplates."""
    scope: Literal["AllReplicas", "PerReplica"]
    """One claim for all replicas, or one for each replica."""


class CliqueFilter(Wire):
    """Restricts sharing to the cliques named here."""

    child_clique_names: Seq[str] = ()
    """The names of cliques."""


class Filter(CliqueFilter):
    """Restricts sharing to the cliques named here and the cliques of the groups named here."""

    child_scaling_group_names: Seq[str] = ()
    """The names of scaling groups."""


class GroupResourceSharing(ResourceSharing):
    """A resource claim that pods of a scaling group share."""

    filter: CliqueFilter | None = None
    """Which cliques share it; by default all."""


class SetResourceSharing(ResourceSharing):
    """A resource claim that pods of the set share."""

    filter: Filter | None = None
    """Which cliques share it; by default all."""
