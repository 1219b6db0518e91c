"""Registry: the plug-ins that a configuration can name. A new one is a file and a line here, or an entry point of another package."""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from engine.errors import InputError
from providers.fabrics import nvidia
from providers.schedulers.kube import KubeScheduler
from resources.ports.fabric import Fabric
from resources.ports.scheduler import Scheduler
from resources.settings import Settings

SCHEDULERS: Mapping[str, Scheduler] = {scheduler.name: scheduler for scheduler in (KubeScheduler(),)}

FABRICS: tuple[Callable[[Settings], Fabric], ...] = (nvidia.configured,)
"""Every fabric, as things are configured."""

PLUG_INS = "engine.fabrics"
"""The group of entry points under which other packages offer fabrics: functions like those above."""


def fabrics(settings: Settings) -> tuple[Fabric, ...]:
    """Our own fabrics, then those that are installed beside us, by name. Raises `InputError` for one that cannot be used."""
    offered = sorted(entry_points(group=PLUG_INS), key=lambda point: point.name)
    found = (*(configured(settings) for configured in FABRICS), *(_loaded(point, settings) for point in offered))
    taken: dict[str, Fabric] = {}
    for fabric in found:
        # Objects are told apart by the names of their kinds, wherever they come from.
        other = taken.setdefault(fabric.kind.name, fabric)
        if other is not fabric:
            raise InputError(f"the fabrics {other.name} and {fabric.name} both call their domains {fabric.kind.name}")
    return found


def _loaded(point: EntryPoint, settings: Settings) -> Fabric:
    """A fabric of somebody else's, of whose making nothing is known but that it can fail."""
    try:
        return cast(Fabric, point.load()(settings))
    except Exception as error:
        raise InputError(f"the plug-in {point.name} = {point.value} ({PLUG_INS}) cannot be used: {error}") from error
