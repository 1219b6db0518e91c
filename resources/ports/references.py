"""References: the objects that a set refers to, as far as they are known or were observed, and whether it may copy what others have."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, Protocol

from msgspec import Struct, field

from engine.canonical import digest
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import annotations_of, mapping
from resources.base.labels import COPIED_CLAIMS, SHARED_WITH
from resources.base.set_size import GraphSize, SetSize, SetSizes, size_of

REFERENCED_KINDS: Final = frozenset({kinds.RESOURCE_CLAIM.name, kinds.RESOURCE_CLAIM_TEMPLATE.name, kinds.TOPOLOGY_BINDING.name})
"""The kinds for which it matters whether they are served and could be listed."""
EVERY_NAMESPACE: Final = "*"
DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class References(Protocol):
    """Objects that rules may read besides the object they judge: topology bindings, queues, domains, the set that owns an object."""

    def find(self, id: ResourceId) -> Live | None:
        """The object with this id; None if it does not exist or its kind is not known."""
        ...

    def knows(self, kind: str) -> bool:
        """Whether all objects of that kind were listed. Only then does `find` returning None mean that an object does not exist."""
        ...

    def sizes(self, namespace: str) -> SetSizes | None:
        """The PodCliqueSets and graphs of a namespace; None if the sets are not all known."""
        ...


class NoReferences(Struct, frozen=True):
    """`References` without any object: nothing was listed."""

    def find(self, id: ResourceId) -> Live | None:
        """None, for every id."""
        return None

    def knows(self, kind: str) -> bool:
        """False, for every kind."""
        return False

    def sizes(self, namespace: str) -> SetSizes | None:
        """None, for every namespace."""
        return None


class KnownReferences(Struct, frozen=True, dict=True):
    """`References` from the objects of one observation."""

    objects: Mapping[ResourceId, Live] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    """The kinds that were listed completely."""
    versions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Group and kind -> the version in which new objects of it are written, of kinds that are written in several."""

    def find(self, id: ResourceId) -> Live | None:
        """The object with this id, if it was listed."""
        return self.objects.get(id)

    def knows(self, kind: str) -> bool:
        """Whether that kind was listed completely."""
        return kind in self.kinds

    def sizes(self, namespace: str) -> SetSizes | None:
        """The PodCliqueSets of a namespace, if all were listed."""
        return self._sizes.get(namespace, SetSizes({})) if self.knows(kinds.PODCLIQUESET.key) else None

    @cached_property
    def _sizes(self) -> Mapping[str, SetSizes]:
        by_namespace: dict[str, dict[str, SetSize]] = {}
        graphs: dict[str, dict[str, GraphSize]] = {}
        for id, live in self.objects.items():
            if (id.group, id.kind) == (kinds.PODCLIQUESET.group, kinds.PODCLIQUESET.name):
                by_namespace.setdefault(id.namespace, {})[id.name] = size_of(live.body, id.namespace)
            elif (id.group, id.kind) == (kinds.DYNAMO_GRAPH.group, kinds.DYNAMO_GRAPH.name):
                graphs.setdefault(id.namespace, {})[id.name] = graph_size(live.body)
        names = {*by_namespace, *graphs}
        return {namespace: SetSizes(by_namespace.get(namespace, {}), graphs.get(namespace, {})) for namespace in names}

    def names(self, kind: Kind) -> list[str]:
        """The names of all objects of that kind, sorted."""
        return sorted(id.name for id in self.objects if (id.group, id.kind) == (kind.group, kind.name))


def graph_size(body: Body) -> GraphSize:
    """How large a graph is."""
    from resources.ports.graph_services import size_of_graph  # Only where there are graphs.

    return size_of_graph(body)


def known_references(lives: Iterable[Live], kinds: Iterable[str]) -> KnownReferences:
    """References with these objects; `kinds` are the kinds that were listed completely."""
    return KnownReferences({live.id: live for live in lives}, frozenset(kinds))


