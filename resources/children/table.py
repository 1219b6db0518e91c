"""The table of the kinds of objects that a PodCliqueSet owns. A new kind is a row here and a file with its renderer."""

from collections.abc import Iterator
from typing import Final

from engine.ids import Kind
from resources.admission.request import Act
from resources.base import kinds, labels
from resources.children import (
    autoscaler,
    identity,
    pod,
    podclique,
    podgang,
    resource_claim,
    scaling_group,
    scheduler_gang,
    service,
)
from resources.children.child_kind import ANY, CHANGES, ChildKind, ChildTable
from resources.domains import replica_domains
from resources.model.gang_scheduling import deleted_after, gang_kinds
from resources.ports.configuration import Configuration
from resources.status.errors import Codes, sync_codes


def _domain_kinds(configuration: Configuration) -> Iterator[Kind]:
    """The kinds of the domains of all enabled fabrics."""
    return (fabric.kind for fabric in configuration.fabrics)


CHILDREN: Final = ChildTable(
    (
        ChildKind(
            kinds.SECRET,
            of_set=identity.token_secret,
            deleted_before=(kinds.SERVICE_ACCOUNT,),  # The API server deletes the token Secret with its ServiceAccount.
            codes={kinds.PODCLIQUESET: Codes("ERR_CREATE_SECRET", "ERR_CREATE_SECRET", "ERR_DELETE_SECRET")},
            protected=CHANGES,
        ),
        ChildKind(kinds.SERVICE_ACCOUNT, of_set=identity.service_account, protected=CHANGES),
        ChildKind(
            kinds.SERVICE,
            of_replica=service.render,
            codes={kinds.PODCLIQUESET: sync_codes("PODCLIQUESET_SERVICE")},
            protected=CHANGES,
        ),
        ChildKind(kinds.ROLE, of_set=identity.role, protected=CHANGES),
        ChildKind(
            kinds.ROLE_BINDING,
            of_set=identity.role_binding,
            deleted_before=(kinds.ROLE, kinds.SERVICE_ACCOUNT),
            protected=CHANGES,
        ),
        ChildKind(
            kinds.AUTOSCALER,
            reads=(kinds.PODCLIQUE, kinds.SCALING_GROUP),
            of_replica=autoscaler.render,
            obsolete=autoscaler.obsolete,
            waits_for_pods=False,  # It must not scale what is being deleted.
            codes={kinds.PODCLIQUESET: sync_codes("HPA")},
            protected=CHANGES,
        ),
        ChildKind(
            kinds.PODCLIQUE,
            reads=(kinds.POD, kinds.SCALING_GROUP),
            of_replica=podclique.render,
            obsolete=podclique.obsolete,
            finalizer=labels.CLIQUE_FINALIZER,
            deleted_before=(kinds.RESOURCE_CLAIM,),
            in_event_group=True,
            codes={
                kinds.PODCLIQUESET: Codes("ERR_CREATE_OR_UPDATE_PODCLIQUE", "ERR_CREATE_OR_UPDATE_PODCLIQUE", "ERR_DELETE_PODCLIQUE"),
                kinds.SCALING_GROUP: Codes("ERR_CREATE_PODCLIQUE", "ERR_CREATE_OR_UPDATE_PODCLIQUES", "ERR_DELETE_PODCLIQUE"),
            },
            events=podclique.EVENTS,
            protected=ANY,
        ),
        ChildKind(
            kinds.SCALING_GROUP,
            reads=(kinds.POD, kinds.PODCLIQUE),
            of_replica=scaling_group.render,
            obsolete=scaling_group.obsolete,
            finalizer=labels.GROUP_FINALIZER,
            codes={
                kinds.PODCLIQUESET: Codes(
                    "ERR_CREATE_PODCLIQUESCALINGGROUP", "ERR_SYNC_PODCLIQUESCALINGGROUP", "ERR_DELETE_PODCLIQUESCALINGGROUP"
                )
            },
            events=scaling_group.EVENTS,
            protected=ANY,
        ),
        ChildKind(
            kinds.PODGANG,
            reads=(kinds.POD, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.TOPOLOGY_BINDING),
            of_replica=podgang.render,
            obsolete=podgang.obsolete,
            codes={kinds.PODCLIQUESET: Codes("ERR_CREATE_PODGANG", "ERR_CREATE_OR_PATCH_PODGANG", "ERR_DELETE_EXCESS_PODGANG")},
            events=podgang.EVENTS,
            protected=ANY,
        ),
        ChildKind(
            kinds.PODGANG_MAP,
            reads=(kinds.POD, kinds.PODCLIQUE, kinds.PODGANG),
            obsolete=podgang.obsolete_map,
            verbs=("delete",),
        ),
        ChildKind(
            gang_kinds,
            reads=(kinds.POD, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG, kinds.TOPOLOGY_BINDING),
            of_replica=scheduler_gang.render,
            obsolete=scheduler_gang.obsolete,
            ordered=deleted_after,
        ),
        ChildKind(
            kinds.RESOURCE_CLAIM,
            reads=(kinds.POD, kinds.PODCLIQUE, kinds.SCALING_GROUP),
            of_replica=resource_claim.render,
            of_set=resource_claim.shared_claims,
            obsolete=resource_claim.obsolete,
            while_deleting="its devices are being released",
            codes={
                kinds.PODCLIQUESET: sync_codes("PCS_RESOURCE_CLAIM"),
                kinds.SCALING_GROUP: Codes(*["ERR_SYNC_PCSG_RESOURCE_CLAIM"] * 3),
                kinds.PODCLIQUE: sync_codes("PCLQ_RESOURCE_CLAIM"),
            },
        ),
        ChildKind(
            kinds.POD,
            reads=(kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG),
            of_replica=pod.render,
            obsolete=pod.obsolete,
            waits_for_pods=False,
            codes={kinds.PODCLIQUE: Codes("ERR_CREATE_POD", "ERR_REMOVE_POD_SCHEDULING_GATE", "ERR_DELETE_POD")},
            events=pod.EVENTS,
            protected=frozenset({Act.UPDATE}),  # Every account may delete a pod: it is created again.
        ),
        # What a replica no longer requests is released by `domains`; the finalizer and the texts are those of the fabric.
        ChildKind(
            _domain_kinds,
            reads=(kinds.POD, kinds.PODCLIQUE, kinds.RESOURCE_CLAIM),
            of_replica=replica_domains.render,
            protected=frozenset({Act.DELETE}),  # It would cut off running pods from one another. Its driver changes it.
        ),
    )
)
"""Owners come before what they own: of two objects of one name, the first ones of the table are reported."""
