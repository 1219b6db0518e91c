"""Addons: what can be installed into the sandbox besides Grove's kinds and NVIDIA's DRA driver, by name."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from grove_sandbox.installation import kai, lws, volcano
from grove_sandbox.product import Kind

Installation = Callable[[], Iterable[tuple[Kind, Mapping[str, Any]]]]

ADDONS: Final[Mapping[str, Installation]] = {"lws": lws.installation, "volcano": volcano.installation, "kai": kai.installation}
"""The add-ons by the names that users choose them by. The actors `lws` and `scheduler` do what their controllers do."""


def addon_objects(names: Iterable[str]) -> Iterable[tuple[Kind, Mapping[str, Any]]]:
    """The objects of these add-ons in the order in which they can be created. Raises `KeyError` for a name that is not in `ADDONS`."""
    for name in dict.fromkeys(names):
        yield from ADDONS[name]()
