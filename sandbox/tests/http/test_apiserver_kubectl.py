"""The real kubectl on the sandbox: what a user types, and what a user reads."""

import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.runtime.clock import SystemClock
from grove_sandbox.api.verbs import Api
from grove_sandbox.http.access import Denial
from grove_sandbox.process import Sandbox, sandbox
from tests.waiting import PATIENCE

BINARY = shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which("kubectl")

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(BINARY is None, reason="there is no kubectl in KUBEBUILDER_ASSETS, nor on PATH")]

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.toys.example.com"},
    "spec": {
        "group": "toys.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "additionalPrinterColumns": [
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
                    {"name": "Parts", "type": "string", "jsonPath": ".spec.parts[*].name", "priority": 1},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A toy.",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "description": "What is wanted.",
                                "properties": {
                                    "replicas": {"type": "integer", "default": 1, "minimum": 0, "description": "How many."},
                                    "parts": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def widget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "toys.example.com/v1", "kind": "Widget", "metadata": {"name": "first"}, "spec": spec}


@dataclass(frozen=True, slots=True)
class Heard:
    """What kubectl said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The lines of a table, cut into words."""
        return [line.split() for line in self.out.splitlines()]


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl at the sandbox, with a cache of its own."""

    box: Sandbox
    folder: Path

    async def run(self, *words: str, body: dict[str, Any] | None = None) -> Heard:
        """One command; `body` is what it reads from stdin."""
        command = [str(BINARY), "--kubeconfig", str(self.box.kubeconfig), "--cache-dir", str(self.folder / "cache"), *words]
        sent = json.dumps(body).encode() if body is not None else b""
        with anyio.fail_after(PATIENCE):
            done = await anyio.run_process(command, input=sent, check=False)
        return Heard(done.returncode, done.stdout.decode(), done.stderr.decode())

    async def __call__(self, *words: str, body: dict[str, Any] | None = None) -> Heard:
        """One command that succeeds."""
        heard = await self.run(*words, body=body)
        assert heard.code == 0, heard.err
        return heard


@asynccontextmanager
async def connected(folder: Path, api: Api | None = None) -> AsyncIterator[Kubectl]:
    """The cluster as `engine sandbox up` starts it, on the machine's own clock; nobody is there to schedule pods or run them.

    With `api` it begins as that one is.
    """
    clock, actors = SystemClock(), ("garbage", "namespace", "token")
    async with sandbox(clock, folder, actors=actors, api=api.fork(clock) if api else None) as box:
        yield Kubectl(box, folder)


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    """A new cluster."""
    async with connected(tmp_path) as kubectl:
        yield kubectl


@pytest.fixture(scope="module")
async def with_toys(tmp_path_factory: pytest.TempPathFactory) -> Api:
    """The state of a cluster in which kubectl has made a kind of its own and an object of it."""
    async with connected(tmp_path_factory.mktemp("toys")) as kubectl:
        await kubectl("apply", "-f", "-", body=CRD)
        await kubectl("wait", "--for=condition=Established", "crd/widgets.toys.example.com", "--timeout=180s")
        await kubectl("apply", "-f", "-", body=widget(parts=[{"name": "a"}, {"name": "b"}]))
        return kubectl.box.api


@pytest.fixture
async def toys(with_toys: Api, tmp_path: Path) -> AsyncIterator[Kubectl]:
    """A cluster of its own in that state."""
    async with connected(tmp_path, with_toys) as kubectl:
        yield kubectl


async def test_get_prints_the_columns_of_the_kind(toys: Kubectl) -> None:
    plain, wide = await toys("get", "wd"), await toys("get", "wd", "-o", "wide")

    assert [["NAME", "REPLICAS", "READY"], ["first", "1"]] == plain.rows
    assert [["NAME", "REPLICAS", "READY", "PARTS"], ["first", "1", "a"]] == wide.rows


async def test_apply_says_what_it_did(toys: Kubectl) -> None:
    unchanged = await toys("apply", "-f", "-", body=widget(parts=[{"name": "a"}, {"name": "b"}]))
    configured = await toys("apply", "-f", "-", body=widget(replicas=2))

    assert "widget.toys.example.com/first unchanged\n" == unchanged.out
    assert "widget.toys.example.com/first configured\n" == configured.out
    assert '{"replicas":2}' == (await toys("get", "wd", "first", "-o", "jsonpath={.spec}")).out


async def test_server_side_apply_takes_over_from_the_client_side(toys: Kubectl) -> None:
    applied = await toys("apply", "--server-side", "-f", "-", body=widget(parts=[{"name": "a"}, {"name": "b"}]))
    managers = await toys("get", "wd", "first", "-o", "jsonpath={.metadata.managedFields[*].manager}", "--show-managed-fields")

    assert "widget.toys.example.com/first serverside-applied\n" == applied.out
    assert {"kubectl", "kubectl-last-applied"} == set(managers.out.split())


async def test_a_conflict_of_managers_names_the_field(toys: Kubectl) -> None:
    await toys("apply", "--server-side", "-f", "-", "--field-manager=ann", "--force-conflicts", body=widget(replicas=2))
    heard = await toys.run("apply", "--server-side", "-f", "-", "--field-manager=bob", body=widget(replicas=3))

    assert 1 == heard.code
    assert 'Apply failed with 1 conflict: conflict with "ann": .spec.replicas' in heard.err


@pytest.mark.parametrize("how", [("--validate=strict",), ("--server-side",)])
async def test_an_unknown_field_is_refused_by_its_path(toys: Kubectl, how: tuple[str, ...]) -> None:
    heard = await toys.run("apply", "-f", "-", *how, body=widget(nonsense=1))

    assert 1 == heard.code
    assert "spec.nonsense" in heard.err


async def test_an_unknown_field_is_a_warning_to_those_who_want_no_more(toys: Kubectl) -> None:
    heard = await toys("apply", "-f", "-", "--validate=warn", body=widget(nonsense=1))

    assert 'Warning: unknown field "spec.nonsense"' in heard.err


async def test_a_wrong_value_is_refused_with_the_reason(toys: Kubectl) -> None:
    heard = await toys.run("apply", "-f", "-", body=widget(parts=[{"name": 1}]))

    assert 'The Widget "first" is invalid' in heard.err
    assert 'spec.parts[0].name in body must be of type string: "integer"' in heard.err


async def test_diff_shows_what_apply_would_change_and_changes_nothing(toys: Kubectl) -> None:
    heard = await toys.run("diff", "-f", "-", body=widget(replicas=5))
    live = await toys("get", "wd", "first", "-o", "jsonpath={.spec.replicas}")

    assert 1 == heard.code
    assert "+  replicas: 5" in heard.out
    assert "1" == live.out


async def test_scale_goes_through_the_subresource(toys: Kubectl) -> None:
    scaled = await toys("scale", "wd/first", "--replicas=3")
    shown = await toys("get", "wd/first", "--subresource=scale")

    assert "widget.toys.example.com/first scaled\n" == scaled.out
    assert [["NAME", "DESIRED", "AVAILABLE", "AGE"], ["first", "3", "0"]] == [row[: 4 - at] for at, row in enumerate(shown.rows)]


async def test_labels_and_annotations_come_and_go(toys: Kubectl) -> None:
    await toys("label", "wd", "first", "a=b")
    await toys("annotate", "wd", "first", "x=y")
    refused = await toys.run("label", "wd", "first", "a=c")
    chosen = await toys("get", "wd", "-l", "a in (b, c)", "-o", "name")

    assert "'a' already has a value (b), and --overwrite is false" in refused.err
    assert "widget.toys.example.com/first\n" == chosen.out


async def test_describe_tells_of_the_object_and_its_events(toys: Kubectl) -> None:
    uid = (await toys("get", "wd", "first", "-o", "jsonpath={.metadata.uid}")).out
    about = {"apiVersion": "toys.example.com/v1", "kind": "Widget", "name": "first", "namespace": "default", "uid": uid}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "first.1"}, "involvedObject": about, "type": "Normal"}
    await toys("create", "-f", "-", body={**event, "reason": "Painted", "message": "now it is red", "source": {"component": "painter"}})

    heard = await toys("describe", "wd", "first")

    assert "Name:         first" in heard.out
    assert ["Normal", "Painted", "<unknown>", "painter", "now", "it", "is", "red"] in heard.rows


async def test_wait_sees_a_condition_come(toys: Kubectl) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(toys, "wait", "wd/first", "--for=condition=Ready", "--timeout=180s")
        status = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        await toys("patch", "wd", "first", "--subresource=status", "--type=merge", "-p", status)


async def test_wait_can_look_once_and_give_up(toys: Kubectl) -> None:
    heard = await toys.run("wait", "wd/first", "--for=condition=Never", "--timeout=0s")

    assert (1, "error: condition not met for widgets/first\n") == (heard.code, heard.err)


@pytest.mark.parametrize(
    ("how", "body"),
    [("merge", '{"spec": {"replicas": 7}}'), ("json", '[{"op": "replace", "path": "/spec/replicas", "value": 7}]')],
)
async def test_patches_of_each_sort_are_taken(toys: Kubectl, how: str, body: str) -> None:
    await toys("patch", "wd", "first", f"--type={how}", "-p", body)

    assert "7" == (await toys("get", "wd", "first", "-o", "jsonpath={.spec.replicas}")).out


async def test_explain_tells_what_the_schema_says(toys: Kubectl) -> None:
    kind, field = await toys("explain", "wd"), await toys("explain", "wd.spec.replicas")
    wrong = await toys.run("explain", "wd.spec.nonsense")

    assert "A toy." in kind.out
    assert "FIELD: replicas <integer>" in field.out and "How many." in field.out
    assert 'error: field "nonsense" does not exist' in wrong.err


async def test_api_resources_lists_what_is_served(toys: Kubectl) -> None:
    heard = await toys("api-resources", "--api-group=toys.example.com")

    assert ["widgets", "wd", "toys.example.com/v1", "true", "Widget"] == heard.rows[1]


async def test_a_kind_that_is_gone_is_gone_for_kubectl_too(toys: Kubectl) -> None:
    await toys("delete", "crd", "widgets.toys.example.com")
    heard = await toys.run("get", "wd")

    assert 1 == heard.code


async def test_a_watch_prints_each_change_as_a_line(toys: Kubectl) -> None:
    command = [str(BINARY), "--kubeconfig", str(toys.box.kubeconfig), "--cache-dir", str(toys.folder / "cache"), "get", "wd", "-w"]
    with anyio.fail_after(PATIENCE):
        async with await anyio.open_process(command) as process:
            assert process.stdout is not None
            output = ""
            while "first" not in output:
                output += (await process.stdout.receive()).decode()
            await toys("scale", "wd/first", "--replicas=4")
            while ["first", "4"] not in [line.split() for line in output.splitlines()]:
                output += (await process.stdout.receive()).decode()
            process.terminate()

    assert 1 == output.count("NAME")


async def test_deleting_in_the_foreground_takes_the_dependents_first(toys: Kubectl) -> None:
    await toys("apply", "-f", "-", body=await dependent(toys))
    deleted = await toys("delete", "wd", "first", "--cascade=foreground")
    heard = await toys.run("get", "cm", "child")

    assert 'widget.toys.example.com "first" deleted' in deleted.out
    assert 'Error from server (NotFound): configmaps "child" not found\n' == heard.err


async def test_deleting_can_leave_the_dependents_behind(toys: Kubectl) -> None:
    await toys("apply", "-f", "-", body=await dependent(toys))
    await toys("delete", "wd", "first", "--cascade=orphan")
    owners = await toys("get", "cm", "child", "-o", "jsonpath={.metadata.ownerReferences}")

    assert "" == owners.out


async def dependent(toys: Kubectl) -> dict[str, Any]:
    uid = (await toys("get", "wd", "first", "-o", "jsonpath={.metadata.uid}")).out
    owner = {"apiVersion": "toys.example.com/v1", "kind": "Widget", "name": "first", "uid": uid, "blockOwnerDeletion": True}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "ownerReferences": [owner]}}


async def test_a_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "brief")
    await kubectl("create", "configmap", "a", "-n", "brief", "--from-literal=x=1")
    await kubectl("delete", "namespace", "brief")

    assert "No resources found" in (await kubectl("get", "cm", "-n", "brief")).err


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (("configmap", "x", "--from-literal=a=b"), "configmap/x created"),
        (("secret", "generic", "x", "--from-literal=a=b"), "secret/x created"),
        (("serviceaccount", "x"), "serviceaccount/x created"),
    ],
)
async def test_create_without_a_file_works_for_the_plain_kinds(kubectl: Kubectl, words: tuple[str, ...], made: str) -> None:
    assert f"{made}\n" == (await kubectl("create", *words)).out


async def test_create_of_other_kinds_says_what_to_do_instead(kubectl: Kubectl) -> None:
    heard = await kubectl.run("create", "deployment", "x", "--image=y")

    assert 1 == heard.code
    assert "--dry-run=client -o yaml" in heard.err


async def test_errors_read_as_those_of_a_real_server(kubectl: Kubectl) -> None:
    await kubectl("create", "cm", "a")
    missing = await kubectl.run("get", "cm", "none")
    unknown = await kubectl.run("get", "nothings")
    again = await kubectl.run("create", "cm", "a")

    assert 'Error from server (NotFound): configmaps "none" not found\n' == missing.err
    assert 'error: the server doesn\'t have a resource type "nothings"\n' == unknown.err
    assert 'configmaps "a" already exists' in again.err


async def test_auth_answers_what_one_may_do(kubectl: Kubectl) -> None:
    kubectl.box.access.denials.append(Denial(verb="delete", resource="pods"))

    may, may_not = await kubectl.run("auth", "can-i", "create", "pods"), await kubectl.run("auth", "can-i", "delete", "pods")
    denied = await kubectl.run("delete", "pod", "a")

    assert (0, "yes") == (may.code, may.out.split()[0])
    assert (1, "no") == (may_not.code, may_not.out.split()[0])
    assert 'Error from server (Forbidden): pods "a" is forbidden: User "sandbox-admin" cannot delete resource "pods"' in denied.err


async def test_a_token_that_is_not_known_gets_nowhere(kubectl: Kubectl) -> None:
    heard = await kubectl.run("--token=wrong", "get", "pods")

    assert 1 == heard.code
    assert "must be logged in to the server" in heard.err


async def test_a_pod_set_is_applied_as_soon_as_the_sandbox_is_up(kubectl: Kubectl) -> None:
    container = {"name": "main", "image": "server"}
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": 1, "podSpec": {"containers": [container]}}}
    pcs = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "a"}}

    applied = await kubectl("apply", "-f", "-", body={**pcs, "spec": {"replicas": 2, "template": {"cliques": [clique]}}})
    shown = await kubectl("get", "pcs")

    assert "podcliqueset.grove.io/a created\n" == applied.out
    assert ["NAME", "REPLICAS", "AVAILABLE"] == shown.rows[0][:3]
    assert ["a", "2"] == shown.rows[1][:2]
