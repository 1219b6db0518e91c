"""Pod group tree: which groups a PodGang is expressed by for kube-scheduler, and with which topology.

A flat gang is one group. In a hierarchy each clique has a group, and groups that must be in one topology domain have a common parent.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.paths import get
from engine.reason import Reason
from engine.resource import Body, Policy
from resources.base import kinds, labels, names
from resources.base.fields import manifest, mapping, mappings
from resources.ports.scheduler import CliqueOfGang, GangFacts, GangObject

FIRST: Final = {labels.POD_INDEX: "0"}
"""The label of the first pod of each clique."""
MOST_CHILDREN: Final = 8
"""How many templates a list of a Workload may have."""
MOST_LEVELS: Final = 2
"""How many parents may be above each other below the root: a Workload is four levels deep."""
GROUP_FIELD: Final = "schedulingGroup"
"""The field of a pod's spec that names its PodGroup."""
PARENT: Final = ("spec", "parentCompositePodGroupName")
"""The field of a group with the name of its parent."""
POLICY: Final = ("spec", "schedulingPolicy")
MINIMUM: Final = (*POLICY, "gang", "minGroupCount")
"""The field of a parent with the number of groups below it without which none of their pods gets a node."""
CREATED_ONCE: Final = Policy(seeded=(("spec",),))
"""All of it is immutable, and nothing reads it later: it is what it was when the object was created."""
REPLACED: Final = Policy(immutable=(POLICY,))
"""All of it is immutable: with another minimum it is created anew. Its groups name it and need no other; no pod of them is touched."""
NO_PREFERENCE: Final = "kube-scheduler keeps gangs to required topology levels only: preferred levels have no effect"
ONE_LEVEL: Final = (
    "topology constraints of single cliques and scaling groups have no effect in gangs of kube-scheduler with one PodGroup each: {why}"
)
UNSERVED: Final = "the cluster does not serve CompositePodGroup"
TOO_LARGE: Final = f"a hierarchy has at most {MOST_CHILDREN} groups in one and {MOST_LEVELS + 2} levels"
OVERLAP: Final = "they overlap, and none contains the other"


class KubeGroup(Struct, frozen=True):
    """One PodGroup of a gang."""

    id: ResourceId
    cliques: tuple[CliqueOfGang, ...]
    """The cliques whose pods are in it."""
    key: str = ""
    """The node label of which all its pods must be in one value; empty if there is none."""
    fields: Mapping[str, Any] = {}
    """What it has in its spec because of a hierarchy."""

    @property
    def members(self) -> list[Live]:
        """The pods that carry it."""
        return [pod for clique in self.cliques for pod in self._members_of(clique)]

    @property
    def attainable(self) -> int:
        """How many pods carry it once all exist: others cannot join it. Of a clique that is created again its minimum."""
        return sum(
            len(self._members_of(clique)) + sum(index < clique.minimum for index in clique.new) if clique.is_kept else clique.minimum
            for clique in self.cliques
        )

    def _members_of(self, clique: CliqueOfGang) -> list[Live]:
        return [pod for pod in clique.pods if group_of(pod) == self.id.name]


class Bundle(Struct, frozen=True):
    """Cliques that must be in one domain of a topology, with the bundles within."""

    name: str
    cliques: frozenset[str]
    key: str
    within: "tuple[Bundle, ...]" = ()

    @property
    def depth(self) -> int:
        """How many bundles are above each other, this one included."""
        return 1 + max((bundle.depth for bundle in self.within), default=0)


