"""What the sandbox claims of Kubernetes, as requests to make of any server."""

from tests.contract.scenario import Scenario
from tests.contract.scenarios import applying, bodies, children, custom, deleting, kinds, listing, ours, patching, updating, watching

EVERY: tuple[Scenario, ...] = (
    *bodies.SCENARIOS,
    *updating.SCENARIOS,
    *patching.SCENARIOS,
    *applying.SCENARIOS,
    *custom.SCENARIOS,
    *deleting.SCENARIOS,
    *kinds.SCENARIOS,
    *children.SCENARIOS,
    *listing.SCENARIOS,
    *watching.SCENARIOS,
    *ours.SCENARIOS,
)
