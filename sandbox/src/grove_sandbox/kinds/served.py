"""Served: the kinds that the sandbox serves: the built-in ones, and those of CRDs."""

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from msgspec import Struct, field

from grove_sandbox.product import Kind
from grove_sandbox.types import status
from grove_sandbox.types.schema import Validator
from grove_sandbox.types.shapes import Shape, builtin
from grove_sandbox.types.transitions import Transition

ANY_OBJECT = Shape("object", open=True)
"""The shape of an object with any fields."""


class ScalePaths(Struct, frozen=True):
    """The fields behind the scale subresource, as a CRD writes them (`.spec.replicas`)."""

    replicas: str = ".spec.replicas"
    observed: str = ".status.replicas"
    selector: str = ""


class Served(Struct, frozen=True, eq=False):
    """One served kind in one version."""

    kind: Kind
    singular: str
    list_name: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    shape: Shape = field(default_factory=lambda: ANY_OBJECT)
    scale: ScalePaths | None = None
    custom: bool = False
    schema: Mapping[str, Any] | None = None
    """`openAPIV3Schema` of a custom kind, as its CRD has it."""
    columns: tuple[Mapping[str, Any], ...] = ()
    """`additionalPrinterColumns` of a custom kind."""
    preferred: bool = True
    """Whether discovery prefers this version."""
    selectable: tuple[str, ...] = ()
    """The fields of a custom kind that field selectors may name."""
    validator: Validator | None = None
    """The compiled schema of a custom kind."""
    transitions: tuple[Transition, ...] = ()
    """The fields of a custom kind that may not change."""
    stored_as: tuple[str, str] = ("", "")
    """Group and plural of the collection, where it is shared with another kind (both kinds of Event)."""

    @property
    def resource(self) -> tuple[str, str]:
        """Group and plural of the collection, which all versions of a kind share."""
        return self.stored_as if self.stored_as[1] else (self.kind.group, self.kind.plural)


COLLECTION_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def verbs_of(served: Served) -> tuple[str, ...]:
    """The verbs of the kind, as discovery lists them."""
    if (served.kind.group, served.kind.plural) == ("", "namespaces"):
        return tuple(verb for verb in COLLECTION_VERBS if verb != "deletecollection")
    return COLLECTION_VERBS


def no_such_subresource(served: Served, name: str) -> status.StatusError:
    """404: the kind has no such subresource. For a custom kind the server reports the object instead."""
    return status.not_found(served.kind, name) if served.custom else status.no_such_resource()


# group/version, kind, plural, flags: n = namespaced, s = status, c = scale; then short names, categories, further subresources
_TABLE = """
v1 ConfigMap configmaps n cm
v1 Endpoints endpoints n ep
v1 Event events n ev
v1 LimitRange limitranges n limits
v1 Namespace namespaces s ns - finalize
v1 Node nodes s no
v1 PersistentVolumeClaim persistentvolumeclaims ns pvc
v1 PersistentVolume persistentvolumes s pv
v1 Pod pods ns po all binding,eviction
v1 PodTemplate podtemplates n
v1 ResourceQuota resourcequotas ns quota
v1 Secret secrets n
v1 ServiceAccount serviceaccounts n sa - token
v1 Service services ns svc all
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations - - api-extensions
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies s - api-extensions
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings - - api-extensions
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations - - api-extensions
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions s crd,crds api-extensions
apps/v1 ControllerRevision controllerrevisions n
apps/v1 DaemonSet daemonsets ns ds all
apps/v1 Deployment deployments nsc deploy all
apps/v1 ReplicaSet replicasets nsc rs all
apps/v1 StatefulSet statefulsets nsc sts all
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers ns hpa all
batch/v1 CronJob cronjobs ns cj all
batch/v1 Job jobs ns - all
coordination.k8s.io/v1 Lease leases n
discovery.k8s.io/v1 EndpointSlice endpointslices n
events.k8s.io/v1 Event events n ev
networking.k8s.io/v1 Ingress ingresses ns ing
policy/v1 PodDisruptionBudget poddisruptionbudgets ns pdb
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings -
rbac.authorization.k8s.io/v1 ClusterRole clusterroles -
rbac.authorization.k8s.io/v1 RoleBinding rolebindings n
rbac.authorization.k8s.io/v1 Role roles n
resource.k8s.io/v1 DeviceClass deviceclasses -
resource.k8s.io/v1 ResourceClaim resourceclaims ns
resource.k8s.io/v1 ResourceClaimTemplate resourceclaimtemplates n
resource.k8s.io/v1 ResourceSlice resourceslices -
scheduling.k8s.io/v1 PriorityClass priorityclasses - pc
"""
_GANGS = """
scheduling.k8s.io/v1beta1 PodGroup podgroups ns
scheduling.k8s.io/v1beta1 Workload workloads n
scheduling.k8s.io/v1alpha3 CompositePodGroup compositepodgroups ns
"""
# Two groups have a type of these names; the table of shapes has the group in front of the second.
_SHAPES = {("events.k8s.io", "Event"): "events.Event", ("resource.k8s.io", "ResourceClaim"): "resource.ResourceClaim"}


