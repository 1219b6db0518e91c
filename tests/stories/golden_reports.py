"""The recorded reports of six changes, in `tests/stories/golden/`: what `engine diff` says, on the sandbox.

python -m tests.stories.golden_reports      records them again; review the change
"""

import copy
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import yaml

from engine.intent import Intent
from engine.report.text import text
from enginectl.actions.planning import first_pass_of
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base import kinds, labels
from resources.preview.forecasting import forecast_of
from resources.preview.shown import shown
from tests.stories.fabric import FABRIC
from tests.stories.stage import Stage, stage

FOLDER: Final = Path(__file__).parent / "golden"
EXAMPLES: Final = Path(__file__).parents[2] / "examples"
UNSTABLE: Final = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b(?!-)")
"""The end of a pod's name, which depends on uids."""

Body = dict[str, Any]


def recorded(name: str) -> str:
    """The recorded report of a case."""
    return _file(name).read_text("utf-8")


async def computed(name: str, *, verbose: bool = False) -> str:
    """The report of a case."""
    async with stage() as cluster:
        cluster.setup = FABRIC
        manifests = await CASES[name](cluster)
        return await report(cluster, manifests, verbose=verbose)


async def report(cluster: Stage, manifests: Sequence[Body], *, verbose: bool = False) -> str:
    """What `engine diff -f` says now about these manifests."""
    seen = await cluster.look(manifests)
    first = first_pass_of(seen, Intent(tuple(manifests)))
    lines = text(shown(first, forecast_of(first)).report, verbose=verbose)
    return "".join(f"{UNSTABLE.sub('*****', line.text)}\n" for line in lines)


def example(path: str) -> Body:
    """The set in an example's file, with the defaults of admission."""
    *_, body = yaml.load_all((EXAMPLES / path).read_text("utf-8"), yaml.CSafeLoader)
    body["metadata"].setdefault("namespace", "default")
    id = kinds.PODCLIQUESET.id("default", body["metadata"]["name"])
    decision = admit(Request(Act.CREATE, id, body), FABRIC)
    assert decision.body is not None
    return copy.deepcopy(dict(decision.body))


async def running(cluster: Stage, body: Body) -> Body:
    """A copy of the manifest of a set that is running."""
    await cluster.apply(body)
    await cluster.sync()
    return copy.deepcopy(body)


async def create(cluster: Stage) -> list[Body]:
    """A set with fabric domains that does not exist yet."""
    return [example("04-auto-mnnvl/racks.yaml")]


async def update(cluster: Stage) -> list[Body]:
    """Another image for all cliques of a running set."""
    body = await running(cluster, example("03-scaling-group/group.yaml"))
    for clique in body["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"] = copy.deepcopy(clique["spec"]["podSpec"])
        clique["spec"]["podSpec"]["containers"][0]["image"] = "nginx:1.30-alpine"
    return [body]


async def scale_in(cluster: Stage) -> list[Body]:
    """One replica less."""
    body = await running(cluster, example("04-auto-mnnvl/racks.yaml"))
    body["spec"]["replicas"] -= 1
    return [body]


async def delete(cluster: Stage) -> list[Body]:
    """A running set is being deleted."""
    await running(cluster, example("03-scaling-group/group.yaml"))
    await cluster.delete(kinds.PODCLIQUESET, "serving")
    return []


async def stuck(cluster: Stage) -> list[Body]:
    """A foreign Service has a name that a new set needs."""
    metadata = {"name": "simple1-0", "namespace": "default", "labels": labels.default("simple1")}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None"}}
    await cluster.kubectl.create(kinds.SERVICE, "default", service)
    return [example("00-simple/simple.yaml")]


async def repair(cluster: Stage) -> list[Body]:
    """Somebody has deleted a domain that pods use."""
    await running(cluster, example("04-auto-mnnvl/racks.yaml"))
    await cluster.delete(COMPUTE_DOMAIN, "racks-0")
    return []


CASES: Final[dict[str, Callable[[Stage], Awaitable[list[Body]]]]] = {
    "create": create,
    "update": update,
    "scale-in": scale_in,
    "delete": delete,
    "stuck": stuck,
    "repair": repair,
}


def _file(name: str) -> Path:
    return FOLDER / f"{name}.txt"


async def main() -> None:
    """Record all reports."""
    for name in CASES:
        _file(name).write_text(await computed(name), "utf-8")


if __name__ == "__main__":
    anyio.run(main)
