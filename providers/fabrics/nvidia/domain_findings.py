"""Domain findings: what is wrong with a ComputeDomain itself, where Kubernetes does not say."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from engine.observed import Live
from engine.paths import get
from engine.report.printable import some
from providers.fabrics.nvidia.domain_facts import joined_nodes
from providers.fabrics.nvidia.driver import check_controller, upgrade
from providers.fabrics.nvidia.evidence import Evidence, finalizers_of, node_of, phase_of, pods_of, required_in_clique
from providers.fabrics.nvidia.names import DOMAIN_LABEL, DRIVER_FINALIZER, FINALIZER, MAX_NODES, TARGET_LABEL
from resources.base import labels
from resources.base.fields import mapping
from resources.ports.checks import Diagnosis

FINALIZER_WITHIN: Final = timedelta(seconds=30)
"""How long the driver may take to put its finalizer on a new domain."""
RELEASE_WITHIN: Final = timedelta(seconds=60)
"""How long the driver may take to remove what it created for a deleted domain."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
OBSERVE_AFFINITY: Final = frozenset({DEFAULT_SCHEDULER, "kai-scheduler", "volcano"})
"""The schedulers that are known to observe the affinity of pods: kube-scheduler, and those that use its plugin for that."""

DomainRule = Callable[[Evidence], Iterator[Diagnosis]]
"""Yields its findings about the domain."""
MANAGED_BY_HOSTS: Final = (
    "the driver leaves IMEX to the hosts (imex.mode hostManaged): Ready means admitted only; which nodes have joined and whether they "
    "reach one another is not visible here; all domains of one IMEX domain of the hosts share channel 0, so nothing isolates them"
)
HOST_ADVICE: Final = "on the nodes, check: systemctl is-active nvidia-imex, and that its nodes_config.cfg names all of them"
TOO_MANY: Final = f"use at most {MAX_NODES} pods in a domain: it can have no more nodes of one NVLink clique"


def _missing(evidence: Evidence) -> Iterator[Diagnosis]:
    if evidence.domain is None and evidence.pods:
        observation = f"claimed by {some(f'pod {pod.id.name}' for pod in evidence.pods)}"
        yield Diagnosis(evidence.id, observation, "it does not exist", "run engine sync: it creates the domain if a workload requests it")


def _without_driver_finalizer(evidence: Evidence) -> Iterator[Diagnosis]:
    live = evidence.domain
    if (
        live is None
        or evidence.is_terminating
        or DRIVER_FINALIZER in evidence.finalizers
        or evidence.now - live.created_at <= FINALIZER_WITHIN
    ):
        return
    cause = f"the {evidence.controller_words} does not run, or is of another version"
    yield Diagnosis(
        evidence.id, f"the driver's finalizer {DRIVER_FINALIZER} is missing", cause, check_controller(evidence.driver_namespace)
    )


def _name_conflict(evidence: Evidence) -> Iterator[Diagnosis]:
    live = evidence.template
    if evidence.domain is None or live is None or evidence.is_terminating:
        return
    uid = live.labels.get(DOMAIN_LABEL, "")
    if uid != evidence.uid:
        problem = f"belongs to {evidence.domain_named(uid)}" if uid else "was not created by the DRA driver"
        cause = "the driver cannot create its own of that name and reports no error; no pods are created, they would join the wrong domain"
        observation = f"ResourceClaimTemplate {live.id.name} {problem}"
        yield Diagnosis(live.id, observation, cause, "delete that ResourceClaimTemplate, or give the domain another name")


def _our_finalizer_left(evidence: Evidence) -> Iterator[Diagnosis]:
    if not evidence.is_terminating or evidence.finalizers != [FINALIZER]:
        return
    observation = "being deleted, only the engine's finalizer is left"
    pods = {pod.id for pod in evidence.pods}
    # A claim of a pod that is named already is no second user.
    claims = [claim for claim in evidence.domain_claims if pods.isdisjoint(pods_of(claim))]
    users = [*(f"pod {pod.id.name}" for pod in evidence.pods), *(f"claim {claim.id.name}" for claim in claims)]
    if users:
        yield Diagnosis(evidence.id, observation, f"the engine releases it when these are gone: {some(users)}")
    else:
        advice = "run engine sync, or check that engine run holds its Lease"
        yield Diagnosis(evidence.id, observation, "nothing uses the domain any more: the engine has to release it", advice)


def _driver_finalizer_left(evidence: Evidence) -> Iterator[Diagnosis]:
    live = evidence.domain
    if live is None or live.deleting_since is None or DRIVER_FINALIZER not in evidence.finalizers:
        return
    if evidence.now - live.deleting_since <= RELEASE_WITHIN:
        return
    objects = evidence.driver_objects
    names = some(f"{part.id} ({', '.join(finalizers_of(part)) or 'no finalizer'})" for part in objects)
    counts = Counter((part.id.kind, str(part.labels.get(TARGET_LABEL))) for part in objects)
    repeated = [kind for (kind, _), count in counts.items() if count > 1]
    if any(set(finalizers_of(part)) - {DRIVER_FINALIZER} for part in objects):
        cause = f"objects that the driver created have finalizers of others: {names}"
    elif repeated:
        cause = f"the domain has more than one {some(repeated)}, which the driver does not handle: {names}"
    elif objects:
        cause = f"the {evidence.controller_words} does not run, or does not watch that namespace: {names}"
    else:
        cause = f"the {evidence.controller_words} does not run: nothing that it created is left"
    observation = "being deleted, the driver has not released its finalizer"
    yield Diagnosis(evidence.id, observation, cause, check_controller(evidence.driver_namespace))


