"""Registry: the plug-ins that a configuration can name. A new one is a file and a line here, or an entry point of another package."""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from providers.fabrics import nvidia
from providers.schedulers.kube import KubeScheduler
from resources.ports import Fabric, Scheduler
from resources.settings import Settings

SCHEDULERS: Mapping[str, Scheduler] = {scheduler.name: scheduler for scheduler in (KubeScheduler(),)}

FABRICS: tuple[Callable[[Settings], Fabric], ...] = (nvidia.configured,)
"""Every fabric, as things are configured."""

PLUG_INS = "engine.fabrics"
"""The group of entry points under which other packages offer fabrics: functions like those above."""


def fabrics(settings: Settings) -> tuple[Fabric, ...]:
    """Our own fabrics, then those that are installed beside us, by name."""
    offered = sorted(entry_points(group=PLUG_INS), key=lambda point: point.name)
    return tuple(configured(settings) for configured in (*FABRICS, *(point.load() for point in offered)))
