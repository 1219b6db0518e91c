"""PodCliques: pods of one role, alone or as members of a scaling group."""

from collections.abc import Iterator
from typing import Any

from engine.resource import Policy, Resource
from resources.base import kinds, labels
from resources.base.manifest import manifest
from resources.domains import replica_domains
from resources.model.view import CliqueView, View, template_spec
from resources.policies.startup import parents
from resources.status import podclique as status
from resources.status.update import begins

POLICY = Policy(
    seeded=(("spec", "replicas"),),
    exact=(("spec", "podSpec"),),
    seal=labels.TEMPLATE_HASH,
    owned=(("spec", "autoScalingConfig"), ("spec", "startsAfter")),
    finalizers=(labels.CLIQUE_FINALIZER,),
)

OUTDATED = Policy(finalizers=(labels.CLIQUE_FINALIZER,))


def render(view: View) -> Iterator[Resource]:
    """The cliques of a replica. Their `replicas` are a seed; afterwards they belong to whoever scales them."""
    for clique in view.cliques:
        if view.stays(clique):
            yield _podclique(view, clique)


def _podclique(view: View, clique: CliqueView) -> Resource:
    """A clique; of one that is to be replaced only labels and annotations follow an edit, the hash excepted."""
    spec = {} if clique.outdated else {"spec": _spec(view, clique)}
    told = status.of(view, clique)
    body = manifest(
        kinds.PODCLIQUE,
        view.namespace,
        clique.name,
        labels_of(view, clique),
        annotations=clique.clique.annotations,
        finalizers=POLICY.finalizers,
        **spec,
    )
    return Resource(
        clique.id,
        body,
        f"clique {clique.clique.name} of replica {view.index}" + (f", in {clique.group.name}" if clique.group else ""),
        (clique.owner,),
        policy=OUTDATED if clique.outdated else POLICY,
        status=told,
        urgent=begins(told),
    )


def labels_of(view: View, clique: CliqueView) -> dict[str, str]:
    """The labels of a clique: the template's, then ours, which win. Its pods inherit them."""
    return {**clique.clique.labels, **our_labels(view, clique)}


def our_labels(view: View, clique: CliqueView) -> dict[str, str]:
    """The labels by which we know a clique, and its pods, whatever its template says."""
    component = "pcsg-podclique" if clique.group else "pcs-podclique"
    ours = labels.child(view.root, component, clique.name)
    if clique.group:
        ours[labels.SCALING_GROUP] = clique.group.name
        ours[labels.GROUP_REPLICA_INDEX] = str(clique.group_replica)
    ours[labels.PODGANG] = clique.gang
    if clique.base_gang:
        ours[labels.BASE_PODGANG] = clique.base_gang
    ours[labels.REPLICA_INDEX] = str(view.index)
    ours[labels.TEMPLATE_HASH] = _hash(clique)
    return ours


def _spec(view: View, clique: CliqueView) -> dict[str, Any]:
    template = clique.clique
    spec: dict[str, Any] = {
        "roleName": template.role,
        "replicas": template.replicas,
        "minAvailable": template.min_available,
        "podSpec": pod_spec_of(view, clique),
    }
    if after := parents(view, clique):
        spec["startsAfter"] = [parent.name for parent in after]
    if template.autoscaling and clique.group is None:
        spec["autoScalingConfig"] = template.autoscaling
    return spec


def pod_spec_of(view: View, clique: CliqueView) -> dict[str, Any]:
    """The pod spec of a clique, with its claims on fabric domains; an outdated one keeps its own."""
    if clique.outdated and clique.live is not None:
        return dict(clique.live.body["spec"]["podSpec"])
    return replica_domains.dressed(view, clique, template_spec(clique.clique, clique.group.group if clique.group else None))


def _hash(clique: CliqueView) -> str:
    """The hash to bear: an outdated clique keeps its own, and an adopted one as long as a pod refers to it."""
    if clique.outdated or (clique.adopted and any(pod.hash == clique.told_hash for pod in clique.pods)):
        return clique.told_hash
    return clique.clique.hash
