"""Asked: about how many objects a set asks for, read from its specification alone, which is not validated."""

from typing import Final

from msgspec import Struct

from engine.blueprint import Asked
from engine.observed import Observed
from engine.paths import get
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import GROUPS, TEMPLATE, cliques_of, count, mapping, mappings, members_of
from resources.base.set_size import json_bytes
from resources.children.podgang import MOST_PODS
from resources.domains.requests import group_replicas
from resources.model.domain import domain_requests_of, is_per_group_replica, specified_in
from resources.model.gang_scheduling import on_cluster
from resources.ports.configuration import Configuration
from resources.ports.fabric import INDEX

COMPRESSED: Final = 24 << 10
"""The bytes of a pod specification, as JSON, up to which a pod takes what `engine.memory_budget` counts for it.

Of a larger one the rest is kept as it is: pods are compressed by what they have in common, within a window of that size.
"""


class ShareCounts(Struct, frozen=True):
    """How many entries one holder has."""

    of_all: int
    """Those with one claim for all replicas."""
    per_replica: int
    """Those with one for each."""

    def for_replicas(self, number: int) -> int:
        """The claims of a holder with that many replicas."""
        return self.of_all + self.per_replica * number


def asked(observed: Observed, configuration: Configuration) -> Asked:
    """The pods, cliques, groups, gangs, Services, autoscalers, claims and domains that the specification of a set names.

    Fields of the wrong shape count as 0. If no PodGang can list the pods, none are created.
    """
    body = observed.proposal or observed.root.body
    cliques = {clique.get("name"): clique for clique in cliques_of(body)}
    specs = {name: mapping(clique.get("spec")) for name, clique in cliques.items()}
    pods_of = {name: count(spec.get("replicas")) for name, spec in specs.items()}
    beyond = {name: max(0, json_bytes(spec.get("podSpec")) - COMPRESSED) * pods_of[name] for name, spec in specs.items()}
    groups = mappings(get(body, GROUPS, ()))
    members = {name for group in groups for name in members_of(group)}
    alone = [number for name, number in pods_of.items() if name not in members]
    pods, gangs = sum(alone), 1
    large = sum(number for name, number in beyond.items() if name not in members)
    in_base_gang = 1 + len(alone) + pods
    of_replica = in_base_gang + 1 + sum("autoScalingConfig" in spec for name, spec in specs.items() if name not in members)
    claims = {name: shares_of(clique, observed) for name, clique in cliques.items()}
    shares = shares_of(mapping(get(body, TEMPLATE, {})), observed)
    of_replica += shares.per_replica + sum(claims[name].for_replicas(number) for name, number in pods_of.items() if name not in members)
    for group in groups:
        own = [pods_of.get(name, 0) for name in members_of(group)]
        size, number, minimum = 1 + len(own) + sum(own), count(group.get("replicas", 1)), count(group.get("minAvailable", 1))
        of_replica += 1 + size * number + ("scaleConfig" in group) + shares_of(group, observed).for_replicas(number)
        of_replica += number * sum(claims[name].for_replicas(pods_of[name]) for name in members_of(group) if name in claims)
        pods += sum(own) * number
        gangs += max(0, number - minimum)
        large += sum(beyond.get(name, 0) for name in members_of(group)) * number
        in_base_gang += size * min(number, minimum)
    replicas = count(get(body, ("spec", "replicas"), 0))
    if in_base_gang > MOST_PODS:
        return Asked(never_created=in_base_gang * replicas)
    of_replica += _domains(body, observed.root.id.name, configuration) + gangs * _has_gang_objects(body, observed, configuration)
    return Asked(of_replica * replicas + shares.of_all, pods * replicas, large * replicas)


def _domains(body: Body, name: str, configuration: Configuration) -> int:
    """How many fabric domains each replica of a set has for itself."""
    if not configuration.fabrics:
        return 0
    specified, copies = specified_in(body), group_replicas(body)
    requests = [request for fabric in configuration.fabrics for request in domain_requests_of(fabric, name, specified) if request.cliques]
    of_groups = (max(copies.get(clique, 0) for clique in request.cliques) for request in requests if is_per_group_replica(request))
    return sum(of_groups) + sum(INDEX in request.name and not is_per_group_replica(request) for request in requests)


def _has_gang_objects(body: Body, observed: Observed, configuration: Configuration) -> bool:
    """Whether the scheduler of a set has an object of its own for each gang, where the cluster serves its kind."""
    named = (get(clique, ("spec", "podSpec", "schedulerName")) for clique in cliques_of(body))
    name = next((str(each) for each in named if each), configuration.default_scheduler)
    scheduler = on_cluster(configuration, observed.unserved).schedulers.get(name)
    return scheduler is not None and scheduler.gangs is not None


def shares_of(holder: Body, observed: Observed) -> ShareCounts:
    """The entries of a set's template, of a scaling group or of a clique in it. None count where the cluster serves no claims."""
    entries = mappings(holder.get("resourceSharing")) if kinds.RESOURCE_CLAIM.key not in observed.unserved else []
    scopes = [entry.get("scope") == "PerReplica" for entry in entries]
    return ShareCounts(scopes.count(False), scopes.count(True))
