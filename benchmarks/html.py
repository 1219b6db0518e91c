"""What it costs to write the plan of one large set as HTML. Prints one JSON line per figure."""

import json
import time
from datetime import UTC, datetime

from engine.ids import ResourceId
from engine.operation import Cause, Create, Operation, operation_key
from engine.plan import Plan
from engine.report.html.document import html
from engine.report.model import compose
from engine.verb import Verb

REPLICAS = 500
AT = datetime(2026, 1, 1, tzinfo=UTC)
ROOT = ResourceId("grove.io", "PodCliqueSet", "default", "x")


def main() -> None:
    """The creation of a set of 500 replicas of one clique with two pods."""
    report = compose([Plan(ROOT, tuple(operations()))], lambda root, child: f"replica {child.name.split('-')[1]}")
    began = time.process_time()
    document = html(report, AT)
    seconds = round(time.process_time() - began, 4)
    figures = {"replicas": REPLICAS, "operations": len(report.roots[0].steps), "seconds": seconds, "bytes": len(document)}
    print(json.dumps({"benchmark": "html", **figures}))


def operations() -> list[Operation]:
    """Cliques, and pods that come after them."""
    listed = []
    for replica in range(REPLICAS):
        clique = ResourceId("grove.io", "PodClique", "default", f"x-{replica}-a")
        listed.append(_create(clique, f"clique a of replica {replica}"))
        after = frozenset({operation_key(Verb.CREATE, clique)})
        pods = (ResourceId("", "Pod", "default", f"x-{replica}-a-{suffix}") for suffix in ("b2b2b", "c4c4c"))
        listed += [_create(pod, "pod is missing", after) for pod in pods]
    return listed


def _create(id: ResourceId, why: str, after: frozenset[str] = frozenset()) -> Operation:
    body = {"kind": id.kind, "metadata": {"name": id.name}, "spec": {"containers": [{"name": "main", "image": "i"}] * 4}}
    return Create(id, why, Cause.INTENT, manifest=body, after=after)


if __name__ == "__main__":
    main()
