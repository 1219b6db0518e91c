"""What the sandbox claims of Kubernetes, as requests to make of any server."""

from tests.contract.scenario import Scenario
from tests.contract.scenarios import (
    applying,
    bodies,
    children,
    custom,
    deleting,
    domains,
    kinds,
    listing,
    ours,
    patching,
    updating,
    watching,
    wrong,
)

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
    *domains.SCENARIOS,
    *wrong.SCENARIOS,
)
