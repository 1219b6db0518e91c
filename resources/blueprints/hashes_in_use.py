"""Hashes in use: those that the objects of a set have for templates that are spelled otherwise now, or were hashed otherwise."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.paths import get
from engine.resource import Body
from resources.base import kinds, labels
from resources.model.pod_match import is_same_spec, template_spec_of
from resources.model.template import Clique, Template, in_other_spellings

SCHEDULER: Final = "schedulerName"
"""The field of a pod spec with the scheduler, of which `moves` judges."""


def hashes_in_use(observed: Observed, spec: Body, template: Template, default: str, hashes: Memo) -> tuple[tuple[str, str], ...]:
    """The cliques whose objects have the hash of another spelling of the same pods, which is no update: each with that hash.

    A clique that names another scheduler than `default` has changed, unless all its pods of that hash have that scheduler.
    """
    slices = observed.slices.values()
    in_use: dict[str, dict[str, Live]] = {}
    for slice in slices:
        for live in slice.of(kinds.PODCLIQUE.name):
            in_use.setdefault(live.labels.get(labels.TEMPLATE_HASH, ""), {})[live.id.name] = live

    def has(clique: str, hash: str) -> bool:
        return any(name.endswith(f"-{clique}") for name in in_use.get(hash, ()))

    edited = [clique for clique in template.cliques if in_use and not has(clique.name, clique.hash)]
    if not edited:
        return ()
    members = {clique.name for group in template.groups for clique in group.cliques}
    spelled = {clique.name: tuple(_spellings(clique, template, members, in_use)) for clique in edited}
    others = in_other_spellings(spec, spelled, default, hashes)

    def moves(clique: Clique, hash: str) -> bool:
        pods = (pod for slice in slices for pod in slice.index("schedulers", _schedulers)) if clique.scheduler not in ("", default) else ()
        own = (scheduler for name, known, scheduler in pods if known == hash and name.endswith(f"-{clique.name}"))
        return any(scheduler != clique.scheduler for scheduler in own)

    def kept(clique: Clique) -> Iterator[tuple[str, str]]:
        for hash, is_moved in others[clique.name]:
            if has(clique.name, hash) and not (is_moved and moves(clique, hash)):
                yield clique.name, hash

    return tuple(first for clique in edited for first in [next(kept(clique), None)] if first is not None)


def _spellings(clique: Clique, template: Template, members: Collection[str], in_use: Mapping[str, Mapping[str, Live]]) -> Iterator[Body]:
    """The pod specs of live PodCliques of the clique that mean the same as its own, one of each hash; its own scheduler in each."""
    for lives in in_use.values():
        live = next((live for name, live in lives.items() if name.endswith(f"-{clique.name}")), None)
        if live is None:
            continue
        spelling = template_spec_of(live, clique, is_member=clique.name in members, requests=template.domain_requests)
        scheduler = {SCHEDULER: clique.pod_spec[SCHEDULER]} if SCHEDULER in clique.pod_spec else {}
        spelling = {**{key: value for key, value in spelling.items() if key != SCHEDULER}, **scheduler}
        if is_same_spec(spelling, clique.pod_spec):
            yield spelling


def _schedulers(lives: Slice) -> frozenset[tuple[str, str, str]]:
    """The PodCliques of the pods, with their hashes and schedulers."""
    keys, pods = (labels.PODCLIQUE, labels.TEMPLATE_HASH), lives.of(kinds.POD.name)
    return frozenset((*(pod.labels.get(key, "") for key in keys), get(pod.body, ("spec", "schedulerName"), "")) for pod in pods)
