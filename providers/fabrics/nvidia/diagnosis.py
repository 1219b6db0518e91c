"""Diagnosis: why a ComputeDomain, or a pod that claims it, is in its state, where Kubernetes does not say.

The rules about pods are in the order of a pod's life; for each pod the first rule that applies is reported, and pods with the same finding
are reported together.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.observed import Live, timestamp
from engine.paths import get
from engine.report.printable import MAX_NAMES, some
from providers.fabrics.nvidia import domain_facts
from providers.fabrics.nvidia.domain_facts import joined_nodes
from providers.fabrics.nvidia.domain_findings import DOMAIN_RULES
from providers.fabrics.nvidia.driver import check_controller, check_plugin
from providers.fabrics.nvidia.evidence import (
    CLAIM_FAILED,
    PREPARE_FAILED,
    Evidence,
    container_problem,
    is_ready,
    node_of,
    phase_of,
    required_in_clique,
    user_of,
)
from providers.fabrics.nvidia.names import DOMAIN_LABEL, MAX_NODES, NVLINK_CLIQUE_LABEL
from providers.fabrics.nvidia.pod_messages import PrepareFailure, SchedulingFailure
from resources.base import kinds, labels
from resources.domains.cut_off import remedy
from resources.ports.checks import Diagnosis

MAX_FINDINGS: Final = 20
"""The largest number of different findings about pods; further ones are left out."""

PODS: Final = "PODS"
"""Stands for the names of the pods in the advice of a finding, which may be about several."""


class PodFinding(NamedTuple):
    """A finding about a pod, without the pod's name, so that equal findings can be grouped."""

    observation: str
    cause: str
    advice: str = ""
    bad: bool = True
    remedied: bool = False
    """Whether deleting the pods helps: then that is the advice."""


PodRule = Callable[[Evidence, Live], PodFinding | None]


def diagnoses(evidence: Evidence) -> Iterator[Diagnosis]:
    """Every finding about the domain and its pods: first pods that are cut off, then what else is wrong."""
    cut_off = {pod.id: pod for pod in evidence.pods if phase_of(pod) == "Running" and evidence.is_cut_off(pod)}
    yield from _about_pods(evidence, cut_off.values(), (_cut_off,))
    others = [pod for pod in evidence.pods if pod.id not in cut_off]
    findings = [*(diagnosis for rule in DOMAIN_RULES for diagnosis in rule(evidence)), *_about_pods(evidence, others, POD_RULES)]
    yield from sorted(findings, key=lambda diagnosis: not diagnosis.bad)


def _about_pods(evidence: Evidence, pods: Iterable[Live], rules: Sequence[PodRule]) -> Iterator[Diagnosis]:
    groups: dict[PodFinding, list[Live]] = {}
    for pod in pods:
        finding = next((finding for rule in rules if (finding := rule(evidence, pod)) is not None), None)
        if finding is not None:
            groups.setdefault(finding, []).append(pod)
    for finding, group in list(groups.items())[:MAX_FINDINGS]:
        subject = f"pod {group[0].id.name}" if len(group) == 1 else f"{len(group)} pods ({some(pod.id.name for pod in group)})"
        ids = tuple(pod.id for pod in group)
        advice = (
            remedy(group, evidence.local_pods)
            if finding.remedied
            else finding.advice.replace(PODS, " ".join(id.name for id in ids[:MAX_NAMES]))
        )
        yield Diagnosis(ids[0], f"{subject}: {finding.observation}", finding.cause, advice, finding.bad, ids)


# Rules about pods. Each returns a finding, or None if it does not apply.


def _cut_off(evidence: Evidence, pod: Live) -> PodFinding | None:
    """The pod is in a domain that is being deleted or is gone: the driver ended NVLink as soon as that domain was marked as deleted."""
    if not evidence.is_cut_off(pod):
        return None
    name, live = f"ComputeDomain {evidence.id.name}", evidence.domain
    if evidence.is_host_managed:
        state = "does not exist any more" if live is None else "was created again" if evidence.has_lost_domain(pod) else "is being deleted"
        cause = f"{name}, which it claims, {state}; the hosts manage IMEX, so the pod keeps its channel until it ends: nothing is cut"
        return PodFinding(f"{phase_of(pod)}, its domain is deleted", cause, bad=False)
    if live is None:
        cause = f"{name}, which it claims, does not exist any more: the {evidence.driver_words} has ended NVLink"
    elif evidence.has_lost_domain(pod):
        created = timestamp(live.created_at)
        cause = f"its claim refers to an earlier {name}, which was deleted; the one that exists was created at {created}"
    else:
        since = timestamp(live.deleting_since) if live.deleting_since else ""
        cause = f"{name} is being deleted since {since}: the {evidence.driver_words} has ended NVLink"
    problem = container_problem(pod)
    suffix = "; this is the likely cause of its failures" if problem else ""
    return PodFinding(f"{problem or phase_of(pod)}, NVLink is cut", f"{cause}{suffix}", remedied=True)


