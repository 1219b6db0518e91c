"""Worlds for the laws of domains: sets in domains of all makers, what happens to them, and passes that race one another and are cut off."""

import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from hypothesis import strategies as some

from engine.ids import ResourceId
from engine.operation import Operation
from engine.plan import Plan
from engine.verb import Verb
from providers.fabrics.nvidia_words import AUTO, COMPUTE_DOMAIN, NAMED
from resources.base import kinds, labels
from resources.domains.drain import ENDED
from tests.builders import clique, group, podcliqueset
from tests.laws.rack import Rack
from tests.mnnvl.sets import OURS, computedomain, gpu, said

Body = Mapping[str, Any]

NAMES = ("demo", "demo-1", "other")
"""The first two are such that what is called `demo-1-0` might be of either."""
DOMAINS = ("rack", "rack-0", "rack-$(GROVE_PCS_INDEX)", "demo-0")
"""Names that people ask for: plain ones, one for each replica, and one that a set may have for itself."""
FOREIGN = "example.com/mine"


@some.composite
def manifests(draw: Any) -> list[dict[str, Any]]:
    """One to three sets of one namespace."""
    names = draw(some.lists(some.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    return [draw(_set(name)) for name in names]


@some.composite
def _set(draw: Any, name: str) -> dict[str, Any]:
    is_auto = draw(some.booleans())
    asked = [None, *([] if is_auto else DOMAINS)]
    cliques = [
        _clique(number, draw(some.sampled_from(asked)), has_gpus=draw(some.booleans())) for number in range(draw(some.integers(1, 3)))
    ]
    cliques[0] = gpu("c0", annotations={} if is_auto else {NAMED: draw(some.sampled_from(DOMAINS))})
    groups = (group("g", "c0", replicas=draw(some.integers(1, 2))),) if draw(some.booleans()) else ()
    manifest = podcliqueset(name, *cliques, groups=groups, replicas=draw(some.integers(0, 2)))
    return said(manifest, {AUTO: "enabled" if is_auto else "disabled"})


def _clique(number: int, domain: str | None, *, has_gpus: bool) -> dict[str, Any]:
    make = gpu if has_gpus else clique
    return make(f"c{number}", annotations={NAMED: domain} if domain else None)


def rack(asked: Sequence[Body], chance: random.Random | None = None) -> Rack:
    """A cluster in which these sets are up; with `chance`, perhaps one with a user's own domain in it."""
    toy = Rack()
    if chance is not None and chance.random() < 0.3:
        toy.put(computedomain(chance.choice(("rack", "demo-0")), "channel"))
    for manifest in asked:
        toy.put(manifest)
    rest(toy)
    return toy


def pass_(toy: Rack, chance: random.Random | None = None) -> None:
    """One pass over all sets: as planned or, with `chance`, with the calls of all plans mixed up as far as edges allow, and cut off."""
    plans = toy.plans()
    left = [operation for plan in plans for operation in plan.operations]
    whole = chance is None or chance.random() < 0.5
    done: set[int] = set()
    keys = {(plan.root, operation.key): id(operation) for plan in plans for operation in plan.operations}
    roots = {id(operation): plan.root for plan in plans for operation in plan.operations}
    while left and (whole or chance is None or chance.random() > 0.1):
        ready = [one for one in left if all(keys[roots[id(one)], key] in done for key in one.after)]
        if not ready:
            break
        operation = chance.choice(ready) if chance else ready[0]
        left.remove(operation)
        if not _is_overtaken(toy, operation):
            judge(toy, operation)
            toy.call(operation)
            done.add(id(operation))


def _is_overtaken(toy: Rack, operation: Operation) -> bool:
    """Whether another call of this pass has come first, and the API server would say so: of domains, which sets share or quarrel over."""
    if operation.id.kind != COMPUTE_DOMAIN.name:
        return False
    there = toy.objects.get(operation.id)
    if operation.verb is Verb.CREATE:
        return there is not None
    if there is None or there["metadata"]["uid"] != operation.expect.uid:
        return True
    return operation.expect.revision not in ("", there["metadata"]["resourceVersion"])


def judge(toy: Rack, operation: Operation) -> None:
    """What no call may do, whatever has happened."""
    if operation.id.kind == COMPUTE_DOMAIN.name:
        _judge_of_domain(toy, operation)
    if operation.id.kind == "Pod" and operation.verb is Verb.CREATE:
        for template in templates_of(operation.body):
            domain = domain_behind(toy, template)
            assert domain is not None, f"{operation.id.name} is made before {template} leads anywhere"
            assert "deletionTimestamp" not in domain["metadata"], f"{operation.id.name} is made for a domain that is being torn down"


def _judge_of_domain(toy: Rack, operation: Operation) -> None:
    there = toy.objects.get(operation.id)
    if there is None:
        return
    metadata = there["metadata"]
    assert metadata.get("labels", {}).get(labels.MANAGED_BY) == labels.MANAGER, f"{operation.key}: it is a user's"
    if operation.verb is Verb.RELEASE:
        assert operation.body["finalizers"] == [OURS], "theirs are not ours to take"
        assert metadata["finalizers"] == [OURS], f"{operation.key}: others are not through with it"
    if operation.verb in (Verb.DELETE, Verb.RELEASE):
        assert users(toy, there) == [], f"{operation.key} while pods use it"


def templates_of(pod: Body) -> list[str]:
    """The names of the claim templates that a pod asks by."""
    claims = pod["spec"].get("resourceClaims") or ()
    return [claim["resourceClaimTemplateName"] for claim in claims if "resourceClaimTemplateName" in claim]


def domain_behind(toy: Rack, template: str) -> Body | None:
    """The domain that a template leads into."""
    uid = toy.leads_into(template)
    return next((body for body in toy.domains().values() if uid and body["metadata"]["uid"] == uid), None)


def users(toy: Rack, domain: Body) -> list[str]:
    """The pods that are there, have not ended, and are in the domain, or will be as soon as they are given what they claim."""
    template, uid = domain["spec"]["channel"]["resourceClaimTemplate"]["name"], domain["metadata"]["uid"]
    found = ((id.name, toy.objects[id]) for id in toy.pods())
    claiming = (name for name, pod in found if template in templates_of(pod) and (pod.get("status") or {}).get("phase") not in ENDED)
    owners = {owner["name"] for owner in domain["metadata"].get("ownerReferences", ())}
    return [name for name in claiming if toy.given(name) == uid or (not toy.given(name) and _set_of(toy, name) in owners)]


def _set_of(toy: Rack, pod: str) -> str:
    return str(toy.objects[kinds.POD.id("default", pod)]["metadata"]["labels"][labels.PART_OF])


def happen(toy: Rack, asked: Sequence[Body], chance: random.Random) -> None:
    """Something that happens in clusters."""
    roots = sorted(id for id in toy.objects if id.kind == kinds.PODCLIQUESET.name)
    alive = [id for id in roots if not _is_going(toy, id)]
    domains = sorted(id for id in toy.objects if id.kind == COMPUTE_DOMAIN.name)
    match chance.randrange(15):
        case 0 | 1 | 2 if alive:
            scale(toy, chance.choice(alive), chance.randrange(4))
        case 3 if alive:
            toy.delete(chance.choice(alive))
        case 4 | 5:
            for manifest in asked:
                if kinds.PODCLIQUESET.id("default", manifest["metadata"]["name"]) not in toy.objects:
                    toy.put(manifest)
        case 6 | 7 if domains and not _is_going(toy, id := chance.choice(domains)):
            toy.delete(id)
        case 8:
            toy.driver = not toy.driver
        case 9 if domains:
            _quarrel(toy, chance.choice(domains))
        case 10 if pods := toy.pods():
            toy.delete(chance.choice(pods))
        case 11 if pods := toy.pods():
            toy.write(chance.choice(pods), {"status": {"phase": chance.choice(("Failed", "Succeeded")), "conditions": []}})
        case 12 if (name := chance.choice(("demo-0", "rack", "rack-0"))) and kinds.RESOURCE_CLAIM_TEMPLATE.id(
            "default", name
        ) not in toy.objects:
            toy.put(_in_the_way(name))
        case 13 | 14 if there := [*roots, *domains]:
            _remove_by_force(toy, chance.choice(there))
        case _:
            _scale_inside(toy, chance)


def _in_the_way(name: str) -> Body:
    """Somebody else's claim template under a name that a domain wants."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": {}}}


def _remove_by_force(toy: Rack, id: ResourceId) -> None:
    """Somebody deletes it and takes all finalizers off."""
    toy.delete(id)
    if id in toy.objects:
        toy.write(id, {"metadata": {"finalizers": None}})


def _quarrel(toy: Rack, domain: ResourceId) -> None:
    """Somebody else puts a finalizer on a domain, or takes it off again."""
    has = toy.objects[domain]["metadata"].get("finalizers") or []
    if FOREIGN in has:
        toy.write(domain, {"metadata": {"finalizers": [one for one in has if one != FOREIGN]}})
    elif not _is_going(toy, domain):
        toy.write(domain, {"metadata": {"finalizers": [*has, FOREIGN]}})


def _scale_inside(toy: Rack, chance: random.Random) -> None:
    scalable = [id for id in sorted(toy.objects) if id.kind in ("PodClique", "PodCliqueScalingGroup") and not _is_going(toy, id)]
    if scalable:
        scale(toy, chance.choice(scalable), chance.randrange(3))


def scale(toy: Rack, id: ResourceId, replicas: int) -> None:
    """Somebody asks for another number."""
    toy.write(id, {"spec": {"replicas": replicas}, "metadata": {"generation": toy.objects[id]["metadata"]["generation"] + 1}})


def _is_going(toy: Rack, id: ResourceId) -> bool:
    return "deletionTimestamp" in toy.objects[id]["metadata"]


def history(toy: Rack, asked: Sequence[Body], chance: random.Random, steps: int = 6) -> None:
    """Things happen, passes are made, not all of them to their end, and the cluster does its part now and then."""
    for _ in range(steps):
        happen(toy, asked, chance)
        pass_(toy, chance)
        if chance.random() < 0.6:
            toy.live()
        toy.now += timedelta(seconds=1)


def calm(toy: Rack) -> None:
    """Nobody stands in the way any more, and everything comes to rest."""
    toy.driver = True
    for id in [id for id in toy.objects if id.kind == COMPUTE_DOMAIN.name]:
        if FOREIGN in (toy.objects[id]["metadata"].get("finalizers") or ()):
            _quarrel(toy, id)
    for id in [id for id in toy.objects if id.kind == kinds.RESOURCE_CLAIM_TEMPLATE.name and not toy.leads_into(id.name)]:
        del toy.objects[id]
    rest(toy)


def rest(toy: Rack) -> None:
    """Passes, until neither we nor the cluster have anything to do; what is held, or waits for people, stays as it is."""
    for _ in range(80):
        plans, before = toy.plans(), dict(toy.objects)
        pass_(toy)
        toy.live()
        toy.now += timedelta(seconds=1)
        if toy.objects == before and not any(plan.operations for plan in plans):
            return
    raise AssertionError(f"it does not come to rest: {unrest(plans)}")


def unrest(plans: Sequence[Plan]) -> list[str]:
    """What keeps it from resting."""
    operations = [f"{operation.key}: {operation.why}" for plan in plans for operation in plan.operations]
    return [*operations, *(f"{held.id}: {held.why}" for plan in plans for held in (*plan.pending, *plan.deferred))]
