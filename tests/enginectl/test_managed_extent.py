"""What a configuration leaves out is not asked for: graphs that are off, and namespaces that are not among those it names."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from resources.base.kinds import NAMESPACE, POD, PODCLIQUESET
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.publications import LINE, publication, publish
from tests.stories.pods import running

GRAPH = ROOT / "examples" / "06-dynamo" / "single.yaml"
ONLY_DEFAULT = {"namespaces": ["default", "team-b"]}
OF_GRAPHS = ("deployments", "ingresses", "persistentvolumeclaims", "leaderworkersets", "dynamographdeployments")


def set_in(namespace: str, name: str = "web") -> dict[str, Any]:
    """A set of one pod."""
    return podcliqueset(name, clique("main", pod_spec=running(0)), namespace=namespace)


def written(folder: Path, *bodies: dict[str, Any]) -> Path:
    """A file with these manifests."""
    file = folder / "sets.yaml"
    file.write_text(yaml.safe_dump_all(bodies))
    return file


@pytest.fixture
def confined(box: Box) -> Box:
    """A cluster whose installation manages two namespaces, with a set in one of them and one elsewhere, which nobody may read."""
    publish(box, publication(ONLY_DEFAULT))
    for namespace in ("team-b", "elsewhere"):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        box.portal.call(box.cluster.client("user").create, NAMESPACE, "", body)
        box.portal.call(box.cluster.client("user").create, PODCLIQUESET, namespace, set_in(namespace, f"in-{namespace}"))
    # A right in one namespace is none in all of them.
    for kind in ("podcliquesets", "pods", "services"):
        box.deny(resource=kind, namespace="")
        box.deny(resource=kind, namespace="elsewhere")
    return box


def test_all_namespaces_are_those_that_the_installation_names(confined: Box, engine: Engine) -> None:
    status, preview = engine("status", "-A", "-o", "json"), engine("diff", "-A", "-o", "json")

    assert [workload["root"]["name"] for workload in status.document["workloads"]] == ["in-team-b"]
    assert [root["root"]["namespace"] for root in preview.document["roots"]] == ["team-b"]
    assert status.code == Exit.DONE
    assert status.err.splitlines()[0] == f"{LINE}; only for the namespaces default, team-b"


@pytest.mark.parametrize("command", ["diff", "sync"])
def test_a_manifest_for_another_namespace_is_told_and_nothing_is_planned(
    confined: Box, engine: Engine, tmp_path: Path, command: str
) -> None:
    before = confined.all(PODCLIQUESET)

    answer = engine(command, "-f", written(tmp_path, set_in("team-b"), set_in("elsewhere")))

    assert answer.code == Exit.FAILED
    assert answer.messages[-2] == ("engine: namespace elsewhere: not managed by this installation, whose `namespaces` are default, team-b")
    assert answer.out == ""
    assert confined.all(PODCLIQUESET) == before


@pytest.mark.parametrize("words", [("status",), ("why", "pcs/in-elsewhere"), ("run",)], ids=lambda words: words[0])
def test_another_namespace_that_is_asked_for_is_told(confined: Box, engine: Engine, words: tuple[str, ...]) -> None:
    answer = engine(*words, "-n", "elsewhere")

    assert answer.code == Exit.FAILED
    assert "namespace elsewhere: not managed by this installation" in answer.err


def test_a_sync_of_everything_leaves_other_namespaces_alone(confined: Box, engine: Engine) -> None:
    done = engine("sync", "-A", "--yes")

    assert done.code == Exit.DONE, done.out + done.err
    assert {pod["metadata"]["namespace"] for pod in confined.all(POD)} == {"team-b"}


@pytest.fixture
def without_graphs(box: Box) -> Box:
    """A cluster whose installation has graphs off, and where nobody has a right that only graphs need."""
    publish(box, publication({"dynamo": {"enabled": False}}))
    for resource in OF_GRAPHS:
        box.deny(resource=resource)
    return box


def test_without_graphs_none_of_their_kinds_is_asked_for(without_graphs: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, set_in("default")), "--yes").code == Exit.DONE

    status, checks = engine("status", "-A"), engine("preflight", "-o", "json")

    assert (status.code, status.messages) == (Exit.DONE, [])
    assert [name for name in OF_GRAPHS if f"permissions on {name}" in checks.out or f"CRD {name}" in checks.out] == []


@pytest.mark.parametrize("command", [("diff",), ("sync",)])
def test_without_graphs_the_manifest_of_one_is_refused(without_graphs: Box, engine: Engine, command: tuple[str, ...]) -> None:
    answer = engine(*command, "-f", GRAPH)

    assert (answer.code, answer.out) == (Exit.FAILED, "")
    assert answer.messages[-2] == "engine: DynamoGraphDeployments are not managed: dynamo.enabled of the configuration is false"


def test_with_graphs_the_same_cluster_is_not_known_completely(without_graphs: Box, engine: Engine) -> None:
    publish(without_graphs, publication({}))

    assert engine("status", "-A").code == Exit.INCOMPLETE
