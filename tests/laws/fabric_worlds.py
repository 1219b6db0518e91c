"""Worlds for the laws of domains: sets in automatic and named domains, random events, and passes that race or are interrupted."""

import copy
import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from hypothesis import strategies as some

from engine.ids import ResourceId
from engine.memo import Memo
from engine.operation import Operation, body_of
from engine.plan import Plan
from engine.verb import Verb
from providers.fabrics.nvidia.names import AUTO, COMPUTE_DOMAIN, GROUP, NAMED
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base import kinds, labels
from resources.domains.release import ENDED
from tests.builders import clique, group, podcliqueset
from tests.laws.rack import Rack
from tests.mnnvl.sets import OURS, computedomain, gpu, said

Body = Mapping[str, Any]

NAMES = ("demo", "demo-1", "other")
"""With the first two, `demo-1-0` may be a child of either."""
DOMAINS = ("rack", "rack-0", "rack-$(GROVE_PCS_INDEX)", "demo-0")
"""Requested domain names: plain ones, one for each replica, and one that collides with an automatic name."""
GROUP_DOMAINS = ("rack-$(GROVE_PCSG_INDEX)", "rack-$(GROVE_PCS_INDEX)-$(GROVE_PCSG_INDEX)")
"""Requested domain names of cliques in scaling groups: one for each replica of the group."""
GROUPS = ("x", "0-x", "none")
"""Groups; with the first two, the domains of the sets `demo` and `demo-1` may have one name."""
GROUP_NAMES = ("model", "other", "none")
FOREIGN = "example.com/mine"