def _with_second_channel(evidence: Evidence, pod: Live) -> PodFinding | None:
    claims = evidence.channel_claims(pod)
    total = sum(claims.values())
    if node_of(pod) or total < 2:
        return None
    cause = f"it claims {total} channels ({some(claims)}), and a node has one: no node can ever run it"
    advice = "leave one of these claims in the pod spec of its clique; a clique that joins a domain has one already"
    return PodFinding("Pending, claims more than one channel", cause, advice)


def _without_claim(evidence: Evidence, pod: Live) -> PodFinding | None:
    if node_of(pod) or not evidence.lacks_claim(pod):
        return None
    observation, template = f"Pending, event {CLAIM_FAILED}", f"ResourceClaimTemplate {evidence.template_name}"
    if evidence.template is None:
        cause, advice = _why_no_template(evidence)
        return PodFinding(observation, f"{template} does not exist: {cause}", advice)
    cause = f"{template} exists by now; the claim is tried again with a growing delay of up to 16 minutes"
    annotate = f"kubectl -n {pod.id.namespace} annotate pod {pod.id.name} touched=now"
    return PodFinding(observation, cause, f"change the pod, so that it is tried again at once: {annotate}")


def _why_no_template(evidence: Evidence) -> tuple[str, str]:
    """The cause of the missing ResourceClaimTemplate, and the advice."""
    domain = f"ComputeDomain {evidence.id.name}"
    if evidence.domain is None:
        return f"{domain} does not exist", "run engine sync: it creates the domain if a workload requests it"
    if evidence.is_terminating:
        return f"{domain} is being deleted", "wait until the domain is gone: it is created again if a workload requests it"
    return f"the {evidence.controller_words} has not created it for {domain}", check_controller(evidence.driver_namespace)


def _gated(evidence: Evidence, pod: Live) -> PodFinding | None:
    gates = get(pod.body, ("spec", "schedulingGates"), ())
    if node_of(pod) or not gates:
        return None
    return PodFinding("Pending with scheduling gates", "its gang is not complete yet; the domain is not the reason", bad=False)


def _without_room_in_clique(evidence: Evidence, pod: Live) -> PodFinding | None:
    """N31: the pod must be in the NVLink clique of the other pods of its domain, and that has no free node."""
    if node_of(pod) or not required_in_clique(pod) or SchedulingFailure.AFFINITY not in evidence.scheduling_failures(pod):
        return None
    cliques = {node: clique for node, clique in evidence.nvlink_cliques.items() if node in evidence.eligible_nodes}
    if not cliques:
        cause = f"it must be in one NVLink clique with the other pods of its domain, and no node with a channel has {NVLINK_CLIQUE_LABEL}"
        return PodFinding("Pending, no node matches its affinity", cause, "GPU feature discovery sets this label on nodes with NVLink")
    total = Counter(cliques.values())
    free = Counter(clique for node, clique in cliques.items() if node not in evidence.allocations)
    counts = some(f"{clique} has {free[clique]} of {total[clique]} nodes free" for clique in sorted(total))
    advice = (
        f"fewer pods in the domain or fewer other workloads; with {labels.DOMAIN_PLACEMENT}: preferred, new pods may also run elsewhere"
    )
    cause = f"all pods of its domain must be in one NVLink clique, and there is no room for it: {counts}"
    return PodFinding("Pending, no node matches its affinity", cause, advice)


def _without_channel(evidence: Evidence, pod: Live) -> PodFinding | None:
    if node_of(pod) or SchedulingFailure.CLAIMS not in evidence.scheduling_failures(pod):
        return None
    observation = "Pending, cannot allocate all claims"
    if not evidence.eligible_nodes and not evidence.allocations:
        cause = f"no node offers a channel: the {evidence.driver_words} has published no ResourceSlice"
        return PodFinding(observation, cause, check_plugin(evidence.driver_namespace))
    if not evidence.allocations:
        cause = "every channel is free: other claims of the pod, or its node selection, exclude the nodes that have one"
        return PodFinding(
            observation,
            f"{cause}: {some(sorted(evidence.eligible_nodes))}",
            f"check them: kubectl -n {pod.id.namespace} describe pod {PODS}",
        )
    cause = f"no node that the pod can use has a free channel: {some(_channel_users(evidence))}"
    if free := sorted(evidence.eligible_nodes - evidence.allocations.keys()):
        cause += f"; other claims of the pod, or its node selection, exclude the nodes with a free one: {some(free)}"
    same = all(domain_facts.domain_uid(claim) == evidence.uid for claim in evidence.allocations.values())
    rule = "a node takes one pod in a ComputeDomain, also of the same domain" if same else "a node is in one ComputeDomain at a time"
    return PodFinding(observation, cause, f"{rule}: the pod needs another node")


