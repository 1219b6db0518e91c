"""Our webhooks in front of the sandbox's API: asked where a real server asks them, and quoted as it quotes them."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove_sandbox.api.verbs import Api
from grove_sandbox.api.webhooks import Webhooks, install
from grove_sandbox.clock import VirtualClock
from grove_sandbox.process import Sandbox, sandbox
from grove_sandbox.types.status import StatusError
from providers.fabrics.nvidia.fabric import Nvidia
from providers.schedulers.kube import KubeScheduler
from providers.schedulers.volcano import VolcanoScheduler
from resources.admission.managed_rules import Protection
from resources.base.kinds import CRD, PODCLIQUESET, SERVICE
from resources.children.table import CHILDREN
from resources.ports.configuration import Configuration
from resources.ports.scheduler import Scheduler
from resources.schema.crds import crds
from sandbox.tests.in_memory import about
from sandbox.tests.web import Said, Web, web
from tests.resources.manifests import JSON as JSON_VALUES
from tests.resources.manifests import WHOLE, clique, paths, pcs, put

SETUP = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", topology=True, fabrics=(Nvidia(auto=True),))
SETS = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
BINDINGS = "/apis/grove.io/v1alpha1/clustertopologybindings"
MERGE, JSON, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
DENIED = 'admission webhook "pcs.validating.webhooks.grove.io" denied the request: PodCliqueSet.grove.io "d" is invalid: '


@asynccontextmanager
async def guarded(folder: Path, protection: Protection = Protection()) -> AsyncIterator[tuple[Sandbox, Web]]:  # noqa: B008
    """A cluster with our webhooks, and a user of it."""
    async with sandbox(VirtualClock(), folder, actors=(), webhooks=Webhooks(SETUP, protection)) as box, web(box) as user:
        yield box, user


def a_set(*cliques: Mapping[str, Any], **template: Any) -> dict[str, Any]:
    """A set in the namespace that there is."""
    body = pcs(*map(dict, cliques), **template)
    return {**body, "metadata": {"name": "d"}}


def with_gpus() -> dict[str, Any]:
    """A clique of pods with accelerators."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return clique("a", podSpec={"containers": [container]})


def warnings_of(said: Said) -> list[str]:
    """The warnings in an answer."""
    return list(said.headers.getall("Warning", ()))  # type: ignore[attr-defined]


