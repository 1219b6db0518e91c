"""Fabric: the port for one vendor's domains, within which accelerators of several nodes reach one another. Pure.

A plug-in is a subclass of `Fabric`. Members without a default say what a domain is; the docstring of each other member says what its
default means. What belongs together is one value, e.g. `slots` or `islands`: it is there completely, or it is None.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from engine.forecast.store import ForecastStore
from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.resource import Body
from resources.ports.checks import Diagnosis, JoinedNode, PlugIn, Query, QueryResults
from resources.ports.membership import MembershipReader
from resources.schema.issues import Issue, Path

INDEX = "$(GROVE_PCS_INDEX)"
"""Stands for the index of the replica in the name of a requested domain. No Kubernetes name contains these characters."""

GROUP_INDEX = "$(GROVE_PCSG_INDEX)"
"""Stands for the index of the scaling group's replica in the name of a requested domain."""


class DomainRequest(Struct, frozen=True):
    """A set's request for a fabric domain."""

    name: str
    """The name of the domain object. If it contains `INDEX`, every replica has its own domain. If it contains `GROUP_INDEX`, every
    replica of a scaling group has, and cliques outside scaling groups are in none.

    The name of a domain that is not shared must be `<set>-INDEX` or begin with `<set>-INDEX-`, because its replica is read from the name.
    """
    cliques: frozenset[str]
    """The cliques of the template whose pods are in it. Without any, no domain is created, and one that the set has stays."""
    shared: bool
    """Whether every set of the namespace that requests this name shares the domain; else it belongs to one replica of one set."""
    labels: tuple[tuple[str, str], ...] = ()
    """Keys and values of labels that the domain object has beside the engine's own."""


class SpecifiedClique(Struct, frozen=True):
    """A clique of a set's template, as fabrics read it."""

    name: str
    annotations: Mapping[str, str]
    pod_spec: Body


class SpecifiedGroup(Struct, frozen=True):
    """A scaling group of a set's template, as fabrics read it."""

    name: str
    cliques: tuple[str, ...]
    """The names of its cliques."""
    annotations: Mapping[str, str]


class SpecifiedSet(Struct, frozen=True):
    """A PodCliqueSet as fabrics read it: from its model or, if it is stored, from an object of any shape (`resources.model.domain`)."""

    name: str
    """Empty if it is to be generated."""
    annotations: Mapping[str, str]
    replicas: int
    cliques: tuple[SpecifiedClique, ...]
    """In the order of the template."""
    groups: tuple[SpecifiedGroup, ...]


class Place(StrEnum):
    """A place for annotations in a PodCliqueSet, as users write it."""

    SET = "metadata.annotations"
    GROUP = "spec.template.podCliqueScalingGroups[].annotations"
    CLIQUE = "spec.template.cliques[].annotations"


class WrittenKeys(Struct, frozen=True):
    """The keys that a user has written into one map of annotations or labels, which may be one that sets do not have."""

    path: Path
    place: Place | None
    """The place that the map is; None if it is one of labels, or if annotations there have no effect whatever their key."""
    near: Place | None
    """The place of the annotations of the same part of the set; None if it has none."""
    keys: tuple[str, ...]


class Annotation(Struct, frozen=True):
    """An annotation that a plug-in reads."""

    key: str
    places: tuple[Place, ...] = (Place.CLIQUE,)
    """Where it is read from."""
    hint: str = ""
    """What users should know who wrote it somewhere else, e.g. `an opt-out is for the whole set`."""


class Islands(Struct, frozen=True):
    """How a fabric is divided if it connects only nodes of the same island, although a domain may have nodes of several."""

    noun: str
    """What an island is called in messages, e.g. `NVLink clique`."""
    label: str
    """The label of nodes whose value names their island. Nodes without it, or with an empty value, are in none."""
    max_nodes: int
    """The largest number of nodes of one island that a domain can have."""