class TemplateReferences(Struct, frozen=True, eq=False):
    """What was resolved of a set's references, and why the rest was not."""

    resolved: Mapping[ResourceId, Live] = field(default_factory=dict)
    """The referenced objects that exist."""
    incomplete: frozenset[str] = frozenset()
    """The kinds that could not be listed completely."""
    unserved: frozenset[str] = frozenset()
    """The kinds that the cluster does not serve."""
    claims: frozenset[str] = frozenset()
    """The names of the set's own resource claims that exist for the set as a whole."""
    foreign: frozenset[str] = frozenset()
    """The names of foreign resource claims."""
    given: frozenset[ResourceId] = frozenset()
    """The ResourceClaimTemplates of other namespaces whose claim specs the set has been given: one of its claims has the spec, or it is
    recorded."""

    def why_missing(self, kind: Kind) -> str:
        """Why an object of that kind was not resolved."""
        if kind.key in self.unserved:
            return f"the cluster does not serve {kind.name} of {kind.api_version}"
        if kind.key in self.incomplete:
            return f"{kind.name} objects could not be listed completely"
        return "not found" + (" in the namespaces that are observed" if kind.namespaced else "")


def template_references(observed: Observed, ids: tuple[ResourceId, ...], part: str, memo: Memo) -> TemplateReferences:
    """The references `ids` of a set, resolved; the same object as before if nothing about them has changed.

    `part` is the key of the slice with the objects that all replicas of the set share.
    """
    incomplete, unserved = observed.incomplete & REFERENCED_KINDS, observed.unserved & REFERENCED_KINDS
    claims = frozenset(live.id.name for live in observed.slice(part).of(kinds.RESOURCE_CLAIM.name))
    resolved = {id: live for id in ids if (live := observed.references.objects.get(id)) is not None}
    foreign = frozenset(id.name for id in observed.foreign if id.kind == kinds.RESOURCE_CLAIM.name)
    given = frozenset(_given(observed, resolved))
    facts = (ids, tuple(resolved.values()), incomplete, unserved, claims, foreign, given)
    return memo.recall("template_references", facts, lambda: TemplateReferences(resolved, incomplete, unserved, claims, foreign, given))


def _given(observed: Observed, resolved: Mapping[ResourceId, Live]) -> Iterator[ResourceId]:
    """The templates of other namespaces whose claim specs a set has been given."""
    root = observed.root
    templates = [id for id in resolved if id.kind == kinds.RESOURCE_CLAIM_TEMPLATE.name and id.namespace != root.id.namespace]
    if not templates:
        return
    recorded = copied(root.body)
    for id in templates:
        wanted = spec_digest(claim_spec(resolved[id].body))
        made = (claim for claim in _claims(observed) if claim.id.name.endswith(f"-{id.name}"))
        if wanted in recorded or any(wanted == spec_digest(mapping(claim.body.get("spec"))) for claim in made):
            yield id


def _claims(observed: Observed) -> Iterator[Live]:
    """The claims of a set; the name of each ends with that of its template (`names.claim`)."""
    return (claim for slice in observed.slices.values() for claim in slice.of(kinds.RESOURCE_CLAIM.name))


def is_shared_with(template: Body, namespace: str) -> bool:
    """Whether the annotation of a template names the namespace, or all with `*`. Names are compared whole: there are no patterns."""
    value = annotations_of(template).get(SHARED_WITH)
    entries = {entry.strip() for entry in value.split(",")} if isinstance(value, str) else set[str]()
    return bool(namespace) and bool(entries & {namespace, EVERY_NAMESPACE})


def why_refused(template: ResourceId, namespace: str) -> str:
    """What is said about a template that its namespace does not share with another one, and the way out."""
    return (
        f"ResourceClaimTemplate {template.namespace}/{template.name} is not shared with namespace {namespace}; "
        f"do: add {namespace} to its annotation {SHARED_WITH}"
    )


def claim_spec(template: Body) -> Body:
    """The spec of the claims that a template describes; empty if it has none."""
    return mapping(mapping(template.get("spec")).get("spec"))


def copied(body: Body) -> frozenset[str]:
    """The digests of the claim specs that a set has been given, as its annotation records them. Whatever is no digest is left out."""
    value = annotations_of(body).get(COPIED_CLAIMS)
    return frozenset(entry for entry in value.split(",") if DIGEST.fullmatch(entry)) if isinstance(value, str) else frozenset()


def record(digests: Iterable[str]) -> str:
    """The value of the annotation that records these digests (`copied`)."""
    return ",".join(sorted(digests))


def spec_digest(spec: Body) -> str:
    """The digest of the spec of a claim. Who has it without having been given the spec must know the spec."""
    return digest(spec)