class Constraints(Struct, frozen=True):
    """What a PodGang requires of topology, in the terms of kube-scheduler."""

    key: str
    """That of the gang; empty if it has none."""
    bundles: tuple[Bundle, ...]
    """Those of some of its cliques together, the outermost."""
    of_cliques: Mapping[str, str]
    """PodClique -> its own key."""
    overlaps: bool
    """Whether some were left out, because they overlap."""
    prefers: bool
    """Whether there are preferred levels, which cannot be expressed."""

    @property
    def requires(self) -> bool:
        """Whether anything is required."""
        return bool(self.key or self.is_nested)

    @property
    def is_nested(self) -> bool:
        """Whether one key for the whole gang cannot express them."""
        return bool(self.bundles or self.of_cliques)

    @property
    def fits(self) -> bool:
        """Whether a hierarchy can express them."""
        return max((bundle.depth for bundle in self.bundles), default=0) <= MOST_LEVELS


UNCONSTRAINED: Final = Constraints("", (), {}, overlaps=False, prefers=False)


def constraints_of(spec: Body, gang: GangFacts) -> Constraints:
    """What the spec of a PodGang, and the fabric domains of its pods, require of topology."""
    names = frozenset(clique.name for clique in gang.cliques)
    groups, cliques = mappings(spec.get("topologyConstraintGroupConfigs")), mappings(spec.get("podgroups"))
    if not gang.islands and not any(map(_pack, (spec, *groups, *cliques))):
        return UNCONSTRAINED
    asked = [
        Bundle(str(group.get("name")), members, key)
        for group in groups
        if (members := frozenset(group.get("podGroupNames") or ())) and (key := _required(group))
    ]
    asked += [
        Bundle(f"{gang.id.name}-island-{number}", members, island.key)
        for number, island in enumerate(gang.islands)
        if (members := island.cliques & names)
    ]
    of_cliques = {str(group.get("name")): key for group in cliques if (key := _required(group))}
    key = _required(spec)
    # What is required of all cliques together is required of the gang; of several keys the last one is the narrowest.
    if len(names) == 1 and of_cliques:
        key, of_cliques = next(iter(of_cliques.values())), {}
    for bundle in asked:
        key = bundle.key if bundle.cliques == names and not (key and of_cliques) else key
    inner = [bundle for bundle in asked if bundle.cliques != names]
    nested, overlaps = _nested(inner)
    prefers = any(_pack(holder).get("preferred") for holder in (spec, *groups, *cliques))
    return Constraints(key, nested, of_cliques, overlaps, prefers)


def _nested(bundles: Sequence[Bundle]) -> tuple[tuple[Bundle, ...], bool]:
    """The bundles, each within the smallest one that contains it; and whether some overlap, of which the smaller ones are left out."""
    outer: list[Bundle] = []
    overlaps = False
    for bundle in sorted(bundles, key=lambda bundle: (-len(bundle.cliques), bundle.name)):
        home = next((index for index, other in enumerate(outer) if bundle.cliques <= other.cliques), None)
        if home is not None:
            within, inner = _nested([*outer[home].within, bundle])
            outer[home], overlaps = replace(outer[home], within=within), overlaps or inner
        elif any(not bundle.cliques.isdisjoint(other.cliques) for other in outer):
            overlaps = True
        else:
            outer.append(bundle)
    return tuple(outer), overlaps


def flat(gang: GangFacts, constraints: Constraints) -> KubeGroup:
    """The one group of a flat gang."""
    return KubeGroup(kinds.POD_GROUP.id(gang.id.namespace, gang.id.name), gang.cliques, constraints.key)


def affinity(gang: GangFacts, constraints: Constraints, *, is_tree: bool) -> Mapping[str, tuple[Body, ...]]:
    """PodClique -> the terms of pod affinity that keep its pods outside groups beside members of the gang, the widest domain first.

    The domains are those that existing groups were created with, which is what kube-scheduler keeps their members to. The first pod of each
    clique is a member; other pods outside groups are not followed, so that one that is elsewhere draws no other to it.
    """
    of_gang = {"matchLabels": {labels.PODGANG: gang.id.name, **FIRST}}
    if not is_tree:
        live = gang.objects.get(kinds.POD_GROUP.id(gang.id.namespace, gang.id.name))
        term = _terms([(constraints.key if live is None else key_of(live), of_gang)])
        return {clique.name: term for clique in gang.cliques}
    chains = {clique.name: created(gang, clique.name) for clique in gang.cliques}
    return {
        name: _terms(_as_created(name, chains, of_gang) if _is_whole(chain) else _as_planned(name, constraints, of_gang))
        for name, chain in chains.items()
    }


