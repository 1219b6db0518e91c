"""Size rules: what makes a PodCliqueSet, or all of a namespace together, larger than the configured limits. Only growth is refused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.paths import get
from engine.resource import Body
from resources.admission.cel import replicas_of, rule
from resources.base import names
from resources.base.fields import mapping
from resources.base.kinds import PODCLIQUESET, SCALING_GROUP
from resources.base.set_size import REFERENCE, ScaledPart, SetSize, SetSizes, Totals, size_of
from resources.ports.configuration import SizeLimits, WorkloadLimits
from resources.ports.fabric import PolicyRule, PolicyVariable
from resources.schema.issues import ErrorType, Issue, Path

MEASURES: Final[Mapping[str, tuple[Path, str]]] = {
    "replicas": (("spec", "replicas"), "must not be more than {limit} (limits.set.replicas)"),
    "pods": (("spec",), "must not have more than {limit} pods in all replicas, with those that autoscalers may add (limits.set.pods)"),
    "cliques": (
        ("spec",),
        "must not have more than {limit} PodCliques in all replicas, with those that autoscalers may add (limits.set.cliques)",
    ),
    "bytes": (
        ("spec",),
        "its spec, and the references to pods in one of its PodGangs, must not have more than {limit} bytes (limits.set.bytes)",
    ),
}
"""Measure of a set -> the field that is reported, and the message."""
TOGETHER: Final = (
    "the PodCliqueSets of the namespace, and graphs without one, "
    "must not have more than {limit} {what} together (limits.namespace.{measure})"
)
WORDS: Final[Mapping[str, str]] = {"cliques": "PodCliques", "bytes": "bytes of specs and references to pods"}
"""Measure of a namespace -> what it is called, if not by its name."""
REPLICAS: Final[Path] = ("spec", "replicas")
WHOLE: Final[Path] = ("spec",)


def issues(new: Totals, old: Totals | None, limits: WorkloadLimits, others: Totals | None = None) -> Iterator[Issue]:
    """An issue for each measure that exceeds its limit and has grown.

    `old`: the stored version; None if the set is new. `others`: what else is in the namespace; None if that is not known.
    """
    for measure, (path, message) in MEASURES.items():
        limit, count = getattr(limits.of_set, measure), getattr(new, measure)
        if count > limit and (old is None or count > getattr(old, measure)):
            yield Issue(path, ErrorType.INVALID, message.format(limit=limit), count)
    for measure in MEASURES if others is not None else ():
        limit, field = getattr(limits.of_namespace, measure), "stored" if measure == "bytes" else measure
        count, total = getattr(new, field), getattr(new, field) + getattr(others, field)
        if total > limit and count > (getattr(old, field) if old is not None else 0):
            yield Issue(WHOLE, ErrorType.INVALID, TOGETHER.format(limit=limit, what=WORDS.get(measure, measure), measure=measure), total)


def set_issues(new: Body, old: Body | None, namespace: str, limits: WorkloadLimits, sizes: SetSizes | None) -> Iterator[Issue]:
    """The issues of a new set, or of a new version of a stored one. `sizes`: those of its namespace, if they are known."""
    name = str(mapping(new.get("metadata")).get("name") or "")
    others = sizes.besides(name) if sizes is not None else None
    before = size_of(old, namespace).totals if old is not None else None
    return issues(size_of(new, namespace).totals, before, limits, others)


def without_smaller(current: Sequence[Issue], before: Sequence[Issue]) -> Iterator[Issue]:
    """The issues that the version before does not have: one about a number counts as the same if the number was as large."""
    numbers = {(issue.path, issue.message): issue.value for issue in before if isinstance(issue.value, int)}
    for issue in current:
        number = numbers.get((issue.path, issue.message))
        if issue not in before and not (number is not None and isinstance(issue.value, int) and number >= issue.value):
            yield issue


def scale_issues(id: ResourceId, resource: str, new: Body, old: Body, limits: WorkloadLimits, sizes: SetSizes | None) -> Iterator[Issue]:
    """The issues of a change of the `scale` of a set, a clique or a scaling group: `resource` is its plural.

    The other cliques and groups count as their set specifies them. Without `sizes` nothing is known of the set, and nothing is refused.
    """
    after, before = (get(scale, ("spec", "replicas"), 0) for scale in (new, old))
    if sizes is None or not is_growth(before, after):
        return
    for name in owner_names(id.name):
        if (size := sizes.by_name.get(name)) is None:
            continue
        counts = tuple(_scaled(name, size, id, resource, count) for count in (after, before))
        if counts[0] is not None and counts[1] is not None:
            yield from (replace(issue, path=REPLICAS) for issue in issues(counts[0], counts[1], limits, sizes.besides(name)))


def owner_names(name: str) -> Iterator[str]:
    """The names that an object may have after which this name begins, and itself: few look-ups, however many objects there are."""
    yield from (name[:end] for end, sign in enumerate(name) if sign == "-")
    yield name


def is_growth(before: Any, after: Any) -> bool:
    """Whether the second number of replicas is the larger one."""
    return isinstance(after, int) and isinstance(before, int) and after > before


def _scaled(name: str, size: SetSize, id: ResourceId, resource: str, count: int) -> Totals | None:
    """What a set asks for if the object with this id has `count` replicas; None if the object is not of the set."""
    if resource == PODCLIQUESET.plural:
        return size.with_replicas(count) if id.name == name else None
    index = names.replica_of(PODCLIQUESET.id(id.namespace, name), id)
    if index is None:
        return None
    rest = id.name.removeprefix(f"{name}-{index}-")
    if resource == SCALING_GROUP.plural:
        return next((part.grown(size.totals, count) for part in size.parts if part.members is not None and part.name == rest), None)
    return next((part.grown(size.totals, count) for part in _cliques_named(size, rest)), None)


def _cliques_named(size: SetSize, rest: str) -> Iterator[ScaledPart]:
    """The clique of this name outside scaling groups, else that of a group, whose PodCliques are called `<group>-<index>-<clique>`."""
    yield from (part for part in size.parts if part.members is None and part.name == rest)
    for group in size.parts:
        index, _, member = rest.removeprefix(f"{group.name}-").partition("-") if rest.startswith(f"{group.name}-") else ("", "", "")
        if names.index_in(index) is not None:
            yield from (part for part in group.members or () if part.name == member)


def policy_variables() -> Iterator[PolicyVariable]:
    """The sizes of the new and of the stored version, for `policy_rules`. Doubles, because products of integers could overflow."""
    yield PolicyVariable("size", _size_cel("variables.cliques", "variables.groups", "object.spec.?replicas.orValue(0)"))
    stored = "request.operation == 'UPDATE' ? oldObject.spec.?replicas.orValue(0) : 0"
    yield PolicyVariable("oldSize", _size_cel("variables.oldCliques", "variables.oldGroups", f"({stored})"))


def policy_rules(limits: SizeLimits) -> Iterator[PolicyRule]:
    """The same as CEL for one set, except the bytes of its spec."""
    for measure, (path, message) in MEASURES.items():
        limit, count = getattr(limits, measure), f"variables.size.{measure}"
        bad = f"{count} > {limit}.0 && (request.operation == 'CREATE' || {count} > variables.oldSize.{measure})"
        yield rule(bad, ".".join(map(str, path)), message.format(limit=limit))


def scale_policy_variables() -> Iterator[PolicyVariable]:
    """The replicas of the new and of the stored object or `scale`, for `scale_policy_rules`."""
    yield PolicyVariable("count", "object.spec.?replicas.orValue(0)")
    yield PolicyVariable("oldCount", "oldObject.spec.?replicas.orValue(0)")


def scale_policy_rules(limits: SizeLimits) -> Iterator[PolicyRule]:
    """What CEL can say of a `scale`, which says nothing of its set: an object that exceeds a limit by itself."""
    is_set, is_group = (f"request.resource.resource == '{kind.plural}'" for kind in (PODCLIQUESET, SCALING_GROUP))
    for measure, where in (("replicas", is_set), ("pods", f"!({is_set})"), ("cliques", is_group)):
        limit = getattr(limits, measure)
        bad = f"{where} && variables.count > {limit} && variables.count > variables.oldCount"
        yield rule(bad, ".".join(map(str, REPLICAS)), MEASURES[measure][1].format(limit=limit))


def _size_cel(cliques: str, groups: str, replicas: str) -> str:
    """CEL: a map from each measure to its value, the counterpart of `size_of`."""
    alone = f"{cliques}.filter(c, !{groups}.exists(g, c.name in g.cliqueNames))"
    members = f"{cliques}.filter(c, c.name in g.cliqueNames)"
    most_pods = _most_cel("c.spec.autoScalingConfig", replicas_of("c"))
    most_groups = f"double({_most_cel('g.scaleConfig', 'g.replicas')})"
    pods = f"double({most_pods})"
    length = f"double({REFERENCE} + object.metadata.?namespace.orValue('').size() + variables.nameLength + c.name.size()"
    references = f"{members}.map(c, {pods} * {length} + g.name.size())).sum()"
    in_base = f"(double(g.minAvailable) < {most_groups} ? double(g.minAvailable) : {most_groups})"
    base = f"{alone}.map(c, double({most_pods}) * {length})).sum() + {groups}.map(g, {in_base} * {references}).sum()"
    scaled = f"{groups}.filter(g, {most_groups} > double(g.minAvailable)).map(g, {references})"
    per_replica = {
        "pods": f"({alone}.map(c, double({most_pods})).sum() + {groups}.map(g, {most_groups} * {members}.map(c, {pods}).sum()).sum())",
        "cliques": f"(double({alone}.size()) + {groups}.map(g, {most_groups} * double({members}.size())).sum())",
    }
    entries = [f"'replicas': double({replicas})", *(f"'{name}': double({replicas}) * {count}" for name, count in per_replica.items())]
    return f"{{{', '.join(entries)}, 'bytes': {replicas} == 0 ? 0.0 : ([{base}] + {scaled}).max()}}"


def _most_cel(scaling: str, replicas: str) -> str:
    """CEL: the replicas, or those that an autoscaler may ask for, if these are more."""
    return f"(has({scaling}) && {scaling}.maxReplicas > {replicas} ? {scaling}.maxReplicas : {replicas})"
