"""Checks: what an installation needs for ComputeDomains, each requirement judged by an `Inspection`."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from engine.observed import Live
from engine.paths import get
from engine.report.printable import MAX_NAMES, some
from engine.resource import Body
from providers.fabrics.nvidia import domain_facts
from providers.fabrics.nvidia.domain_facts import joined_nodes, template_name
from providers.fabrics.nvidia.domain_findings import MANAGED_BY_HOSTS
from providers.fabrics.nvidia.driver import (
    ImexMode,
    imex_mode,
    in_namespace,
    install_crds,
    publish_channels,
    tracks_cliques,
    upgrade,
)
from providers.fabrics.nvidia.evidence import finalizers_of
from providers.fabrics.nvidia.inspection import (
    CLASS,
    CLIQUES,
    CLIQUES_CRD,
    CRD,
    DEPLOYMENTS,
    DOMAIN_NODES,
    DOMAINS,
    NVLINK_NODES,
    SLICES,
    TEMPLATES,
    Inspection,
    capacity,
)
from providers.fabrics.nvidia.names import (
    CHANNEL,
    CHANNEL_CLASS,
    COMPUTE_DOMAIN,
    DOMAIN_LABEL,
    DRIVER,
    FINALIZER,
    NVLINK_CLIQUE_LABEL,
)
from resources.base import kinds, labels
from resources.base.fields import mappings
from resources.ports.checks import Check, CheckResult, QueryResult, Severity, first_failed, judged, unknown, unread
from resources.schema.formats import subdomain_faults

KAI: Final = "kai-scheduler"
"""The component of the image paths of the KAI scheduler."""
GATE: Final = "DynamicResourceAllocation=true"
"""The feature gate without which the KAI scheduler does not allocate devices."""

IMEX: Final = "IMEX daemons"
BEFORE_CLIQUES: Final = "domains older than ComputeDomainCliques"
BEFORE_A_CHANGE: Final = (
    "Change imex.mode or the feature gate ComputeDomainCliques only while no domain is in use: the driver does not convert domains that are"
)


Rule = Callable[[Inspection], Iterator[Check]]


def checks(inspection: Inspection) -> Iterator[Check]:
    """Every check; a check comes after those that it depends on."""
    for rule in RULES:
        yield from rule(inspection)


def _crd(inspection: Inspection) -> Iterator[Check]:
    subject, apis, crd = f"CRD {CRD.name}", inspection.installation.apis, inspection.crd
    served = next((kind for kind in (COMPUTE_DOMAIN, *kinds.newer(COMPUTE_DOMAIN)) if apis.serves(kind)), None)
    if served is not None and served != COMPUTE_DOMAIN:
        finding = f"{served.version} is served, and {COMPUTE_DOMAIN.version} is not: domains are read and written in {served.version}"
        yield Check(inspection.required, subject, CheckResult.GOOD, finding)
    elif why := apis.why_unknown(COMPUTE_DOMAIN):
        yield unknown(inspection.required, subject, why)
    elif crd is not None and served is None:
        versions = f"serves {some(crd.served)}, not {some((COMPUTE_DOMAIN.version, *COMPUTE_DOMAIN.newer))}"
        yield judged(
            inspection.required,
            subject,
            versions if crd.established else "exists and is not established yet",
            "",
            upgrade(inspection.driver),
        )
    else:
        fault = "" if served else "is not installed"
        yield judged(
            inspection.required,
            subject,
            fault,
            f"{COMPUTE_DOMAIN.version} is served",
            install_crds(inspection.driver, auto=inspection.auto),
        )


def _template_field(inspection: Inspection) -> Iterator[Check]:
    subject, crd = "ComputeDomain: spec.channel.resourceClaimTemplate.name", inspection.crd
    if crd is None:
        yield _crd_unread(inspection, inspection.required, subject)
    else:
        fault = "" if crd.has_template_name else "is not in the schema of the CRD"
        yield judged(inspection.required, subject, fault, "is in the schema", upgrade(inspection.driver))


def _num_nodes(inspection: Inspection) -> Iterator[Check]:
    subject, crd = "ComputeDomain: numNodes", inspection.crd
    if crd is None:
        yield _crd_unread(inspection, Severity.INFO, subject)
    elif not crd.has_allocation_mode:
        fault = f"{crd.summary}: with numNodes 0 pods run without NVLink between nodes, and no error is reported"
        yield Check(inspection.recommended, subject, CheckResult.BAD, fault, upgrade(inspection.driver))
    else:
        yield Check(Severity.INFO, subject, CheckResult.GOOD, crd.summary)


def _crd_unread(inspection: Inspection, level: Severity, subject: str) -> Check:
    return unread(level, subject, inspection.result(CRD), "the CRD does not exist")


def _resource_api(inspection: Inspection) -> Iterator[Check]:
    kind, apis = kinds.RESOURCE_CLAIM_TEMPLATE, inspection.installation.apis
    subject, served = f"API {kind.group}", apis.versions(kind.group, kind.plural)
    best = next((version for version in (kind.version, *kinds.OLDER_RESOURCE_VERSIONS) if version in served), "")
    if not served and (why := apis.why_unknown(kind)):
        yield unknown(inspection.required, subject, why)
        return
    finding = f"{best} is served" + ("" if best == kind.version else f"; shared claims (resourceSharing) need {kind.version}")
    remedy = (
        "use Kubernetes 1.34 or later; with 1.32 or 1.33 start kube-apiserver with --runtime-config=resource.k8s.io/v1beta1=true, and it, "
        "kube-scheduler, kube-controller-manager and the kubelets with --feature-gates=DynamicResourceAllocation=true"
    )
    yield judged(inspection.required, subject, "" if best else "is not served", finding, remedy)


def _device_class(inspection: Inspection) -> Iterator[Check]:
    result = inspection.result(CLASS)
    subject = f"DeviceClass {CHANNEL_CLASS}"
    yield _exists(inspection.recommended, subject, result, "exists" if result.objects else "", inspection.install)


def _slices(inspection: Inspection) -> Iterator[Check]:
    result = inspection.result(SLICES)
    count = len(domain_facts.eligible_nodes(result.objects))
    finding = f"{count} node{'s have' if count != 1 else ' has'} {CHANNEL}" if count else ""
    plugin = next(iter(inspection.plugins), None)
    yield _exists(
        inspection.recommended,
        f"ResourceSlices of {DRIVER}",
        result,
        finding,
        publish_channels(plugin, inspection.driver, auto=inspection.auto),
    )


def _exists(level: Severity, subject: str, result: QueryResult, finding: str, remedy: str) -> Check:
    """A check that objects exist. It is good if `finding`, which describes them, is not empty."""
    if not result.known:
        return unread(level, subject, result)
    fault = "not found" if result.served else "the cluster does not serve that kind"
    return judged(level, subject, "" if finding else fault, finding, remedy)


def _controller(inspection: Inspection) -> Iterator[Check]:
    subject, result = "controller of the DRA driver", inspection.result(DEPLOYMENTS)
    if not result.known or not inspection.controllers:
        yield _exists(inspection.recommended, subject, result, "", inspection.install)
    for live in inspection.controllers:
        ready, desired = get(live.body, ("status", "readyReplicas"), 0) or 0, get(live.body, ("spec", "replicas"), 1)
        finding = f"Deployment {_full_name(live)}: {ready} of {desired} ready"
        name = f"{live.id.namespace} logs deployment/{live.id.name}"
        remedy = f"kubectl -n {live.id.namespace} describe deployment {live.id.name}, and kubectl -n {name}"
        yield judged(inspection.recommended, subject, "" if ready else finding, finding, remedy)


def _release(inspection: Inspection) -> Iterator[Check]:
    cliques = inspection.result(CLIQUES_CRD)
    if not cliques.known:
        yield unread(Severity.INFO, "ComputeDomainCliques", cliques)
    else:
        finding = (
            "served: the driver is 25.12 or later" if cliques.objects else "not served: the driver is older than 25.12, or not installed"
        )
        yield Check(Severity.INFO, "ComputeDomainCliques", CheckResult.GOOD, finding)
    images = sorted({str(container.get("image")) for live in inspection.controllers for container in _containers(live.body)})
    if images:
        yield Check(Severity.INFO, "image of the DRA driver", CheckResult.GOOD, in_namespace(some(images), inspection.driver.namespace))


def _imex_mode(inspection: Inspection) -> Iterator[Check]:
    mode = imex_mode(inspection.controllers)
    if mode is ImexMode.HOST:
        finding = f"{mode}: {MANAGED_BY_HOSTS}. Deleting a domain does not end NVLink. {BEFORE_A_CHANGE}"
        yield Check(Severity.INFO, IMEX, CheckResult.GOOD, finding)
    elif mode is not None:
        finding = f"{mode}: the driver runs the IMEX daemons of each domain. {BEFORE_A_CHANGE}"
        yield Check(Severity.INFO, IMEX, CheckResult.GOOD, finding)


def _domains_before_cliques(inspection: Inspection) -> Iterator[Check]:
    """Domains whose nodes joined before the driver was told to track them in ComputeDomainCliques."""
    cliques, domains = inspection.result(CLIQUES), inspection.result(DOMAINS)
    if not inspection.controllers or not tracks_cliques(inspection.controllers) or not cliques.served:
        return
    if (failed := first_failed(cliques, domains)) is not None:
        yield unread(inspection.recommended, BEFORE_CLIQUES, failed)
        return
    tracked = {live.labels.get(DOMAIN_LABEL) for live in cliques.objects}
    joined = [live for live in domains.objects if any(node.island for node in joined_nodes(live))]
    names = [_full_name(live) for live in joined if live.uid not in tracked]
    remedy = "their status may stay NotReady, and pods on further nodes may not start for minutes: let their pods end, then delete them"
    yield judged(inspection.recommended, BEFORE_CLIQUES, some(names), "there are none", remedy)


def _domain_names(inspection: Inspection) -> Iterator[Check]:
    if not inspection.requested:
        return
    names = [domain.id.name for domain in inspection.requested]
    faults = [f"{name}: {fault}" for name in names for fault in subdomain_faults(name)]
    long = [
        f"{name} is longer than {labels.LONGEST_VALUE} characters: a label cannot hold it"
        for name in names
        if len(name) > labels.LONGEST_VALUE
    ]
    finding = f"{len({domain.id for domain in inspection.requested})} domains, all names are valid"
    remedy = "shorten the name of the workload or of the domain"
    yield judged(inspection.recommended, "names of requested domains", some([*faults, *long]), finding, remedy)


def _template_names(inspection: Inspection) -> Iterator[Check]:
    subject, templates, domains = "names of the domains' claim templates", inspection.result(TEMPLATES), inspection.result(DOMAINS)
    if not inspection.requested:
        return
    if (failed := first_failed(templates, domains)) is not None:
        yield unread(inspection.recommended, subject, failed)
        return
    live_domains, live_templates = {live.id: live for live in domains.objects}, {live.id: live for live in templates.objects}
    conflicts = []
    for id in dict.fromkeys(requested.id for requested in inspection.requested):
        domain = live_domains.get(id)
        template = live_templates.get(kinds.RESOURCE_CLAIM_TEMPLATE.id(id.namespace, template_name(domain, id.name)))
        if template is not None and (domain is None or template.labels.get(DOMAIN_LABEL) != domain.uid):
            conflicts.append(template)
    names = some(map(_full_name, conflicts))
    fault = f"used by ResourceClaimTemplates that do not belong to these domains: {names}" if conflicts else ""
    first = next(iter(conflicts), None)
    delete = f": kubectl -n {first.id.namespace} delete resourceclaimtemplate {first.id.name}" if first else ""
    remedy = f"delete them{delete}. The driver cannot create its own of the same name, and reports no error"
    yield judged(inspection.recommended, subject, fault, "free, or used by the domain's own template", remedy)


def _node_labels(inspection: Inspection) -> Iterator[Check]:
    subject, nodes, domains = "node labels of deleted domains", inspection.result(DOMAIN_NODES), inspection.result(DOMAINS)
    if (failed := first_failed(nodes, domains)) is not None:
        yield unread(inspection.recommended, subject, failed)
        return
    uids = {live.uid for live in domains.objects}
    outdated = [live.id.name for live in nodes.objects if live.labels.get(DOMAIN_LABEL) not in uids]
    fault = f"nodes that are labelled for a domain that does not exist: {some(outdated)}" if outdated else ""
    remedy = f"kubectl label node {' '.join(outdated[:MAX_NAMES])} {DOMAIN_LABEL}- once no pod on them uses a domain"
    yield judged(inspection.recommended, subject, fault, "no node is labelled for a domain that does not exist", remedy)


def _unreleased_domains(inspection: Inspection) -> Iterator[Check]:
    subject, domains = "domains with the engine's finalizer", inspection.result(DOMAINS)
    if not domains.known:
        yield unread(inspection.recommended, subject, domains)
        return
    unreleased = [live for live in domains.objects if live.deleting_since and finalizers_of(live) == [FINALIZER]]
    names = some(map(_full_name, unreleased))
    fault = f"being deleted, and only the engine's finalizer is left: {names}" if unreleased else ""
    why = "".join(f"; engine -n {live.id.namespace} why computedomain/{live.id.name} says what it waits for" for live in unreleased[:1])
    remedy = f"run engine sync -A{why}"
    yield judged(inspection.recommended, subject, fault, "none is being deleted with only the engine's finalizer left", remedy)


def _orphaned_domains(inspection: Inspection) -> Iterator[Check]:
    subject, domains, sets = "domains without a workload", inspection.result(DOMAINS), inspection.installation.sets
    if not domains.known:
        return
    if sets is None:
        yield unknown(inspection.recommended, subject, "the workloads could not be listed")
        return
    uids = {live.uid for live in sets}
    managed = [live for live in domains.objects if live.labels.get(labels.MANAGED_BY) == labels.MANAGER]
    orphans = [live for live in managed if not any(owner.uid in uids for owner in live.owners)]
    fault = f"created for workloads that no longer exist: {some(map(_full_name, orphans))}" if orphans else ""
    delete = "".join(f"kubectl -n {live.id.namespace} delete computedomain {live.id.name}, then " for live in orphans[:1])
    yield judged(inspection.recommended, subject, fault, "none", f"{delete}engine sync -A")


def _kai(inspection: Inspection) -> Iterator[Check]:
    """The KAI scheduler, where it is installed: it allocates devices only with a feature gate."""
    for live in inspection.result(DEPLOYMENTS).objects:
        for container in _containers(live.body):
            repository, _, tagged = str(container.get("image")).partition("@")[0].rpartition("/")
            program = tagged.partition(":")[0]
            if KAI not in repository.split("/") or program not in ("scheduler", "binder"):
                continue
            enabled = any(GATE in str(word) for word in (*_words(container, "args"), *_words(container, "command")))
            name = f"Deployment {_full_name(live)}"
            remedy = f"add --feature-gates={GATE} to its args: kubectl -n {live.id.namespace} edit deployment {live.id.name}"
            fault = "" if enabled else f"{name} runs without --feature-gates={GATE}: it never schedules pods in domains"
            yield judged(inspection.recommended, f"KAI {program}", fault, f"{name} allocates devices", remedy)


def _node_capacity(inspection: Inspection) -> Iterator[Check]:
    subject = "nodes for requested domains"
    if not inspection.requested:
        return
    if capacity(inspection.installation) is None:
        yield unknown(inspection.recommended, subject, "ResourceSlices or ResourceClaims could not be listed")
    else:
        remedy = "add nodes, or reduce replicas: each pod in a domain needs a node of its own"
        yield judged(inspection.recommended, subject, some(inspection.capacity_notes), "there is a node for every requested pod", remedy)


def _room_in_cliques(inspection: Inspection) -> Iterator[Check]:
    """N30: whether each requested domain can be in one NVLink clique. Without the nodes, only the largest number of a domain is known."""
    subject, nodes = "nodes of one NVLink clique for each domain", inspection.result(NVLINK_NODES)
    if not inspection.requested:
        return
    if not inspection.island_notes and (not nodes.known or capacity(inspection.installation) is None):
        yield unread(inspection.recommended, subject, nodes, "ResourceSlices or ResourceClaims could not be listed")
        return
    remedy = "fewer pods in a domain, or fewer other workloads; NVLink does not connect nodes of different cliques"
    finding = "every requested domain can be in one NVLink clique" if nodes.objects else f"no node has the label {NVLINK_CLIQUE_LABEL}"
    yield judged(inspection.recommended, subject, some(inspection.island_notes), finding, remedy)


def _nvlink_cliques(inspection: Inspection) -> Iterator[Check]:
    subject, nodes = "domains in one NVLink clique", inspection.result(NVLINK_NODES)
    if not inspection.requested:
        return
    if not nodes.known:
        yield unread(inspection.recommended, subject, nodes)
        return
    cliques = len({live.labels.get(NVLINK_CLIQUE_LABEL) for live in nodes.objects})
    if not cliques:
        fault = f"no node has the label {NVLINK_CLIQUE_LABEL}: pods in domains run without NVLink between nodes"
        remedy = "GPU Feature Discovery sets it where there is MNNVL; does it run? kubectl get pods -A -o wide | grep gpu-feature-discovery"
        yield Check(inspection.recommended, subject, CheckResult.BAD, fault, remedy)
    else:
        domains = len({domain.id for domain in inspection.requested})
        summary = f"{domains} domains for {cliques} NVLink clique{'s' if cliques > 1 else ''}"
        fault = f"{summary}: some domains will share a clique" if domains > cliques else ""
        remedy = "where memory cannot be mapped between them (cuMemSetAccess fails), set NCCL_MNNVL_ENABLE=0 or NCCL_CUMEM_ENABLE=0"
        yield judged(inspection.recommended, subject, fault, "there is a clique for each domain", remedy)


RULES: Final[tuple[Rule, ...]] = (
    _crd,
    _template_field,
    _num_nodes,
    _resource_api,
    _device_class,
    _slices,
    _controller,
    _release,
    _imex_mode,
    _domains_before_cliques,
    _domain_names,
    _template_names,
    _node_labels,
    _unreleased_domains,
    _orphaned_domains,
    _kai,
    _node_capacity,
    _room_in_cliques,
    _nvlink_cliques,
)


def _containers(deployment: Body) -> list[Body]:
    return mappings(get(deployment, ("spec", "template", "spec", "containers"), ()))


def _words(container: Body, field: str) -> tuple[Any, ...]:
    value = container.get(field)
    return tuple(value) if isinstance(value, list | tuple) else ()


def _full_name(live: Live) -> str:
    return f"{live.id.namespace}/{live.id.name}"
