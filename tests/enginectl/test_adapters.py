"""Scaling adapters in the files of a command: their number wins over that of the graph, as if `kubectl apply` had written it."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from engine.ids import Kind
from enginectl.base.exit_codes import Exit
from resources.base import kinds
from resources.ports.graph_services import judged_replicas, kept_replicas, with_replicas
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

ADAPTER = kinds.SCALING_ADAPTER
ALPHA = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  services:
    Decode:
      componentType: worker
      replicas: 2
      scalingAdapter: {enabled: true}
      extraPodSpec: {mainContainer: {image: "i:1"}}
    plain:
      componentType: worker
      extraPodSpec: {mainContainer: {image: "i:1"}}
"""
BETA = """\
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  components:
  - name: Decode
    type: decode
    replicas: 2
    scalingAdapter: {}
    podTemplate: {spec: {containers: [{name: main, image: "i:1"}]}}
  - name: plain
    type: decode
    podTemplate: {spec: {containers: [{name: main, image: "i:1"}]}}
"""
GRAPHS = {"v1alpha1": ALPHA, "v1beta1": BETA}
FIELDS = {"v1alpha1": "serviceName", "v1beta1": "componentName"}


def adapter(replicas: int, version: str = "v1alpha1", service: str = "Decode", name: str = "chat-decode", graph: str = "chat") -> str:
    """A scaling adapter, as a document of a file."""
    spec = f"spec:\n  replicas: {replicas}\n  dgdRef:\n    name: {graph}\n    {FIELDS[version]}: {service}\n"
    return f"---\napiVersion: nvidia.com/{version}\nkind: DynamoGraphDeploymentScalingAdapter\nmetadata: {{name: {name}}}\n{spec}"


def write(folder: Path, *documents: str) -> Path:
    """The documents in a file."""
    file = folder / "graph.yaml"
    file.write_text("".join(documents))
    return file


def exported(box: Box, kind: Kind) -> str:
    """What `kubectl get -o yaml` writes of the only object of a kind, as a document of a file."""
    (body,) = box.all(kind)
    return f"---\n{yaml.dump(body)}"


def replicas(box: Box, kind: Kind, name: str) -> int:
    """`spec.replicas` of an object."""
    return next(int(body["spec"]["replicas"]) for body in box.all(kind) if body["metadata"]["name"] == name)


def scale(box: Box, number: int) -> None:
    """`kubectl scale` of the adapter."""
    client, body = box.cluster.client("user"), {"spec": {"replicas": number}}
    box.portal.call(partial(client.patch, ADAPTER, "default", "chat-decode", body, subresource="scale"))


@pytest.mark.parametrize(("version", "of_adapter"), [("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1")])
def test_the_number_of_an_adapter_in_the_files_wins_on_a_new_and_on_a_live_graph(
    version: str, of_adapter: str, box: Box, engine: Engine, tmp_path: Path
) -> None:
    def synced(*documents: str) -> int:
        file = write(tmp_path, *documents)
        assert engine("sync", "-f", file).code == Exit.DONE
        assert "No changes" in engine("diff", "-f", file).out
        assert box.names(ADAPTER) == ["chat-decode"]
        assert replicas(box, ADAPTER, "chat-decode") == replicas(box, kinds.PODCLIQUE, "chat-0-decode")
        return replicas(box, ADAPTER, "chat-decode")

    graph = GRAPHS[version]
    assert synced(graph, adapter(4, of_adapter)) == 4
    assert synced(graph) == 4
    assert synced(graph, adapter(3, of_adapter)) == 3
    assert synced(graph, adapter(0, of_adapter)) == 0
    assert synced(graph, exported(box, ADAPTER).replace("replicas: 0", "replicas: 5")) == 5


@pytest.mark.parametrize(
    ("annotation", "runner"),
    [('nvidia.com/enable-grove: "false"', "Deployment"), ('engine.grove.io/adapter-replicas: "Decode=9"', "PodClique")],
)
def test_what_a_file_renders_has_the_number_of_the_adapter(annotation: str, runner: str, engine: Engine, tmp_path: Path) -> None:
    graph = ALPHA.replace("{name: chat}", f"{{name: chat, annotations: {{{annotation}}}}}")

    for number, documents in ((4, (graph, adapter(4))), (2, (graph,))):
        bodies = json.loads(engine("render", "-o", "json", "-f", write(tmp_path, *documents)).out)["objects"]
        named = {body["kind"]: body for body in bodies if body["metadata"]["name"].endswith("-decode")}
        assert {named[kind]["spec"]["replicas"] for kind in (ADAPTER.name, runner)} == {number}


