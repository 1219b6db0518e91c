"""Pod amounts: the rules for resources that containers, pods and claims request."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from engine.quantity import amount
from resources.schema.formats import qualified_faults
from resources.schema.issues import Issue, Path
from resources.schema.pod_checks import Fields, entries, forbidden, invalid, missing, part, unsupported

LARGEST: Final = Decimal(2**63 - 1)
"""A server takes larger amounts for this one."""
SMALLEST: Final = 9
"""The decimal places of the smallest amount, to which a server rounds up."""
LONGEST_AMOUNT: Final = 100
MOST_BITS: Final = 300
"""No amount is written with more characters or bits."""
NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""The resources of Kubernetes itself that a container may request, beside huge pages."""
COMPUTE: Final = ("cpu", "memory")
STORAGE: Final = frozenset({"storage", "pods", "services", "secrets", "configmaps", "resourcequotas", "replicationcontrollers"})
HUGE_PAGES: Final = "hugepages-"
WHOLE: Final = frozenset({"pods", "services", "secrets", "configmaps", "resourcequotas", "replicationcontrollers"})
QUOTA_PREFIX: Final = "requests."
DOMAIN: Final = "kubernetes.io/"
MEMORY_UNITS: Final = ("1", *(f"1{unit}" for unit in ("k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")))
DIVISORS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "cpu": (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "memory": (MEMORY_UNITS, f"only divisor's values {', '.join(MEMORY_UNITS)} are supported with the memory resource"),
    "ephemeral-storage": (
        MEMORY_UNITS,
        f"only divisor's values {', '.join(MEMORY_UNITS)} are supported with the local ephemeral storage resource",
    ),
    HUGE_PAGES: (MEMORY_UNITS, f"only divisor's values {', '.join(MEMORY_UNITS)} are supported with the hugepages resource"),
}
"""Resource, or the beginning of its name -> the divisors that a field reference may have, and what to say of others."""
EXPOSED: Final = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory"))


def amount_of(value: Any) -> Decimal | None:
    """The number that a quantity stands for, within what a server can count; None if it is none."""
    is_huge = isinstance(value, int) and value.bit_length() > MOST_BITS
    if isinstance(value, bool) or not isinstance(value, str | int | float) or is_huge or len(text := str(value)) > LONGEST_AMOUNT:
        return None
    number = amount(text)
    if not number or -SMALLEST <= number.adjusted() <= LARGEST.adjusted():
        return number
    return (LARGEST if number.adjusted() > 0 else Decimal(1).scaleb(-9)).copy_sign(number)


def is_extended(name: str) -> bool:
    """Whether a resource is one of a vendor, e.g. `nvidia.com/gpu`."""
    return "/" in name and DOMAIN not in name and not name.startswith(QUOTA_PREFIX)


def may_differ(name: str) -> bool:
    """Whether the request of a resource may be smaller than its limit."""
    return ("/" not in name or DOMAIN in name) and not name.startswith(HUGE_PAGES)


def container_name_faults(name: str) -> Iterator[str]:
    """What is wrong with the name of a resource that a container requests."""
    if faults := qualified_faults(name):
        yield from faults
    elif "/" not in name and name not in NATIVE and not name.startswith(HUGE_PAGES):
        yield "must be a standard resource for containers" if name in STORAGE else "must be a standard resource type or fully qualified"
    elif "/" in name and DOMAIN not in name and (name.startswith(QUOTA_PREFIX) or qualified_faults(f"{QUOTA_PREFIX}{name}")):
        yield "doesn't follow extended resource name standard"


def value_faults(name: str, value: Decimal) -> Iterator[str]:
    """What is wrong with the amount of a resource."""
    if value < 0:
        yield "must be greater than or equal to 0"
    if (is_extended(name) or name in WHOLE) and value != value.to_integral_value():
        yield "must be an integer"
    if name.startswith(HUGE_PAGES):
        page = amount(name.removeprefix(HUGE_PAGES))
        if page is None or page <= 0 or page != page.to_integral_value() or value % page:
            yield f"{value} is not positive integer multiple of {name}"


def amount_issues(amounts: Fields, path: Path) -> Iterator[Issue]:
    """What is wrong with the amounts of a map of resources, whatever their names are."""
    for name, value in amounts.items():
        if (number := amount_of(value)) is not None:
            yield from (invalid((*path, name), value, message) for message in value_faults(str(name), number))


def requirements(resources: Fields, path: Path) -> Iterator[Issue]:
    """The rules for requests and limits, for containers and for pods."""
    limits, requests = part(resources, "limits"), part(resources, "requests")
    for field, amounts in (("limits", limits), ("requests", requests)):
        yield from amount_issues(amounts, (*path, field))
    for name, value in requests.items():
        request, limit = amount_of(value), amount_of(limits.get(name))
        if request is None:
            continue
        if limits.get(name) is None:
            if not may_differ(name):
                yield missing((*path, "limits"), f"Limit must be set for non overcommitable resources: {name}")
        elif limit is not None and request != limit and not may_differ(name):
            yield invalid((*path, "requests", name), value, f"must be equal to {name} limit of {limits[name]}")
        elif limit is not None and request > limit:
            yield invalid((*path, "requests", name), value, f"must be less than or equal to {name} limit of {limits[name]}")
    names = {*limits, *requests}
    if any(str(name).startswith(HUGE_PAGES) for name in names) and not names.intersection(COMPUTE):
        yield forbidden(path, "HugePages require cpu or memory")


