"""Configs: what a claim tells the driver about its devices, read as strictly as the driver does. It comes from users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from providers.sandbox.actors.body import Body, status_of
from providers.sandbox.installation.kinds import CHANNEL_CONFIG, CONFIG_VERSION, DAEMON_CONFIG, DRIVER

_FIELDS: Final = {
    CHANNEL_CONFIG: frozenset({"apiVersion", "kind", "domainID", "allocationMode"}),
    DAEMON_CONFIG: frozenset({"apiVersion", "kind", "domainID"}),
}


@dataclass(frozen=True, slots=True)
class Config:
    """For which domain, and what."""

    domain: str
    is_channel: bool


def config_of(claim: Body) -> Config:
    """The config of the claim. Raises `ValueError` for one that can never be prepared."""
    devices = (status_of(claim).get("allocation") or {}).get("devices") or {}
    found = [one["opaque"].get("parameters") for one in devices.get("config") or () if (one.get("opaque") or {}).get("driver") == DRIVER]
    if not found:
        raise ValueError("no opaque configuration for this driver")
    # Later ones overrule earlier ones, and what is overruled must be right as well.
    return [_read(parameters) for parameters in found][-1]


def _read(parameters: Any) -> Config:
    if not isinstance(parameters, Mapping):
        raise ValueError("error decoding config parameters: not an object")
    kind = parameters.get("kind")
    if not isinstance(kind, str) or kind not in _FIELDS or parameters.get("apiVersion") != CONFIG_VERSION:
        raise ValueError(
            f"error decoding config parameters: no kind {_shown(kind)} is registered for {_shown(parameters.get('apiVersion'))}"
        )
    for name in parameters:
        if name not in _FIELDS[kind]:
            raise ValueError(f"strict decoding error: unknown field {_shown(name)}")
    domain = parameters.get("domainID")
    if not isinstance(domain, str) or not domain:
        raise ValueError("invalid config: domainID cannot be empty")
    return Config(domain, kind == CHANNEL_CONFIG)


def _shown(text: Any) -> str:
    """A stranger's word, short and on one line."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in str(text)[:80])
    return f'"{plain}"'