def test_the_number_is_previewed_compared_with_a_base_and_saved_in_a_plan(box: Box, engine: Engine, tmp_path: Path) -> None:
    file, plan = write(tmp_path, ALPHA, adapter(4)), tmp_path / "plan.json"
    assert "5 pods added" in engine("diff", "--against", "empty", "-f", file).out
    alone = tmp_path / "alone.yaml"
    alone.write_text(ALPHA)
    for prune in ((), ("--prune",)):
        assert "2 pods added" in engine("diff", "--against", "empty", "--base", alone, "-f", file, *prune).out
        assert "pod" not in engine("diff", "--against", "empty", "--base", file, "-f", alone, *prune).out
    engine("sync", "-f", alone)

    shown = engine("diff", "-f", write(tmp_path, ALPHA, adapter(4, "v1beta1")), "--out", plan, "-v").out

    assert "replicas: 2 → 4" in shown and "2 pods added" in shown
    assert engine("sync", "--plan", plan).code == Exit.DONE
    assert replicas(box, ADAPTER, "chat-decode") == 4


def test_an_approved_plan_writes_the_number_only_over_that_which_it_was_made_against(box: Box, engine: Engine, tmp_path: Path) -> None:
    plans = {number: tmp_path / f"{number}.json" for number in (4, 5)}
    engine("sync", "-f", write(tmp_path, ALPHA, adapter(4)))
    for number, plan in plans.items():
        engine("diff", "-f", write(tmp_path, ALPHA, adapter(number)), "--out", plan)
    scale(box, 8)
    engine("sync")

    assert "scalers" not in json.loads(plans[4].read_text())
    assert engine("sync", "--plan", plans[4]).code == Exit.DONE
    answer = engine("sync", "--plan", plans[5])
    assert answer.code == Exit.STALE
    assert f"not as approved: {ADAPTER.name}/default/chat-decode: then 4 replicas, now 8 replicas" in answer.out
    assert replicas(box, ADAPTER, "chat-decode") == 8
    scale(box, 4)
    engine("sync")
    assert engine("sync", "--plan", plans[5]).code == Exit.DONE
    assert replicas(box, ADAPTER, "chat-decode") == 5


@pytest.mark.parametrize("path", ["", ', annotations: {nvidia.com/enable-grove: "false"}'])
def test_limits_count_the_number(path: str, box: Box, engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path, ALPHA.replace("{name: chat}", f"{{name: chat{path}}}"), adapter(100_000))

    for command in (("render",), ("diff", "--against", "empty"), ("diff",), ("sync",)):
        answer = engine(*command, "-f", file)
        assert answer.code == Exit.FAILED
        assert "100001: must not have more than 100000 pods" in answer.out + answer.err


@pytest.mark.parametrize("path", ["", ', annotations: {nvidia.com/enable-grove: "false"}'])
def test_limits_refuse_growth_only_of_what_is_written(path: str, box: Box, engine: Engine, tmp_path: Path) -> None:
    graph = ALPHA.replace("{name: chat}", f"{{name: chat{path}}}")
    limits = tmp_path / "limits.yaml"
    limits.write_text("apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nlimits: {set: {pods: 5}}\n")

    def code(number: int, graph: str = graph) -> int:
        return engine("diff", "-f", write(tmp_path, graph, adapter(number)), "--config", limits).code

    engine("sync", "-f", write(tmp_path, graph, adapter(9)))
    assert [code(number) for number in (9, 7, 10)] == [Exit.DONE, Exit.DONE, Exit.FAILED]
    assert code(3, graph.replace("replicas: 2", "replicas: 100000")) == Exit.DONE


def test_an_adapter_alone_changes_nothing_and_says_what_to_do(box: Box, engine: Engine, tmp_path: Path) -> None:
    engine("sync", "-f", write(tmp_path, ALPHA))
    file = write(tmp_path, adapter(4))

    for command in (("render",), ("diff", "--against", "empty"), ("diff",), ("sync",)):
        answer = engine(*command, "-f", file)
        assert answer.code == Exit.FAILED
        assert f"{file}:8: spec.dgdRef.name: {kinds.DYNAMO_GRAPH.name} default/chat is not in these files" in answer.err
        assert "run `kubectl scale dgdsa/chat-decode -n default --replicas=4`" in answer.err
    answer = engine("diff", "-f", write(tmp_path, ALPHA.replace("chat", "talk"), exported(box, ADAPTER)))
    assert answer.code == Exit.DONE and "it was read from a cluster and is ignored" in answer.err
    assert replicas(box, ADAPTER, "chat-decode") == 2


