"""Deployments and LeaderWorkerSets of a new graph that a cluster would refuse, or whose pods: a preview says so before they are created."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from grove_sandbox.http.faults import InjectedFault
from resources.base import kinds
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.stories.graphs import graph, service

WORDS = "denied the request: no such images here"


def refusal(resource: str) -> InjectedFault:
    """A webhook that refuses whatever is created of it."""
    message = f'admission webhook "images.example.com" {WORDS}'
    return InjectedFault("answer", "create", resource, times=10**6, code=403, message=message)


def written(folder: Path, **services: Any) -> Path:
    """A graph without Grove, as a file."""
    path = folder / "chat.yaml"
    path.write_text(yaml.safe_dump(graph("chat", {"nvidia.com/enable-grove": "false"}, **services)))
    return path


@pytest.mark.parametrize("resource", ["pods", "deployments"])
def test_a_new_deployment_that_is_refused_or_whose_pods_are_ends_stuck(engine: Engine, box: Box, tmp_path: Path, resource: str) -> None:
    file = written(tmp_path, a=service(1), b=service(3))
    box.inject(refusal(resource))

    shown = engine("diff", "-f", file)

    about = "pods of Deployment chat-a" if resource == "pods" else "Deployment chat-a"
    assert shown.code == Exit.STUCK
    assert f"the API server refuses {about}: " in shown.out and WORDS in shown.out, shown.out
    assert "STUCK" in shown.out
    assert not any(name.startswith("chat") for name in box.names(kinds.DEPLOYMENT))


def test_a_service_more_is_tried_and_what_runs_is_not(engine: Engine, box: Box, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, a=service(1))).code == Exit.DONE
    box.inject(refusal("pods"))

    more, settled = (
        engine("diff", "-f", written(tmp_path, a=service(1), b=service(1))),
        engine("diff", "-f", written(tmp_path, a=service(1))),
    )

    assert (more.code, settled.code) == (Exit.STUCK, Exit.DONE), more.out
    assert "pods of Deployment chat-b" in more.out and "chat-a" not in more.out


def test_an_edit_of_a_component_whose_pods_were_refused_is_tried_again(engine: Engine, box: Box, tmp_path: Path) -> None:
    box.inject(refusal("pods"))
    assert engine("sync", "-f", written(tmp_path, a=service(1)), "--no-wait").code == Exit.DONE

    edited = engine("diff", "-f", written(tmp_path, a=service(1, script="python3 -m dynamo.vllm --model other")))

    assert edited.code == Exit.STUCK and "the API server refuses pods of Deployment chat-a: " in edited.out, edited.out


def test_a_reader_is_told_once_that_new_components_were_not_tried(engine: Engine, box: Box, tmp_path: Path) -> None:
    box.deny(verb="create")

    shown = engine("diff", "-f", written(tmp_path, a=service(1), b=service(1)))

    assert shown.code == Exit.DONE
    assert shown.err.count("the API server was not asked whether it accepts pods") == 1


def test_a_quota_counts_the_pods_that_the_controllers_of_components_create(engine: Engine, box: Box, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, a=service(1), b=service(2))).code == Exit.DONE
    used = {"status": {"hard": {"pods": "5"}, "used": {"pods": "3"}}}
    box.create(kinds.RESOURCE_QUOTA, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "5"}}})
    box.portal.call(lambda: box.cluster.client("user").patch(kinds.RESOURCE_QUOTA, "default", "few", used, subresource="status"))

    fits, more = (engine("diff", "-f", written(tmp_path, a=service(1), b=service(number), c=service(1))) for number in (3, 5))

    assert (fits.code, more.code) == (Exit.DONE, Exit.STUCK), more.out
    assert "it allows 2 more pods, and 4 are needed" in more.out


def test_a_quota_does_not_block_more_pods_of_a_deployment_that_the_server_accepts(engine: Engine, box: Box, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, a=service(1))).code == Exit.DONE
    hard = {"hard": {"requests.cpu": "100"}}
    box.create(kinds.RESOURCE_QUOTA, {"metadata": {"name": "cpu"}, "spec": hard})
    status = {"status": {**hard, "used": {"requests.cpu": "1"}}}
    box.portal.call(lambda: box.cluster.client("user").patch(kinds.RESOURCE_QUOTA, "default", "cpu", status, subresource="status"))

    accepted = engine("diff", "-f", written(tmp_path, a=service(2)))
    box.inject(refusal("pods"))
    refused = engine("diff", "-f", written(tmp_path, a=service(2)))

    assert accepted.code == Exit.DONE and "accepted the new pods that it was asked about: a webhook may say it" in accepted.out, (
        accepted.out
    )
    assert refused.code == Exit.STUCK and "the API server refuses pods of Deployment chat-a: " in refused.out, refused.out
