"""Quotas: what a forecast needs of each ResourceQuota, beside what that allows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
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
from resources.base.fields import mapping, mappings
from resources.cluster_model.component_pods import exchange_steps, replaces
from resources.cluster_model.pods import is_component, templates_of
from resources.cluster_model.quota_scopes import QuotaScope, is_in_scopes, scopes_of

PLAIN: Final = frozenset(
    {"pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "resourcequotas", "replicationcontrollers"}
)
"""Kinds of the core group that a quota may also limit without `count/`."""
COMPUTE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources whose requests a quota may also limit without `requests.`."""

CLAIMS: Final = f"count/{kinds.RESOURCE_CLAIM.plural}.{kinds.RESOURCE_CLAIM.group}"

Amounts = Mapping[str, Decimal]
"""Name as in a quota's `hard`, e.g. `pods`, `requests.cpu`, `count/podcliques.grove.io` -> how much of it."""
_KINDS: Final[Mapping[tuple[str, str], Kind]] = {(kind.group, kind.name): kind for kind in kinds.KINDS}


class Shortage(Struct, frozen=True):
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


class _Use(Struct):
    """How much more than at the beginning exists of one limit in one namespace."""

    now: Decimal = Decimal()
    most: Decimal = Decimal()
    exchanged: Decimal = Decimal()
    """The most that one Deployment needs beyond `now` before any of its earlier pods goes."""
    roots: set[ResourceId] = field(default_factory=set)

    def add(self, number: Decimal, root: ResourceId) -> None:
        """Count what a root creates (or, below zero, what is gone)."""
        self.now += number
        self.most = max(self.most, self.now)
        if number > 0:
            self.roots.add(root)


def shortages(quotas: Iterable[Live], forecast: Forecast, world: World) -> Iterator[Shortage]:
    """What the quotas do not allow. Quotas with unknown scopes and those without a status are left out.

    What is deleted counts until the pass after that; pods of a Deployment that stay until new ones are ready, to the end.
    """
    by_scopes: dict[tuple[QuotaScope, ...], Mapping[tuple[str, str], _Use]] = {}
    for quota in quotas:
        status, scopes = mapping(quota.body.get("status")), scopes_of(mapping(quota.body.get("spec")))
        if scopes is None:
            continue
        if scopes not in by_scopes:
            by_scopes[scopes] = _uses(forecast, world, scopes)
        used = mapping(status.get("used"))
        for what, hard in mapping(status.get("hard")).items():
            use = by_scopes[scopes].get((quota.id.namespace, canonical(str(what))))
            limit, taken = amount(str(hard)), amount(str(used.get(what, "0")))
            if use is None or limit is None or taken is None:
                continue
            to_the_end = use.now + use.exchanged
            if taken + max(use.most, to_the_end) <= limit:
                continue
            lasting = taken + to_the_end > limit
            needed = to_the_end if lasting else use.most
            yield Shortage(quota.id, str(what), needed, max(Decimal(), limit - taken), lasting, frozenset(use.roots))


def canonical(what: str) -> str:
    """One name for each limit: `requests.cpu` for `cpu`, `pods` for `count/pods`."""
    if what in COMPUTE:
        return f"requests.{what}"
    return plain if (plain := what.removeprefix("count/")) in PLAIN else what


