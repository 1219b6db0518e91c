"""The edits that are compared on a real API server: of updates, deletions, labels, drift, graphs, domains, and of what goes wrong."""

from datetime import timedelta
from typing import Any

from engine.ids import Kind
from engine.resource import Body
from engine.runtime.settling import RELEASED_WITHIN
from engine.runtime.sync_report import Ending
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, NAMED
from resources.base import kinds, labels
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.controlplane.enforcement import DEPLOYMENT as PROBING_DEPLOYMENT
from tests.controlplane.enforcement import SERVICE as PROBING_SERVICE
from tests.controlplane.enforcement import Policy
from tests.stories.edits import (
    Edit,
    EditSeries,
    all_deleted,
    applied,
    collected,
    cordoned,
    created,
    deleted,
    enforced,
    evicted,
    gone,
    held,
    lifted,
    limited,
    orphaned,
    patched,
    released,
    scaled,
    together,
    unlabelled,
)
from tests.stories.graphs import graph, service
from tests.stories.pods import running
from tests.stories.prune_series import PRUNED, RENAMED_TEMPLATES, SHARED_TEMPLATES
from tests.stories.take_over_series import TAKE_OVERS

SERVICE: Body = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}


def web(version: int = 1, replicas: int = 1, *, autoscaled: bool = True, **more: Any) -> Body:
    """A clique that can spare a pod, and a scaling group with a start order."""
    autoscaling = {"autoScalingConfig": {"minReplicas": 2, "maxReplicas": 3}} if autoscaled else {}
    front = clique("front", 2, minAvailable=1, pod_spec=running(version, **more), **autoscaling)
    work = clique("work", pod_spec=running(version, **more))
    return podcliqueset(
        "web", front, work, groups=(group("m", "work", replicas=2),), replicas=replicas, cliqueStartupType="CliqueStartupTypeInOrder"
    )


def small(version: int = 1, replicas: int = 1, pods: int = 2, **template: Any) -> Body:
    """A set with one clique."""
    return podcliqueset("one", clique("a", pods, minAvailable=1, pod_spec=running(version)), replicas=replicas, **template)


def of_pod(pod_spec: Body) -> Body:
    """The same set with other pods."""
    return podcliqueset("one", clique("a", 2, minAvailable=1, pod_spec=dict(pod_spec)))


def sharing(name: str, version: int = 1) -> Body:
    """A set whose pods join the domain `shared`."""
    pod_spec = running(version, resources={"limits": {"nvidia.com/gpu": "1"}})
    return podcliqueset(name, clique("a", pod_spec=pod_spec, annotations={NAMED: "shared"}))


def in_nowhere() -> Body:
    """A set in a namespace that does not exist."""
    body = small()
    return {**body, "metadata": {"name": "far", "namespace": "nowhere"}}


NO_SERVICES = Policy("no-services", "refused", kinds.SERVICE, "false", "no-services here", PROBING_SERVICE)
NO_PODS = Policy("no-pods", "refused", kinds.POD, "object.spec.containers.all(each, !each.image.endsWith(':2'))", "no-pods here")
BAD_PORT: Body = {"containers": [{"name": "main", "image": "app:1", "ports": [{"containerPort": 1, "name": "Not a port"}]}]}
GIANT: Body = running(3, resources={"requests": {"cpu": "900"}})


def claiming(replicas: int = 1) -> Body:
    """A set whose pods share a device in each replica."""
    templates, shared = [claim_template("device")], [share("device", "PerReplica")]
    return podcliqueset("dev", clique("a", 2), replicas=replicas, resourceClaimTemplates=templates, resourceSharing=shared)


LABEL = labels.MANAGED_BY
SET = kinds.PODCLIQUESET
OWNED = (
    kinds.POD,
    kinds.AUTOSCALER,
    kinds.SERVICE,
    kinds.SECRET,
    kinds.SERVICE_ACCOUNT,
    kinds.ROLE,
    kinds.ROLE_BINDING,
    kinds.PODGANG,
    kinds.PODCLIQUE,
    kinds.SCALING_GROUP,
)
"""The kinds of objects that a set consists of."""

