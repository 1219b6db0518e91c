"""Allocation: devices for a ResourceClaim on a node: published ones, or made-up ones where nobody publishes any."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from providers.sandbox.actors.inventory import Device, Inventory

Body = Mapping[str, Any]
Pick = Callable[[Body, str], Iterable[Device]]


def classes_of(claim: Body) -> Mapping[str, int]:
    """How many devices of which class the claim asks for; of alternatives, the first."""
    wanted: dict[str, int] = {}
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        exact, _ = _exact(request)
        wanted[exact.get("deviceClassName", "")] = wanted.get(exact.get("deviceClassName", ""), 0) + (exact.get("count") or 1)
    return wanted


def is_simulated(claim: Body, inventory: Inventory) -> bool:
    """Whether all its devices are to be made up."""
    return all(inventory.is_simulated(name) for name in classes_of(claim))


def made_up(claim: Body, node: str) -> dict[str, Any]:
    """The allocation that the claim's status records. The name of the device class stands for the driver's."""
    return _allocation(claim, lambda exact, name: _made_up(exact, name, node))


def published(claim: Body, node: str, inventory: Inventory, taken: Collection[Device]) -> dict[str, Any] | None:
    """The same with devices that are free on the node; None where there are too few. Other nodes have none of it."""
    used = set(taken)
    short = False

    def pick(exact: Body, name: str) -> Iterable[Device]:
        nonlocal short
        device_class, count = exact.get("deviceClassName", ""), exact.get("count") or 1
        if inventory.is_simulated(device_class):
            return _made_up(exact, name, node)
        found = [device for device in inventory.devices(node, device_class) if device not in used][:count]
        used.update(found)
        short = short or len(found) < count
        return found

    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = _allocation(claim, pick) | {"nodeSelector": {"nodeSelectorTerms": terms}}
    return None if short else allocation


def devices_of(claim: Body) -> list[Device]:
    """The devices that the claim has."""
    results = (((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}).get("results") or ()
    return [Device(one["driver"], one["pool"], one["device"]) for one in results]


def pinned_to(claim: Body) -> str:
    """The one node on which an allocated claim can be used; empty: anywhere."""
    selector = ((claim.get("status") or {}).get("allocation") or {}).get("nodeSelector") or {}
    fields = [rule for term in selector.get("nodeSelectorTerms") or () for rule in term.get("matchFields") or ()]
    return next((rule["values"][0] for rule in fields if rule["key"] == "metadata.name" and rule.get("values")), "")


def _allocation(claim: Body, pick: Pick) -> dict[str, Any]:
    devices = claim["spec"].get("devices") or {}
    results = []
    for request in devices.get("requests") or ():
        exact, name = _exact(request)
        results += [{"request": name, "driver": one.driver, "pool": one.pool, "device": one.name} for one in pick(exact, request["name"])]
    config = [{"source": "FromClaim", **one} for one in devices.get("config") or ()]
    return {"devices": {"results": results} | ({"config": config} if config else {})}


def _exact(request: Body) -> tuple[Body, str]:
    """What is asked for, and under which name it is answered."""
    if alternatives := request.get("firstAvailable"):
        return alternatives[0], f"{request['name']}/{alternatives[0]['name']}"
    return request.get("exactly") or {}, request["name"]


def _made_up(exact: Body, name: str, node: str) -> Iterable[Device]:
    return [Device(exact.get("deviceClassName", ""), node, f"{name}-{number}") for number in range(min(exact.get("count") or 1, MOST))]


MOST = 32
"""So many devices a claim can have."""
