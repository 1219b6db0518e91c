"""Requests: admission requests and manifests for tests."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from engine.ids import Kind, ResourceId
from engine.observed import Live, live
from providers.fabrics.nvidia.fabric import Nvidia
from providers.schedulers.kube import KubeScheduler
from resources.admission.admit import NO_REFERENCES, UNPROTECTED, admit
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Decision, Request
from resources.base.kinds import KINDS, PODCLIQUESET
from resources.base.set_size import SetSizes
from resources.ports.configuration import Configuration
from resources.ports.references import KnownReferences, References, known_references

Body = dict[str, Any]

SCHEDULERS: Final = {"default-scheduler": KubeScheduler()}
SETUP: Final = Configuration(SCHEDULERS, "default-scheduler", fabrics=(Nvidia(auto=True),))
TOPOLOGY: Final = Configuration(SCHEDULERS, "default-scheduler", topology=True, fabrics=(Nvidia(auto=True),))
GONE: Final = object()
"""In place of a value: the field is removed."""


def decided(
    act: Act, body: Any, old: Any = None, setup: Configuration = SETUP, references: References = NO_REFERENCES, kind: Kind = PODCLIQUESET
) -> Decision:
    """The decision on a request for an object."""
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    metadata = metadata if isinstance(metadata, Mapping) else {}
    names = [name if isinstance(name := metadata.get(key), str) else "" for key in ("namespace", "name")]
    return admit(Request(act, kind.id(*names), body, old), setup, references)


def created(body: Any, setup: Configuration = SETUP, references: References = NO_REFERENCES, kind: Kind = PODCLIQUESET) -> Decision:
    """The decision on the creation of an object."""
    return decided(Act.CREATE, body, None, setup, references, kind)


def updated(
    old: Any, new: Any, setup: Configuration = SETUP, references: References = NO_REFERENCES, kind: Kind = PODCLIQUESET
) -> Decision:
    """The decision on an update."""
    return decided(Act.UPDATE, new, old, setup, references, kind)


def requested_by(
    user: str, act: Act, body: Body, references: References, protection: Protection = UNPROTECTED, subresource: str = ""
) -> Decision:
    """The decision on a request of a user for an object of any kind."""
    id = live(body).id
    new, old = (None if act is Act.DELETE else body), (None if act is Act.CREATE else body)
    return admit(Request(act, id, new, old, user, subresource), SETUP, references, protection)


def issues_of(decision: Decision) -> list[str]:
    """The issues of a decision as text."""
    return [str(issue) for issue in decision.issues]


def put(body: Body, changes: Mapping[str, Any]) -> Body:
    """The body with other values at these paths, such as `spec.template.cliques.0.name`; `+` as the last part appends to a list."""
    changed = copy.deepcopy(body)
    for path, value in changes.items():
        *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
        holder: Any = changed
        for part in parents:
            holder = holder.setdefault(part, {}) if isinstance(holder, dict) else holder[part]
        if last == "+":
            holder.append(copy.deepcopy(value))
        elif value is GONE:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(value)
    return changed


def references_to(*bodies: Body, kinds: tuple[Kind, ...] = KINDS) -> KnownReferences:
    """References with these objects, which are the only ones of these kinds."""
    return known_references([live(body) for body in bodies], [kind.name for kind in kinds])


def binding(*domains: str, name: str = "racks") -> Body:
    """A binding with these levels, the broadest first."""
    levels = [{"domain": domain, "key": f"example.com/{domain}"} for domain in domains]
    return {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": name}, "spec": {"levels": levels}}


def pod_spec(**more: Any) -> Body:
    """A pod spec with one container."""
    return {"containers": [{"name": "main", "image": "example/worker:1"}], **more}


def clique(name: str, **more: Any) -> Body:
    """A clique with its defaults."""
    spec = {"roleName": name, "replicas": 2, "minAvailable": 1, "podSpec": pod_spec(), **more.pop("spec", {})}
    return {"name": name, "spec": spec, **more}


def small(**template: Any) -> Body:
    """A set of one clique, `a`."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "web", "namespace": "ml"},
        "spec": {"replicas": 1, "template": {"cliques": [clique("a")], **template}},
    }


CPU: Final = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def whole() -> Body:
    """A set with every feature: `front` is outside groups, `lead` and `work` are in the group `model`."""
    claims = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
    environment = [{"name": "MODEL", "value": "x"}, {"name": "_my.own-NAME1"}]
    leader, worker = (
        {"containers": [{"name": "main", "image": "example/worker:1", "env": environment}], "initContainers": [{"name": "first"}]}
        for _ in range(2)
    )
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {
            "name": "web",
            "namespace": "ml",
            "labels": {"app": "web", "example.com/team": "serving"},
            "annotations": {"Example.com/Note": "anything \u00e0 la carte", "grove.io/auto-mnnvl": "disabled"},
            "creationTimestamp": None,
        },
        "spec": {
            "replicas": 2,
            "updateStrategy": {"type": "OnDelete"},
            "template": {
                "cliqueStartupType": "CliqueStartupTypeExplicit",
                "priorityClassName": "high",
                "terminationDelay": "90s",
                "headlessServiceConfig": {"publishNotReadyAddresses": False},
                "topologyConstraint": {"topologyName": "racks", "pack": {"required": "zone", "preferred": "rack"}},
                "resourceClaimTemplates": [{"name": "own", "templateSpec": {"spec": claims}}],
                "resourceSharing": [
                    {"name": "own", "scope": "AllReplicas", "filter": {"childCliqueNames": ["front"], "childScalingGroupNames": ["model"]}},
                    {"name": "theirs", "namespace": "other", "scope": "PerReplica"},
                ],
                "cliques": [
                    clique(
                        "front",
                        labels={"tier": "front"},
                        annotations={"example.com/x": ""},
                        resourceSharing=[{"name": "own", "scope": "PerReplica"}],
                        topologyConstraint={"pack": {"required": "rack"}},
                        spec={"autoScalingConfig": {"minReplicas": 1, "maxReplicas": 5, "metrics": [CPU]}},
                    ),
                    clique("lead", spec={"podSpec": leader, "replicas": 1}),
                    clique("work", spec={"podSpec": worker, "startsAfter": ["lead", "front"]}),
                ],
                "podCliqueScalingGroups": [
                    {
                        "name": "model",
                        "cliqueNames": ["lead", "work"],
                        "annotations": {"example.com/y": "z"},
                        "replicas": 2,
                        "minAvailable": 1,
                        "scaleConfig": {"minReplicas": 1, "maxReplicas": 4, "metrics": [CPU]},
                        "resourceSharing": [{"name": "own", "scope": "AllReplicas", "filter": {"childCliqueNames": ["work"]}}],
                        "topologyConstraint": {"pack": {"required": "rack", "preferred": "host"}},
                    }
                ],
            },
        },
    }


RACKS: Final = references_to(binding("zone", "rack", "host"))
"""References with the binding of that set."""


class EmptyReferences:
    """References that know every kind and have no object."""

    def find(self, id: ResourceId) -> Live | None:
        """None."""
        return None

    def knows(self, kind: str) -> bool:
        """True."""
        return True

    def sizes(self, namespace: str) -> SetSizes | None:
        """No PodCliqueSets, of every namespace."""
        return SetSizes({})