UPDATES = EditSeries(
    "updates",
    [web()],
    [
        Edit("a replica more", scaled(SET, "web", 2)),
        Edit("a replica less", scaled(SET, "web", 1)),
        Edit("another image", applied(web(2))),
        Edit("another environment", manifests=[web(2, env=[{"name": "A", "value": "1"}])]),
        Edit("another image and a replica more", manifests=[web(3, 2)]),
        Edit("one image back and a replica less", manifests=[web(2, 1)]),
        Edit("a clique scaled out", scaled(kinds.PODCLIQUE, "web-0-front", 3)),
        Edit("a clique scaled in", scaled(kinds.PODCLIQUE, "web-0-front", 2)),
        Edit("a scaling group scaled out", scaled(kinds.SCALING_GROUP, "web-0-m", 3)),
        Edit("a scaling group scaled in", scaled(kinds.SCALING_GROUP, "web-0-m", 1)),
        Edit("no autoscaler any more", manifests=[web(2, autoscaled=False)]),
        Edit("another image after that", manifests=[web(3, autoscaled=False)]),
        Edit("an annotation of the set", patched(SET, "web", {"metadata": {"annotations": {"example.com/note": "1"}}})),
        Edit("deleted with its dependents first", together(deleted(SET, "web", propagation="Foreground"), collected(*OWNED))),
    ],
)

DELETIONS = EditSeries(
    "deletions",
    [web()],
    [
        Edit("a pod", deleted(kinds.POD, "web-0-front")),
        Edit("a pod of a scaling group", deleted(kinds.POD, "web-0-m-0")),
        Edit("all pods of a clique", all_deleted(kinds.POD, "web-0-front")),
        Edit("a Service", deleted(kinds.SERVICE, "web-0")),
        # The controller of tokens deletes that of a deleted account.
        Edit("a ServiceAccount", together(deleted(kinds.SERVICE_ACCOUNT, "web"), gone(kinds.SECRET, "web"))),
        Edit("a Role", deleted(kinds.ROLE, "grove.io:pcs:web")),
        Edit("a RoleBinding", deleted(kinds.ROLE_BINDING, "grove.io:pcs:web")),
        Edit("a token", deleted(kinds.SECRET, "web")),
        Edit("an autoscaler", deleted(kinds.AUTOSCALER, "web-0-front")),
        Edit("a PodGang", deleted(kinds.PODGANG, "web-0")),
        Edit("a PodClique", deleted(kinds.PODCLIQUE, "web-0-front")),
        Edit("a scaling group", deleted(kinds.SCALING_GROUP, "web-0-m")),
        Edit("the set", deleted(SET, "web")),
    ],
)

WITHOUT_LABELS = EditSeries(
    "labels",
    [web()],
    [
        Edit(f"without its label: {kind.name}", unlabelled(kind, prefix, LABEL))
        for kind, prefix in (
            (kinds.POD, "web-0-front"),
            (kinds.SERVICE, "web-0"),
            (kinds.SERVICE_ACCOUNT, "web"),
            (kinds.ROLE, "grove.io:pcs:web"),
            (kinds.ROLE_BINDING, "grove.io:pcs:web"),
            (kinds.SECRET, "web"),
            (kinds.AUTOSCALER, "web-0-front"),
            (kinds.PODGANG, "web-0"),
            (kinds.PODCLIQUE, "web-0-front"),
            (kinds.SCALING_GROUP, "web-0-m"),
        )
    ]
    + [
        Edit(
            "a clique and its pod without labels",
            together(unlabelled(kinds.PODCLIQUE, "web-0-front", LABEL), unlabelled(kinds.POD, "web-0-front", LABEL)),
        ),
        Edit("a PodClique of another root", patched(kinds.PODCLIQUE, "web-0-front", {"metadata": {"labels": {labels.PART_OF: "other"}}})),
    ],
)

DRIFT = EditSeries(
    "drift",
    [web(), claiming()],
    [
        Edit("a Service", patched(kinds.SERVICE, "web-0", {"spec": {"publishNotReadyAddresses": False}})),
        Edit("a Role", patched(kinds.ROLE, "grove.io:pcs:web", {"rules": []})),
        Edit("an autoscaler", patched(kinds.AUTOSCALER, "web-0-front", {"spec": {"maxReplicas": 7}})),
        Edit("a PodGang", patched(kinds.PODGANG, "web-0", {"spec": {"podgroups": []}})),
        Edit("the finalizer of a clique", patched(kinds.PODCLIQUE, "web-0-front", {"metadata": {"finalizers": None}})),
        Edit("a label of others", patched(kinds.PODCLIQUE, "web-0-front", {"metadata": {"labels": {"example.com/team": "a"}}})),
        Edit("a replica with a claim more", manifests=[claiming(2)]),
        Edit("a replica with a claim less", manifests=[claiming(1)]),
        Edit("the finalizer of the set", patched(SET, "dev", {"metadata": {"finalizers": None}})),
        Edit("both sets are deleted", deleted(SET, "web", "dev")),
    ],
)