def container_requirements(resources: Fields, path: Path) -> Iterator[Issue]:
    """The rules for the resources of a container."""
    for field in ("limits", "requests"):
        for name in part(resources, field):
            yield from (invalid((*path, field, name), name, message) for message in container_name_faults(str(name)))
    yield from requirements(resources, path)


def pod_requirements(spec: Fields, path: Path) -> Iterator[Issue]:
    """The rules for the resources of a pod as a whole, which bound those of its containers."""
    resources, path = part(spec, "resources"), (*path, "resources")
    if resources.get("claims") is not None:
        yield forbidden((*path, "claims"), "claims may not be set for Resources at pod-level")
    for field in ("limits", "requests"):
        for name in part(resources, field):
            if faults := [*qualified_faults(str(name))]:
                yield from (invalid((*path, field, name), name, message) for message in faults)
            elif name not in COMPUTE and not str(name).startswith(HUGE_PAGES):
                yield unsupported((*path, field, name), name, ("cpu", HUGE_PAGES, "memory"))
    yield from requirements(resources, path)
    yield from _aggregates(spec, resources, path)


def _aggregates(spec: Fields, resources: Fields, path: Path) -> Iterator[Issue]:
    """What containers request together must fit the pod's requests, and each limit the pod's limit."""
    limits, requests = part(resources, "limits"), part(resources, "requests")
    for name, value in requests.items():
        bound, sum_ = amount_of(value), requested(spec, name)
        if bound is not None and sum_ > bound:
            yield invalid((*path, "requests", name), value, f"must be greater than or equal to aggregate container requests of {sum_}")
    for name, value in limits.items():  # Where the pod requests none, a server puts the sum of its containers.
        bound, sum_ = amount_of(value), requested(spec, name)
        if requests.get(name) is None and bound is not None and sum_ > bound:
            yield invalid((*path, "requests"), str(sum_), f"must be less than or equal to {name} limit of {value}")
    for number, container in entries(spec, "containers"):
        for name, value in part(container, "resources", "limits").items():
            limit, bound = amount_of(value), amount_of(limits.get(name))
            if limit is not None and bound is not None and limit > bound:
                at = ("containers", number, "resources", "limits", name)
                yield invalid((*path[:-1], *at), value, f"must be less than or equal to pod limits of {limits[name]}")


def requested(spec: Fields, name: str) -> Decimal:
    """What the containers of a pod request of a resource together, as the scheduler counts: of init containers what runs at a time."""
    running = sum((_request(container, name) for _, container in entries(spec, "containers")), Decimal())
    sidecars, starting = Decimal(), Decimal()
    for _, container in entries(spec, "initContainers"):
        own = _request(container, name)
        if container.get("restartPolicy") == "Always":
            sidecars += own
            own = Decimal()
        starting = max(starting, sidecars + own)
    return max(running + sidecars, starting)


def _request(container: Fields, name: str) -> Decimal:
    resources = part(container, "resources")
    value = part(resources, "requests").get(name)
    return amount_of(part(resources, "limits").get(name) if value is None else value) or Decimal()


def overhead(spec: Fields, path: Path) -> Iterator[Issue]:
    """The rules for the overhead of a pod."""
    amounts = part(spec, "overhead")
    for name in amounts:
        yield from (invalid((*path, "overhead", name), name, message) for message in container_name_faults(str(name)))
    yield from amount_issues(amounts, (*path, "overhead"))


def field_reference(selector: Fields, path: Path) -> Iterator[Issue]:
    """The rules for a reference to a resource of a container: what can be referred to, and in which unit."""
    resource = selector.get("resource")
    if not isinstance(resource, str) or not resource:
        return
    kind, _, name = resource.partition(".")
    is_huge = kind in ("limits", "requests") and name.startswith(HUGE_PAGES)
    if resource not in EXPOSED and not is_huge:
        yield unsupported((*path, "resource"), resource, EXPOSED)
    divisor = amount_of(selector.get("divisor"))
    known, message = DIVISORS.get(HUGE_PAGES if is_huge else name, ((), ""))
    if divisor and known and divisor not in {amount(each) for each in known}:
        yield invalid((*path, "divisor"), selector["divisor"], message)


def claim_storage(spec: Fields, path: Path) -> Iterator[Issue]:
    """A volume claim requests storage, more than none."""
    value = part(spec, "resources", "requests").get("storage")
    number = amount_of(value)
    if value is None:
        yield missing((*path, "resources", "requests", "storage"))
    elif number is not None and number <= 0:
        yield invalid((*path, "resources", "requests", "storage"), value, "must be greater than zero")