class NodeSlots(ABC):
    """The slots of a fabric that has one on each node, which one pod of any domain occupies. Used to report missing node capacity."""

    @property
    @abstractmethod
    def inventory_kind(self) -> Kind:
        """The kind of the objects in which the driver publishes the devices of nodes, e.g. ResourceSlice."""

    @abstractmethod
    def eligible_nodes(self, inventory: Iterable[Live]) -> frozenset[str]:
        """The names of the nodes that have a slot. `inventory` are all objects of `inventory_kind`."""

    @abstractmethod
    def allocated_node(self, claim: Live) -> str:
        """The name of the node whose slot is allocated to a ResourceClaim; empty if none is."""

    @abstractmethod
    def claimed(self, claim_spec: Body) -> int:
        """The number of slots that a ResourceClaim with this spec takes; 0 for claims on other devices. Fields may have the wrong shape."""


class PolicyVariable(Struct, frozen=True):
    """A value that several rules use, as `variables.<name>`."""

    name: str
    expression: str
    """CEL. It may use the variables before it."""


class PolicyRule(Struct, frozen=True):
    """One rule of a ValidatingAdmissionPolicy."""

    expression: str
    """CEL; true if the request is admitted."""
    message: str
    """Field and reason, for people. Where `message_expression` cannot be evaluated, it is shown instead."""
    message_expression: str = ""
    """CEL whose value is the message with the names of what is wrong; empty if `message` says everything."""


class Enrolment(Struct, frozen=True):
    """What a new PodCliqueSet gets if it matches, as a MutatingAdmissionPolicy."""

    name: str
    """A word for the name of the policy."""
    conditions: tuple[PolicyRule, ...]
    """All must be true."""
    annotations: Body
    """The annotations that are added."""


class ModelledDriver(ABC):
    """The driver of a fabric in one forecast. It may have a state."""

    @abstractmethod
    def answer(self, store: ForecastStore, changed: Sequence[ResourceId], gone: Sequence[str]) -> bool:
        """Let the driver take one step. `changed` are the objects that have changed since the last one, `gone` the uids that have gone.

        Returns whether it has changed anything.
        """

    @abstractmethod
    def holds(self, live: Live) -> bool:
        """Whether an object that is being deleted is the driver's to release: no other program removes its finalizers."""


