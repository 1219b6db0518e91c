"""Names of the objects of a service on the component path, shortened where Kubernetes limits what is derived from them."""

import re

from resources.dynamo.model import names
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.model.names import shortened
from resources.schema.formats import LONGEST_LABEL

LONGEST_INSTANCE = 50
"""The longest name of a LeaderWorkerSet, in characters. Its worker StatefulSet appends `-0`, and the StatefulSet's revision, which
is a label value of at most 63 characters, a dash and a hash of up to ten."""

PUBLIC_SUFFIX = "-p"
"""The end of the name of a frontend's second Service."""

_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def instance_name(graph: InferenceGraph, service: GraphService, index: int) -> str:
    """The LeaderWorkerSet and the PodGroup of one replica: `<graph>-<service>-<index>`; longer than the limit, its start is shortened."""
    suffix = f"-{index}"
    return f"{shortened(names.component(graph, service), LONGEST_INSTANCE - len(suffix))}{suffix}"


def public_service_name(graph: InferenceGraph, service: GraphService) -> str:
    """The second Service of a frontend: `<graph>-<service>-p`; longer than a Service's name may be, its start is shortened."""
    return f"{shortened(names.component(graph, service), LONGEST_LABEL - len(PUBLIC_SUFFIX))}{PUBLIC_SUFFIX}"


def name_fault(name: str) -> str:
    """Why a LeaderWorkerSet or a Service cannot have this name; empty if it can."""
    if _DNS_LABEL.fullmatch(name):
        return ""
    rule = "start with a letter and consist of lower-case letters, digits and dashes"
    return f"the name {name!r} is not a DNS label: it must {rule}; rename the graph or the service"