def _uses(forecast: Forecast, world: World, scopes: Sequence[QuotaScope] = ()) -> Mapping[tuple[str, str], _Use]:
    """(Namespace, limit) -> how much more of it is used in the course of the forecast. `scopes`: only by pods that are in all of these."""
    uses: dict[tuple[str, str], _Use] = defaultdict(_Use)
    lives = [live for observed in world.roots for live in observed.lives()]
    sizes = {live.id: amounts_of(live.id, live.body, scopes) for live in lives}
    specs = {live.id: mapping(live.body.get("spec")) for live in lives if is_component(live.id)}
    for each in forecast.passes:
        operations = [(root, operation) for root, listed in each.operations.items() for operation in listed]
        for root, operation in operations:
            if isinstance(operation, Create):
                sizes[operation.id] = amounts_of(operation.id, operation.manifest, scopes)
                _add(uses, operation, sizes[operation.id], 1, root)
                if is_component(operation.id):
                    specs[operation.id] = mapping(operation.manifest.get("spec"))
            elif isinstance(operation, Patch) and operation.id in specs:
                _add(uses, operation, sizes[operation.id], -1, root)
                old, new = specs[operation.id], merge_patch(specs[operation.id], mapping(operation.patch.get("spec")))
                specs[operation.id], sizes[operation.id] = new, amounts_of(operation.id, {"spec": new}, scopes)
                _add(uses, operation, sizes[operation.id], 1, root)
                for what, number in _exchanged(old, new, scopes).items():
                    use = uses[operation.id.namespace, what]
                    use.exchanged = max(use.exchanged, number)
                    use.roots.add(root)
        for root, operation in operations:
            if isinstance(operation, Delete):
                _add(uses, operation, sizes.pop(operation.id, {}), -1, root)
    return uses


def _add(uses: Mapping[tuple[str, str], _Use], operation: Operation, amounts: Amounts, sign: int, root: ResourceId) -> None:
    for what, number in amounts.items():
        uses[operation.id.namespace, what].add(sign * number, root)


def _exchanged(old: Mapping[str, Any], new: Mapping[str, Any], scopes: Sequence[QuotaScope]) -> Amounts:
    """What a Deployment that replaces its pods needs at a time beyond what it needs in the end, because earlier pods have to stay."""
    if not replaces(old, new):
        return {}
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
    return {**counted, **component_amounts(spec, scopes)} if is_component(id) else counted


def component_amounts(spec: Mapping[str, Any], scopes: Sequence[QuotaScope] = ()) -> Amounts:
    """The pods that the controller of a Deployment or LeaderWorkerSet creates, and what they request together."""
    templates = [(number, mapping(template.get("spec"))) for number, template in templates_of(spec).values()]
    sized = [(number, pod_amounts(pod)) for number, pod in templates if is_in_scopes(pod, scopes)]
    return _sum({"pods": Decimal(number), **{what: number * size for what, size in sizes.items()}} for number, sizes in sized)


def pod_amounts(spec: Mapping[str, Any]) -> Amounts:
    """`requests.…` and `limits.…` of a pod: its containers together, or its largest init container, and its overhead.

    Then the claims that are made for it from templates.
    """
    running = _sum(_container(each) for each in mappings(spec.get("containers")))
    for each in mappings(spec.get("initContainers")):
        initial = _container(each)
        if each.get("restartPolicy") == "Always":
            running = _sum((running, initial))
        else:
            running = {what: max(running.get(what, Decimal()), initial.get(what, Decimal())) for what in running.keys() | initial.keys()}
    overhead = {f"requests.{what}": number for what, number in _numbers(spec.get("overhead")).items()}
    made = sum(bool(each.get("resourceClaimTemplateName")) for each in mappings(spec.get("resourceClaims")))
    return _sum((running, overhead, {CLAIMS: Decimal(made)} if made else {}))


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


def text_of(shortage: Shortage) -> str:
    """A shortage as a sentence, with what to do."""
    allowed, needed = f"{shortage.allowed.normalize():f}", f"{shortage.needed.normalize():f}"
    limit = f"it allows {allowed} more {shortage.what}, and {needed} are needed"
    if shortage.lasting:
        return f"{limit}: the API server will refuse the rest; raise the quota or ask for less"
    return f"{limit} for a time: some objects are created only when others are gone"


def by_root(listed: Sequence[Shortage]) -> Mapping[ResourceId, Sequence[Shortage]]:
    """Root -> the shortages that concern it."""
    concerned: dict[ResourceId, list[Shortage]] = defaultdict(list)
    for shortage in listed:
        for root in sorted(shortage.roots):
            concerned[root].append(shortage)
    return concerned
