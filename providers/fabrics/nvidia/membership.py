"""Membership: in which ComputeDomains the pods of a live set are, read from its PodCliques, scaling groups and domains (N24).

The claim of a PodClique decides whether its pods are in a domain. Its annotation only says under which name, because people can edit it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.observed import Live
from engine.paths import get, merge_patch
from engine.resource import Body
from providers.fabrics.nvidia import groups
from providers.fabrics.nvidia.groups import RecordedGroup, with_groups
from providers.fabrics.nvidia.names import AUTO, CLAIM, DISABLED, ENABLED, GROUP, NAMED
from resources.admission.annotations import immutable, immutable_on_cliques
from resources.base.fields import CLIQUES, annotations_of, cliques_of, mapping, mappings
from resources.model.domain import specified_in
from resources.ports.fabric import GROUP_INDEX, INDEX
from resources.ports.membership import CliqueRecord, MembershipRecord, ObjectRecord, RecordedSet

KEYS = (AUTO, GROUP, NAMED)
"""The annotations of PodCliques and PodCliqueScalingGroups that request domains."""

NOTHING: Final = object()
"""Stands for the name of a clique without PodCliques; None means that its pods are in no named domain."""

IsName = Callable[[Any], bool]
"""Whether a value can be the name of a named domain."""


def record_of(child: Live, *, eligible: bool) -> ObjectRecord:
    """What a PodClique or PodCliqueScalingGroup records; `eligible` says whether its pods use GPUs."""
    annotations = annotations_of(child.body)
    claims = mappings(get(child.body, ("spec", "podSpec", "resourceClaims"), ()))
    templates = (claim.get("resourceClaimTemplateName") for claim in claims if claim.get("name") == CLAIM)
    return ObjectRecord(
        tuple((key, value) for key in KEYS if isinstance(value := annotations.get(key), str)),
        tuple(template for template in templates if isinstance(template, str)),
        eligible,
    )


def as_recorded(body: Body, record: MembershipRecord, is_name: IsName) -> RecordedSet:
    """The set with `AUTO`, `NAMED` and `GROUP` as its objects record them."""
    membership = _Membership(record, _own_templates(body), is_name)
    effective = _with_mode(body, membership)
    is_auto = annotations_of(effective).get(AUTO) == ENABLED
    effective = _with_names(effective, membership, is_auto=is_auto)
    effective = with_groups(effective, membership.groups_of_cliques(effective), membership.groups_of_scaling_groups)
    if effective is body:
        return RecordedSet(body)
    old, new = specified_in(effective), specified_in(body)
    issues = (*immutable(AUTO, old, new), *immutable_on_cliques(NAMED, old, new), *groups.update_issues(old, new))
    return RecordedSet(effective, issues)


def _own_templates(body: Body) -> Mapping[str, frozenset[str]]:
    """Clique -> the templates of the claims that its user has given the name of the engine's claim."""
    return {
        name: frozenset(
            template
            for claim in mappings(get(clique, ("spec", "podSpec", "resourceClaims"), ()))
            if claim.get("name") == CLAIM and isinstance(template := claim.get("resourceClaimTemplateName"), str)
        )
        for clique in cliques_of(body)
        if isinstance(name := clique.get("name"), str)
    }


def _with_mode(body: Body, membership: "_Membership") -> Body:
    """The set with the recorded mode. A set without automatic domains has no mode or any other than `enabled`: both mean the same.

    Except for groups, which have no effect in a set with `disabled`.
    """
    mode, is_auto = annotations_of(body).get(AUTO), membership.is_automatic()
    if mode == DISABLED and membership.has_groups:
        return merge_patch(body, {"metadata": {"annotations": {AUTO: None}}})
    if is_auto is None or is_auto == (mode == ENABLED):
        return body
    return merge_patch(body, {"metadata": {"annotations": {AUTO: ENABLED if is_auto else None}}})


def _with_names(body: Body, membership: "_Membership", *, is_auto: bool) -> Body:
    """The set with the recorded names on its cliques; the same object if nothing differs."""
    cliques = get(body, CLIQUES, ())
    if not isinstance(cliques, list | tuple):
        return body
    recorded = _recorded_names(cliques, membership, is_auto=is_auto)
    renamed = [_with_name(clique, recorded[number]) if number in recorded else clique for number, clique in enumerate(cliques)]
    if all(new is old for new, old in zip(renamed, cliques, strict=True)):
        return body
    return merge_patch(body, {"spec": {"template": {"cliques": renamed}}})