def created(gang: GangFacts, clique: str) -> Sequence[Live]:
    """The PodGroup of a clique in a hierarchy and the parents above it as they exist, the innermost first; empty if it has none."""
    chain: list[Live] = []
    live = gang.objects.get(kinds.POD_GROUP.id(gang.id.namespace, names.clique_group(clique)))
    while live is not None and len(chain) < MOST_LEVELS + 2:  # No cycle of edited groups is followed.
        chain.append(live)
        live = gang.objects.get(kinds.COMPOSITE_POD_GROUP.id(gang.id.namespace, str(get(live.body, PARENT))))
    return chain


def _is_whole(chain: Sequence[Live]) -> bool:
    """Whether a group exists with all parents above it, as far as they are followed. Where parents are not served, none is seen."""
    return bool(chain) and (len(chain) > MOST_LEVELS + 1 or not get(chain[-1].body, PARENT))


def _as_created(clique: str, chains: Mapping[str, Sequence[Live]], of_gang: Body) -> Iterator[tuple[str, Body]]:
    """The node label of each existing group around a clique, and what selects the pods of that group, the outermost first."""
    group, *parents = chains[clique]
    for parent in reversed(parents):
        within = [name for name, chain in chains.items() if any(live.id == parent.id for live in chain)]
        yield key_of(parent), of_gang if len(within) == len(chains) else _selects(within)
    yield key_of(group), _selects([clique])


def _as_planned(clique: str, constraints: Constraints, of_gang: Body) -> Iterator[tuple[str, Body]]:
    """The same of groups that do not exist yet."""
    yield constraints.key, of_gang
    for bundle in _around(clique, constraints.bundles):
        yield bundle.key, _selects(bundle.cliques)
    yield constraints.of_cliques.get(clique, ""), _selects([clique])


def _terms(levels: Iterable[tuple[str, Body]]) -> tuple[Body, ...]:
    return tuple({"labelSelector": selector, "topologyKey": key} for key, selector in levels if key)


def _around(clique: str, bundles: Sequence[Bundle]) -> Iterator[Bundle]:
    """The bundles that contain a clique, the outermost first."""
    for bundle in bundles:
        if clique in bundle.cliques:
            yield bundle
            yield from _around(clique, bundle.within)


def _selects(cliques: Collection[str]) -> Body:
    return {"matchLabels": FIRST, "matchExpressions": [{"key": labels.PODCLIQUE, "operator": "In", "values": sorted(cliques)}]}


