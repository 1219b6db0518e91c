"""The file of a saved plan, typed: what is in it and of what type. Unknown fields are refused."""

from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from engine.approval.wire_plan import WireOperation, WireRootPlan, WireRootReport
from engine.focus import Focus, Others
from engine.forecast.cluster_model import Effects
from engine.ids import ResourceId
from engine.plan import Judgement, Objection
from engine.verb import Verb

VERSION = 1
KIND = "SavedPlan"

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Replicas = Annotated[int, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A map of the file."""


class WireObject(_Strict, frozen=True, omit_defaults=True):
    """An object, or an index of a PodClique that stands for a pod."""

    kind: str
    name: str
    group: str = ""
    namespace: str = ""
    index: str = ""


class WireRoot(_Strict, frozen=True):
    """`RootState`."""

    object: WireObject
    uid: str
    generation: int
    resource_version: str
    spec_digest: str
    spec: dict[str, Any] | None
    """What sync names the edited fields with."""
    deleting: bool


class WireAllowance(_Strict, frozen=True):
    """`Allowance`."""

    verb: Verb
    object: WireObject
    uid: str
    resource_version: str
    times: Count


class WireRemoval(_Strict, frozen=True):
    """`Removal`, with the root."""

    object: WireObject
    uid: str
    why: str
    after_manifests: bool


class WireScope(_Strict, frozen=True):
    """`PlanScope`."""

    namespaces: tuple[str, ...]
    kinds: tuple[str, ...]
    focus: Focus
    allow_replace: bool
    applyset: WireObject | None
    allow_empty: bool
    take_over: bool = False


class WireReport(_Strict, frozen=True):
    """`Report`, without the forecast."""

    roots: tuple[WireRootReport, ...]
    objections: tuple[Objection, ...]
    incomplete: dict[str, str]
    judgement: Judgement
    others: Others


class WireScaler(_Strict, frozen=True):
    """`Scaler`."""

    root: ResourceId
    part: str
    object: ResourceId
    replicas: Replicas
    live: Replicas | None


class WirePass(_Strict, frozen=True):
    """`ForecastPass`: of each operation the root and the operation."""

    after: timedelta
    operations: tuple[tuple[ResourceId, WireOperation], ...]


class WireForecast(_Strict, frozen=True):
    """`Forecast`."""

    began: Moment
    passes: tuple[WirePass, ...]
    finished: bool
    plans: tuple[WireRootPlan, ...]
    effects: tuple[tuple[ResourceId, Effects], ...]
    assumptions: tuple[str, ...]
    repeating: tuple[ResourceId, ...]
    doubts: tuple[str, ...] = ()
    unchecked: str = ""
    collected: int = 0


class WirePlan(_Strict, frozen=True, omit_defaults=True):
    """The whole file."""

    version: int
    kind: str
    digest: str
    engine: str
    created_at: Moment
    expires_at: Moment
    cluster: str
    settings: dict[str, str]
    policies: dict[str, str]
    waivers: dict[str, str]
    scope: WireScope
    manifests: tuple[dict[str, Any], ...]
    removals: tuple[WireRemoval, ...]
    roots: tuple[WireRoot, ...]
    allow: tuple[WireAllowance, ...]
    desired: dict[str, tuple[str, ...]]
    pods: tuple[tuple[ResourceId, WireObject], ...]
    """Each pod among the operations, with the index of the PodClique that it is."""
    report: WireReport
    forecast: WireForecast | None
    scalers: tuple[WireScaler, ...] = ()
    """What manifests beside those of roots ask for, where it is to be written."""
