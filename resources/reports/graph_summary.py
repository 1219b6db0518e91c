"""Graph summary: the state of a DynamoGraphDeployment: what runs it, its services, and what is deferred or pending, since when and why."""

from datetime import datetime

from msgspec import Struct

from engine.ids import ResourceId
from engine.plan import Alarm
from resources.dynamo.model.state import ServiceState
from resources.ports.checks import Diagnosis
from resources.reports.summary import WaitSince


class ServiceSummary(Struct, frozen=True):
    """The state of one service of a graph."""

    name: str
    """The key in `spec.services`."""
    nodes: int
    """The nodes of one replica."""
    replicas: int
    """The replicas that the graph asks for; if it names none, those that exist, at least 1."""
    state: ServiceState

    @property
    def usable(self) -> int:
        """The replicas that are ready or, for kinds that do not count these, available."""
        state = self.state
        return (state.available_replicas or 0) if state.ready_replicas is None else state.ready_replicas


class GraphSummary(Struct, frozen=True):
    """The summary of one graph at one moment."""

    id: ResourceId
    state: str
    """One of `summary.STATES`, of the graph together with the sets that it consists of."""
    graph_state: str
    """`status.state`: pending, successful or failed; empty if it has no status yet."""
    created_at: datetime
    orchestrator: str
    """`Grove` or `components`; empty if nothing can run the graph, or if it is not valid."""
    services: tuple[ServiceSummary, ...]
    waits: tuple[WaitSince, ...]
    """What is deferred or pending for the graph itself, and what is blocked in the sets that it consists of: each object once."""
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    nested: tuple[ResourceId, ...]
    """The PodCliqueSets that it consists of."""
    alarms: tuple[Alarm, ...] = ()
    """What is wrong with the graph itself although nothing is left to do."""
    noun: str = "service"
    """What the version in which it is written calls its services: `service` or `component`."""
    waiting: tuple[Diagnosis, ...] = ()
    """What the groups of its LeaderWorkerSets wait for that have no room; empty if that was not asked for."""

    @property
    def ready(self) -> int:
        """The number of services that are ready."""
        return sum(service.state.is_ready for service in self.services)
