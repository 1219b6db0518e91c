"""Registry: the schedulers and fabrics that there are. A new one is a file and a line here, or an entry point of another package."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name

from engine.errors import InputError
from providers.fabrics.nvidia import fabric as nvidia
from resources.ports.fabric import Fabric
from resources.ports.scheduler import Scheduler
from resources.settings import Settings

BACK_ENDS: Mapping[str, str] = {
    "default-scheduler": "providers.schedulers.kube:KubeScheduler",
    "kai-scheduler": "providers.schedulers.kai:KaiScheduler",
    "volcano": "providers.schedulers.volcano:VolcanoScheduler",
    "lpx-scheduler": "providers.schedulers.lpx:LpxScheduler",
}
"""Name of a scheduler -> the module and the class of its back end."""


class BackEnds(Mapping[str, Scheduler]):
    """The back ends by name. The module of one is imported when it is asked for: most installations have one of them."""

    def __getitem__(self, name: str) -> Scheduler:
        """The back end of that name, always the same object. Raises `KeyError` if there is none."""
        return _back_end(BACK_ENDS[name])

    def __contains__(self, name: object) -> bool:
        """Whether there is a back end of that name."""
        return name in BACK_ENDS

    def __iter__(self) -> Iterator[str]:
        """The names, in a fixed order."""
        return iter(BACK_ENDS)

    def __len__(self) -> int:
        """How many there are."""
        return len(BACK_ENDS)


SCHEDULERS: Mapping[str, Scheduler] = BackEnds()


@cache
def _back_end(place: str) -> Scheduler:
    back_end: Scheduler = resolve_name(place)()
    return back_end


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
