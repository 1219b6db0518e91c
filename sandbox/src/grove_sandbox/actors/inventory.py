"""Inventory: the devices that drivers have published on nodes, by device class, and allocations of them to claims."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from grove_sandbox.actors.body import Body, Key
from grove_sandbox.actors.claim_fields import Device, requested_classes, requests_of
from grove_sandbox.actors.store import InformerStore
from grove_sandbox.product import kinds, nvidia

COMPARISON: Final = re.compile(
    r"""\s*device\.(?:(?P<driver>driver)|attributes\[(?P<q>['"])(?P<domain>[^'"]+)(?P=q)\]\.(?P<name>\w+))\s*==\s*"""
    r"""(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<number>-?\d{1,18})|(?P<bool>true|false))\s*"""
)
"""The supported part of CEL: comparisons with a literal, all of which must hold."""
MAXIMUM: Final = 32
"""How many devices a claim can have."""


class SelectorTerm(NamedTuple):
    """One comparison of a selector: of the driver (no name), or of an attribute in a domain."""

    domain: str
    name: str
    value: Any


class Inventory:
    """Device classes and ResourceSlices; `on_change` is called when the devices of any node may have changed."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self.classes = InformerStore(kinds.DEVICE_CLASS, self._on_object)
        self.slices = InformerStore(kinds.RESOURCE_SLICE, self._on_object)
        self._selectors: dict[str, tuple[SelectorTerm, ...] | None] = {}
        self._by_node: dict[str, dict[str, tuple[Device, ...]]] | None = None

    def _on_object(self, key: Key, old: Body | None, new: Body | None) -> None:
        if (old or {}).get("spec") != (new or {}).get("spec"):
            self._selectors.clear()
            self._by_node = None
            self._on_change()

    def is_simulated(self, device_class: str) -> bool:
        """Whether the class has as many devices as requested, because no driver publishes such devices. One that is missing has none."""
        if self.classes.get("", device_class) is None:
            return False
        drivers = {test.domain if test.name else test.value for test in self._selector(device_class) or ()}
        if not drivers or nvidia.DRIVER in drivers:
            return not drivers
        return all(body["spec"].get("driver") not in drivers for body in self.slices.objects.values())

    def is_simulated_claim(self, claim: Body) -> bool:
        """Whether all devices that the claim requests are simulated."""
        return all(self.is_simulated(name) for name in requested_classes(claim))

    def classes_of(self, node: str) -> Mapping[str, tuple[Device, ...]]:
        """The devices of the node by class, whether allocated or not."""
        if self._by_node is None:
            self._by_node = self._devices_by_node()
        return self._by_node.get(node, {})

    def allocation(self, claim: Body, node: str, taken: Collection[Device]) -> dict[str, Any] | None:
        """An allocation of devices of the node that are not taken; None if there are too few. The devices can be used there only."""
        unavailable = set(taken)
        results: list[tuple[str, Device]] = []
        for name, request in requests_of(claim):
            device_class, count = request.get("deviceClassName", ""), request.get("count") or 1
            if self.is_simulated(device_class):
                results += _simulated(name, request, node)
                continue
            devices = [device for device in self.classes_of(node).get(device_class, ()) if device not in unavailable][:count]
            if len(devices) < count:
                return None
            unavailable.update(devices)
            results += [(name, device) for device in devices]
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        return _allocation(claim, results) | {"nodeSelector": {"nodeSelectorTerms": terms}}

    def _devices_by_node(self) -> dict[str, dict[str, tuple[Device, ...]]]:
        by_node: dict[str, dict[str, tuple[Device, ...]]] = {}
        selectors = {name: self._selector(name) for _, name in self.classes.objects}
        for body in self.slices.objects.values():
            spec = body["spec"]
            if not spec.get("nodeName"):
                continue  # Network-attached devices are not simulated.
            driver, pool = spec.get("driver", ""), (spec.get("pool") or {}).get("name", "")
            classes = by_node.setdefault(spec["nodeName"], {})
            for name, selector in selectors.items():
                matches = tuple(
                    Device(driver, pool, device["name"])
                    for device in spec.get("devices") or ()
                    if selector is not None and _matches(selector, driver, device)
                )
                if matches:
                    classes[name] = (*classes.get(name, ()), *matches)
        return by_node

    def _selector(self, device_class: str) -> tuple[SelectorTerm, ...] | None:
        """The comparisons of the class; None if it does not exist, or uses more of CEL than is supported."""
        if device_class not in self._selectors:
            body = self.classes.get("", device_class)
            self._selectors[device_class] = _parse_selector(body) if body is not None else None
        return self._selectors[device_class]


def simulated_allocation(claim: Body, node: str) -> dict[str, Any]:
    """An allocation of simulated devices. The name of the device class is used as that of the driver."""
    return _allocation(claim, [result for name, request in requests_of(claim) for result in _simulated(name, request, node)])


def _simulated(name: str, request: Body, node: str) -> list[tuple[str, Device]]:
    prefix, count = name.partition("/")[0], min(request.get("count") or 1, MAXIMUM)
    return [(name, Device(request.get("deviceClassName", ""), node, f"{prefix}-{number}")) for number in range(count)]


def _allocation(claim: Body, devices: Iterable[tuple[str, Device]]) -> dict[str, Any]:
    results = [{"request": name, "driver": device.driver, "pool": device.pool, "device": device.name} for name, device in devices]
    config = [{"source": "FromClaim", **entry} for entry in (claim["spec"].get("devices") or {}).get("config") or ()]
    return {"devices": {"results": results} | ({"config": config} if config else {})}


def _parse_selector(device_class: Body) -> tuple[SelectorTerm, ...] | None:
    expressions = [
        part
        for selector in (device_class.get("spec") or {}).get("selectors") or ()
        for part in str((selector.get("cel") or {}).get("expression", "")).split("&&")
    ]
    matches = [COMPARISON.fullmatch(expression) for expression in expressions]
    return tuple(_comparison(match) for match in matches if match) if all(matches) else None


def _comparison(match: "re.Match[str]") -> SelectorTerm:
    text = match["single"] if match["single"] is not None else match["double"]
    value = text if text is not None else int(match["number"]) if match["number"] else match["bool"] == "true"
    return SelectorTerm(match["domain"] or "", match["name"] or "", value)


def _matches(selector: Iterable[SelectorTerm], driver: str, device: Body) -> bool:
    attributes = device.get("attributes") or {}
    return all(test.value == (_attribute(attributes, driver, test) if test.name else driver) for test in selector)


def _attribute(attributes: Mapping[str, Any], driver: str, test: SelectorTerm) -> Any:
    """The attribute; a name without a domain belongs to the domain of the driver."""
    attribute = attributes.get(f"{test.domain}/{test.name}") or (attributes.get(test.name) if test.domain == driver else None) or {}
    return next(iter(attribute.values()), None)
