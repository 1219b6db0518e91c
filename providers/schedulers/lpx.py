"""LPX: a scheduler that finds gangs by a contract of its own with the workload. It supports no topology constraints of Grove."""

from collections.abc import Iterator
from typing import Final

from providers.schedulers.queues import ConstraintMessages, constraint_issues
from resources.ports.references import References
from resources.ports.scheduler import Scheduler
from resources.schema.issues import Issue
from resources.schema.podcliqueset import PodCliqueSet

UNSUPPORTED: Final = (
    "lpx-scheduler does not support Grove topology constraints; placement topology must be expressed through the LPX workload contract"
)
MESSAGES: Final = ConstraintMessages(UNSUPPORTED, lambda name: UNSUPPORTED, lambda name: UNSUPPORTED)


class LpxScheduler(Scheduler):
    """The back end `lpx-scheduler`."""

    name = "lpx-scheduler"
    instead_of_affinity = "placement must be expressed through the LPX workload contract"

    def issues(self, model: PodCliqueSet, references: References) -> Iterator[Issue]:
        """No topology constraint at any level."""
        return constraint_issues(model, MESSAGES)