@pytest.mark.anyio
async def test_a_new_set_is_stored_with_its_defaults_and_enrolled(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        said = await user.ask("POST", SETS, a_set(with_gpus()))
        stored = (await user.ask("GET", f"{SETS}/d")).body

    assert said.code == 201
    assert stored["metadata"]["annotations"] == {"grove.io/auto-mnnvl": "enabled"}
    assert stored["spec"]["template"]["terminationDelay"] == "4h0m0s"
    assert stored["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 1


@pytest.mark.anyio
async def test_what_is_wrong_is_told_as_a_server_tells_the_denial_of_a_webhook(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        said = await user.ask("POST", SETS, a_set(clique("a"), clique("b", roleName="a", minAvailable=2)))
        again = await user.ask("GET", f"{SETS}/d")

    refused = said.body
    causes = refused["details"].pop("causes")
    assert (said.code, again.code) == (422, 404)
    assert {cause["field"] for cause in causes} == {ROLE.replace("[0]", "[1]"), "spec.template.cliques[1].spec.minAvailable"}
    texts = ", ".join(f"{cause['field']}: {cause['message']}" for cause in causes)
    assert refused == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{DENIED}[{texts}]",
        "reason": "Invalid",
        "details": {"name": "d", "group": "grove.io", "kind": "PodCliqueSet"},
        "code": 422,
    }


@pytest.mark.anyio
async def test_the_schema_is_held_against_it_before_a_webhook_validates(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        said = await user.ask("POST", SETS, a_set(clique("a", replicas="many", minAvailable=-1)))

    assert said.code == 422
    assert said.body["message"].startswith('PodCliqueSet.grove.io "d" is invalid: [spec.template.cliques[0].spec.replicas: ')


@pytest.mark.anyio
async def test_a_name_that_is_taken_is_no_excuse_for_what_is_wrong(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        await user.ask("POST", SETS, a_set())
        good, bad = await user.ask("POST", SETS, a_set()), await user.ask("POST", SETS, a_set(clique("a", minAvailable=2)))

    assert [good.body["reason"], bad.body["reason"]] == ["AlreadyExists", "Invalid"]


ROLE = "spec.template.cliques[0].spec.roleName"
RENAMED = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", **a_set(clique("a", roleName="other"))}


@pytest.mark.parametrize(
    ("method", "query", "body", "type_"),
    [
        ("PATCH", "", {"spec": {"template": {"cliques": [clique("a", roleName="other")]}}}, MERGE),
        ("PATCH", "", [{"op": "replace", "path": "/spec/template/cliques/0/spec/roleName", "value": "other"}], JSON),
        ("PATCH", "?fieldManager=kubectl&force=true", RENAMED, APPLY),
        ("PATCH", "?fieldManager=kubectl&force=true&dryRun=All", RENAMED, APPLY),
    ],
)
@pytest.mark.anyio
async def test_of_a_patch_the_webhook_sees_what_comes_of_it(tmp_path: Path, method: str, query: str, body: Any, type_: str) -> None:
    async with guarded(tmp_path) as (_, user):
        before = (await user.ask("POST", SETS, a_set())).body
        said = await user.ask(method, f"{SETS}/d{query}", body, Content_Type=type_)
        after = (await user.ask("GET", f"{SETS}/d")).body

    assert said.code == 422
    assert said.body["message"].startswith(DENIED)
    assert [cause["field"] for cause in said.body["details"]["causes"]] == [ROLE]
    assert after == before


@pytest.mark.anyio
async def test_an_object_that_is_replaced_is_judged_too(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        before = (await user.ask("POST", SETS, a_set())).body
        before["spec"]["template"]["cliques"][0]["spec"]["roleName"] = "other"
        said = await user.ask("PUT", f"{SETS}/d", before)

    assert said.body["message"].startswith(DENIED)


@pytest.mark.anyio
async def test_applying_what_is_not_there_makes_it_with_its_defaults(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        said = await user.ask("PATCH", f"{SETS}/d?fieldManager=kubectl", a_set(with_gpus()), Content_Type=APPLY)

    assert said.code == 201
    assert said.body["metadata"]["annotations"] == {"grove.io/auto-mnnvl": "enabled"}


@pytest.mark.anyio
async def test_a_dry_run_shows_what_would_be_stored_and_stores_nothing(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        said = await user.ask("POST", f"{SETS}?dryRun=All", a_set(with_gpus()))
        missing = await user.ask("GET", f"{SETS}/d")

    assert said.body["metadata"]["annotations"] == {"grove.io/auto-mnnvl": "enabled"}
    assert (said.code, missing.code) == (201, 404)


@pytest.mark.anyio
async def test_warnings_come_in_a_header_whatever_becomes_of_the_object(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        once = clique("a", podSpec={"containers": [{"name": "c"}], "restartPolicy": "Never"})
        allowed = await user.ask("POST", SETS, a_set(once))
        denied = await user.ask("POST", SETS, a_set({**once, "spec": {**once["spec"], "minAvailable": 2}}))

    assert [allowed.code, denied.code] == [201, 422]
    assert warnings_of(allowed) == warnings_of(denied) != []
    assert warnings_of(allowed)[0].startswith('299 - "')


@pytest.mark.anyio
async def test_states_and_scales_are_no_business_of_the_webhooks(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (box, user):
        box.api.core.validation, webhooks = (), box.api.core.validation
        await user.ask("POST", SETS, a_set(clique("a", minAvailable=2)))
        box.api.core.validation = webhooks
        state = await user.ask("PATCH", f"{SETS}/d/status", {"status": {"replicas": 1}}, Content_Type=MERGE)
        scale = await user.ask("PATCH", f"{SETS}/d/scale", {"spec": {"replicas": 3}}, Content_Type=MERGE)
        label = await user.ask("PATCH", f"{SETS}/d", {"metadata": {"labels": {"x": "y"}}}, Content_Type=MERGE)

    assert [state.code, scale.code, label.code] == [200, 200, 422]


@pytest.mark.anyio
async def test_an_unsound_set_can_still_be_deleted_and_let_go(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (box, user):
        box.api.core.validation, webhooks = (), box.api.core.validation
        body = a_set(clique("a", minAvailable=2))
        await user.ask("POST", SETS, {**body, "metadata": {"name": "d", "finalizers": ["x.example.com/y"]}})
        box.api.core.validation = webhooks
        dying = await user.ask("DELETE", f"{SETS}/d")
        released = await user.ask("PATCH", f"{SETS}/d", {"metadata": {"finalizers": None}}, Content_Type=MERGE)
        gone = await user.ask("GET", f"{SETS}/d")

    assert [dying.code, released.code, gone.code] == [200, 200, 404]


def binding(*domains: str) -> dict[str, Any]:
    """A topology with these domains."""
    frame = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": "t"}}
    return {**frame, "spec": {"levels": [{"domain": domain, "key": f"example.com/{at}"} for at, domain in enumerate(domains)]}}


@pytest.mark.anyio
async def test_a_topology_is_judged_and_looked_at(tmp_path: Path) -> None:
    constrained = a_set(topologyConstraint={"topologyName": "t", "pack": {"required": "rack"}})
    async with guarded(tmp_path) as (_, user):
        refused = await user.ask("POST", BINDINGS, binding("rack", "rack"))
        unknown = await user.ask("POST", SETS, constrained)
        made = await user.ask("POST", BINDINGS, binding("zone", "rack"))
        known = await user.ask("POST", SETS, constrained)

    assert [refused.code, unknown.code, made.code, known.code] == [422, 422, 201, 201]
    assert refused.body["message"] == (
        'admission webhook "clustertopology.validating.webhooks.grove.io" denied the request: ClusterTopologyBinding.grove.io "t" '
        'is invalid: spec.levels[1].domain: Duplicate value: "rack"'
    )
    assert 'ClusterTopologyBinding "t" not found' in unknown.body["message"]


MANAGED = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "d"}
SERVICES = "/api/v1/namespaces/default/services"


def service(name: str) -> dict[str, Any]:
    """A service that calls itself ours."""
    return {"metadata": {"name": name, "labels": MANAGED}, "spec": {"ports": [{"port": 80}]}}


@pytest.mark.anyio
async def test_managed_objects_are_everybodys_unless_the_configuration_protects_them(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        await user.ask("POST", SETS, a_set())
        await user.ask("POST", SERVICES, service("d-0"))
        said = await user.ask("DELETE", f"{SERVICES}/d-0")

    assert said.code == 200


@pytest.mark.anyio
async def test_protected_objects_are_for_the_operator_whose_context_stands_in_the_kubeconfig(tmp_path: Path) -> None:
    async with guarded(tmp_path, Protection(CHILDREN.protected(SETUP))) as (box, user):
        await user.ask("POST", SETS, a_set())
        await user.ask("POST", SERVICES, service("d-0"))
        config = yaml.load(box.kubeconfig.read_text(), yaml.CSafeLoader)
        (operator,) = (one["context"]["user"] for one in config["contexts"] if one["name"] == "operator")
        (token,) = (one["user"]["token"] for one in config["users"] if one["name"] == operator)
        denied = await user.ask("DELETE", f"{SERVICES}/d-0")
        swept = await user.ask("DELETE", SERVICES)
        allowed = await user.ask("DELETE", f"{SERVICES}/d-0", token=token)

    assert config["current-context"] == "sandbox"
    assert denied.code == swept.code == 403
    assert denied.body["message"] == (
        'admission webhook "authorizer.webhooks.grove.io" denied the request: '
        "admission denied, deletion of resource: default/d-0 is not allowed"
    )
    assert allowed.code == 200


@pytest.mark.anyio
async def test_the_cluster_itself_is_no_stranger_to_what_is_protected(tmp_path: Path) -> None:
    async with guarded(tmp_path, Protection(CHILDREN.protected(SETUP))) as (box, user):
        await user.ask("POST", SETS, a_set())
        await user.ask("POST", SERVICES, service("d-0"))
        await box.client("sandbox-garbage").delete(SERVICE, "default", "d-0")
        gone = await user.ask("GET", f"{SERVICES}/d-0")

    assert gone.code == 404


@cache
def guarded_api() -> Api:
    """The API without HTTP, with our kinds and our webhooks."""
    api = Api(VirtualClock(), seed=1)
    for definition in crds():
        api.create(about(api, CRD), definition)
    install(api, Webhooks(SETUP, Protection(CHILDREN.protected(SETUP))))
    return api


def over_the_wire(value: Any) -> Any:
    """The value as a server reads it: no number is beyond 64 bits there."""
    return orjson.loads(json.dumps(value).replace("Infinity", "1e300"))


@given(st.data(), JSON_VALUES.map(over_the_wire))
def test_whatever_is_sent_is_stored_or_refused_and_never_breaks_the_server(data: st.DataObject, junk: Any) -> None:
    whole = {**WHOLE, "metadata": {"name": "d", "annotations": {"a": "b"}, "labels": {"c": "d"}}}
    body = put(whole, data.draw(st.sampled_from([path for path in paths(whole) if path])), junk)
    request = replace(about(guarded_api(), PODCLIQUESET), dry_run=True)

    try:
        said = guarded_api().create(request, body).code
    except StatusError as refusal:
        said = refusal.code

    assert 200 <= said < 500


@pytest.mark.anyio
async def test_an_object_of_a_kind_that_is_not_served_is_not_looked_for(tmp_path: Path) -> None:
    schedulers: dict[str, Scheduler] = {"default-scheduler": KubeScheduler(), "volcano": VolcanoScheduler()}
    webhooks = Webhooks(Configuration(schedulers, "volcano"), Protection())
    async with sandbox(VirtualClock(), tmp_path, actors=(), webhooks=webhooks) as box, web(box) as user:
        answer = await user.ask("POST", SETS, a_set(clique("a")))

    assert answer.code == 201, answer.body
    assert [warning for warning in warnings_of(answer) if "was not checked: queues were not read" in warning] != []
