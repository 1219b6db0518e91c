"""Diagnosis: why a ComputeDomain, or a pod that is to be in one, is as it is, where Kubernetes does not say.

Rules about pods are in the order in which a pod comes to them; the first that applies speaks, once for all pods of which it says the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

from engine.observed import Live
from engine.paths import get
from providers.fabrics import nvidia_channels
from providers.fabrics.nvidia_scene import (
    CLAIM_FAILED,
    PREPARE_FAILED,
    Scene,
    is_ready,
    joined,
    node_of,
    phase_of,
    user_of,
)
from providers.fabrics.nvidia_words import DOMAIN_LABEL, FINALIZER, MOST_NODES, RELEASED, TARGET_LABEL
from resources.admission.annotations import mapping
from resources.base import kinds
from resources.ports.inspection import Diagnosis

UNNOTICED: Final = timedelta(seconds=30)
"""A domain that its driver has not put its finalizer on for so long has not been noticed."""
STUCK: Final = timedelta(seconds=60)
"""A teardown that has taken so long does not get on by itself."""
SHOWN: Final = 5
GROUPS: Final = 20
"""Different things that are said of pods; there are hardly more."""


class Cause(NamedTuple):
    """What is said of a pod."""

    observation: str
    cause: str
    advice: str = ""
    bad: bool = True


DomainRule = Callable[[Scene], Iterator[Diagnosis]]
PodRule = Callable[[Scene, Live], Cause | None]


def explained(scene: Scene) -> Iterator[Diagnosis]:
    """Everything that can be said, what is wrong first."""
    found = [*(one for rule in DOMAIN_RULES for one in rule(scene)), *_of_pods(scene)]
    yield from sorted(found, key=lambda one: not one.bad)


def _of_pods(scene: Scene) -> Iterator[Diagnosis]:
    groups: dict[Cause, list[Live]] = {}
    for pod in scene.pods:
        cause = next((said for rule in POD_RULES if (said := rule(scene, pod)) is not None), None)
        if cause is not None:
            groups.setdefault(cause, []).append(pod)
    for cause, pods in list(groups.items())[:GROUPS]:
        who = f"pod {pods[0].id.name}" if len(pods) == 1 else f"{len(pods)} pods ({_some(pod.id.name for pod in pods)})"
        yield Diagnosis(pods[0].id, f"{who}: {cause.observation}", cause.cause, cause.advice, cause.bad)


# Of pods.


def _without_claim(scene: Scene, pod: Live) -> Cause | None:
    if node_of(pod) or not any(True for _ in scene.told(pod, CLAIM_FAILED)):
        return None
    what = f"ResourceClaimTemplate {scene.template_name}"
    if scene.template is None:
        return Cause(f"Pending, {CLAIM_FAILED}", f"{what} is not there: {_why_no_template(scene)}", "engine preflight")
    touch = f"kubectl -n {pod.id.namespace} annotate pod {pod.id.name} touched=now: any change makes it be tried at once"
    return Cause(f"Pending, {CLAIM_FAILED}", f"{what} is there by now; the claim is tried again later and later, up to 16 minutes", touch)


def _why_no_template(scene: Scene) -> str:
    told = f"ComputeDomain {scene.id.name}"
    if scene.domain is None:
        return f"{told} does not exist"
    if scene.is_going:
        return f"{told} is being deleted"
    return f"the controller of the DRA driver has not made it for {told}"


def _gated(scene: Scene, pod: Live) -> Cause | None:
    gates = get(pod.body, ("spec", "schedulingGates"), ())
    if node_of(pod) or not gates:
        return None
    return Cause("Pending, with scheduling gates", "its gang is not complete yet: this is no matter of the domain", bad=False)


def _without_channel(scene: Scene, pod: Live) -> Cause | None:
    if node_of(pod) or not any("cannot allocate all claims" in message for message in scene.unscheduled(pod)):
        return None
    seen = "Pending, cannot allocate all claims"
    if not scene.places and not scene.holders:
        told = "no node offers a channel: there is no ResourceSlice of the DRA driver"
        return Cause(seen, told, "see whether the kubelet plugin of the driver runs on the nodes with GPUs")
    told = f"no node that it could go to has its channel free: {_some(_held(scene))}"
    own = all(nvidia_channels.domain_of(claim) == scene.uid for claim in scene.holders.values())
    rule = "a node takes one pod in a ComputeDomain, of the same domain as well" if own else "a node is in one ComputeDomain at a time"
    return Cause(seen, told, f"{rule}: it needs another node")


def _held(scene: Scene) -> Iterator[str]:
    for node, claim in sorted(scene.holders.items()):
        uid = nvidia_channels.domain_of(claim)
        whose = "this domain" if uid == scene.uid else scene.named(uid)
        yield f"{node} by pod {user_of(claim)} of {whose}"


def _outdated(scene: Scene, pod: Live) -> Cause | None:
    told = [message for message in scene.told(pod, PREPARE_FAILED) if "namespace is different" in message or "not found" in message]
    if not told or phase_of(pod) != "Pending":
        return None
    cause = "its claim leads into a domain that is gone, or is in another namespace: a claim is bound to the uid, not to the name"
    return Cause(f"ContainerCreating, {PREPARE_FAILED}", cause, f"the pod must be made anew: kubectl -n {pod.id.namespace} delete pod NAME")


def _unprepared(scene: Scene, pod: Live) -> Cause | None:
    """The commonest failures of the driver come as an event that names no cause: the node's label and its daemon tell it."""
    node = node_of(pod)
    told = [message for message in scene.told(pod, PREPARE_FAILED) if "skipped" in message or "left out" in message]
    if not node or not told or phase_of(pod) != "Pending":
        return None
    seen, label = f"ContainerCreating on {node}, NodePrepareResources gave no answer", scene.labels_of_nodes.get(node, "")
    if scene.is_going:
        told_of = f"ComputeDomain {scene.id.name} is being deleted: its driver has taken down what the pod waits for"
        return Cause(seen, told_of, "delete the pod once the domain is gone: it is made anew, and so is the domain")
    if label and label != scene.uid:
        advice = (
            f"wait until its pods have left {node}"
            if any(live.uid == label for live in scene.domains)
            else f"kubectl label node {node} {DOMAIN_LABEL}-"
        )
        return Cause(seen, f"node {node} is still in {scene.named(label)}", advice)
    daemon = scene.daemons.get(node)
    if daemon is None:
        return Cause(seen, f"no daemon of the domain runs on node {node}: {_daemon_set(scene)}", "")
    where = f"{daemon.id.namespace}/{daemon.id.name}"
    if is_ready(daemon):
        return Cause(seen, f"its daemon {where} is ready since a moment: the next attempt succeeds", bad=False)
    full = [island for island, count in _islands(scene).items() if count >= MOST_NODES]
    cause = f"the domain has {MOST_NODES} nodes of NVLink clique {_some(full)}, and no more fit" if full else "IMEX does not start"
    advice = f"kubectl -n {daemon.id.namespace} logs {daemon.id.name}; the host's own nvidia-imex.service must not run"
    return Cause(seen, f"its daemon {where} is not ready: {cause}", advice)