class Fabric(PlugIn):
    """A vendor's fabric.

    A domain is an object of the vendor's kind, which the engine creates. The vendor's driver then creates a ResourceClaimTemplate,
    and every pod of the domain claims through it. The engine keeps the order of these steps (domain, template, pods, and in
    reverse on deletion), which is the same for all vendors; the fabric supplies the contents.
    """

    # What a domain is: every fabric says it.

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """The kind of its domain objects."""

    @property
    @abstractmethod
    def finalizer(self) -> str:
        """The finalizer that the engine puts on the domains that it creates."""

    @abstractmethod
    def domain_requests(
        self, root: str, annotations: Mapping[str, str], cliques: Mapping[str, SpecifiedClique]
    ) -> tuple[DomainRequest, ...]:
        """The domains that a set requests; empty if none.

        `root` and `annotations` are the set's; `cliques` maps names to the cliques of its template, with `inherited_annotations`.
        Annotations may be invalid, because admission may have been bypassed: an invalid request counts as none.
        """

    @abstractmethod
    def template_name(self, domain: Live | None, name: str) -> str:
        """The name of the ResourceClaimTemplate through which pods join the domain of that name.

        `domain` is None before the domain exists: then the name that the driver is expected to choose.
        """

    @abstractmethod
    def template_blocker(self, domain: Live, template: Live) -> str:
        """Why pods must not claim through this ResourceClaimTemplate (yet): a predicate about it, e.g. "belongs to another domain".

        Empty if they may. The state of the domain itself must not matter: it is ready only after its pods are running (R32).
        """

    @abstractmethod
    def domain_uid(self, claim: Live) -> str:
        """The uid of the domain that a ResourceClaim gives access to; empty if it is no claim of this fabric.

        The engine uses it to decide which pods and claims still use a domain.
        """

    @abstractmethod
    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """The pod spec with a claim through the ResourceClaimTemplate of that name. Called for every new pod of a domain."""

    # Sets and the objects made of them.

    annotations: tuple[Annotation, ...] = ()
    """The annotations that it reads from a PodCliqueSet.

    Users are warned of those that are misspelled or where they have no effect: in sets, and added to PodCliques. Of others they are not.
    """
    inherited_annotations: Collection[str] = ()
    """The keys of those that cliques inherit, for requests of domains. None by default.

    A clique's own annotation counts first, then its scaling group's, then the set's.
    """
    indexed_names: bool = False
    """Whether users may write `INDEX` and `GROUP_INDEX` in the names of domains. Previews then recommend them."""

    def with_defaults(self, body: Body) -> Body:
        """A new PodCliqueSet with this fabric's defaults. Called on create only, after the other defaults (R2, R6, N4).

        Returns `body` itself if nothing is added, as by default. What the user has set is kept.
        """
        return body

    def creation_issues(self, new: SpecifiedSet) -> Iterable[Issue]:
        """The issues of a new PodCliqueSet, after `with_defaults`. Any issue denies the request. None by default."""
        return ()

    def update_issues(self, old: SpecifiedSet, new: SpecifiedSet) -> Iterable[Issue]:
        """Changes to a PodCliqueSet that are not allowed, e.g. of the annotation that requests a domain. Any issue denies the request.

        By default every change is allowed.
        """
        return ()

    def warnings(self, written: Sequence[WrittenKeys]) -> Iterable[str]:
        """Warnings about the keys that users have written into a PodCliqueSet, besides those about `annotations`. None by default."""
        return ()

    def group_annotations(self, annotations: Mapping[str, str]) -> Mapping[str, str]:
        """The set's annotations that are copied to its PodCliqueScalingGroups. Annotations of the group itself win.

        None by default.
        """
        return {}

    def component(self, request: DomainRequest) -> str:
        """The value of the label `app.kubernetes.io/component` on the domain object: by default `<name>-<kind>` in lower case."""
        return f"{self.name}-{self.kind.name.lower()}"

    def domain_spec(self, name: str) -> Body:
        """The spec of the domain object of that name. It is sent on creation and never changed afterwards. Empty by default."""
        return {}

    def spec_in(self, version: str, spec: Body) -> Body:
        """The spec of a domain in that version of `kind`, which may be one of `kind.newer`. By default it is the same in all."""
        return spec

    membership: MembershipReader | None = None
    """Reads from live objects in which domains their pods are. None: the annotations of the set count, also after an edit."""

    # Nodes.

    link: str = "the fabric"
    """What connects the accelerators of a domain, in words for messages, e.g. NVLink."""
    slots: NodeSlots | None = None
    """The slots on nodes. None: a node can be in many domains, and missing capacity is not reported."""
    islands: Islands | None = None
    """The islands of nodes. None: all nodes reach one another."""

    # Forecasts, admission policies and explanations: no object depends on them.

    def modelled_driver(self) -> ModelledDriver | None:
        """The driver for one forecast. None, as by default: what it does is not known, and forecasts end where a domain exists."""
        return None

    def policy_rules(self) -> Iterable[PolicyRule]:
        """The admission rules for PodCliqueSets that can be written as CEL. None by default.

        They may use the variables of `resources.admission.cel.VARIABLES`: `cliques`, `oldCliques` and others.
        """
        return ()

    def enrolment(self) -> Enrolment | None:
        """What new sets get by default, as CEL; None if nothing, as by default."""
        return None

    def unstated_rules(self) -> Iterable[str]:
        """The rules that CEL cannot state, each in a sentence. None by default."""
        return ()

    def joined_nodes(self, domain: Live) -> tuple[JoinedNode, ...] | None:
        """The nodes that have joined the domain, according to the domain object alone. Empty if none has.

        None, as by default: domains do not name them. Then it is not reported which nodes are missing, nor which cannot reach others.
        """
        return None

    def unreported(self, domain: Live) -> str:
        """Why nodes with running pods may be missing from a domain object that names none, as a clause. Empty, as by default: none is."""
        return ""

    def domain_queries(self, domain: ResourceId) -> Iterable[Query]:
        """The objects that `diagnose` needs to read about this domain, which may not exist. None by default."""
        return ()

    def diagnose(self, domain: ResourceId, results: QueryResults, now: datetime) -> Iterable[Diagnosis]:
        """The findings about a domain, the most severe first; `engine why` shows them. None by default.

        `results` has the results of `domain_queries`; `now` is in UTC.
        """
        return ()