class GangTree(Struct, frozen=True):
    """A gang as a hierarchy."""

    podgang: Body
    gang: GangFacts
    constraints: Constraints

    @property
    def groups(self) -> tuple[KubeGroup, ...]:
        """The groups of its cliques, in their order."""
        parents = dict(self._parents(self.constraints.bundles))
        return tuple(
            self._group(number, clique, parents.get(clique.name, self.gang.id.name)) for number, clique in enumerate(self.gang.cliques)
        )

    def objects(self) -> Iterator[GangObject]:
        """The Workload, then the parents of groups, the outermost first."""
        yield self.workload()
        counts = self._counts()
        for parent, planned in self._composites(self._root, ""):
            yield self._parent(parent, planned, counts)

    def workload(self) -> GangObject:
        """The Workload, to whose templates all groups refer."""
        id = kinds.WORKLOAD.id(self.gang.id.namespace, self.gang.id.name)
        spec = {"controllerRef": self._controller, "compositePodGroupTemplates": [self._template(self._root)]}
        return GangObject(self._body(kinds.WORKLOAD, id, spec), CREATED_ONCE, id=id)

    def kept(self) -> Iterator[GangObject]:
        """The parents of groups that exist for constraints that are no longer required: their groups name them for ever."""
        planned = dict(self._composites(self._root, ""))
        parents = {live.id: live for clique in self.gang.cliques for live in created(self.gang, clique.name)[1:]}
        counts = self._counts()
        for id, live in parents.items():
            owner = live.controller
            if owner is not None and owner.name == self.gang.id.name and live.deleting_since is None and id not in planned:
                yield self._parent(id, {}, counts)

    @property
    def fits(self) -> bool:
        """Whether no list of templates is too long."""
        return self.constraints.fits and all(
            max(len(bundle.within), len(self._own(bundle))) <= MOST_CHILDREN for bundle in self._all(self._root)
        )

    @property
    def _root(self) -> Bundle:
        names = frozenset(clique.name for clique in self.gang.cliques)
        return Bundle(self.gang.id.name, names, self.constraints.key, self.constraints.bundles)

    @property
    def _controller(self) -> dict[str, str]:
        return {"apiGroup": self.gang.id.group, "kind": self.gang.id.kind, "name": self.gang.id.name}

    def _all(self, bundle: Bundle) -> Iterator[Bundle]:
        yield bundle
        for inner in bundle.within:
            yield from self._all(inner)

    def _own(self, bundle: Bundle) -> list[int]:
        """The indices of the cliques of a bundle that are in no bundle within it."""
        inner = frozenset[str]().union(*(each.cliques for each in bundle.within))
        return [number for number, clique in enumerate(self.gang.cliques) if clique.name in bundle.cliques - inner]

    def _parents(self, bundles: Sequence[Bundle]) -> Iterator[tuple[str, str]]:
        """PodClique and the name of its parent; if it has several, the innermost comes last."""
        for bundle in bundles:
            yield from ((clique, f"{bundle.name}.group") for clique in bundle.cliques)
            yield from self._parents(bundle.within)

    def _group(self, number: int, clique: CliqueOfGang, parent: str) -> KubeGroup:
        reference = {"workloadName": self.gang.id.name, "templateName": f"clique-{number}"}
        fields = {"parentCompositePodGroupName": parent, "workloadRef": reference}
        id = kinds.POD_GROUP.id(self.gang.id.namespace, names.clique_group(clique.name))
        return KubeGroup(id, (clique,), self.constraints.of_cliques.get(clique.name, ""), fields)

    def _composites(self, bundle: Bundle, parent: str) -> Iterator[tuple[ResourceId, Body]]:
        """Each parent of groups, the outermost first, with its spec as it is created."""
        name = f"{bundle.name}.group" if parent else bundle.name
        reference = {"workloadName": self.gang.id.name, "templateName": self._template_name(bundle)}
        spec = {**({"parentCompositePodGroupName": parent} if parent else {}), "workloadRef": reference, **self._policy(bundle)}
        yield kinds.COMPOSITE_POD_GROUP.id(self.gang.id.namespace, name), spec
        for inner in bundle.within:
            yield from self._composites(inner, name)

    def _counts(self) -> Mapping[str, int]:
        """Parent of groups -> how many groups, and parents with groups, name it or will; parents of none are absent.

        A group that no pod carries or will carry does not count: its minimum cannot be reached, and the others would wait for it.
        """
        planned = {id.name: str(spec.get("parentCompositePodGroupName", "")) for id, spec in self._composites(self._root, "")}
        below: dict[str, set[str]] = {}
        for group in filter(lambda group: group.attainable, self.groups):
            child, parent = group.id.name, self._parent_of(group.id, str(group.fields["parentCompositePodGroupName"]))
            for _ in range(MOST_LEVELS + 2):  # No cycle of edited groups is followed.
                if parent:
                    below.setdefault(parent, set()).add(child)
                    id = kinds.COMPOSITE_POD_GROUP.id(group.id.namespace, parent)
                    child, parent = parent, self._parent_of(id, planned.get(parent, ""))
        return {parent: len(children) for parent, children in below.items()}

    def _parent_of(self, id: ResourceId, planned: str) -> str:
        """The name of the parent that an object has for ever, or with which it is created; empty if it has none."""
        live = self.gang.objects.get(id)
        return str(get(live.body, PARENT) or "") if live is not None else planned

    def _parent(self, id: ResourceId, planned: Body, counts: Mapping[str, int]) -> GangObject:
        """A parent of groups: as it exists or is planned, but always with the number of groups that it has now as its minimum."""
        live = self.gang.objects.get(id)
        spec, before = (mapping(live.body.get("spec")), get(live.body, MINIMUM)) if live is not None else (planned, None)
        count = counts.get(id.name)
        if count:
            spec = {**spec, "schedulingPolicy": {"gang": {"minGroupCount": count}}}
        is_smaller = isinstance(before, int) and count is not None and count < before
        reason = Reason.SCALED_IN if is_smaller else Reason.SCALED_OUT
        return GangObject(self._body(kinds.COMPOSITE_POD_GROUP, id, spec), REPLACED, id=id, own_reasons=((POLICY, reason),))

    def _template(self, bundle: Bundle) -> dict[str, Any]:
        lists = {
            "podGroupTemplates": [self._clique_template(number) for number in self._own(bundle)],
            "compositePodGroupTemplates": [self._template(inner) for inner in bundle.within],
        }
        return {"name": self._template_name(bundle), **self._policy(bundle), **{name: each for name, each in lists.items() if each}}

    def _clique_template(self, number: int) -> dict[str, Any]:
        clique = self.gang.cliques[number]
        policy = {"schedulingPolicy": {"gang": {"minCount": max(1, clique.minimum)}}}
        return {
            "name": f"clique-{number}",
            **policy,
            **topology(self.constraints.of_cliques.get(clique.name, "")),
            **priority(self.podgang),
        }

    def _template_name(self, bundle: Bundle) -> str:
        return f"bundle-{[each.name for each in self._all(self._root)].index(bundle.name)}"

    def _policy(self, bundle: Bundle) -> dict[str, Any]:
        children = len(bundle.within) + len(self._own(bundle))
        return {"schedulingPolicy": {"gang": {"minGroupCount": children}}, **topology(bundle.key), **priority(self.podgang)}

    def _body(self, kind: Kind, id: ResourceId, spec: Body) -> dict[str, Any]:
        return manifest(kind, id.namespace, id.name, self.podgang["metadata"]["labels"], spec=spec)


def group_of(pod: Live) -> str:
    """The name of the PodGroup of a pod; empty if it has none."""
    name = get(pod.body, ("spec", GROUP_FIELD, "podGroupName"))
    return name if isinstance(name, str) else ""


def key_of(live: Live) -> str:
    """The node label of which all pods of an existing group must be in one value; empty if there is none."""
    entries = mappings(get(live.body, ("spec", "schedulingConstraints", "topology")))
    return next((str(entry["key"]) for entry in entries if entry.get("key")), "")


def topology(key: str) -> dict[str, Any]:
    """The field with the constraint to one value of a node label; none if the key is empty."""
    return {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}


def priority(podgang: Body) -> dict[str, Any]:
    """The field with the priority class of a gang; none if it has none. Everything in a hierarchy has the same."""
    name = podgang["spec"].get("priorityClassName")
    return {"priorityClassName": name} if name else {}


def _required(holder: Body) -> str:
    key = _pack(holder).get("required")
    return key if isinstance(key, str) else ""


def _pack(holder: Body) -> Mapping[str, Any]:
    return mapping(mapping(holder.get("topologyConstraint")).get("packConstraint"))
