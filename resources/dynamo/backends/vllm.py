"""vLLM: its nodes are joined by Ray, by its own executor `mp`, or by data parallelism alone, as sizes, GPUs and executor require."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from engine.report.printable import printable
from engine.resource import Body
from resources.base.fields import mappings
from resources.dynamo.backends.executor import SIDE_CHANNEL, Executor
from resources.dynamo.backends.faults import PodFault
from resources.dynamo.backends.flags import Flag, distributed_flags, with_flags
from resources.dynamo.backends.leader_wait import leader_wait
from resources.dynamo.backends.parallelism import framework_words
from resources.dynamo.backends.port import Placement, RewrittenContainer, without_probes
from resources.dynamo.backends.ray import in_ray
from resources.dynamo.backends.vllm_nodes import MASTER_PORT, MASTER_PORT_FLAG, Joining, VllmNodes, vllm_nodes
from resources.dynamo.backends.written_flags import EXECUTOR, WrittenFlags, written_flags
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import Role

ELASTIC: Final = "--enable-elastic-ep"
POD_ADDRESS: Final = {"name": SIDE_CHANNEL, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
SWITCHES: Final = frozenset({"--data-parallel-hybrid-lb", "--headless"})
"""Flags that change nothing when they are written as well."""


class Vllm(Struct, frozen=True):
    """In forms of pods before the current one: Ray on every node. Workers have no probes."""

    cache_variable: str = "VLLM_CACHE_ROOT"
    cache_directory: str = "/root/.cache/vllm"

    def rewritten(self, container: Body, placement: Placement) -> RewrittenContainer:
        """The container of a leader or a worker. Raises `PodFault` for elastic expert parallelism."""
        if not placement.knows_ranks and not placement.is_of_role:
            return in_ray(container, placement)
        words = framework_words(container, Framework.VLLM)
        written = written_flags(words)
        if written.has(ELASTIC):
            path = ("spec", "services", placement.service, "extraPodSpec", "mainContainer", "args")
            raise PodFault(path, f"{ELASTIC} is not supported on several nodes")
        nodes = vllm_nodes(words, written, placement)
        if placement.is_of_role:
            return _of_role(_with_address(container, placement), nodes, written, placement)
        if placement.role is Role.WORKER:
            container = without_probes(container)
        changed = _joined(_with_address(container, placement), nodes, written, placement)
        return changed.with_warnings(*map(placement.warning, nodes.warnings)) if placement.role is Role.LEADER else changed


def _of_role(container: Body, nodes: VllmNodes, written: WrittenFlags, placement: Placement) -> RewrittenContainer:
    """The container of a role that has a template of its own. Its user joins the nodes, except for what `mp` needs besides: one port on
    both sides, and a worker that waits for its leader."""
    if nodes.joining is not Joining.MP:
        return RewrittenContainer(container)
    port = Flag(f"{MASTER_PORT_FLAG}={MASTER_PORT}")
    is_written = written.has(MASTER_PORT_FLAG)
    flagged = container if is_written else with_flags(container, Framework.VLLM, distributed_flags([port]), at_module=True)
    warnings = () if flagged is not None else (placement.warning(_unrecognised([port])),)
    waits = (leader_wait(container, placement, nodes.port),) if placement.role is Role.WORKER else ()
    return RewrittenContainer(container if flagged is None else flagged, init_containers=waits, warnings=warnings)


def _joined(container: Body, nodes: VllmNodes, written: WrittenFlags, placement: Placement) -> RewrittenContainer:
    """The container as the nodes join: with the flags of its node that its user has not written, and what has to be around them."""
    added = [flag for flag in nodes.flags if not written.has(flag.name)]
    is_ray = nodes.joining is Joining.RAY
    if is_ray and placement.role is Role.WORKER:
        return in_ray(container, placement)
    warnings = tuple(map(placement.warning, _about_flags(nodes, written, placement))) if placement.role is Role.LEADER else ()
    flagged = with_flags(container, Framework.VLLM, distributed_flags(added), at_module=True) if added else container
    if flagged is None:
        warnings = (placement.warning(_unrecognised(added)),)
        flagged = container
    changed = in_ray(flagged, placement) if is_ray else RewrittenContainer(flagged)
    if nodes.joining is Joining.MP and placement.role is Role.WORKER:
        changed = RewrittenContainer(changed.container, init_containers=(leader_wait(container, placement, nodes.port),))
    return changed.with_warnings(*warnings)


def _about_flags(nodes: VllmNodes, written: WrittenFlags, placement: Placement) -> Iterator[str]:
    """The warning about flags that the user wrote and that the engine computes, too."""
    named = written.value(EXECUTOR)
    if named and named.lower() != placement.executor:
        yield f"its command has {EXECUTOR} {printable(named)}, but {placement.executor} joins its nodes"
    own = [name for name in written.among(flag.name for flag in nodes.flags) if name not in SWITCHES and name != EXECUTOR]
    if own:
        yield f"its command has {', '.join(own)}: what is written stays, and is not added again"


def _unrecognised(flags: list[Flag]) -> str:
    names = ", ".join(flag.name for flag in flags)
    return (
        "no flag was added to its command, because none of `python … -m dynamo.vllm` and `vllm serve` outside quotes was recognised in it;"
        f" add {names} yourself"
    )


def _with_address(container: Body, placement: Placement) -> dict[str, Any]:
    """With `mp`, the container with the variable by which others reach its KV cache, unless its user has set it."""
    envs = mappings(container.get("env"))
    if placement.executor is not Executor.MP or any(env.get("name") == SIDE_CHANNEL for env in envs):
        return dict(container)
    return {**container, "env": [*envs, POD_ADDRESS]}
