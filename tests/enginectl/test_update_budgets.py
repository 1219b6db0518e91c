"""Update budgets on the command line: what an update costs, and what is wrong with a budget."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from tests.builders import clique, group, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.resources.admission.test_review import review

OF_CLIQUE, OF_GROUP = "spec.template.cliques[0].rollingUpdate", "spec.template.podCliqueScalingGroups[0].rollingUpdate"


def workload(version: int = 1, strategy: str = "RollingRecreate", **rolling: Any) -> dict[str, Any]:
    """A clique and a group with these budgets; `of_member`: that of the group's clique."""
    spec = {"containers": [{"name": "main", "image": f"nginx:1.{version}"}]}
    router, worker = clique("router", 4, minAvailable=1, pod_spec=spec), clique("worker", pod_spec=spec)
    pool = group("pool", "worker", replicas=6)
    for entry, key in ((router, "of_clique"), (pool, "of_group"), (worker, "of_member")):
        if key in rolling:
            entry["rollingUpdate"] = rolling[key]
    body = podcliqueset("demo", router, worker, groups=(pool,))
    body["spec"]["updateStrategy"] = {"type": strategy}
    return body


def written(folder: Path, body: dict[str, Any]) -> Path:
    """A file with this manifest."""
    file = folder / "set.yaml"
    file.write_text(yaml.safe_dump(body))
    return file


@pytest.mark.parametrize(("budget", "pods", "replicas"), [({}, 3, 5), ({"maxUnavailable": 3}, 1, 3)])
def test_the_forecast_says_how_few_are_ready(
    box: Box, engine: Engine, tmp_path: Path, budget: dict[str, Any], pods: int, replicas: int
) -> None:
    assert engine("sync", "-f", written(tmp_path, workload())).code == Exit.DONE

    answer = engine("diff", "-f", written(tmp_path, workload(2, of_clique=budget, of_group=budget)))

    assert f"  lowest   PodClique/demo-0-router: {pods} of 4 pods ready (min 1)" in answer.out
    assert f"  lowest   PodCliqueScalingGroup/demo-0-pool: {replicas} of 6 replicas ready (min 1)" in answer.out
    assert answer.code == Exit.DONE


FAULTS = [
    (workload(of_member={"maxUnavailable": 1}), "spec.template.cliques[1].rollingUpdate: Forbidden: must not be set for a PodClique"),
    (workload(of_clique={"maxUnavailable": 0}), f"{OF_CLIQUE}.maxUnavailable: Invalid value: 0: must be greater than 0"),
    (workload(of_group={"maxUnavailable": -2}), f"{OF_GROUP}.maxUnavailable: Invalid value: -2: must be greater than 0"),
    (workload(of_group={"maxUnavailable": "25%"}), f"{OF_GROUP}.maxUnavailable"),
    (workload(of_group={"progressDeadline": "0s"}), f'{OF_GROUP}.progressDeadline: Invalid value: "0s": must be greater than 0'),
    (workload(of_group={"progressDeadline": "soon"}), f"{OF_GROUP}.progressDeadline: must be a duration"),
    (workload(strategy="OnDelete", of_clique={"maxUnavailable": 1}), f"{OF_CLIQUE}: Forbidden: must not be set with the update strategy"),
    (workload(strategy="OnDelete", of_group={}), f"{OF_GROUP}: Forbidden: must not be set with the update strategy OnDelete"),
]


@pytest.mark.parametrize(("body", "fault"), FAULTS)
def test_a_wrong_budget_is_refused_by_diff_and_review(engine: Engine, tmp_path: Path, body: dict[str, Any], fault: str) -> None:
    shown = engine("diff", "-f", written(tmp_path, body), "--against", "empty")
    reviews = tmp_path / "reviews.json"
    reviews.write_text(json.dumps(review(object=body)))
    answered = engine("review", "-f", reviews)

    assert shown.code == Exit.FAILED
    assert fault in shown.out + shown.err
    assert answered.code == Exit.DENIED
    (response,) = (json.loads(line)["response"] for line in answered.out.splitlines())
    assert fault in response["status"]["message"]


def test_a_set_with_budgets_is_accepted(engine: Engine, tmp_path: Path) -> None:
    budget = {"maxUnavailable": 9, "progressDeadline": "10m"}

    assert engine("diff", "-f", written(tmp_path, workload(of_clique=budget, of_group=budget)), "--against", "empty").code == Exit.DONE