def _words(text: str) -> tuple[str, ...]:
    return () if text in ("", "-") else tuple(text.split(","))


def builtin_kinds() -> tuple[Kind, ...]:
    """The built-in kinds, also those that are served on request."""
    return tuple(_kind(row) for row in _rows(gangs=True))


def builtins(*, gangs: bool = False) -> tuple[Served, ...]:
    """The built-in kinds, with their shapes; `gangs`: also kube-scheduler's kinds for gangs."""
    return tuple(_builtin(row) for row in _rows(gangs=gangs))


def _rows(*, gangs: bool) -> Iterator[list[str]]:
    return (row.split() for table in (_TABLE, *((_GANGS,) if gangs else ())) for row in table.strip().splitlines())


def _kind(row: list[str]) -> Kind:
    group, _, version = row[0].rpartition("/")
    flags = row[3] if len(row) > 3 else "-"
    return Kind(group, version, row[1], row[2], namespaced="n" in flags, status="s" in flags)


def _builtin(row: list[str]) -> Served:
    kind = _kind(row)
    flags, short, categories, more = (row[3:] + ["-", "-", "-", "-"])[:4]
    return Served(
        kind=kind,
        singular=kind.name.lower(),
        list_name=f"{kind.name}List",
        short_names=_words(short),
        categories=_words(categories),
        subresources=(*(("status",) if kind.status else ()), *(("scale",) if "c" in flags else ()), *_words(more)),
        shape=builtin(_SHAPES.get((kind.group, kind.name), kind.name)),
        scale=ScalePaths() if "c" in flags else None,
        stored_as=("", "events") if kind.name == "Event" else ("", ""),
    )


class Catalogue:
    """All served kinds, by group, version and plural; `gangs`: kube-scheduler's among them. CRDs add and remove kinds."""

    def __init__(self, *, gangs: bool = False) -> None:
        self._served: dict[tuple[str, str, str], Served] = {_address(served): served for served in builtins(gangs=gangs)}
        self.gangs = gangs
        self.revision = 0
        """Grows with every change; the key of caches."""

    def copy(self) -> "Catalogue":
        """A second catalogue of the same kinds, which changes independently of this one."""
        copied = copy(self)
        copied._served = dict(self._served)
        return copied

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    def find(self, group: str, version: str, plural: str) -> Served:
        """The kind. Raises 404 for an unknown resource."""
        served = self._served.get((group, version, plural))
        if served is None:
            raise status.no_such_resource()
        return served

    def replace(self, group: str, plural: str, versions: tuple[Served, ...]) -> None:
        """Serve exactly those versions of a custom kind; none removes it."""
        self._served = {k: v for k, v in self._served.items() if (k[0], k[2]) != (group, plural)}
        self._served |= {_address(served): served for served in versions}
        self.revision += 1


def _address(served: Served) -> tuple[str, str, str]:
    return served.kind.group, served.kind.version, served.kind.plural
