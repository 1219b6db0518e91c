"""Root: the PodCliqueSet object itself. The engine sets its defaults and finalizer once; after that it writes only its status."""

from typing import Any, Final

from engine.ids import Owner
from engine.observed import Live, Observed
from engine.paths import get
from engine.resource import Body, Policy, Resource
from resources.admission.admitted_set import AdmittedSet
from resources.base import kinds, labels
from resources.base.fields import cliques_of, mapping
from resources.schema.pod_spec_form import respelled
from resources.status.update import begins, summary_text

POD_SPEC: Final = ("spec", "podSpec")
KNOWN = Policy(partial=(("metadata", "labels"), ("metadata", "annotations")), finalizers=(labels.SET_FINALIZER,))
"""The policy of a stored set: its labels and annotations are not removed."""
PROPOSED = Policy(exact=(("spec",),), partial=KNOWN.partial, finalizers=(labels.SET_FINALIZER,))
"""The policy of a set that a manifest proposes: its spec replaces the stored one."""


def root_resource(observed: Observed, admitted: AdmittedSet, status: Body | None) -> Resource:
    """The desired PodCliqueSet: as a manifest proposes it, as it is stored, or with defaults and finalizer if it is new."""
    root = observed.root
    metadata = {"name": root.id.name, "namespace": root.id.namespace}
    frame = {"apiVersion": kinds.PODCLIQUESET.api_version, "kind": kinds.PODCLIQUESET.name, "metadata": metadata}
    if observed.proposal is not None:
        proposed = admitted.body["metadata"] if admitted.is_new else observed.proposal.get("metadata") or {}
        given = {key: proposed[key] for key in ("labels", "annotations") if proposed.get(key)}
        finalizers = {} if root.uid else {"finalizers": [labels.SET_FINALIZER]}
        spec = _respelled(admitted.body["spec"], mapping(root.body.get("spec")))
        body = {**frame, "metadata": {**metadata, **given, **finalizers}, "spec": spec}
        if observed.proposer is not None:
            return Resource(root.id, body, _part_of(observed.proposer), (_owner(observed.proposer),), policy=PROPOSED, status=status)
        return Resource(root.id, body, "proposed by a manifest", policy=PROPOSED, status=status)
    if labels.SET_FINALIZER in (root.body["metadata"].get("finalizers") or ()):
        return Resource(root.id, frame, "managed", policy=KNOWN, status=status, urgent=begins(status), status_why=summary_text(status))
    annotations = admitted.body["metadata"].get("annotations") or {}
    body = {**frame, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}, "spec": admitted.body["spec"]}
    return Resource(root.id, body, "new: receives its defaults and the finalizer", policy=KNOWN, status=status)


def _respelled(spec: Body, stored: Body) -> Body:
    """The proposed spec of a set with the pod specs in the spelling of the stored ones, wherever both mean the same."""
    known = {clique.get("name"): get(clique, POD_SPEC) for clique in cliques_of({"spec": stored})}
    template = spec["template"]
    cliques = [_respelled_clique(clique, known[clique["name"]]) if clique["name"] in known else clique for clique in template["cliques"]]
    return {**spec, "template": {**template, "cliques": cliques}}


def _respelled_clique(clique: Body, stored: Any) -> Body:
    return {**clique, "spec": {**clique["spec"], "podSpec": respelled(clique["spec"]["podSpec"], stored)}}


def _part_of(proposer: Live) -> str:
    return f"it runs the services of {proposer.id.kind} {proposer.id.name}"


def _owner(proposer: Live) -> Owner:
    return Owner(proposer.id, proposer.body["apiVersion"])
