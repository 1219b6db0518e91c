"""Own kinds: which kinds exist in the API groups of the engine, so that a mistyped one is an error and not ignored."""

from collections.abc import Mapping
from typing import Final

from engine.report.printable import clipped
from resources.base.kinds import DEFINED, DYNAMO_GRAPH, GROVE_GROUP, SCHEDULER_GROUP

ENGINE_GROUP: Final = "engine.grove.io"
DYNAMO: Final = (
    "DynamoCheckpoint",
    "DynamoComponent",
    "DynamoComponentDeployment",
    "DynamoGraphDeploymentCandidate",
    "DynamoGraphDeploymentEngineGroup",
    "DynamoGraphDeploymentRequest",
    "DynamoGraphDeploymentRun",
    "DynamoGraphDeploymentScalingAdapter",
    "DynamoGraphPowerBudget",
    "DynamoModel",
    "DynamoWorkerMetadata",
)
"""Dynamo's own kinds, besides its graphs."""
OTHERS: Final = ((ENGINE_GROUP, "PlanPolicy"), *((DYNAMO_GRAPH.group, name) for name in DYNAMO))
"""Group and kind of what exists besides the kinds that the engine defines. Their versions are not checked."""
GROUPS: Final = (GROVE_GROUP, SCHEDULER_GROUP, ENGINE_GROUP)
"""The groups in which every kind is known."""
PREFIXES: Final[Mapping[str, str]] = {DYNAMO_GRAPH.group: "Dynamo"}
"""A group that others use as well -> how the names of the known kinds in it begin."""
WIDTH: Final = 80


def unknown_kind(group: str, kind: str, api_version: str) -> str:
    """What is wrong with a kind in one of our groups: it does not exist, or not in this version. Empty for kinds that exist, and those
    of other groups."""
    if group not in GROUPS and not (group in PREFIXES and kind.startswith(PREFIXES[group])):
        return ""
    versions = {defined.api_version for defined in DEFINED if (defined.group, defined.name) == (group, kind)}
    if (group, kind) in OTHERS or api_version in versions:
        return ""
    if versions:
        return f"{kind} is supported as {', '.join(sorted(versions))} only"
    known = sorted({defined.name for defined in DEFINED if defined.group == group} | {name for other, name in OTHERS if other == group})
    return f"there is no kind {clipped(kind, WIDTH)} in {clipped(api_version, WIDTH)}; there are {', '.join(known)}"