def _recorded_names(cliques: Sequence[Any], membership: "_Membership", *, is_auto: bool) -> Mapping[int, Any]:
    """Position of a clique in the template -> its recorded name, None for no name. Cliques of which nothing is known are not included.

    A clique without PodClique follows those that request the same now: together they were edited, and together they stay.
    """
    requested = {
        number: (clique["name"], mapping(clique.get("annotations")).get(NAMED))
        for number, clique in enumerate(cliques)
        if isinstance(clique, Mapping) and isinstance(clique.get("name"), str)
    }
    recall = membership.unused_name if is_auto else membership.name_of
    recorded = {number: recall(*request) for number, request in requested.items()}
    known = {number: name for number, name in recorded.items() if name is not NOTHING}
    siblings: dict[str, set[Any]] = {}
    for number, name in known.items():
        if name is not None and not isinstance(name, str):
            continue
        siblings.setdefault(repr(requested[number][1]), set()).add(name)
    for number in recorded.keys() - known.keys():
        names = siblings.get(repr(requested[number][1]), set())
        if len(names) == 1:
            known[number] = next(iter(names))
    return known


def _with_name(clique: Body, name: Any) -> Body:
    """The clique with that name, None for no name; the same object if it has it already."""
    annotations = mapping(clique.get("annotations"))
    if annotations.get(NAMED) == name:
        return clique
    others = {key: value for key, value in annotations.items() if key != NAMED}
    return {**clique, "annotations": others if name is None else {**others, NAMED: name}}


class _Claims(Struct, frozen=True, eq=False):
    """The claims of one PodClique for a ComputeDomain, without those that the user has written into the template."""

    index: int
    group_replica: int | None
    templates: tuple[str, ...]
    name: str | None
    """Its annotation `NAMED`."""
    group: str | None
    """Its annotation `GROUP`."""
    has_gpus: bool


OUTSIDE: Final = _Claims(index=0, group_replica=None, templates=(), name=None, group=None, has_gpus=True)
"""Stands for the PodClique of a clique in a set of which nothing is in a domain."""