@pytest.mark.parametrize("version", GRAPHS)
def test_a_live_graph_keeps_its_own_number_and_only_growth_is_judged(version: str) -> None:
    graph, idle = (yaml.safe_load(GRAPHS[version].replace("replicas: 2", f"replicas: {number}")) for number in (2, 0))

    silent, null, text = (yaml.safe_load(GRAPHS[version].replace("replicas: 2", line)) for line in ("", "replicas: null", 'replicas: "2"'))
    for file in (graph, idle, silent):
        for stored, own in ((graph, 2), (silent, 1), (null, 1), (text, 2)):
            assert [kept_replicas(file, stored, {"Decode": number}) for number in (4, 0)] == [{"Decode": own}] * 2
        assert [kept_replicas(file, {}, {"Decode": number}) for number in (4, 0)] == [{"Decode": 4}, {}]
    assert [kept_replicas(file, idle, {"Decode": 4}) for file in (graph, idle, silent)] == [{}, {}, {"Decode": 0}]
    assert [judged_replicas(graph, {"Decode": number}) for number in (4, 2, 1)] == [{"Decode": 4}, {}, {}]


def test_numbers_are_set_in_a_graph_of_any_shape() -> None:
    shapes: tuple[object, ...] = (None, {}, "x")
    for components in shapes:
        odd = {"spec": {"services": {"Decode": {"replicas": 2}}, "components": components}}
        assert with_replicas(odd, {"Decode": 4})["spec"] == {"services": {"Decode": {"replicas": 4}}, "components": components}


def test_a_file_that_undoes_an_autoscaler_says_so(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path, ALPHA, adapter(2))
    engine("sync", "-f", file)
    scale(box, 3)

    shown = engine("diff", "-f", file).out

    assert "scaled DynamoGraphDeploymentScalingAdapter chat-decode to 3, but a file asks for 2" in shown


def test_an_adapter_of_another_name_counts_as_the_one_of_its_service(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = write(tmp_path, ALPHA, adapter(4, name="mine, labels: {a: b}, finalizers: [a/b]"))

    answer = engine("sync", "-f", file)

    assert f"note: {file}:17: {ADAPTER.name} mine counts as {ADAPTER.name} chat-decode" in answer.err
    assert f"note: {file}:17: {ADAPTER.name} mine: labels, finalizers are not written" in answer.err
    assert box.names(ADAPTER) == ["chat-decode"]
    assert replicas(box, ADAPTER, "chat-decode") == 4


@pytest.mark.parametrize(
    ("documents", "line", "fault"),
    [
        ((ALPHA, adapter(4, graph="other")), 21, "dgdRef.name: DynamoGraphDeployment default/other is not in these files"),
        ((ALPHA, adapter(4, graph="$(id)")), 21, "an adapter counts beside its graph only: add that\n"),
        ((ALPHA, adapter(4, service="decode")), 22, "dgdRef.serviceName: chat has no service decode; it has Decode, plain"),
        ((BETA, adapter(4, "v1beta1", "x")), 22, "dgdRef.componentName: chat has no service x; it has Decode, plain"),
        ((ALPHA, adapter(4, service="plain")), 22, "service plain of chat has no adapter; add scalingAdapter: {enabled: true} to it"),
        ((BETA, adapter(4, service="plain")), 22, "service plain of chat has no adapter; add scalingAdapter: {} to it"),
        ((ALPHA, adapter(-1)), 19, "spec.replicas"),
        ((ALPHA, adapter(4).replace("serviceName", "componentName")), 22, "componentName: unknown field: did you mean serviceName?"),
        ((BETA, adapter(4, "v1beta1").replace("ntName", "ntNam")), 22, "componentNam: unknown field: did you mean componentName?"),
        ((BETA, adapter(4, "v1beta1").replace("componentName", "serviceName")), 22, "unknown field: did you mean componentName?"),
        ((ALPHA, adapter(4).replace("replicas", "replica")), 19, "spec.replica: unknown field: did you mean replicas?"),
        ((ALPHA, adapter(4, "v1beta1").replace("    componentName: Decode\n", "")), 20, "dgdRef.componentName"),
        ((ALPHA, adapter(4), adapter(5)), 24, "appears twice"),
        ((ALPHA, adapter(4), adapter(5, name="mine")), 31, "service Decode of chat has an adapter already, at"),
        ((ALPHA, adapter(4).replace("v1alpha1", "v1")), 15, "is supported as nvidia.com/v1alpha1"),
    ],
)
def test_an_adapter_that_cannot_count_is_a_fault_with_its_line(
    documents: tuple[str, ...], line: int, fault: str, box: Box, engine: Engine, tmp_path: Path
) -> None:
    file = write(tmp_path, *documents)

    answer = engine("diff", "-f", file)

    assert answer.code == Exit.FAILED
    assert f"{file}:{line}: " in answer.err and fault in answer.err, answer.err