def _foreign_finalizers(evidence: Evidence) -> Iterator[Diagnosis]:
    foreign = [name for name in evidence.finalizers if name not in (FINALIZER, DRIVER_FINALIZER)]
    if evidence.is_terminating and foreign:
        observation = f"being deleted, other finalizers are left: {some(foreign)}"
        yield Diagnosis(
            evidence.id, observation, "neither the engine nor the DRA driver set them", "release them with the tool that set them"
        )


def _without_nvlink(evidence: Evidence) -> Iterator[Diagnosis]:
    live = evidence.domain
    running = [pod for pod in evidence.pods if phase_of(pod) == "Running"]
    if live is None or not running:
        return
    nodes = joined_nodes(live)
    subject = "its pod runs" if len(running) == 1 else f"its {len(running)} pods run"
    used = {node_of(pod) for pod in running if pod.deleting_since is None}
    islands = {node.node: node.island for node in nodes if node.node in used}
    without_fabric = sorted(node for node, island in islands.items() if not island)
    if without_fabric:
        observation = f"{subject} on nodes without NVLink fabric: {some(without_fabric)}"
        yield Diagnosis(evidence.id, observation, "these nodes reach the others over slower networks", _keep_together(running))
    cliques = Counter(island for island in islands.values() if island)
    if len(cliques) > 1:
        counts = some(f"{clique} ({count} node{'s' if count > 1 else ''})" for clique, count in sorted(cliques.items()))
        cause = f"NVLink does not connect these cliques: {counts}"
        advice = TOO_MANY if len(used) > MAX_NODES else _keep_together(running)
        yield Diagnosis(evidence.id, f"{subject} in {len(cliques)} NVLink cliques", cause, advice)
    if not nodes and "allocationMode" not in mapping(get(live.body, ("spec", "channel"), {})):
        cause = "driver 25.3 treats numNodes 0 as complete: no daemon starts, and there is no NVLink between nodes"
        yield Diagnosis(evidence.id, f"{subject}, and no node has joined", cause, upgrade(evidence.driver))


def _keep_together(pods: Sequence[Live]) -> str:
    """How to get these running pods into one NVLink clique. Pods are placed when they are created; running ones never move."""
    schedulers = {str(get(pod.body, ("spec", "schedulerName"), "") or DEFAULT_SCHEDULER) for pod in pods}
    if others := sorted(schedulers - OBSERVE_AFFINITY):
        return f"{some(others)} must place the pods in one clique, by its own means; then delete the pods, so that they are created again"
    sets = sorted({part_of for pod in pods if (part_of := pod.labels.get(labels.PART_OF))})
    names = f"PodCliqueSet {some(sets)}" if sets else "their PodCliqueSet"
    if all(required_in_clique(pod) for pod in pods):
        return f"delete the pods of {names} that are outside of the clique that shall remain: they are created again in it"
    return (
        f"annotate {names} with {labels.DOMAIN_PLACEMENT}: required, then delete its pods: running pods do not move, "
        "those that are created again are placed in one clique"
    )


def _predates_cliques(evidence: Evidence) -> Iterator[Diagnosis]:
    """The gate ComputeDomainCliques was switched on while the domain had nodes: its daemons write where the driver does not look."""
    if evidence.predates_cliques and not evidence.is_terminating:
        cause = (
            f"the {evidence.driver_words} was told to track nodes in ComputeDomainCliques, by an upgrade or by the feature gate of that "
            "name, while pods were in it: its status may stay NotReady, and pods on further nodes may not start for minutes"
        )
        delete = f"kubectl -n {evidence.id.namespace} delete computedomain {evidence.id.name}"
        advice = f"delete the domain and its pods at a time that suits, both are created again: {delete}"
        yield Diagnosis(evidence.id, "it has nodes and no ComputeDomainClique", cause, advice)


def _ready_without_nodes(evidence: Evidence) -> Iterator[Diagnosis]:
    live = evidence.domain
    if live is not None and get(live.body, ("status", "status")) == "Ready" and not joined_nodes(live):
        if evidence.is_host_managed:
            yield Diagnosis(evidence.id, "its status is Ready, and no node has joined", MANAGED_BY_HOSTS, HOST_ADVICE, bad=False)
            return
        cause = "the driver reports Ready for every domain with numNodes 0, whether pods have joined or not"
        yield Diagnosis(evidence.id, "its status is Ready, and no node has joined", cause, bad=False)


DOMAIN_RULES: Final[tuple[DomainRule, ...]] = (
    _missing,
    _without_driver_finalizer,
    _name_conflict,
    _our_finalizer_left,
    _driver_finalizer_left,
    _foreign_finalizers,
    _without_nvlink,
    _predates_cliques,
    _ready_without_nodes,
)