class _Membership:
    """The membership of a set: which of its cliques are in which domains."""

    def __init__(self, record: MembershipRecord, own_templates: Mapping[str, frozenset[str]], is_name: IsName) -> None:
        self._root = record.root
        self._is_name = is_name
        self._controlled = frozenset(domain.name for domain in record.domains if domain.controlled)
        self._has_automatic = any(name.removeprefix(f"{record.root}-").isdigit() for name in self._controlled)
        self._shared = frozenset(domain.name for domain in record.domains if domain.shared)
        self._names: dict[str, list[str]] = {}
        for domain in record.domains:
            if not domain.controlled:
                self._names.setdefault(domain.template, []).append(domain.name)
        self._is_marked = any((AUTO, ENABLED) in group.record.annotations for group in record.groups)
        self._claims: dict[str, list[_Claims]] = {}
        for clique in record.cliques:
            self._claims.setdefault(clique.clique, []).append(_claims(clique, own_templates.get(clique.clique, frozenset())))
        if record.has_plain_gang and not self._has_evidence(record):
            self._claims |= {name: [OUTSIDE] for name in own_templates.keys() - self._claims.keys()}
        self._groups = {clique: group for clique, listed in self._claims.items() if (group := self._group_of(listed))}
        self.groups_of_scaling_groups = {
            group.group: value for group in record.groups for key, value in group.record.annotations if key == GROUP
        }
        """Scaling group -> the annotation `GROUP` of its PodCliqueScalingGroups."""

    def _has_evidence(self, record: MembershipRecord) -> bool:
        """Whether any object records that pods of the set are in a domain. If a PodGang exists and none does, all pods are outside."""
        values = (value for group in record.groups for key, value in group.record.annotations if key == GROUP)
        is_grouped = any(groups.group_of({GROUP: value}) for value in values)
        is_claimed = any(claims.templates for listed in self._claims.values() for claims in listed)
        return bool(record.domains) or self._is_marked or is_grouped or is_claimed

    @property
    def has_groups(self) -> bool:
        """Whether a clique is in a group."""
        return bool(self._groups)

    def is_automatic(self) -> bool | None:
        """Whether the set has automatic domains; None if nothing records it.

        Claims count first: a domain may remain for a while after its set has left it, and people can edit annotations. PodCliques
        without GPUs and without claims record nothing. If some PodCliques have the claim and others lack it, the set has domains.
        """
        every = [claims for listed in self._claims.values() for claims in listed]
        if any(self._is_automatic(claims) for claims in every):
            return True
        if self._groups or any(self._is_outside(claims) or self._domain_names(claims) for claims in every):
            return False
        return True if self._has_automatic or self._is_marked else None

    def name_of(self, clique: str, requested: Any) -> Any:
        """The recorded name of a clique, None for no named domain; `NOTHING` if it has no PodClique.

        It is the name that explains the claims of most PodCliques. If several do, it is the one that they have as an annotation. A name
        that is invalid, or that nothing speaks against, stays as it is.
        """
        listed = self._claims.get(clique)
        if not listed:
            return NOTHING
        if clique in self._groups:
            return None if self._is_name(requested) else requested
        votes = Counter(name for claims in listed for name in dict.fromkeys(self._explanations(claims, requested)))
        if not votes:
            is_outside = self._is_name(requested) and all(not claims.templates for claims in listed)
            return None if is_outside else requested
        annotated = Counter(claims.name for claims in listed)
        return max(votes, key=lambda name: (votes[name], annotated[name], name == requested, "$" not in name))

    def unused_name(self, clique: str, requested: Any) -> Any:
        """The name of a clique in a set with automatic domains, where it has no effect: `requested` if a PodClique has it, else None.

        `NOTHING` if it has no PodClique.
        """
        listed = self._claims.get(clique)
        if not listed:
            return NOTHING
        return requested if any(claims.name == requested for claims in listed) else None

    def groups_of_cliques(self, body: Body) -> Mapping[str, RecordedGroup]:
        """Clique -> its recorded group. Cliques that record none, and without GPUs or PodCliques, are not included.

        `body` has the recorded mode and names.
        """
        has_mode = annotations_of(body).get(AUTO) in (ENABLED, DISABLED)
        named = {str(clique.get("name")) for clique in cliques_of(body) if self._is_name(mapping(clique.get("annotations")).get(NAMED))}
        return {
            clique: RecordedGroup(
                self._groups.get(clique, ""),
                frozenset(claims.group for claims in listed if claims.group is not None),
                effective=not has_mode and clique not in named,
            )
            for clique, listed in self._claims.items()
            if has_mode or clique in named or clique in self._groups or all(map(self._is_outside, listed))
        }

    def _group_of(self, listed: Sequence[_Claims]) -> str:
        """The group whose domains most of the PodCliques of a clique claim; empty if none does."""
        votes = Counter(group for claims in listed for template in claims.templates if (group := self._claimed_group(claims, template)))
        return max(votes, key=lambda group: (votes[group], group)) if votes else ""

    def _claimed_group(self, claims: _Claims, template: str) -> str:
        """The group whose domain in the replica has that template; empty if it is the template of another domain."""
        prefix = f"{self._root}-{claims.index}-"
        if not template.startswith(prefix):
            return ""
        if template not in self._controlled and (self._names.get(template) or self._resolves(claims.name, template, claims)):
            return ""
        return groups.group_of({GROUP: template.removeprefix(prefix)})

    def _is_automatic(self, claims: _Claims) -> bool:
        """Whether a PodClique claims the domain of its replica."""
        domain = f"{self._root}-{claims.index}"
        if domain not in claims.templates:
            return False
        return domain in self._controlled or not (self._names.get(domain) or self._resolves(claims.name, domain, claims))

    def _is_outside(self, claims: _Claims) -> bool:
        """Whether the pods of a PodClique are in no domain although they would be if the set had automatic ones."""
        return claims.has_gpus and not claims.templates

    def _domain_names(self, claims: _Claims) -> list[str]:
        return list(self._explanations(claims, claims.name))

    def _explanations(self, claims: _Claims, requested: Any) -> Iterator[str]:
        """The names for named domains with which the clique would have these claims; empty if they are for no known domain."""
        for template in claims.templates:
            is_automatic = f"{self._root}-{claims.index}" == template and self._is_automatic(claims)
            if is_automatic or self._claimed_group(claims, template):
                continue
            if requested != claims.name and self._resolves(requested, template, claims):
                yield requested
            if self._resolves(claims.name, template, claims):
                yield str(claims.name)
                continue
            names = self._names.get(template, [])
            is_ours = self._is_name(claims.name) or any(name in self._shared for name in names)
            if not names and self._is_name(claims.name):
                yield str(claims.name)
            for name in names if is_ours else ():
                yield name
                yield from _names_with_tokens(name, claims)

    def _resolves(self, name: Any, template: str, claims: _Claims) -> bool:
        """Whether the domain of that name, in the replica of a PodClique, has that template."""
        if not self._is_name(name):
            return False
        domain = str(name).replace(INDEX, str(claims.index))
        if claims.group_replica is not None:
            domain = domain.replace(GROUP_INDEX, str(claims.group_replica))
        return domain == template or domain in self._names.get(template, ())


def _claims(clique: CliqueRecord, own_templates: frozenset[str]) -> _Claims:
    record = clique.record
    templates = tuple(template for template in record.templates if template not in own_templates)
    annotations = dict(record.annotations)
    return _Claims(clique.index, clique.group_replica, templates, annotations.get(NAMED), annotations.get(GROUP), record.eligible)


def _names_with_tokens(name: str, claims: _Claims) -> Iterator[str]:
    """The names with tokens that could stand for the name of this domain in the replica of a PodClique."""
    of_set = list(_with_token(name, str(claims.index), INDEX))
    yield from of_set
    if claims.group_replica is not None:
        yield from (other for each in (name, *of_set) for other in _with_token(each, str(claims.group_replica), GROUP_INDEX))


def _with_token(name: str, index: str, token: str) -> Iterator[str]:
    """The name with each occurrence of an index replaced by a token, one at a time."""
    at = name.find(index)
    while at >= 0:
        yield f"{name[:at]}{token}{name[at + len(index) :]}"
        at = name.find(index, at + 1)
