"""Registry: the schedulers and fabrics that there are. A new one is a file and a line here, or an entry point of another package."""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from engine.errors import InputError
from providers.fabrics.nvidia import fabric as nvidia
from providers.schedulers.kai import KaiScheduler
from providers.schedulers.kube import KubeScheduler
from providers.schedulers.lpx import LpxScheduler
from providers.schedulers.volcano import VolcanoScheduler
from resources.ports.fabric import Fabric
from resources.ports.scheduler import Scheduler
from resources.settings import Settings

BACK_ENDS: tuple[Scheduler, ...] = (KubeScheduler(), KaiScheduler(), VolcanoScheduler(), LpxScheduler())
SCHEDULERS: Mapping[str, Scheduler] = {scheduler.name: scheduler for scheduler in BACK_ENDS}

FABRICS: tuple[Callable[[Settings], Fabric], ...] = (nvidia.configured,)
"""The functions that make our fabrics from the settings."""

PLUG_INS = "engine.fabrics"
"""The entry point group of fabrics in other packages: functions from settings to a fabric, like those above."""


def fabrics(settings: Settings) -> tuple[Fabric, ...]:
    """Our fabrics, then those of other installed packages by name. Raises `InputError` if one cannot be loaded or two have one kind."""
    plug_ins = sorted(entry_points(group=PLUG_INS), key=lambda point: point.name)
    loaded = (*(configured(settings) for configured in FABRICS), *(_loaded(point, settings) for point in plug_ins))
    by_kind: dict[str, Fabric] = {}
    for fabric in loaded:
        # Identities of objects hold the name of the kind, not its version: two fabrics must not share one.
        other = by_kind.setdefault(fabric.kind.name, fabric)
        if other is not fabric:
            raise InputError(f"the fabrics {other.name} and {fabric.name} both use the kind {fabric.kind.name} for their domains")
    return loaded


def _loaded(point: EntryPoint, settings: Settings) -> Fabric:
    """The fabric of another package. Any exception while loading it becomes an `InputError`."""
    try:
        fabric = point.load()(settings)
        if not isinstance(fabric, Fabric):
            raise TypeError(f"it makes {fabric!r:.80}, which is no {Fabric.__module__}.{Fabric.__name__}")
    except Exception as error:
        raise InputError(f"the plug-in {point.name} = {point.value} ({PLUG_INS}) cannot be used: {error}") from error
    return fabric
