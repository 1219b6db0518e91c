"""RunObstacle: one reason for which one object does not run."""

import shlex
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from engine.ids import ResourceId
from engine.observed import Live
from resources.model.gang_scheduling import shortfalls
from resources.model.pod_facts import PodFacts
from resources.reports.summary import unchanged_since


class RunObstacle(Struct, frozen=True):
    """Why one object does not run. The texts may contain what the cluster says, so they are not safe to be shown as they are."""

    about: ResourceId
    """The object that waits."""
    reason: str
    """One word in CamelCase, e.g. Unschedulable."""
    text: str
    """What it waits for, or what went wrong."""
    since: datetime | None
    advice: str = ""
    """What to do; empty if there is nothing to do but wait."""


def command(*words: str) -> str:
    """A command line of these words, quoted for a shell where that is necessary."""
    return " ".join(map(shlex.quote, words))


def explaining(word: str, id_name: str, namespace: str) -> str:
    """The command that explains another object; `word` is the short name of its kind."""
    return command("engine", "why", f"{word}/{id_name}", "-n", namespace)


def completing(gang: Live, counts: Mapping[str, int]) -> str:
    """The commands that complete a PodGang whose cliques were scaled below what counts for each pod group; empty if none was."""
    missing = (name for name, (listed, _) in shortfalls(gang.body).items() if listed < counts[name])
    return "; ".join(command("kubectl", "scale", f"pclq/{name}", "-n", gang.id.namespace, f"--replicas={counts[name]}") for name in missing)


def pod_obstacle_of(pod: PodFacts, reason: str, text: str, advice: str = "") -> RunObstacle:
    """The obstacle of a pod, since the pod is in its present state."""
    return RunObstacle(pod.live.id, reason, text, unchanged_since(pod.live), advice)
