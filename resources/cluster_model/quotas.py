"""Quotas: what a forecast needs of each ResourceQuota, beside what that allows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, field

from engine.forecast.forecast import Forecast
from engine.ids import Kind, ResourceId
from engine.observed import Live, World
from engine.operation import Create, Delete, Operation, Patch
from engine.paths import merge_patch
from engine.quantity import amount
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import count, mapping, mappings
from resources.cluster_model.component_pods import exchange_steps, replaces, with_pod_specs
from resources.cluster_model.pod_level import HUGE_PAGES, pod_level
from resources.cluster_model.pods import is_component, templates_of
from resources.cluster_model.quota_scopes import QuotaScope, is_in_scopes, is_judged, scopes_of
from resources.placement.cluster_room import NO_DEFAULTS, Defaults

PLAIN: Final = frozenset(
    {"pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "resourcequotas", "replicationcontrollers"}
)
"""Kinds of the core group that a quota may also limit without `count/`."""
COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources whose requests a quota may also limit without `requests.`."""

CLAIMS: Final = f"count/{kinds.RESOURCE_CLAIM.plural}.{kinds.RESOURCE_CLAIM.group}"

Amounts = Mapping[str, Decimal]
"""Name as in a quota's `hard`, e.g. `pods`, `requests.cpu`, `count/podcliques.grove.io` -> how much of it."""
EARLIER_STAY: Final = "; earlier pods stay until new ones are ready: a strategy that deletes them first needs no more"
_KINDS: Final[Mapping[tuple[str, str], Kind]] = {(kind.group, kind.name): kind for kind in kinds.KINDS}


MOST_NAMES: Final = 3
"""How many competing roots a sentence names; of others it has the number."""


class Shortage(Struct, frozen=True, dict=True):
    """A ResourceQuota that does not allow what a forecast needs."""

    quota: ResourceId
    what: str
    """The name of the limit, as in the quota."""
    needed: Decimal
    """How much more than now exists at a time."""
    allowed: Decimal
    """How much more is allowed."""
    lasting: bool
    """Whether it is needed to the end, and not only for a time."""
    roots: frozenset[ResourceId]
    """The roots whose objects need it."""
    competing: frozenset[ResourceId] = frozenset()
    """Those of them whose objects fit if they are created before those of the others. In which order they are is not known."""
    for_exchange: bool = False
    """Whether it is allowed but for the earlier pods of a Deployment, which stay until new ones are ready."""

    @cached_property
    def in_order(self) -> Sequence[ResourceId]:
        """The roots, sorted."""
        return sorted(self.roots)

    def others(self, root: ResourceId) -> str:
        """The first of the other roots, and the number of the rest."""
        named = [f"{each.kind} {each.name}" for each in self.in_order[: MOST_NAMES + 1] if each != root][:MOST_NAMES]
        more = len(self.roots) - 1 - len(named)
        return ", ".join(named) + (f" and {more} other{'s' if more > 1 else ''}" if more else "")


