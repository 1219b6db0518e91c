"""Fairness: how soon a small set is ready while another team asks for as many pods as the largest cluster takes."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.cluster.census import READY, Connection, facts
from benchmarks.cluster.subjects import SETS, Operator, engine_command, engine_variables
from benchmarks.cluster.usage import usage
from benchmarks.cluster.workloads import NAMESPACE, Workload, changed
from tests.controlplane.accounts import OPERATOR
from tests.controlplane.cluster import ControlPlane

FAIRNESS: Final = "fairness"
ELSEWHERE: Final = "another-team"
"""The namespace of the small sets."""
ALONE, BESIDE = 3, 4
"""How many small sets are created before and beside the large ones."""
APART: Final = 15.0
"""Seconds between two of the latter."""
LIMIT: Final = 60.0
"""Seconds after which a small set counts as starved."""


@dataclass(frozen=True, slots=True)
class Gated(Workload):
    """Sets whose pods are asked for and never run: a gate keeps them from the scheduler, which all teams share."""

    def manifests(self) -> list[dict[str, Any]]:
        """The sets, with all defaults."""
        manifests = Workload.manifests(self)
        for manifest in manifests:
            for each in manifest["spec"]["template"]["cliques"]:
                each["spec"]["podSpec"]["schedulingGates"] = [{"name": "bench.test/none"}]
        return manifests


LARGE: Final = Gated("large", "9 sets of 10,000 pods", 9, 100, 100, 100)
SMALL: Final = Workload("small", "one set of two pods", 1, 1, 2, 2)


def figures(plane: ControlPlane, sizes: Mapping[str, int]) -> Iterator[dict[str, object]]:
    """One line for each small set: its times (`times_of`), and how many pods the others had before. `sizes`: of the others."""
    operator = Operator("engine", engine_command("-A"), plane, changed(LARGE, sizes), account=OPERATOR, variables=engine_variables())
    connection = Connection(plane)
    try:
        operator.until_leading()
        connection.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}})
        for number in range(ALONE):
            yield {"workload": FAIRNESS, "phase": "alone", **times_of(connection, f"alone-{number}")}
        operator.up()
        began = time.monotonic()
        for number in range(BESIDE):
            time.sleep(max(0.0, began + APART * number + 1.0 - time.monotonic()))
            at, pods = time.monotonic() - began, pods_in(connection, NAMESPACE)
            times = times_of(connection, f"beside-{number}")
            memory = round(usage(operator.pid).peak_mib)
            yield {"workload": FAIRNESS, "phase": f"after {at:.0f} s", "pods of others": pods, **times, "peak MiB": memory}
    finally:
        operator.close()


def times_of(connection: Connection, name: str) -> dict[str, float]:
    """Create a set of two pods. Returns the seconds until its pods exist, until they are ready, and until its status says so.

    What does not come to be within `LIMIT` seconds is missing.
    """
    sets = SETS.replace(f"/{NAMESPACE}/", f"/{ELSEWHERE}/")
    pods = f"/api/v1/namespaces/{ELSEWHERE}/pods?labelSelector=app.kubernetes.io/part-of={name}"
    manifest = deepcopy(SMALL.manifests()[0])
    manifest["metadata"] |= {"name": name, "namespace": ELSEWHERE}
    began, times = time.monotonic(), dict[str, float]()
    connection.call("POST", sets, manifest)
    while "reported" not in times and (seconds := time.monotonic() - began) < LIMIT:
        found = Counter(fact for pod in connection.call("GET", pods)["items"] for fact in facts("pods", pod))
        status = connection.call("GET", f"{sets}/{name}").get("status") or {}
        reached = {"created": found["pods"] == 2, "ready": found[READY] == 2, "reported": status.get("availableReplicas") == 1}
        times |= {event: round(seconds, 2) for event, is_reached in reached.items() if is_reached and event not in times}
        time.sleep(0.05)
    return times


def pods_in(connection: Connection, namespace: str) -> int:
    """How many pods a namespace has."""
    answer = connection.call("GET", f"/api/v1/namespaces/{namespace}/pods?limit=1")
    return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount") or 0)
