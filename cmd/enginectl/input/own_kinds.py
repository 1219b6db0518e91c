"""Own kinds: which kinds exist in the API groups of the engine, so that a mistyped one is an error and not ignored."""

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Final

from engine.report.printable import clipped
from resources.base.kinds import DEFINED, DYNAMO_GRAPH, GROVE_GROUP, PODCLIQUESET, SCHEDULER_GROUP

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
ROOT_KINDS: Final = frozenset({PODCLIQUESET.name, DYNAMO_GRAPH.name})
"""The kinds of workloads: a kind of such a name in another group is a mistake."""
KNOWN: Final = (
    *((kind.group, kind.name, kind.api_version) for kind in DEFINED),
    *((group, name, group) for group, name in OTHERS),
)
"""Group, name, and group with version as far as it is known, of every kind of ours."""
SIMILARITY: Final = 0.8
"""How alike two names are of which one is a typing error of the other, from 0 to 1."""
WIDTH: Final = 80


def unknown_kind(group: str, kind: str, api_version: str) -> str:
    """What is wrong with a kind in one of our groups, or in a group whose name is a typing error of one: it does not exist, or not in this
    version. Empty for kinds that exist, and those of other groups."""
    if group not in GROUPS and not (group in PREFIXES and kind.startswith(PREFIXES[group])):
        return mistyped(group, kind, api_version)
    versions = {defined.api_version for defined in DEFINED if (defined.group, defined.name) == (group, kind)}
    if (group, kind) in OTHERS or api_version in versions:
        return ""
    if versions:
        return f"{kind} is supported as {', '.join(sorted(versions))} only"
    known = sorted({defined.name for defined in DEFINED if defined.group == group} | {name for other, name in OTHERS if other == group})
    return f"there is no kind {clipped(kind, WIDTH)} in {clipped(api_version, WIDTH)}; there are {', '.join(known)}"


def mistyped(group: str, kind: str, api_version: str) -> str:
    """What is wrong with a kind of a group that is not ours, if group and kind are ours but for typing errors; else empty."""
    if len(group) > WIDTH or len(kind) > WIDTH:
        return ""
    for own_group, own_kind, version in KNOWN:
        is_ours = kind == own_kind and own_kind in ROOT_KINDS
        if is_ours or (is_near(group, own_group) and is_near(kind, own_kind)):
            return f"there is no kind {clipped(kind, WIDTH)} in {clipped(api_version, WIDTH)}; did you mean {own_kind} in {version}?"
    return ""


def is_near(written: str, known: str) -> bool:
    """Whether a name is another one, with a typing error at most."""
    matcher = SequenceMatcher(None, written.lower(), known.lower(), autojunk=False)
    return matcher.real_quick_ratio() >= SIMILARITY and matcher.ratio() >= SIMILARITY