def _channel_users(evidence: Evidence) -> Iterator[str]:
    """For each node whose channel is in use, the pod and the domain that use it, in words."""
    for node, claim in sorted(evidence.allocations.items()):
        uid = domain_facts.domain_uid(claim)
        domain = "this domain" if uid == evidence.uid else evidence.domain_named(uid)
        yield f"{node} is used by {user_of(claim)} of {domain}"


def _bound_to_previous_domain(evidence: Evidence, pod: Live) -> PodFinding | None:
    if phase_of(pod) != "Pending" or PrepareFailure.OTHER_DOMAIN not in evidence.prepare_failures(pod):
        return None
    return PodFinding(
        f"ContainerCreating, event {PREPARE_FAILED}",
        "its claim refers to a domain that was deleted or is in another namespace: a claim is bound to the uid, not to the name",
        remedied=True,
    )


def _not_prepared(evidence: Evidence, pod: Live) -> PodFinding | None:
    """The most frequent failures of the driver: the event does not name the cause, but the node's label and the daemon on it show it."""
    node = node_of(pod)
    failures = evidence.prepare_failures(pod)
    if not node or phase_of(pod) != "Pending" or not failures:
        return None
    if evidence.is_host_managed:
        cause = f"the hosts manage IMEX, and that of node {node} is not ready: the claim is tried again until it is"
        advice = f"on {node}: systemctl status nvidia-imex, which must run and have the command socket of imex.hostSocketPath"
        return PodFinding(f"ContainerCreating on {node}, event {PREPARE_FAILED}", cause, advice)
    if PrepareFailure.NO_RESULT not in failures:
        return None
    observation, label = f"ContainerCreating on {node}, NodePrepareResources returned no result", evidence.node_labels.get(node, "")
    if evidence.is_terminating:
        cause = f"ComputeDomain {evidence.id.name} is being deleted: the {evidence.driver_words} has removed what the pod needs"
        return PodFinding(observation, cause, "delete the pod after the domain is gone: the domain and the pod are created again")
    if label and label != evidence.uid:
        exists = any(live.uid == label for live in evidence.domains)
        advice = f"wait until its pods have left {node}" if exists else f"kubectl label node {node} {DOMAIN_LABEL}-"
        return PodFinding(observation, f"node {node} is still in {evidence.domain_named(label)}", advice)
    daemon = evidence.daemons.get(node)
    if daemon is None:
        cause, advice = _daemon_set_state(evidence)
        return PodFinding(observation, f"no daemon of the domain runs on node {node}: {cause}", advice)
    name = f"{daemon.id.namespace}/{daemon.id.name}"
    if is_ready(daemon):
        return PodFinding(observation, f"its daemon {name} has become ready; the next attempt succeeds", bad=False)
    full = [clique for clique, count in _nodes_by_clique(evidence).items() if count >= MAX_NODES]
    cause = f"the domain has {MAX_NODES} nodes of NVLink clique {some(full)}, which is the limit" if full else "IMEX has not started"
    advice = f"kubectl -n {daemon.id.namespace} logs {daemon.id.name}; the host's own nvidia-imex.service must not run"
    return PodFinding(observation, f"its daemon {name} is not ready: {cause}", advice)


def _daemon_set_state(evidence: Evidence) -> tuple[str, str]:
    """The state of the domain's DaemonSet, and the advice."""
    live = next((live for live in evidence.driver_objects if live.id.kind == kinds.DAEMON_SET.name), None)
    if live is None:
        return f"the {evidence.controller_words} has not created its DaemonSet", check_controller(evidence.driver_namespace)
    name, advice = f"DaemonSet {live.id.namespace}/{live.id.name}", f"kubectl -n {live.id.namespace} describe daemonset {live.id.name}"
    if live.deleting_since is not None:
        return f"{name} is being deleted", advice
    desired, created, ready = (
        get(live.body, ("status", field), 0) or 0 for field in ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
    )
    return f"{name} has {created} of {desired} pods, {ready} ready", advice


POD_RULES: Final[tuple[PodRule, ...]] = (
    _with_second_channel,
    _without_claim,
    _gated,
    _without_room_in_clique,
    _without_channel,
    _bound_to_previous_domain,
    _not_prepared,
    _cut_off,
)


def _nodes_by_clique(evidence: Evidence) -> Mapping[str, int]:
    return Counter(node.island for node in joined_nodes(evidence.domain) if node.island) if evidence.domain is not None else {}
