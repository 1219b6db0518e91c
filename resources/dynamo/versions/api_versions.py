"""API versions: the two versions of DynamoGraphDeployment, and the annotations in which one keeps what the other has no field for."""

from collections.abc import Mapping
from typing import Any, Final

from engine.resource import Body
from resources.base.kinds import DYNAMO_GRAPH, DYNAMO_GRAPH_V1BETA1
from resources.base.labels import OTHER_VERSION

ALPHA: Final = DYNAMO_GRAPH.api_version
BETA: Final = DYNAMO_GRAPH_V1BETA1.api_version
ALPHA_ONLY: Final = "nvidia.com/dgd-spec"
"""Dynamo's annotation of a v1beta1 graph: fields of v1alpha1 that v1beta1 does not have, as a spec of v1alpha1 in JSON."""
RESERVED: Final = "nvidia.com/dgd-"
"""The prefix of Dynamo's annotations for conversion."""
EXACT: Final = OTHER_VERSION
"""The annotation with what a converted graph loses besides, e.g. the spelling of a field."""


def is_beta(body: Any) -> bool:
    """Whether an object is a graph of v1beta1."""
    return isinstance(body, Mapping) and body.get("apiVersion") == BETA and body.get("kind") == DYNAMO_GRAPH.name


def served_as(body: Body) -> str:
    """The API version of a graph; v1alpha1 if it names none that exists."""
    return BETA if is_beta(body) else ALPHA
