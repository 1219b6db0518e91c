"""Focus: which roots a command concerns. All others are observed as well, and left alone."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import InputError
from engine.ids import ResourceId
from engine.memo import as_tuple
from engine.observed import Observed, World
from engine.plan import Plan, changed

NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
KEY = rf"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{NAME}"
SET = re.compile(rf"\s*({KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
EQUALITY = re.compile(rf"\s*({KEY})\s*(==|=|!=)\s*({NAME})?\s*")
PRESENCE = re.compile(rf"\s*(!?)\s*({KEY})\s*")
VALUE = re.compile(rf"(?:{NAME})?")
ANY = "*"
"""In a name or a namespace of a target: any characters, also none."""


class Operator(StrEnum):
    """How a label is compared."""

    IN = "in"
    NOT_IN = "notin"
    """Also matches an object without the label, as in Kubernetes."""
    EXISTS = "exists"
    ABSENT = "absent"


class Requirement(Struct, frozen=True):
    """What is required of one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels fulfil it."""
        match self.operator:
            case Operator.EXISTS:
                return self.key in labels
            case Operator.ABSENT:
                return self.key not in labels
            case Operator.IN:
                return labels.get(self.key) in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values


class LabelSelector(Struct, frozen=True):
    """Requirements that labels must all fulfil."""

    text: str
    """As the user wrote it."""
    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels fulfil every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_selector(text: str) -> LabelSelector:
    """The selector that a text means. Raises `InputError` if it is none."""
    return LabelSelector(text, tuple(_requirement(term) for term in _terms(text)))


def _terms(text: str) -> list[str]:
    """The text between commas; commas within parentheses do not count."""
    return re.split(r",(?![^(]*\))", text)


def _requirement(term: str) -> Requirement:
    if match := SET.fullmatch(term):
        key, operator, values = match.groups()
        return Requirement(key, Operator(operator), frozenset(_value(value) for value in values.split(",")))
    if match := EQUALITY.fullmatch(term):
        key, sign, value = match.groups()
        return Requirement(key, Operator.NOT_IN if sign == "!=" else Operator.IN, frozenset({value or ""}))
    if match := PRESENCE.fullmatch(term):
        return Requirement(match[2], Operator.ABSENT if match[1] else Operator.EXISTS)
    raise InputError(
        f"{term.strip() or 'an empty text'} is no requirement of a label: expected a=b, a!=b, a in (b,c), a notin (b,c), a or !a"
    )


def _value(text: str) -> str:
    if not VALUE.fullmatch(value := text.strip()):
        raise InputError(f"{value} is no value of a label")
    return value


class RootTarget(Struct, frozen=True):
    """Roots by kind, namespace and name; an empty kind or namespace stands for every one, and `*` in a text for any characters."""

    kind: str = ""
    namespace: str = ""
    name: str = ANY

    def matches(self, id: ResourceId) -> bool:
        """Whether it names this root."""
        has_kind, has_namespace = self.kind in ("", id.kind), not self.namespace or fnmatchcase(id.namespace, self.namespace)
        return has_kind and has_namespace and fnmatchcase(id.name, self.name)

    @property
    def is_pattern(self) -> bool:
        """Whether it may name several roots of one kind and namespace."""
        return ANY in self.name or ANY in self.namespace

    def __str__(self) -> str:
        """`[Kind/][namespace/]name`, as users write it."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Focus(Struct, frozen=True):
    """Which roots a command concerns: those to which every restriction applies. Without restrictions: all."""

    roots: frozenset[ResourceId] | None = None
    """Only these, e.g. those of the manifests of a command; None: no such restriction."""
    targets: tuple[RootTarget, ...] = ()
    """Only those that one of them names, if there are any."""
    selectors: tuple[LabelSelector, ...] = ()
    """Only those whose labels match every one."""
    excluded: tuple[RootTarget, ...] = ()
    """None that one of them names."""

    def includes(self, id: ResourceId, labels: Mapping[str, str]) -> bool:
        """Whether it concerns a root with this identity and these labels."""
        return (
            (self.roots is None or id in self.roots)
            and (not self.targets or any(target.matches(id) for target in self.targets))
            and all(selector.matches(labels) for selector in self.selectors)
            and not any(target.matches(id) for target in self.excluded)
        )

    def including(self, roots: Collection[ResourceId]) -> "Focus":
        """The focus with these roots; the same if it is not restricted to some."""
        return replace(self, roots=self.roots.union(roots)) if self.roots is not None else self

    @property
    def is_narrowed(self) -> bool:
        """Whether targets, selectors or exclusions restrict it."""
        return bool(self.targets or self.selectors or self.excluded)


