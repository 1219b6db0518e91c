"""ClaimConfig: the opaque configuration of a claim, which users write, parsed as strictly as the driver parses it."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from grove_sandbox.actors.body import Body, status_of
from grove_sandbox.installation.kinds import CHANNEL_CONFIG, CONFIG_VERSION
from grove_sandbox.product import DAEMON_CONFIG, DRIVER

_FIELDS: Final = {
    CHANNEL_CONFIG: frozenset({"apiVersion", "kind", "domainID", "allocationMode"}),
    DAEMON_CONFIG: frozenset({"apiVersion", "kind", "domainID"}),
}


class ClaimConfig(Struct, frozen=True):
    """The uid of the domain, and whether the device is a channel of it (or its daemon)."""

    domain: str
    is_channel: bool


def config_of(claim: Body) -> ClaimConfig:
    """The configuration of the claim. Raises `ValueError` if it can never be prepared."""
    devices = (status_of(claim).get("allocation") or {}).get("devices") or {}
    opaque = [entry.get("opaque") or {} for entry in devices.get("config") or ()]
    configs = [entry.get("parameters") for entry in opaque if entry.get("driver") == DRIVER]
    if not configs:
        raise ValueError("no opaque configuration for this driver")
    # The last one counts, and all of them must be valid.
    return [_parse(parameters) for parameters in configs][-1]


def _parse(parameters: Any) -> ClaimConfig:
    if not isinstance(parameters, Mapping):
        raise ValueError("error decoding config parameters: not an object")
    kind, version = parameters.get("kind"), parameters.get("apiVersion")
    if not isinstance(kind, str) or kind not in _FIELDS or version != CONFIG_VERSION:
        raise ValueError(f"error decoding config parameters: no kind {_quoted(kind)} is registered for {_quoted(version)}")
    for name in parameters:
        if name not in _FIELDS[kind]:
            raise ValueError(f"strict decoding error: unknown field {_quoted(name)}")
    domain = parameters.get("domainID")
    if not isinstance(domain, str) or not domain:
        raise ValueError("invalid config: domainID cannot be empty")
    return ClaimConfig(domain, kind == CHANNEL_CONFIG)


def _quoted(text: Any) -> str:
    """A user's text, clipped, on one line."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in str(text)[:80])
    return f'"{printable}"'
