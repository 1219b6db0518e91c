"""Every kind of edit that replaces running pods: none is deleted before the API server has accepted the pods that come in its place."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from engine.conditions import find
from engine.forecast.forecast import End
from engine.guard import Limits
from engine.runtime.sync_report import Ending
from enginectl.actions.planning import first_pass_of
from resources.base import kinds
from resources.ports.configuration import Configuration, DynamoSettings
from resources.preview.forecasting import forecast_of
from tests.builders import applying, clique, group, podcliqueset
from tests.stories.edits import kind_of
from tests.stories.graphs import graph, service
from tests.stories.refusing import refuse
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

Body = dict[str, Any]
OLD, NEW = "image-before", "image-after"
"""What tells the pods of before an edit from those of after it."""
MANY = Limits(1000)
"""The delete budget would hide what is asked here."""


class Edit(Struct, frozen=True):
    """An edit that replaces running pods."""

    before: Body
    after: Body
    configured: Callable[[Configuration], Configuration] = lambda configuration: configuration
    """The configuration afterwards."""
    is_stored: bool = False
    """Whether the workload is changed by somebody else, whom no webhook keeps from what a manifest must not change."""


def one(name: str, image: str = OLD, replicas: int = 1, **spec: Any) -> Body:
    """A clique whose pods have that image."""
    return clique(name, replicas, pod_spec={"containers": [{"name": "main", "image": image}]}, **spec)


FRONT, LEAD, WORK = one("front", replicas=2), one("lead"), one("work", replicas=2)


def web(*cliques: Body, of: tuple[str, ...] = ("lead", "work"), name: str = "g", **template: Any) -> Body:
    """A set with a scaling group of some of its cliques."""
    return podcliqueset("web", *cliques, groups=(group(name, *of, replicas=2),) if of else (), **template)


WEB = web(FRONT, LEAD, WORK)


def composed(*cliques: Body, **template: Any) -> Edit:
    """An edit of what the set consists of."""
    return Edit(WEB, web(*cliques, **template), is_stored=True)


def ordered(front: Body) -> Body:
    """A set in which the group starts after `front`, with the engine's init container."""
    return web(front, LEAD, WORK, cliqueStartupType="CliqueStartupTypeInOrder")


SETS = {
    "a clique that stands alone": Edit(WEB, web(one("front", NEW, 2), LEAD, WORK)),
    "a member of a scaling group": Edit(WEB, web(FRONT, LEAD, one("work", NEW, 2))),
    "a clique under another name": composed(one("back", NEW, 2), LEAD, WORK),
    "a member under another name": composed(FRONT, LEAD, one("labour", NEW, 2), of=("lead", "labour")),
    "a clique that joins a group": composed(one("front", NEW, 2), LEAD, WORK, of=("lead", "work", "front")),
    "a clique that leaves its group": composed(FRONT, LEAD, one("work", NEW, 2), of=("lead",)),
    "a group under another name": composed(FRONT, one("lead", NEW), one("work", NEW, 2), name="h"),
    "no group": composed(FRONT, one("lead", NEW), one("work", NEW, 2), of=()),
    "another name and another template": composed(one("back", replicas=2), one("lead", NEW), WORK),
    "another start order": Edit(WEB, ordered(one("front", NEW, 2)), is_stored=True),
}


def worker(image: str = OLD, nodes: int = 1, replicas: int = 1, **fields: Any) -> Body:
    """A service whose pods run another script."""
    return service(replicas, nodes=nodes, script=f"python3 -m dynamo.vllm --model {image}", **fields)


def chat(grove: bool, **services: Body) -> Body:
    """A graph with a frontend and these services. Its set may be replaced."""
    annotations = {"nvidia.com/enable-grove": str(grove).lower(), "engine.grove.io/allow-replace": "true"}
    front = service(1, componentType="frontend", script="python3 -m dynamo.frontend", resources={})
    return graph("chat", annotations, **{"Frontend": front, **services})


RECREATED = {"nvidia.com/deployment-strategy": "Recreate"}
CHANGES: Mapping[str, tuple[dict[str, Body], dict[str, Body]]] = {
    "a service on one node": ({"a": worker()}, {"a": worker(NEW)}),
    "a service that is recreated": (
        {"a": worker(replicas=2, annotations=RECREATED)},
        {"a": worker(NEW, replicas=2, annotations=RECREATED)},
    ),
    "a service of many replicas": ({"a": worker(replicas=4)}, {"a": worker(NEW, replicas=4)}),
    "a service on two nodes": ({"a": worker(nodes=2, replicas=2)}, {"a": worker(NEW, nodes=2, replicas=2)}),
    "from one node to two": ({"a": worker()}, {"a": worker(NEW, nodes=2)}),
    "from two nodes to one": ({"a": worker(nodes=2)}, {"a": worker(NEW)}),
    "from two nodes to three": ({"a": worker(nodes=2)}, {"a": worker(NEW, nodes=3)}),
    "a service under another name": ({"a": worker()}, {"b": worker(NEW)}),
    "another name on two nodes": ({"a": worker(nodes=2)}, {"b": worker(NEW, nodes=2)}),
    "another name, and from one node to two": ({"a": worker()}, {"b": worker(NEW, nodes=2)}),
}


def addressed(configuration: Configuration) -> Configuration:
    """Another address in the environment of every container of a graph."""
    return replace(configuration, dynamo=DynamoSettings(etcd_address=NEW))