GRAPHS = EditSeries(
    "graphs",
    [
        graph("grove", Frontend=service(1, componentType="frontend", resources={})),
        graph("parts", {"nvidia.com/enable-grove": "false"}, worker=service(1)),
    ],
    [
        Edit("a service of a graph scaled out", manifests=[graph("grove", Frontend=service(2, componentType="frontend", resources={}))]),
        Edit("a service of components scaled out", manifests=[graph("parts", {"nvidia.com/enable-grove": "false"}, worker=service(2))]),
        Edit("a Deployment", deleted(kinds.DEPLOYMENT, "parts")),
        Edit("the set of a graph", deleted(SET, "grove")),
        Edit("a Service of a graph", deleted(kinds.SERVICE, "grove")),
        Edit("a Deployment without its label", unlabelled(kinds.DEPLOYMENT, "parts", LABEL)),
        Edit("both graphs are deleted", deleted(kinds.DYNAMO_GRAPH, "grove", "parts")),
    ],
)


def parts(**services: dict[str, Any]) -> Body:
    """A graph without Grove, with a service that runs and these."""
    return graph("parts", {"nvidia.com/enable-grove": "false"}, worker=service(1), **services)


NO_DEPLOYMENTS = Policy("no-deployments", "components", kinds.DEPLOYMENT, "false", "no-deployments here", PROBING_DEPLOYMENT)
NO_COMPONENT_PODS = Policy("no-component-pods", "components", kinds.POD, "false", "no-component-pods here")

COMPONENTS = EditSeries(
    "components",
    [parts()],
    [
        Edit(
            "a policy refuses the pods of a new Deployment",
            enforced(NO_COMPONENT_PODS),
            [parts(a=service(1))],
            ending=Ending.TIMED_OUT,
            undo=lifted(NO_COMPONENT_PODS),
        ),
        Edit(
            "a quota that the pods of another one exceed",
            together(limited("few", pods=3, used=2), applied(parts(a=service(1)))),
            [parts(a=service(1), b=service(2))],
            ending=Ending.TIMED_OUT,
            undo=deleted(kinds.RESOURCE_QUOTA, "few"),
        ),
        Edit(
            "a policy refuses Deployments",
            enforced(NO_DEPLOYMENTS),
            [parts(a=service(1), b=service(2), c=service(1))],
            ending=Ending.STUCK,
            unknown=True,
            undo=lifted(NO_DEPLOYMENTS),
        ),
    ],
)

TROUBLE = EditSeries(
    "trouble",
    [small()],
    [
        Edit(
            "the name of a Service is taken",
            together(created(kinds.SERVICE, {**SERVICE, "metadata": {"name": "one-1"}}), scaled(SET, "one", 2)),
            ending=Ending.STUCK,
            undo=deleted(kinds.SERVICE, "one-1"),
        ),
        Edit("the name is free again, and a replica less", scaled(SET, "one", 1)),
        Edit(
            "a quota that the new pods exceed",
            together(limited("few", pods=4, used=2), scaled(SET, "one", 3)),
            ending=Ending.STUCK,
            unknown=True,
            undo=together(deleted(kinds.RESOURCE_QUOTA, "few"), scaled(SET, "one", 1)),
        ),
        Edit(
            "a quota that asks for CPUs, which pods do not request",
            together(limited("cpus", pods=10, used=2, cpu=10), scaled(SET, "one", 2)),
            ending=Ending.STUCK,
            undo=together(deleted(kinds.RESOURCE_QUOTA, "cpus"), scaled(SET, "one", 1)),
        ),
        Edit("pods that the API server refuses", applied(of_pod(BAD_PORT)), ending=Ending.STUCK, undo=applied(small())),
        Edit("pods that no node can take", applied(of_pod(GIANT)), ending=Ending.TIMED_OUT, undo=applied(small())),
    ],
)


def kept(what: str, kind: Kind, name: str) -> EditSeries:
    """An object of a set is deleted, and kept by another program. Each has a series of its own, since a sync waits for minutes.

    They are single also because the PodGroup of a PodGang goes with its last pod, which no forecast of a later edit knows.
    """
    act = Edit(f"a deleted {what} is kept by another program", held(kind, name), ending=Ending.STUCK, undo=released(kind, name))
    return EditSeries(f"kept-{kind.name.lower()}", [small()], [act], ahead=RELEASED_WITHIN - timedelta(seconds=20))


