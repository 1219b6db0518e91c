"""PodCliqueScalingGroups: cliques that are scaled together; one object for each group of the template in each replica."""

from collections.abc import Iterator

from engine.observed import Live
from engine.resource import Policy, Want
from engine.verb import Verb
from resources.base import kinds, labels
from resources.base.fields import manifest
from resources.children.child_kind import DeletionGroup, EventTexts, unexpected
from resources.children.podclique import deleted_by_user
from resources.model.view import GroupView, View
from resources.status import scaling_group as status
from resources.status.update import begins, summary_text

POLICY = Policy(
    seeded=(("spec", "replicas"),),
    exact=(("spec", "cliqueNames"),),
    finalizers=(labels.GROUP_FINALIZER,),
    lifelong=labels.IDENTITY,
)


_WRITTEN = EventTexts(
    "PodCliqueScalingGroupCreateSuccessful",
    "Created PodCliqueScalingGroup {key}",
    "PodCliqueScalingGroupCreateOrUpdateFailed",
    "Error creating or updating PodCliqueScalingGroup {key}: {error}",
)
EVENTS = {
    (kinds.PODCLIQUESET, Verb.CREATE): _WRITTEN,
    (kinds.PODCLIQUESET, Verb.PATCH): _WRITTEN,
    (kinds.PODCLIQUESET, Verb.DELETE): EventTexts(
        "PodCliqueScalingGroupDeleteSuccessful",
        "Deleted PodCliqueScalingGroup: {name}",
        "PodCliqueScalingGroupDeleteFailed",
        "Error deleting PodCliqueScalingGroup {key}: {error}",
    ),
}


def render(view: View) -> Iterator[Want]:
    """The scaling groups of a replica. `spec.replicas` is sent on creation only: afterwards users and autoscalers own it."""
    for group in view.groups:
        if not group.terminating:
            yield _scaling_group(view, group)


def _scaling_group(view: View, group: GroupView) -> Want:
    config, group_status = group.group, status.of(view, group)
    body = manifest(
        kinds.SCALING_GROUP,
        view.namespace,
        group.name,
        {**labels.child(view.root, "pcs-podcliquescalinggroup", group.name), labels.REPLICA_INDEX: str(view.index)},
        annotations=config.annotations,
        finalizers=POLICY.finalizers,
        spec={
            "replicas": config.replicas,
            "minAvailable": config.min_available,
            "cliqueNames": [clique.name for clique in config.cliques],
        },
    )
    return Want(
        group.id,
        f"scaling group {config.name} of replica {view.index}",
        (view.owner,),
        body=body,
        policy=POLICY,
        status=group_status,
        urgent=begins(group_status),
        provisional=status.is_coming_up(group, group_status),
        status_why=summary_text(group_status),
    )


def obsolete(view: View, live: Live) -> DeletionGroup:
    """A scaling group is deleted by a user, or because the template has no such group."""
    return deleted_by_user(live) if live.deleting_since else unexpected(f"the template has no scaling group {live.id.name}")
