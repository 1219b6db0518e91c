"""Needs: which facts a preview reads of the cluster, known from the first pass and its forecast."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import Forecast
from engine.forecast.simulation import existing
from engine.operation import Create
from engine.plan import changed
from engine.verb import Verb
from resources.base import kinds
from resources.base.fields import mapping
from resources.cluster_model.pods import is_refused_just_now
from resources.domains.requests import requested_by_sets, scaled_groups
from resources.model.pod_facts import facts_of
from resources.ports.fabric import Fabric
from resources.preview.facts import FirstPass
from resources.preview.forecasting import restricted


class RoomNeeds(Struct, frozen=True, eq=False):
    """What is read of nodes and pods."""

    specs: tuple[Mapping[str, Any], ...]
    """The specs of new pods: they may select others by labels."""
    known: frozenset[str]
    """The uids of the pods that the forecast begins with: they are counted there."""


class Needs(Struct, frozen=True, eq=False):
    """What is read of the cluster for a preview, besides what the pass has observed."""

    quotas: tuple[str, ...] = ()
    """The namespaces whose ResourceQuotas may matter."""
    fabrics: tuple[Fabric, ...] = ()
    """The fabrics whose nodes may matter."""
    room: RoomNeeds | None = None
    """None: neither all nodes nor all pods are read."""

    @property
    def has_islands(self) -> bool:
        """Whether it matters which nodes are connected with one another."""
        return any(fabric.islands is not None for fabric in self.fabrics)


def needs(first: FirstPass, forecast: Forecast | None = None) -> Needs:
    """The facts that `shown` takes into account for this pass and forecast."""
    sets, groups = first.sets(), scaled_groups(first.world.roots)
    fabrics = tuple(fabric for fabric in first.configuration.fabrics if requested_by_sets(sets, fabric, groups))
    if forecast is None:
        return Needs(fabrics=fabrics)
    return Needs(changing_namespaces(first), fabrics, room_needs(first, forecast) if needs_room(forecast) else None)


def changing_namespaces(first: FirstPass) -> tuple[str, ...]:
    """The namespaces in which objects may be created from this pass on, sorted: those of roots that are changed and not removed."""
    leaving = {observed.root.id for observed in first.world.roots if observed.root.deleting_since is not None}
    leaving |= first.intent.removals.keys()
    plans = (plan for plan in first.planned.plans if plan.root not in leaving and (plan.deferred or changed(plan)))
    return tuple(sorted({plan.root.namespace for plan in plans} - {""}))


def needs_room(forecast: Forecast) -> bool:
    """Whether it depends on the room on nodes: it creates pods, or others could not be scheduled and it deletes some, or that is new."""
    verbs = {operation.verb for operation in forecast.operations() if operation.id.kind == kinds.POD.name}
    if Verb.CREATE in verbs or Assumption.FAILURES_STAY not in forecast.assumptions:
        return Verb.CREATE in verbs
    pods = (live for live in (forecast.objects or {}).values() if live.id.kind == kinds.POD.name)
    return Verb.DELETE in verbs or any(is_refused_just_now(facts_of(live), forecast.began) for live in pods)


def room_needs(first: FirstPass, forecast: Forecast) -> RoomNeeds:
    """What of nodes and pods this forecast depends on."""
    new = (each for each in forecast.operations() if isinstance(each, Create) and each.id.kind == kinds.POD.name)
    known = frozenset(live.uid for live in existing(restricted(first).world) if live.id.kind == kinds.POD.name)
    return RoomNeeds(tuple(mapping(each.manifest.get("spec")) for each in new), known)
