"""Kept: objects that finalizers of other programs keep when they are deleted, and what waits for these."""

from collections.abc import Iterator
from typing import Final

from engine.forecast.forecast import Forecast
from engine.observed import Live, Observed
from engine.operation import Creation, Delete, Replace
from engine.report.meaning import listed
from engine.resource_plan import COLLECTED
from resources.cluster_model.deletions import OUR_FINALIZERS
from resources.ports.configuration import Configuration

OF_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
"""How the domains of finalizers end that Kubernetes' own controllers remove. A driver removes those of the group of its domains."""


def kept_notes(observed: Observed, forecast: Forecast, configuration: Configuration) -> Iterator[str]:
    """A note for each finalizer of others on objects that are deleted later: the forecast assumes that it is removed.

    Those that are being deleted already have a wait in the plan.
    """
    root = observed.root.id
    operations = tuple(forecast.operations_of(root))
    deleted = dict.fromkeys(each.id for each in operations if isinstance(each, Delete | Replace))
    created = {each.id for each in operations if isinstance(each, Creation)}
    known = {*COLLECTED, *OUR_FINALIZERS, *(fabric.finalizer for fabric in configuration.fabrics)}
    domains = (*OF_KUBERNETES, *(fabric.kind.group for fabric in configuration.fabrics))
    held: dict[tuple[str, ...], list[Live]] = {}
    for live in observed.lives():
        if live.finalizers and live.deleting_since is None and (live.id in deleted or is_gone(live, forecast)):
            others = (each for each in live.finalizers if each not in known)
            finalizers = tuple(each for each in others if not each.partition("/")[0].endswith(domains))
            if finalizers:
                held.setdefault(finalizers, []).append(live)
    for finalizers, lives in held.items():
        names = [live.id for live in lives]
        owners = {(owner.kind, owner.name) for live in lives if (owner := live.controller) is not None}
        after = {"deletes": [id for id in deleted if (id.kind, id.name) in owners and id not in names]}
        after["creates again"] = [id for id in names if id in created]
        then = " and ".join(f"{verb} {listed(ids)}" for verb, ids in after.items() if ids)
        keep = f"finalizer {finalizers[0]} keeps" if len(finalizers) == 1 else f"finalizers {', '.join(finalizers)} keep"
        yield f"{keep} {listed(names)} when deleted, until other programs remove it; only then a sync {then or 'is done'}"


def is_gone(live: Live, forecast: Forecast) -> bool:
    """Whether an object does not exist any more at the end; false if that is not known."""
    if forecast.objects is None:
        return False
    after = forecast.objects.get(live.id)
    return after is None or after.uid != live.uid