KEPT = (kept("Service", kinds.SERVICE, "one-0"), kept("clique", kinds.PODCLIQUE, "one-0-a"), kept("PodGang", kinds.PODGANG, "one-0"))

REFUSED = EditSeries(
    "refused",
    [claiming(), small()],
    [
        Edit(
            "claims that pods use are deleted",
            all_deleted(kinds.RESOURCE_CLAIM, "dev"),
            ending=Ending.STUCK,
            undo=all_deleted(kinds.POD, "dev"),
        ),
        Edit(
            "a policy refuses Services",
            together(enforced(NO_SERVICES), scaled(SET, "one", 2)),
            ending=Ending.STUCK,
            unknown=True,
            undo=together(lifted(NO_SERVICES), scaled(SET, "one", 1)),
        ),
        Edit(
            "a policy refuses the pods of a new template",
            together(enforced(NO_PODS), applied(small(2))),
            ending=Ending.STUCK,
            undo=together(lifted(NO_PODS), applied(small())),
        ),
        Edit("a namespace that does not exist", manifests=[in_nowhere()], ending=Ending.STUCK),
    ],
)

DOMAINS = EditSeries(
    "domains",
    [sharing("one"), sharing("three"), sharing("two")],
    [
        Edit("a set more joins the domain", manifests=[sharing("four")]),
        Edit("a pod in the domain", deleted(kinds.POD, "two-0")),
        Edit("two leave the domain at once", deleted(SET, "four", "three")),
        Edit("the last two leave the domain at once", deleted(SET, "one", "two")),
    ],
)

PODS_IN_DOMAIN = together(all_deleted(kinds.POD, "one"), all_deleted(kinds.POD, "two"))
DEAD = deleted(COMPUTE_DOMAIN, "shared")

DEAD_DOMAINS = EditSeries(
    "dead-domains",
    [sharing("one"), sharing("two")],
    [
        Edit("a domain that pods use is deleted", DEAD, ending=Ending.STUCK, undo=PODS_IN_DOMAIN),
        Edit("the same, and another image", DEAD, [sharing("one", 2)], ending=Ending.STUCK, undo=PODS_IN_DOMAIN),
        Edit("the same, and a set", together(DEAD, deleted(SET, "two")), ending=Ending.STUCK, undo=all_deleted(kinds.POD, "one")),
        Edit("the same, and the last set", together(DEAD, deleted(SET, "one"))),
    ],
)

ACCOUNTS = EditSeries(
    "accounts",
    [web(), small()],
    [
        Edit("another image, as a reader sees it", applied(web(2)), seen_by_reader=True),
        Edit(
            "a replica more by an account that may not write",
            scaled(SET, "one", 2),
            ending=Ending.FAILED,
            done_by_reader=True,
            unknown=True,
        ),
        Edit("the same by one that may, as a reader sees it", scaled(SET, "one", 3), seen_by_reader=True),
        Edit("a Service without its label, as a reader sees it", unlabelled(kinds.SERVICE, "web-0", LABEL), seen_by_reader=True),
        Edit("a set is applied and another one is pruned", manifests=[web(3)], removes=[(SET, "one")]),
        Edit("a set is pruned, as a reader sees it", removes=[(SET, "web")], seen_by_reader=True),
    ],
)

OWN_NODE = "node-0009"
PINNED: Body = running(1) | {"nodeSelector": {"kubernetes.io/hostname": OWN_NODE}}

NODES = EditSeries(
    "nodes",
    [of_pod(PINNED), web()],
    [
        Edit("a pod is evicted", evicted("web-0-front")),
        Edit("a pod of a scaling group is evicted", evicted("web-0-m-0")),
        Edit(
            "the node of a set is cordoned, and a pod is lost",
            together(cordoned(OWN_NODE), deleted(kinds.POD, "one-0-a")),
            ending=Ending.TIMED_OUT,
            undo=cordoned(OWN_NODE, is_cordoned=False),
        ),
        Edit("a set is deleted and leaves everything", together(deleted(SET, "one", propagation="Orphan"), orphaned(SET, "one"))),
        Edit("the other set is changed beside what was left", manifests=[web(2)]),
    ],
)

ALL_SERIES = (
    UPDATES,
    DELETIONS,
    WITHOUT_LABELS,
    DRIFT,
    GRAPHS,
    COMPONENTS,
    TROUBLE,
    *KEPT,
    REFUSED,
    DOMAINS,
    DEAD_DOMAINS,
    ACCOUNTS,
    NODES,
    *TAKE_OVERS,
    PRUNED,
    SHARED_TEMPLATES,
    RENAMED_TEMPLATES,
)
