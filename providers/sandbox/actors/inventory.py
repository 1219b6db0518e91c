"""Inventory: the devices that drivers have published on nodes, by the device classes that select them."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from providers.sandbox.actors.body import Body, Key
from providers.sandbox.actors.reflector import Reflection
from providers.sandbox.installation.kinds import DEVICE_CLASS, DRIVER, RESOURCE_SLICE

COMPARISON: Final = re.compile(
    r"""\s*device\.(?:(?P<driver>driver)|attributes\[(?P<q>['"])(?P<domain>[^'"]+)(?P=q)\]\.(?P<name>\w+))\s*==\s*"""
    r"""(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<number>-?\d{1,18})|(?P<bool>true|false))\s*"""
)
"""What of CEL is understood here: comparisons with a literal, all of which must hold."""


class Device(NamedTuple):
    """One device of a node."""

    driver: str
    pool: str
    name: str


class Test(NamedTuple):
    """One comparison: of the driver (no name), or of an attribute of a domain."""

    domain: str
    name: str
    value: Any


class Inventory:
    """Classes and slices; `changed` is told of the nodes whose devices are others now (None: any)."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.classes = Reflection(DEVICE_CLASS, self._saw)
        self.slices = Reflection(RESOURCE_SLICE, self._saw)
        self._tests: dict[str, tuple[Test, ...] | None] = {}
        self._by_node: dict[str, dict[str, tuple[Device, ...]]] | None = None

    def _saw(self, key: Key, old: Body | None, new: Body | None) -> None:
        if (old or {}).get("spec") != (new or {}).get("spec"):
            self._tests.clear()
            self._by_node = None
            self._changed()

    def is_simulated(self, device_class: str) -> bool:
        """Whether there are as many devices of the class as anybody asks for: nobody publishes any of its driver's."""
        drivers = {test.domain if test.name else test.value for test in self._tests_of(device_class) or ()}
        if not drivers or DRIVER in drivers:
            return not drivers
        return all(body["spec"].get("driver") not in drivers for body in self.slices.objects.values())

    def devices(self, node: str, device_class: str) -> tuple[Device, ...]:
        """The devices of the class on the node, whoever has them."""
        return self.classes_of(node).get(device_class, ())

    def classes_of(self, node: str) -> Mapping[str, tuple[Device, ...]]:
        """All devices of the node, by class."""
        if self._by_node is None:
            self._by_node = self._sorted()
        return self._by_node.get(node, {})

    def _sorted(self) -> dict[str, dict[str, tuple[Device, ...]]]:
        found: dict[str, dict[str, tuple[Device, ...]]] = {}
        tests = {name: self._tests_of(name) for _, name in self.classes.objects}
        for body in self.slices.objects.values():
            spec = body["spec"]
            if not spec.get("nodeName"):
                continue  # What is reached over a network is not simulated.
            driver, pool = spec.get("driver", ""), (spec.get("pool") or {}).get("name", "")
            classes = found.setdefault(spec["nodeName"], {})
            for name, selector in tests.items():
                fitting = tuple(
                    Device(driver, pool, one["name"])
                    for one in spec.get("devices") or ()
                    if selector is not None and _fits(selector, driver, one)
                )
                if fitting:
                    classes[name] = (*classes.get(name, ()), *fitting)
        return found

    def _tests_of(self, device_class: str) -> tuple[Test, ...] | None:
        """What the class asks of a device; None where there is no such class, or it says more than is understood."""
        if device_class not in self._tests:
            body = self.classes.get("", device_class)
            self._tests[device_class] = _tests(body) if body is not None else None
        return self._tests[device_class]


def _tests(device_class: Body) -> tuple[Test, ...] | None:
    parts = [
        part
        for selector in (device_class.get("spec") or {}).get("selectors") or ()
        for part in str((selector.get("cel") or {}).get("expression", "")).split("&&")
    ]
    found = [COMPARISON.fullmatch(part) for part in parts]
    return tuple(_test(one) for one in found if one) if all(found) else None


def _test(found: "re.Match[str]") -> Test:
    text = found["single"] if found["single"] is not None else found["double"]
    value = text if text is not None else int(found["number"]) if found["number"] else found["bool"] == "true"
    return Test(found["domain"] or "", found["name"] or "", value)


def _fits(tests: Iterable[Test], driver: str, device: Body) -> bool:
    attributes = device.get("attributes") or {}
    return all(test.value == driver if not test.name else _value(attributes, driver, test) == test.value for test in tests)


def _value(attributes: Mapping[str, Any], driver: str, test: Test) -> Any:
    """An attribute; one without a domain in its name is of its driver's."""
    found = attributes.get(f"{test.domain}/{test.name}") or (attributes.get(test.name) if test.domain == driver else None) or {}
    return next(iter(found.values()), None)