EVERYTHING = Focus()


class Others(Struct, frozen=True):
    """The roots outside a focus that have changes."""

    roots: tuple[ResourceId, ...] = ()
    """Sorted; a root that is a part of another one counts as that one."""
    shown_by: str = ""
    """The option that includes them; empty if there is none, because the user has restricted the command in other ways."""


NO_OTHERS = Others()


class Focused(Struct, frozen=True, eq=False):
    """What a focus includes."""

    plans: tuple[Plan, ...]
    roots: tuple[Observed, ...]
    others: Others = NO_OTHERS


def within(plans: Sequence[Plan], world: World, focus: Focus) -> Focused:
    """The plans and the roots that the focus includes, and the other roots that have changes.

    A plan of orphans, whose root does not exist any more, is left out if labels select: those of the root are not known.
    """
    if focus == EVERYTHING:
        return Focused(as_tuple(plans), world.roots)
    included, wholes = concerned(world, focus), _wholes(world.roots)
    kept = tuple(plan for plan in plans if (plan.root in included if plan.root in wholes else _includes_lost(focus, plan.root)))
    left = {plan.root for plan in plans if changed(plan)} - {plan.root for plan in kept}
    others = sorted({wholes[root][1].root.id if root in wholes else root for root in left})
    roots = tuple(observed for observed in world.roots if observed.root.id in included)
    return Focused(kept, roots, Others(tuple(others), "" if focus.is_narrowed else f"--target '{ANY}'"))


def concerned(world: World, focus: Focus) -> frozenset[ResourceId]:
    """The observed roots that a focus includes.

    A root that is a part of another one is included with that one, unless it is among `focus.roots` itself. Of a root whose manifest
    is applied the labels of the manifest count.
    """
    named = focus.roots or frozenset()
    subjects = {id: observed if id in named else whole for id, (observed, whole) in _wholes(world.roots).items()}
    return frozenset(id for id, subject in subjects.items() if focus.includes(subject.root.id, labels_of(subject)))


def labels_of(observed: Observed) -> Mapping[str, str]:
    """The labels of a root as its user asks for them: those of the manifest that is applied, else those that it has."""
    if observed.proposal is None or observed.proposer is not None:
        return observed.root.labels
    return observed.proposal["metadata"].get("labels") or {}


def _includes_lost(focus: Focus, root: ResourceId) -> bool:
    return not focus.selectors and focus.includes(root, {})


def _wholes(roots: Iterable[Observed]) -> dict[ResourceId, tuple[Observed, Observed]]:
    """Each root with the outermost root that it is a part of: itself, if a user has made it."""
    listed = list(roots)
    by_id, by_uid = {observed.root.id: observed for observed in listed}, {observed.root.uid: observed for observed in listed}

    def outer(observed: Observed) -> Observed | None:
        """The root that proposes or controls this one. One that is being replaced is only controlled."""
        if observed.proposer is not None:
            return by_id.get(observed.proposer.id)
        return by_uid.get(observed.root.controller.uid) if observed.root.controller is not None else None

    def outermost(observed: Observed) -> Observed:
        seen: set[ResourceId] = set()
        while observed.root.id not in seen and (parent := outer(observed)) is not None:
            seen.add(observed.root.id)
            observed = parent
        return observed

    return {observed.root.id: (observed, outermost(observed)) for observed in listed}