class _Use(Struct):
    """How much more than at the beginning exists of one limit in one namespace."""

    now: Decimal = Decimal()
    most: Decimal = Decimal()
    exchanged: Decimal = Decimal()
    """The most that one Deployment needs beyond `now` before any of its earlier pods goes."""
    created: Decimal = Decimal()
    """How much is created in all: only that is refused where more is used than a quota allows."""
    by_pass: dict[int, dict[ResourceId, Decimal]] = field(default_factory=dict)
    """Number of a pass -> the most that is used in it, by each root that creates something then."""
    of_root: dict[ResourceId, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    """How much each root uses more in the end."""

    def add(self, number: Decimal, root: ResourceId, step: int) -> None:
        """Count what a root creates in a pass (or, below zero, what is gone)."""
        self.now += number
        self.most = max(self.most, self.now)
        self.of_root[root] += number
        if number > 0:
            self.note_created(number, root, step)

    def note_created(self, number: Decimal, root: ResourceId, step: int) -> None:
        """A root creates so much in a pass, be it in the place of what goes."""
        self.created += number
        self._note_need(root, step)

    def note_exchanged(self, number: Decimal, root: ResourceId, step: int) -> None:
        """A Deployment of a root needs so much beside what is used, until new pods are ready."""
        self.exchanged = max(self.exchanged, number)
        self._note_need(root, step)

    def _note_need(self, root: ResourceId, step: int) -> None:
        """A root creates something in a pass, when so much is used. After the last of these notes no more is: `end` is not above them."""
        needed, number = self.by_pass.setdefault(step, {}), self.now + self.exchanged
        needed[root] = max(number, needed.get(root, number))

    def roots(self, room: Decimal) -> frozenset[ResourceId]:
        """Those that create something in a pass in which there is not room for everything: the calls of a pass are sent side by side."""
        return frozenset(root for needed in self.by_pass.values() if max(needed.values()) > room for root in needed)

    def shortage(self, quota: ResourceId, what: str, room: Decimal) -> Shortage | None:
        """What is needed beyond the room that a quota has: below zero if more is used than it allows."""
        end = self.now + self.exchanged
        lasting = end > room
        if lasting:
            needed = end if end > 0 else min(self.created, end - room)
        else:
            needed = self.most if self.most > room else Decimal()
        if needed <= 0:
            return None
        roots = self.roots(room)
        fitting = (root for root in roots if 0 < self.of_root[root] <= room) if lasting and self.exchanged <= 0 and len(roots) > 1 else ()
        exchanging = lasting and self.now <= room
        return Shortage(quota, what, needed, max(Decimal(), room), lasting, roots, frozenset(fitting), exchanging)


def shortages(quotas: Iterable[Live], forecast: Forecast, world: World, defaults: Defaults = NO_DEFAULTS) -> Iterator[Shortage]:
    """What the quotas do not allow, of pods that get these defaults. Quotas with unknown scopes and those without a status are left out.

    What is deleted counts until the pass after that; pods of a Deployment that stay until new ones are ready, to the end.
    """
    changed = changed_in(forecast, world)
    by_scopes: dict[tuple[QuotaScope, ...], Mapping[tuple[str, str], _Use]] = {}
    for quota in quotas:
        status, scopes = mapping(quota.body.get("status")), scopes_of(mapping(quota.body.get("spec")))
        if scopes is None:
            continue
        if scopes not in by_scopes:
            by_scopes[scopes] = _uses(forecast, changed, scopes, defaults)
        used = mapping(status.get("used"))
        for what, hard in mapping(status.get("hard")).items():
            use = by_scopes[scopes].get((quota.id.namespace, canonical(str(what))))
            limit, taken = amount(str(hard)), amount(str(used.get(what, "0")))
            if use is None or limit is None or taken is None:
                continue
            if shortage := use.shortage(quota.id, str(what), limit - taken):
                yield shortage


def changed_in(forecast: Forecast, world: World) -> Collection[Live]:
    """The objects as they are whose use changes: those that are deleted, and components that are patched."""
    ids = {
        operation.id
        for each in forecast.passes
        for operation in each.all_operations()
        if isinstance(operation, Delete) or (isinstance(operation, Patch) and is_component(operation.id))
    }
    return [live for observed in world.roots for live in observed.lives() if live.id in ids] if ids else ()


def canonical(what: str) -> str:
    """One name for each limit: `requests.cpu` for `cpu`, `pods` for `count/pods`."""
    if what in COMPUTE:
        return f"requests.{what}"
    return plain if (plain := what.removeprefix("count/")) in PLAIN else what


def _uses(forecast: Forecast, changed: Iterable[Live], scopes: Sequence[QuotaScope], defaults: Defaults) -> Mapping[tuple[str, str], _Use]:
    """(Namespace, limit) -> how much more of it is used in the course of the forecast. `scopes`: only by pods that are in all of these.

    Nothing of namespaces where it is not known which pods are.
    """
    uses: dict[tuple[str, str], _Use] = defaultdict(_Use)
    lives = {live.id: live for live in changed}
    specs = {id: defaulted_spec(id, mapping(live.body.get("spec")), defaults) for id, live in lives.items() if is_component(id)}
    sizes = {id: amounts_of(id, {"spec": specs[id]} if id in specs else live.body, scopes) for id, live in lives.items()}
    surpluses = {id: component_amounts({**spec, "replicas": _surplus(lives[id])}, scopes) for id, spec in specs.items()}
    unclear = {id.namespace for id, spec in specs.items() if not _is_clear(id, spec, scopes)}
    for step, each in enumerate(forecast.passes):
        gone: list[tuple[Operation, Amounts, ResourceId]] = []
        for root, operation in ((root, operation) for root, listed in each.operations.items() for operation in listed):
            id, spec = operation.id, specs.get(operation.id)
            if isinstance(operation, Delete):
                gone.append((operation, _sum((sizes.pop(id, {}), surpluses.pop(id, {}))), root))
                continue
            if isinstance(operation, Create):
                new = defaulted_spec(id, mapping(operation.manifest.get("spec")), defaults)
                sizes[id] = amounts_of(id, {"spec": new}, scopes)
                _add(uses, operation, sizes[id], root, step)
            elif isinstance(operation, Patch) and spec is not None:
                new = defaulted_spec(id, merge_patch(spec, mapping(operation.patch.get("spec"))), defaults)
                before, sizes[id] = sizes.get(id, {}), amounts_of(id, {"spec": new}, scopes)
                _add(uses, operation, _sum((sizes[id], _negative(before))), root, step)
                if replaces(spec, new):
                    _replace_pods(uses, operation, spec, new, scopes, root, step)
                    gone.append((operation, surpluses.pop(id, {}), root))
            else:
                continue
            if not _is_clear(id, new, scopes):
                unclear.add(id.namespace)
            if is_component(id):
                specs[id] = new
        for operation, amounts, root in gone:
            _add(uses, operation, _negative(amounts), root, step)
    return {key: use for key, use in uses.items() if key[0] not in unclear}


def defaulted_spec(id: ResourceId, spec: Mapping[str, Any], defaults: Defaults) -> Mapping[str, Any]:
    """The spec of a pod, or of a component with its pods, as the API server completes these; of other objects as it is."""
    if (known := defaults.get(id.namespace)) is None:
        return spec
    if is_component(id):
        return with_pod_specs(spec, known.within)
    return known.within(spec) if id.kind == kinds.POD.name and not id.group else spec


def _is_clear(id: ResourceId, spec: Mapping[str, Any], scopes: Sequence[QuotaScope]) -> bool:
    """Whether it is known which of the pods that are made of this are in all of these scopes."""
    if is_component(id):
        return all(is_judged(mapping(template.get("spec")), scopes) for _, template in templates_of(spec).values())
    return id.kind != kinds.POD.name or is_judged(spec, scopes)


def _surplus(component: Live) -> int:
    """How many pods a Deployment has beyond its replicas, as an update is under way: another update begins with deleting as many."""
    if component.id.kind != kinds.DEPLOYMENT.name:
        return 0
    spec, status = (mapping(component.body.get(part)) for part in ("spec", "status"))
    return max(0, count(status.get("replicas", 0)) - count(spec.get("replicas", 1)))


def _add(uses: Mapping[tuple[str, str], _Use], operation: Operation, amounts: Amounts, root: ResourceId, step: int) -> None:
    for what, number in amounts.items():
        uses[operation.id.namespace, what].add(number, root, step)


def _negative(amounts: Amounts) -> Amounts:
    return {what: -number for what, number in amounts.items()}


def _replace_pods(
    uses: Mapping[tuple[str, str], _Use],
    operation: Operation,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    scopes: Sequence[QuotaScope],
    root: ResourceId,
    step: int,
) -> None:
    """Count what a component creates in the place of its earlier pods, and what it needs beside those that have to stay for a time."""
    for what, number in component_amounts(new, scopes).items():
        uses[operation.id.namespace, what].note_created(number, root, step)
    for what, number in _exchanged(old, new, scopes).items():
        uses[operation.id.namespace, what].note_exchanged(number, root, step)


def _exchanged(old: Mapping[str, Any], new: Mapping[str, Any], scopes: Sequence[QuotaScope]) -> Amounts:
    """What a Deployment that replaces its pods needs at a time beyond what it needs in the end, because earlier pods have to stay."""
    end = component_amounts(new, scopes)
    most: dict[str, Decimal] = {}
    for step in exchange_steps(old, new):
        beside = component_amounts({**old, "replicas": step.earlier}, scopes) if step.earlier else {}
        needed = _sum((component_amounts({**new, "replicas": step.new}, scopes), beside))
        most |= {what: max(most.get(what, Decimal()), number - end.get(what, Decimal())) for what, number in needed.items()}
    return {what: number for what, number in most.items() if number > 0}


def amounts_of(id: ResourceId, body: Body, scopes: Sequence[QuotaScope] = ()) -> Amounts:
    """What an object uses of quotas: one of its kind, what the containers of a pod request, and the pods of a component.

    `scopes`: only pods that are in all of these count.
    """
    kind, spec = _KINDS.get((id.group, id.kind)), mapping(body.get("spec"))
    counted = {canonical(f"count/{kind.plural}{'.' if kind.group else ''}{kind.group}"): Decimal(1)} if kind else {}
    if id.kind == kinds.POD.name and not id.group:
        return {**counted, **pod_amounts(spec)} if is_in_scopes(spec, scopes) else {}
    if scopes:
        counted = {}
    elif id.kind == kinds.PVC.name and not id.group:
        counted = dict(_volume(spec))
    return {**counted, **component_amounts(spec, scopes)} if is_component(id) else counted


def component_amounts(spec: Mapping[str, Any], scopes: Sequence[QuotaScope] = ()) -> Amounts:
    """The pods that the controller of a Deployment or LeaderWorkerSet creates, and what they request together."""
    templates = [(number, mapping(template.get("spec"))) for number, template in templates_of(spec).values()]
    sized = [(number, pod_amounts(pod)) for number, pod in templates if is_in_scopes(pod, scopes)]
    return _sum({"pods": Decimal(number), **{what: number * size for what, size in sizes.items()}} for number, sizes in sized)


def pod_amounts(spec: Mapping[str, Any]) -> Amounts:
    """`requests.…` and `limits.…` of a pod: its containers together, or its largest init container, and its overhead.

    What the pod as a whole says (`spec.resources`) counts in place of its containers.
    Then the claims that are made for it from templates, of devices and of volumes.
    """
    running = _sum(_container(each) for each in mappings(spec.get("containers")))
    for each in mappings(spec.get("initContainers")):
        initial = _container(each)
        if each.get("restartPolicy") == "Always":
            running = _sum((running, initial))
        else:
            running = {what: max(running.get(what, Decimal()), initial.get(what, Decimal())) for what in running.keys() | initial.keys()}
    running = _with_pod_level(running, spec)
    overhead = {f"requests.{what}": number for what, number in _numbers(spec.get("overhead")).items()}
    made = sum(bool(each.get("resourceClaimTemplateName")) for each in mappings(spec.get("resourceClaims")))
    templates = (mapping(mapping(each.get("ephemeral")).get("volumeClaimTemplate")) for each in mappings(spec.get("volumes")))
    volumes = (_volume(mapping(each.get("spec"))) for each in templates if each)
    return _sum((running, overhead, {CLAIMS: Decimal(made)} if made else {}, *volumes))


def _with_pod_level(running: Amounts, spec: Mapping[str, Any]) -> Amounts:
    """What containers use, or the pod as a whole says. A request that it does not give is that of the containers, else its limit."""
    limits, requests = (_numbers(amounts) for amounts in pod_level(spec))
    requests = {what: number for what, number in limits.items() if what.startswith(HUGE_PAGES)} | dict(requests)
    defaults = {f"requests.{what}": number for what, number in limits.items()}
    pods = {f"limits.{what}": number for what, number in limits.items()} | {f"requests.{what}": number for what, number in requests.items()}
    return {**defaults, **running, **pods}


def _volume(claim: Mapping[str, Any]) -> Amounts:
    """What a claim of a volume uses, also of the limits for its storage class."""
    size = _numbers(mapping(claim.get("resources")).get("requests")).get("storage", Decimal())
    amounts = {"persistentvolumeclaims": Decimal(1), "requests.storage": size}
    named = f"{name}.storageclass.storage.k8s.io/" if (name := claim.get("storageClassName")) else ""
    return {**amounts, **({f"{named}{what}": number for what, number in amounts.items()} if named else {})}


def _container(container: Mapping[str, Any]) -> Amounts:
    """A request that is not given is the limit."""
    resources = mapping(container.get("resources"))
    limits = _numbers(resources.get("limits"))
    requests = {**limits, **_numbers(resources.get("requests"))}
    return {f"requests.{what}": number for what, number in requests.items()} | {f"limits.{what}": number for what, number in limits.items()}


def _numbers(values: Any) -> Mapping[str, Decimal]:
    return {str(what): number for what, value in mapping(values).items() if (number := amount(str(value))) is not None}


def _sum(several: Iterable[Amounts]) -> Amounts:
    total: dict[str, Decimal] = defaultdict(Decimal)
    for amounts in several:
        for what, number in amounts.items():
            total[what] += number
    return total


def text_of(shortage: Shortage, root: ResourceId) -> str:
    """A shortage as a sentence for one of its roots, with what to do."""
    allowed, needed = f"{shortage.allowed.normalize():f}", f"{shortage.needed.normalize():f}"
    limit = f"it allows {allowed} more {shortage.what}, and {needed} {'is' if shortage.needed == 1 else 'are'} needed"
    if root in shortage.competing:
        return f"may not fit beside {shortage.others(root)}: {limit} together: what is created first fits; raise the quota or ask for less"
    if shortage.lasting:
        hint = EARLIER_STAY if shortage.for_exchange else ""
        return f"{limit}: the API server will refuse the rest; raise the quota or ask for less{hint}"
    return f"{limit} for a time: some objects are created only when others are gone"


def by_root(listed: Sequence[Shortage]) -> Mapping[ResourceId, Sequence[Shortage]]:
    """Root -> the shortages that concern it."""
    concerned: dict[ResourceId, list[Shortage]] = defaultdict(list)
    for shortage in listed:
        for root in shortage.in_order:
            concerned[root].append(shortage)
    return concerned
