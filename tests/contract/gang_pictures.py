"""Pictures: what a gang scenario has led to, without what differs between two runs of a real scheduler.

python -m tests.contract.gang_pictures KUBECONFIG [SCENARIO …]      records them, and the scenarios of the kinds, again
"""

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import orjson

from tests.contract import golden
from tests.contract.answers import answers_of, namespaced, sending
from tests.contract.gang_scenarios import AT_ONCE, EVERY, RACK, GangScenario
from tests.contract.scenario import HOW, Send, filled
from tests.contract.scenarios.bodies import NS, PODS
from tests.contract.scenarios.gangs import COMPOSITES, POD_GROUPS, SCENARIOS
from tests.contract.server import described

FOLDER = golden.FOLDER / "gangs"
NODES = "/api/v1/nodes"
QUIET = 6.0
"""Seconds without a change after which a real cluster is taken to be at rest: its scheduler tries again after a few."""
Picture = dict[str, Any]


def file_of(scenario: GangScenario) -> Path:
    """The golden file of a scenario."""
    return FOLDER / f"{scenario.name}.json"


def recorded(scenario: GangScenario) -> list[Picture]:
    """The recorded pictures, one for each act."""
    pictures: list[Picture] = orjson.loads(file_of(scenario).read_bytes())
    return pictures


async def play(
    scenario: GangScenario, send: Send, namespace: str, rest: Callable[[Callable[[], Awaitable[Picture]], int], Awaitable[Picture]]
) -> list[Picture]:
    """The pictures of the acts. `rest` is given what takes one, and the number of the act, and returns the one at rest."""
    values, pictures = {"ns": namespace}, []
    await remove_nodes(send)
    for node in scenario.nodes:
        await _expect(send, "POST", NODES, node)
    for number, act in enumerate(scenario.acts):
        for step in act.steps:
            await _expect(send, step.method, filled(step.path, values), step.body, HOW[step.how])
        pictures.append({"act": act.title, **await rest(lambda: picture(send, namespace), number)})
    for pod in await _items(send, PODS, namespace):
        await send("DELETE", f"{filled(PODS, values)}/{pod['metadata']['name']}{AT_ONCE}", None, HOW["json"])
    await remove_nodes(send)
    return pictures


async def remove_nodes(send: Send) -> None:
    """Delete all nodes of the cluster."""
    for node in (await send("GET", NODES, None, HOW["json"]))[1]["items"]:
        await send("DELETE", f"{NODES}/{node['metadata']['name']}", None, HOW["json"])


async def _expect(send: Send, method: str, path: str, body: Any, how: str = HOW["json"]) -> None:
    code, answer = await send(method, path, body, how)
    assert code in (200, 201), f"{method} {path}: {answer}"


async def _items(send: Send, path: str, namespace: str) -> list[dict[str, Any]]:
    _, answer = await send("GET", filled(path, {"ns": namespace}), None, HOW["json"])
    items: list[dict[str, Any]] = answer["items"]
    return sorted(items, key=lambda body: str(body["metadata"]["name"]))


async def picture(send: Send, namespace: str) -> Picture:
    """Pods with their places and what the scheduler says of them, and the groups with what it says of these."""
    racks = {
        node["metadata"]["name"]: node["metadata"]["labels"][RACK] for node in (await send("GET", NODES, None, HOW["json"]))[1]["items"]
    }
    pods, events = await _items(send, PODS, namespace), await _items(send, f"{NS}/events", namespace)
    groups, composites = await _items(send, POD_GROUPS, namespace), await _items(send, COMPOSITES, namespace)
    nodes = _symbols("node", (pod["spec"].get("nodeName") for pod in pods))
    places = _symbols("rack", (racks.get(pod["spec"].get("nodeName")) for pod in pods))
    warned = {event["involvedObject"]["uid"] for event in events if event["reason"] == "FailedScheduling"}
    return {
        "pods": {pod["metadata"]["name"]: _pod(pod, nodes, racks, places, warned) for pod in pods},
        "groups": {body["metadata"]["name"]: _group(body) for body in groups},
        "composites": {body["metadata"]["name"]: _group(body) for body in composites},
    }


def _symbols(word: str, values: Iterable[str | None]) -> Mapping[str, str]:
    """A name for each value, in order of appearance: which node or rack it is, chance decides."""
    return {value: f"{word}-{number}" for number, value in enumerate(dict.fromkeys(filter(None, values)), 1)}


def _pod(pod: Any, nodes: Mapping[str, str], racks: Mapping[str, str], places: Mapping[str, str], warned: set[str]) -> Picture:
    node, scheduled = pod["spec"].get("nodeName"), _condition(pod, "PodScheduled")
    if node:
        return {"node": nodes[node], "rack": places[racks[node]], "scheduled": scheduled}
    return {"scheduled": scheduled, "event": pod["metadata"]["uid"] in warned}


def _group(group: Any) -> Picture:
    return {"scheduled": _condition(group, "PodGroupInitiallyScheduled"), "deleting": "deletionTimestamp" in group["metadata"]}


def _condition(body: Any, type_: str) -> Picture:
    """Status, reason and message of a condition; empty without it. A later attempt may leave its message in one that is True."""
    conditions: Sequence[Any] = (body.get("status") or {}).get("conditions") or ()
    found: Picture = next((each for each in conditions if each["type"] == type_), {})
    keys = ("status", "reason") if found.get("status") == "True" else ("status", "reason", "message")
    return {key: found.get(key, "") for key in keys} if found else {}


async def at_rest(take: Callable[[], Awaitable[Picture]], _: int) -> Picture:
    """The picture once nothing has changed for a while."""
    latest, since = await take(), anyio.current_time()
    while anyio.current_time() - since < QUIET:
        await anyio.sleep(0.5)
        now = await take()
        if now != latest:
            latest, since = now, anyio.current_time()
    return latest


async def record(kubeconfig: Path, names: list[str]) -> None:
    """Record the named scenarios, or all, on a real cluster with gangs."""
    server = described("real", kubeconfig)
    for scenario in SCENARIOS:
        if not names or scenario.name in names:
            _write(golden.file_of(scenario), await answers_of(server, scenario))
    for each in EVERY:
        if not names or each.name in names:
            async with sending(server) as send, namespaced(send) as namespace:
                _write(file_of(each), await play(each, send, namespace, at_rest))


def _write(file: Path, content: Any) -> None:
    file.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


if __name__ == "__main__":
    anyio.run(record, Path(sys.argv[1]), sys.argv[2:])