AS_SETS = (
    "a service on two nodes",
    "from one node to two",
    "from two nodes to one",
    "from two nodes to three",
    "a service under another name",
)
GRAPHS = {
    **{
        f"{name}, by Grove": Edit(chat(True, **before), chat(True, **after)) for name, (before, after) in CHANGES.items() if name in AS_SETS
    },
    **{f"{name}, as components": Edit(chat(False, **before), chat(False, **after)) for name, (before, after) in CHANGES.items()},
    "components in place of a set": Edit(chat(True, a=worker()), chat(False, a=worker(NEW))),
    "a set in place of components": Edit(chat(False, a=worker(nodes=2)), chat(True, a=worker(NEW, nodes=2))),
    "the configuration of a set": Edit(chat(True, a=worker()), chat(True, a=worker()), configured=addressed),
    "the configuration of components": Edit(chat(False, a=worker(nodes=2)), chat(False, a=worker(nodes=2)), configured=addressed),
}
EDITS = SETS | GRAPHS


def is_new(body: Mapping[str, Any]) -> bool:
    """Whether it is a pod of after the edit."""
    return body.get("kind") == kinds.POD.name and NEW in str(body["spec"])


def uids(cluster: Stage, *, new: bool | None = None) -> frozenset[str]:
    """The uids of the pods that are not being deleted; of those of before or of after the edit."""
    pods = cluster.there(kinds.POD).values()
    return frozenset(
        pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"] and (new is None or is_new(pod) is new)
    )


async def is_foreseen_stuck(cluster: Stage, manifests: Sequence[Body]) -> bool:
    """Whether `diff` says that something ends stuck."""
    seen = first_pass_of(await cluster.look(manifests, ours=cluster.start()), applying(manifests))
    forecast = forecast_of(seen)
    return forecast is not None and any(forecast.end_of(plan.root) is End.STUCK for plan in seen.planned.plans)


async def stored(cluster: Stage, body: Body) -> None:
    """`kubectl replace`."""
    kind, name = kind_of(body), body["metadata"]["name"]
    await cluster.kubectl.replace(kind, "default", name, {**cluster.there(kind)[name], "spec": deepcopy(body["spec"])})


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
async def test_an_edit_deletes_no_running_pod_before_the_api_server_has_accepted_those_in_its_place(edit: Edit) -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        await cluster.sync(manifests=[deepcopy(edit.before)])
        running, refuses = uids(cluster), True
        refuse(cluster.api, lambda body: refuses and is_new(body))
        cluster.setup = edit.configured(cluster.setup)
        manifests = [] if edit.is_stored else [edit.after]
        if edit.is_stored:
            await stored(cluster, edit.after)

        foreseen = await is_foreseen_stuck(cluster, manifests)
        report = await cluster.sync(manifests=manifests, limits=MANY)
        await cluster.clock.advance(60)

        assert running <= uids(cluster)
        assert (foreseen, report.ending) == (True, Ending.STUCK)
        assert "violates PodSecurity" in str([alarm.text for alarm in report.blocking_alarms])

        refuses, ours = False, cluster.start()
        complete: list[bool] = []
        ours.refuses_trial = lambda pod: complete.append(running <= uids(cluster))
        assert (await cluster.sync(ours, manifests=manifests, limits=MANY)).ending is Ending.DONE
        assert complete and all(complete)
        assert len(ours.tried) == len(set(ours.tried))
        assert uids(cluster, new=True)
        assert not running <= uids(cluster)


async def test_what_does_not_come_in_place_of_running_pods_goes_on_while_the_api_server_refuses_a_template() -> None:
    before = chat(False, a=worker(nodes=2, replicas=2), b=worker())
    after = chat(False, a=worker(NEW, nodes=2), b=worker(replicas=3), c=worker())
    async with stage(addons=("lws", "volcano")) as cluster:
        await cluster.sync(manifests=[before])
        refuse(cluster.api, is_new)
        await cluster.delete(kinds.SERVICE, "chat-b")

        await cluster.sync(manifests=[after], limits=MANY)

        assert [*cluster.there(kinds.LEADER_WORKER_SET)] == ["chat-a-0"]
        assert cluster.there(kinds.DEPLOYMENT)["chat-b"]["spec"]["replicas"] == 3
        assert "chat-c" in cluster.there(kinds.DEPLOYMENT)
        assert "chat-b" in cluster.there(kinds.SERVICE)
        status = cluster.there(kinds.DYNAMO_GRAPH)["chat"]["status"]
        ready = find(status["conditions"], "Ready") or {}
        assert (status["state"], ready["status"]) == ("pending", "False")
        assert "the API server refuses pods of LeaderWorkerSet chat-a-0 (leaderTemplate)" in ready["message"]


async def test_one_pod_of_each_template_of_a_component_is_tried() -> None:
    before, after = (chat(False, a=worker(image, nodes=2, replicas=3), b=worker(image)) for image in (OLD, NEW))
    async with stage(addons=("lws", "volcano")) as cluster:
        await cluster.sync(manifests=[before])
        ours = cluster.start()
        assert (await cluster.sync(ours, manifests=[after])).ending is Ending.DONE
        assert len(ours.tried) == 3

        again = cluster.start()
        await cluster.sync(again, manifests=[after])
        assert again.tried == []
