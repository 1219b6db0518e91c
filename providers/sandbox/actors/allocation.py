"""Allocation: devices for a ResourceClaim, made up on the node of its first consumer: simulated nodes have as many as are asked for."""

from collections.abc import Iterable, Mapping
from typing import Any

Body = Mapping[str, Any]


def allocation(claim: Body, node: str) -> dict[str, Any]:
    """The allocation that the claim's status records. The name of the device class stands for the driver's."""
    devices = claim["spec"].get("devices") or {}
    results = [result for request in devices.get("requests") or () for result in _results(request, node)]
    config = [{"source": "FromClaim", **one} for one in devices.get("config") or ()]
    return {"devices": {"results": results} | ({"config": config} if config else {})}


def _results(request: Body, node: str) -> Iterable[dict[str, Any]]:
    name = request["name"]
    if alternatives := request.get("firstAvailable"):
        exact, asked = alternatives[0], f"{name}/{alternatives[0]['name']}"
    else:
        exact, asked = request.get("exactly") or {}, name
    for number in range(exact.get("count") or 1):
        yield {"request": asked, "driver": exact.get("deviceClassName", ""), "pool": node, "device": f"{name}-{number}"}
