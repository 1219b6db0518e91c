"""Memory: what one process remembers from pass to pass."""

from msgspec import Struct, field

from engine.event import RootEvents, RootWarning
from engine.memo import Memo
from engine.observed import Live, World
from engine.runtime.call_limit import CallLimit
from engine.runtime.debounce import Debounce
from engine.runtime.event_publishing import EventPublisher
from engine.runtime.failed_calls import FailedCalls
from engine.runtime.foreign import ForeignObjects
from engine.runtime.lookups import Lookups
from engine.runtime.namespaces import Namespaces
from engine.runtime.rejections import Rejections
from engine.runtime.verdicts import Verdicts


class Memory(Struct, eq=False):
    """What makes passes cheaper and writes fewer; a process that starts with an empty memory computes the same plans.

    The exceptions are `failed_calls`, `verdicts` and `foreign`: no listing shows these facts; a new process learns them from the answers to
    its calls.
    """

    memo: Memo = field(default_factory=Memo)
    world: World | None = None
    """The world of the last pass, without proposed manifests; None before the first pass."""
    observed: object = None
    """The token of the observation that `world` was made from."""
    failures: int = 0
    """The version of `failed_calls` that `world` was made from."""
    record: Live | None = None
    """The record of the intent, as it was last read."""
    debounce: Debounce = field(default_factory=Debounce)
    rejections: Rejections = field(default_factory=Rejections)
    foreign: ForeignObjects = field(default_factory=ForeignObjects)
    lookups: Lookups = field(default_factory=Lookups)
    namespaces: Namespaces = field(default_factory=Namespaces)
    call_limit: CallLimit = field(default_factory=CallLimit)
    failed_calls: FailedCalls = field(default_factory=FailedCalls)
    verdicts: Verdicts = field(default_factory=Verdicts)
    warnings: frozenset[RootWarning] = frozenset()
    """The warnings of the last pass; each has been recorded as an event."""
    events: EventPublisher = field(default_factory=EventPublisher)
    unpublished: list[RootEvents] = field(default_factory=list)
    """The events of the last pass, which are published while the next one is carried out."""

    def forget_computed(self) -> None:
        """Forget everything that depends on the configuration, and keep what was observed: the next pass computes all plans anew."""
        self.memo, self.world, self.lookups = Memo(), None, Lookups()