@some.composite
def manifests(draw: Any) -> list[dict[str, Any]]:
    """One to three sets of one namespace."""
    names = draw(some.lists(some.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    return [draw(_set(name)) for name in names]


@some.composite
def _set(draw: Any, name: str) -> dict[str, Any]:
    mode = draw(some.sampled_from(("enabled", "disabled", "groups")))
    if mode == "groups" and draw(some.booleans()):
        return _set_in_groups(draw, name)
    requested = [None, *(DOMAINS if mode == "disabled" else ())]
    cliques = [
        _clique(number, draw(some.sampled_from(requested)), has_gpus=draw(some.booleans())) for number in range(draw(some.integers(1, 3)))
    ]
    has_group = draw(some.booleans())
    names = (*DOMAINS, *(GROUP_DOMAINS if has_group else ()))
    first = {"enabled": {}, "disabled": {NAMED: draw(some.sampled_from(names))}, "groups": {GROUP: draw(some.sampled_from(GROUPS))}}
    cliques[0] = gpu("c0", annotations=first[mode])
    groups = (group("g", "c0", replicas=draw(some.integers(1, 2))),) if has_group else ()
    manifest = podcliqueset(name, *cliques, groups=groups, replicas=draw(some.integers(0, 2)))
    annotations = {GROUP: draw(some.sampled_from(GROUPS))} if mode == "groups" else {AUTO: mode}
    if draw(some.booleans()):
        annotations[labels.RELEASE_DOMAINS] = labels.ON_COMPLETION
        for entry in cliques:
            entry["spec"]["podSpec"] = {**entry["spec"]["podSpec"], "restartPolicy": "Never"}
    return said(manifest, annotations)


def _set_in_groups(draw: Any, name: str) -> dict[str, Any]:
    """A set with the annotation for groups on some of the three layers."""
    values = some.sampled_from((None, *GROUP_NAMES))
    cliques = [gpu(f"c{number}", annotations=_annotated(GROUP, draw(values))) for number in range(draw(some.integers(1, 3)))]
    config = {**group("g", "c0", replicas=draw(some.integers(1, 2))), "annotations": _annotated(GROUP, draw(values)) or {}}
    groups = (config,) if draw(some.booleans()) else ()
    manifest = podcliqueset(name, *cliques, groups=groups, replicas=draw(some.integers(0, 2)))
    return said(manifest, {GROUP: draw(some.sampled_from(GROUP_NAMES))})


def _annotated(key: str, value: str | None) -> dict[str, str] | None:
    return {key: value} if value is not None else None


def _clique(number: int, domain: str | None, *, has_gpus: bool) -> dict[str, Any]:
    make = gpu if has_gpus else clique
    return make(f"c{number}", annotations={NAMED: domain} if domain else None)


def rack(manifests: Sequence[Body], chance: random.Random | None = None) -> Rack:
    """A cluster in which these sets are running; with `chance`, perhaps with a domain that a user created."""
    toy = Rack()
    if chance is not None and chance.random() < 0.3:
        toy.put(computedomain(chance.choice(("rack", "demo-0")), "channel"))
    for manifest in manifests:
        toy.put(manifest)
    settle(toy)
    return toy


def pass_(toy: Rack, chance: random.Random | None = None) -> None:
    """One pass over all sets: as planned or, with `chance`, with the calls of all plans in any order that edges allow, and interrupted."""
    carry_out(toy, toy.plans(), chance)


def carry_out(toy: Rack, plans: Sequence[Plan], chance: random.Random | None = None) -> None:
    """Make the calls of these plans: all or, with `chance`, some of them, in any order that edges allow."""
    left = [operation for plan in plans for operation in plan.operations]
    whole = chance is None or chance.random() < 0.5
    done: set[int] = set()
    keys = {(plan.root, operation.key): id(operation) for plan in plans for operation in plan.operations}
    roots = {id(operation): plan.root for plan in plans for operation in plan.operations}
    while left and (whole or chance is None or chance.random() > 0.1):
        ready = [each for each in left if all(keys[roots[id(each)], key] in done for key in each.after)]
        if not ready:
            break
        operation = chance.choice(ready) if chance else ready[0]
        left.remove(operation)
        if not _is_stale(toy, operation):
            check(toy, operation)
            toy.call(operation)
            done.add(id(operation))


def _is_stale(toy: Rack, operation: Operation) -> bool:
    """Whether the API server would reject a call on a domain because another call of this pass came first."""
    if operation.id.kind != COMPUTE_DOMAIN.name:
        return False
    existing = toy.objects.get(operation.id)
    if operation.verb is Verb.CREATE:
        return existing is not None
    if existing is None or existing["metadata"]["uid"] != operation.expect.uid:
        return True
    return operation.expect.revision not in ("", existing["metadata"]["resourceVersion"])


def check(toy: Rack, operation: Operation) -> None:
    """Assert what no call may do, whatever has happened."""
    if operation.id.kind == COMPUTE_DOMAIN.name:
        _check_domain(toy, operation)
    if operation.id.kind == "Pod" and operation.verb is Verb.CREATE:
        for template in templates_of(body_of(operation)):
            domain = domain_behind(toy, template)
            assert domain is not None, f"{operation.id.name} is created before the domain of {template}"
            assert "deletionTimestamp" not in domain["metadata"], f"{operation.id.name} is created for a domain that is being deleted"


def _check_domain(toy: Rack, operation: Operation) -> None:
    domain = toy.objects.get(operation.id)
    if domain is None:
        return
    metadata = domain["metadata"]
    assert metadata.get("labels", {}).get(labels.MANAGED_BY) == labels.MANAGER, f"{operation.key}: a user created it"
    if operation.verb is Verb.RELEASE:
        assert body_of(operation)["finalizers"] == [OURS], "it releases a foreign finalizer"
        assert metadata["finalizers"] == [OURS], f"{operation.key}: it has foreign finalizers"
    if operation.verb in (Verb.DELETE, Verb.RELEASE):
        assert users(toy, domain) == [], f"{operation.key} while pods use it"


def templates_of(pod: Body) -> list[str]:
    """The names of the claim templates that a pod uses."""
    claims = pod["spec"].get("resourceClaims") or ()
    return [claim["resourceClaimTemplateName"] for claim in claims if "resourceClaimTemplateName" in claim]


def domain_behind(toy: Rack, template: str) -> Body | None:
    """The domain of a claim template."""
    uid = toy.leads_into(template)
    return next((body for body in toy.domains().values() if uid and body["metadata"]["uid"] == uid), None)


def users(toy: Rack, domain: Body) -> list[str]:
    """The names of the pods that have not ended and are in the domain, or will be once they have their claim."""
    template, uid = domain["spec"]["channel"]["resourceClaimTemplate"]["name"], domain["metadata"]["uid"]
    pods = ((id.name, toy.objects[id]) for id in toy.pods())
    claiming = (name for name, pod in pods if template in templates_of(pod) and (pod.get("status") or {}).get("phase") not in ENDED)
    owners = {owner["name"] for owner in domain["metadata"].get("ownerReferences", ())}
    return [name for name in claiming if toy.given(name) == uid or (not toy.given(name) and _set_of(toy, name) in owners)]


def _set_of(toy: Rack, pod: str) -> str:
    return str(toy.objects[kinds.POD.id("default", pod)]["metadata"]["labels"][labels.PART_OF])


def disturb(toy: Rack, manifests: Sequence[Body], chance: random.Random) -> None:
    """One random event."""
    roots = sorted(id for id in toy.objects if id.kind == kinds.PODCLIQUESET.name)
    alive = [id for id in roots if not _is_terminating(toy, id)]
    domains = sorted(id for id in toy.objects if id.kind == COMPUTE_DOMAIN.name)
    match chance.randrange(15):
        case 0 | 1 | 2 if alive:
            scale(toy, chance.choice(alive), chance.randrange(4))
        case 3 if alive:
            toy.delete(chance.choice(alive))
        case 4 | 5:
            for manifest in manifests:
                if kinds.PODCLIQUESET.id("default", manifest["metadata"]["name"]) not in toy.objects:
                    toy.put(manifest)
        case 6 | 7 if domains and not _is_terminating(toy, id := chance.choice(domains)):
            toy.delete(id)
        case 8:
            toy.driver = not toy.driver
        case 9 if domains:
            _toggle_foreign_finalizer(toy, chance.choice(domains))
        case 10 if pods := toy.pods():
            toy.delete(chance.choice(pods))
        case 11 if pods := toy.pods():
            toy.write(chance.choice(pods), {"status": {"phase": chance.choice(("Failed", "Succeeded")), "conditions": []}})
        case 12 if (name := chance.choice(("demo-0", "rack", "rack-0"))) and kinds.RESOURCE_CLAIM_TEMPLATE.id(
            "default", name
        ) not in toy.objects:
            toy.put(_foreign_template(name))
        case 13 | 14 if existing := [*roots, *domains]:
            _delete_by_force(toy, chance.choice(existing))
        case _:
            _scale_inside(toy, chance)


def _foreign_template(name: str) -> Body:
    """A foreign claim template with a name that a domain needs."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": {}}}


def edit_membership(toy: Rack, id: ResourceId, chance: random.Random, *, guarded: bool = False) -> None:
    """A user edits the annotations that request domains, on the set and on some cliques and scaling groups.

    If `guarded`, a webhook judges the edit; otherwise the server stores whatever it is.
    """
    stored = copy.deepcopy(toy.objects[id])
    if chance.random() < 0.6:
        toy.write(id, {"metadata": {"annotations": {AUTO: chance.choice(("enabled", "disabled", "other", None))}}})
    if chance.random() < 0.4:
        toy.write(id, {"metadata": {"annotations": {GROUP: chance.choice((*GROUP_NAMES, "Not a group", None))}}})
    template = toy.objects[id]["spec"]["template"]
    for field, keys in (("cliques", (NAMED, GROUP)), ("podCliqueScalingGroups", (GROUP,))):
        entries = [_edited(entry, keys, chance) for entry in template.get(field) or ()]
        toy.write(id, {"spec": {"template": {field: entries}}})
    toy.write(id, {"metadata": {"generation": toy.objects[id]["metadata"]["generation"] + 1}})
    if guarded and not admit(Request(Act.UPDATE, id, toy.objects[id], stored), toy.configuration).allowed:
        toy.objects[id] = stored


def _edited(entry: Body, keys: Sequence[str], chance: random.Random) -> Body:
    """A clique or scaling group of the template, perhaps with other values of these annotations."""
    annotations = dict(entry.get("annotations") or {})
    for key in keys:
        if chance.random() < 0.4:
            annotations.pop(key, None)
            names = (*DOMAINS, "elsewhere", "Not a name") if key == NAMED else GROUP_NAMES
            if (name := chance.choice((*names, None))) is not None:
                annotations[key] = name
    return {**entry, "annotations": annotations}


def memberships(toy: Rack) -> dict[tuple[str, str, str], set[tuple[str, ...]]]:
    """Set, clique and PodClique -> the different claim templates of its pods that have not ended."""
    by_clique: dict[tuple[str, str, str], set[tuple[str, ...]]] = {}
    for id in toy.pods():
        pod = toy.objects[id]
        if (pod.get("status") or {}).get("phase") not in ENDED:
            podclique = pod["metadata"]["labels"][labels.PODCLIQUE]
            key = pod["metadata"]["labels"][labels.PART_OF], podclique.rpartition("-")[2], podclique
            by_clique.setdefault(key, set()).add(tuple(templates_of(pod)))
    return by_clique


def _delete_by_force(toy: Rack, id: ResourceId) -> None:
    """A user deletes an object and removes all its finalizers."""
    toy.delete(id)
    if id in toy.objects:
        toy.write(id, {"metadata": {"finalizers": None}})


def _toggle_foreign_finalizer(toy: Rack, domain: ResourceId) -> None:
    """Another controller adds a finalizer to a domain, or removes it again."""
    finalizers = toy.objects[domain]["metadata"].get("finalizers") or []
    if FOREIGN in finalizers:
        toy.write(domain, {"metadata": {"finalizers": [finalizer for finalizer in finalizers if finalizer != FOREIGN]}})
    elif not _is_terminating(toy, domain):
        toy.write(domain, {"metadata": {"finalizers": [*finalizers, FOREIGN]}})


def _scale_inside(toy: Rack, chance: random.Random) -> None:
    scalable = [id for id in sorted(toy.objects) if id.kind in ("PodClique", "PodCliqueScalingGroup") and not _is_terminating(toy, id)]
    if scalable:
        scale(toy, chance.choice(scalable), chance.randrange(3))


def scale(toy: Rack, id: ResourceId, replicas: int) -> None:
    """A user changes the number of replicas."""
    toy.write(id, {"spec": {"replicas": replicas}, "metadata": {"generation": toy.objects[id]["metadata"]["generation"] + 1}})


def _is_terminating(toy: Rack, id: ResourceId) -> bool:
    return "deletionTimestamp" in toy.objects[id]["metadata"]


def history(toy: Rack, manifests: Sequence[Body], chance: random.Random, steps: int = 6) -> None:
    """Random events, each followed by a pass that may be interrupted, and sometimes by a step of the cluster."""
    for _ in range(steps):
        disturb(toy, manifests, chance)
        pass_(toy, chance)
        if chance.random() < 0.6:
            toy.live()
        toy.now += timedelta(seconds=1)


def calm(toy: Rack) -> None:
    """Remove every obstacle, then settle."""
    toy.driver = True
    for id in [id for id in toy.objects if id.kind == COMPUTE_DOMAIN.name]:
        if FOREIGN in (toy.objects[id]["metadata"].get("finalizers") or ()):
            _toggle_foreign_finalizer(toy, id)
    for id in [id for id in toy.objects if id.kind == kinds.RESOURCE_CLAIM_TEMPLATE.name and not toy.leads_into(id.name)]:
        del toy.objects[id]
    settle(toy)


def settle(toy: Rack) -> None:
    """Make passes until neither the engine nor the cluster changes anything; deferred operations may remain.

    They share a memo, as the passes of a process do.
    """
    memo = Memo()
    for _ in range(80):
        plans, before = toy.plans(memo), dict(toy.objects)
        carry_out(toy, plans)
        toy.live()
        toy.now += timedelta(seconds=1)
        if toy.objects == before and not any(plan.operations for plan in plans):
            return
    raise AssertionError(f"it does not settle: {unsettled(plans)}")


def unsettled(plans: Sequence[Plan]) -> list[str]:
    """All that the plans have left."""
    operations = [f"{operation.key}: {operation.why}" for plan in plans for operation in plan.operations]
    return [*operations, *(f"{wait.id}: {wait.why}" for plan in plans for wait in (*plan.pending, *plan.deferred))]
