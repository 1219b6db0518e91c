"""SGLang: every node runs the user's command with the address of the leader, the number of nodes and its own rank."""

from msgspec import Struct

from engine.resource import Body
from resources.dynamo.backends.addresses import by_kubelet, in_shell
from resources.dynamo.backends.flags import DistributedFlags, with_flags
from resources.dynamo.backends.port import Placement, RewrittenContainer, without_probes
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import Role

PORT = 29500


class Sglang(Struct, frozen=True):
    """The flags `--dist-init-addr`, `--nnodes` and `--node-rank`; workers without probes."""

    cache_variable: str = ""
    cache_directory: str = ""

    def rewritten(self, container: Body, placement: Placement) -> RewrittenContainer:
        """The container with the flags of its rank, or as it is with a warning if its command is not recognised."""
        if placement.role is Role.WORKER:
            container = without_probes(container)
        changed = with_flags(container, Framework.SGLANG, _flags(placement))
        if changed is not None:
            return RewrittenContainer(changed)
        reason = (
            "its command stays as it is, because neither `python … sglang …` outside quotes nor a Python interpreter was recognised in it;"
            " add --dist-init-addr, --nnodes and --node-rank yourself"
        )
        return RewrittenContainer(container, warnings=(placement.warning(reason),))


def _flags(placement: Placement) -> DistributedFlags:
    leader = placement.addresses.leader
    if placement.role is Role.LEADER:
        return DistributedFlags(
            _line(leader(in_shell), placement.nodes, "0"), tuple(_line(leader(by_kubelet), placement.nodes, "0").split())
        )
    return DistributedFlags(_line(leader(in_shell), placement.nodes, placement.addresses.rank))


def _line(host: str, nodes: int, rank: str) -> str:
    return f"--dist-init-addr {host}:{PORT} --nnodes {nodes} --node-rank {rank}"