def _daemon_set(scene: Scene) -> str:
    found = next((live for live in scene.made if live.id.kind == kinds.DAEMON_SET.name), None)
    if found is None:
        return "its DaemonSet is not there"
    where = f"DaemonSet {found.id.namespace}/{found.id.name}"
    if found.deleting_since is not None:
        return f"{where} is being deleted"
    counts = [get(found.body, ("status", field), 0) or 0 for field in ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")]
    return f"{where} wants {counts[0]}, has {counts[1]}, {counts[2]} ready"


POD_RULES: Final[tuple[PodRule, ...]] = (_without_claim, _gated, _without_channel, _outdated, _unprepared)


# Of the domain.


def _absent(scene: Scene) -> Iterator[Diagnosis]:
    if scene.domain is None and scene.pods:
        told = f"claimed by {_some(f'pod {pod.id.name}' for pod in scene.pods)}"
        yield Diagnosis(scene.id, told, "it does not exist", "engine sync makes it, if a workload asks for it")


def _unnoticed(scene: Scene) -> Iterator[Diagnosis]:
    live = scene.domain
    if live is not None and not scene.is_going and RELEASED not in scene.finalizers and scene.now - live.created_at > UNNOTICED:
        cause = "the controller of the DRA driver does not run, or is not of this version"
        yield Diagnosis(scene.id, f"its driver's finalizer {RELEASED} is missing", cause, "engine preflight")


def _collision(scene: Scene) -> Iterator[Diagnosis]:
    live = scene.template
    if scene.domain is None or live is None or scene.is_going:
        return
    told = live.labels.get(DOMAIN_LABEL, "")
    if told != scene.uid:
        whose = f"of {scene.named(told)}" if told else "not the driver's"
        cause = "the driver makes none of its own beside it, and says nothing; pods would be in the wrong domain, and are not made"
        yield Diagnosis(live.id, f"ResourceClaimTemplate {live.id.name} is {whose}", cause, "remove it, or name the domain otherwise")


def _owed(scene: Scene) -> Iterator[Diagnosis]:
    if not scene.is_going or scene.finalizers != [FINALIZER]:
        return
    users = [*(f"pod {pod.id.name}" for pod in scene.pods), *(f"claim {claim.id.name}" for claim in scene.led)]
    if users:
        yield Diagnosis(scene.id, "Terminating, and held by us alone", f"we let go of it when these are gone: {_some(users)}")
    else:
        advice = "engine sync, or see whether engine run has the lease"
        yield Diagnosis(scene.id, "Terminating, and held by us alone", "nothing uses it any more: it is ours to let go of", advice)


def _stuck(scene: Scene) -> Iterator[Diagnosis]:
    live = scene.domain
    if live is None or live.deleting_since is None or RELEASED not in scene.finalizers or scene.now - live.deleting_since <= STUCK:
        return
    parts = [f"{part.id} ({', '.join(_finalizers(part)) or 'no finalizer'})" for part in scene.made]
    foreign = any(set(_finalizers(part)) - {RELEASED} for part in scene.made)
    counts = Counter((part.id.kind, str(part.labels.get(TARGET_LABEL))) for part in scene.made)
    twice = [kind for (kind, _), count in counts.items() if count > 1]
    if foreign:
        cause = f"others hold what it has made: {_some(parts)}"
    elif twice:
        cause = f"there is more than one {_some(twice)} of this domain, which its driver does not understand: {_some(parts)}"
    elif parts:
        cause = f"the controller of the DRA driver does not run, or does not look there: {_some(parts)}"
    else:
        cause = "the controller of the DRA driver does not run: nothing that it has made is left"
    yield Diagnosis(scene.id, "Terminating, and its driver has not let go of it", cause, "engine preflight")


def _held_by_others(scene: Scene) -> Iterator[Diagnosis]:
    others = [one for one in scene.finalizers if one not in (FINALIZER, RELEASED)]
    if scene.is_going and others:
        yield Diagnosis(scene.id, f"Terminating, and held by {_some(others)}", "neither we nor its driver put that there")


def _slow(scene: Scene) -> Iterator[Diagnosis]:
    live = scene.domain
    running = [pod for pod in scene.pods if phase_of(pod) == "Running"]
    if live is None or not running:
        return
    told = joined(live)
    seen = "its pod runs" if len(running) == 1 else f"its {len(running)} pods run"
    bare = [one.node for one in told if not one.island]
    if bare:
        yield Diagnosis(scene.id, f"{seen}, on nodes without NVLink fabric: {_some(bare)}", "they reach the others over slower paths")
    islands = {one.island for one in told if one.island}
    if len(islands) > 1:
        advice = "an affinity to nvidia.com/gpu.clique, or a topology constraint, keeps them together"
        cause = f"NVLink does not reach from one to another: {_some(sorted(islands))}"
        yield Diagnosis(scene.id, f"{seen}, in {len(islands)} NVLink cliques", cause, advice)
    if not told and "allocationMode" not in mapping(get(live.body, ("spec", "channel"), {})):
        cause = "driver 25.3 takes numNodes 0 for done: no daemon starts, and there is no NVLink between nodes"
        yield Diagnosis(scene.id, f"{seen}, and no node has joined", cause, "upgrade the NVIDIA DRA driver")


def _meaningless(scene: Scene) -> Iterator[Diagnosis]:
    live = scene.domain
    if live is not None and get(live.body, ("status", "status")) == "Ready" and not joined(live):
        cause = "its driver says so of every domain that asks for no number of nodes: it means nothing"
        yield Diagnosis(scene.id, "its status says Ready, and no node has joined", cause, bad=False)


DOMAIN_RULES: Final[tuple[DomainRule, ...]] = (
    _absent,
    _unnoticed,
    _collision,
    _owed,
    _stuck,
    _held_by_others,
    _slow,
    _meaningless,
)


def _islands(scene: Scene) -> Mapping[str, int]:
    return Counter(one.island for one in joined(scene.domain) if one.island) if scene.domain is not None else {}


def _finalizers(live: Live) -> list[str]:
    return [str(one) for one in mapping(live.body.get("metadata")).get("finalizers") or ()]


def _some(names: Iterable[Any]) -> str:
    listed = [str(name) for name in names]
    rest = len(listed) - SHOWN
    return ", ".join(listed[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
