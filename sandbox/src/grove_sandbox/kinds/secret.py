"""Secrets, ConfigMaps and ServiceAccounts."""

import base64
import re

from grove_sandbox.kinds.rules import Draft, Rules
from grove_sandbox.product import Body
from grove_sandbox.types import causes
from grove_sandbox.types.status import Cause

_ACCOUNT = "kubernetes.io/service-account.name"
_KEY = r"[-._a-zA-Z0-9]+"
_KEY_FAULT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')"
)
_IMMUTABLE = "field is immutable when `immutable` is set"
_MOST_BYTES = 1024 * 1024


def _default_secret(secret: Draft) -> None:
    secret.setdefault("type", "Opaque")
    for key, text in (secret.pop("stringData", None) or {}).items():
        secret.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _secret_faults(secret: Body) -> list[Cause]:
    faults = _key_faults(secret, ("data",))
    annotations = secret["metadata"].get("annotations") or {}
    if secret["type"] == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        faults.append(causes.required(f"metadata.annotations[{_ACCOUNT}]"))
    return faults


def _key_faults(body: Body, parts: tuple[str, ...]) -> list[Cause]:
    faults: list[Cause] = []
    size = 0
    for part in parts:
        for key, value in (body.get(part) or {}).items():
            size += len(value)
            if not re.fullmatch(_KEY, key):
                faults.append(causes.invalid(f"{part}[{key}]", key, _KEY_FAULT))
    if size > _MOST_BYTES:
        faults.append(causes.too_long("data", _MOST_BYTES))
    return faults


def _secret_change_faults(new: Body, old: Body) -> list[Cause]:
    return causes.changed("type", new["type"], old["type"]) + _immutable_faults(new, old, ("data",))


def _immutable_faults(new: Body, old: Body, parts: tuple[str, ...]) -> list[Cause]:
    if not old.get("immutable"):
        return []
    faults = [] if new.get("immutable") else [causes.forbidden("immutable", _IMMUTABLE)]
    return faults + [causes.forbidden(part, _IMMUTABLE) for part in parts if new.get(part) != old.get(part)]


def _config_map_faults(config: Body) -> list[Cause]:
    return _key_faults(config, ("data", "binaryData"))


def _config_map_change_faults(new: Body, old: Body) -> list[Cause]:
    return _immutable_faults(new, old, ("data", "binaryData"))


SECRET = Rules(default=_default_secret, validate=_secret_faults, validate_change=_secret_change_faults)
CONFIG_MAP = Rules(validate=_config_map_faults, validate_change=_config_map_change_faults)
SERVICE_ACCOUNT = Rules(returns_deleted=True)
