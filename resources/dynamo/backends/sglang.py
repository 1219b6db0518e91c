"""SGLang: every node runs the user's command with the address of the leader, the number of nodes and its own rank."""

from msgspec import Struct

from engine.resource import Body
from resources.dynamo.backends.addresses import by_kubelet, in_shell
from resources.dynamo.backends.flags import Flag, distributed_flags, with_flags
from resources.dynamo.backends.parallelism import framework_words
from resources.dynamo.backends.port import Placement, RewrittenContainer, without_probes
from resources.dynamo.backends.written_flags import written_flags
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import Role

PORT = 29500
NAMES = ("--dist-init-addr", "--nnodes", "--node-rank")


class Sglang(Struct, frozen=True):
    """The flags `--dist-init-addr`, `--nnodes` and `--node-rank`; workers without probes."""

    cache_variable: str = ""
    cache_directory: str = ""

    def rewritten(self, container: Body, placement: Placement) -> RewrittenContainer:
        """The container with the flags of its rank, or as it is with a warning if its command is not recognised."""
        if placement.is_of_role:
            return RewrittenContainer(container)
        if placement.role is Role.WORKER:
            container = without_probes(container)
        own = _written(container) if placement.knows_ranks else ()
        added = [flag for flag in _flags(placement) if flag.name not in own]
        changed = with_flags(container, Framework.SGLANG, distributed_flags(added)) if added else container
        if changed is not None:
            return RewrittenContainer(changed, warnings=_about(own, placement))
        reason = (
            "its command stays as it is, because neither `python … sglang …` outside quotes nor a Python interpreter was recognised in it;"
            " add --dist-init-addr, --nnodes and --node-rank yourself"
        )
        return RewrittenContainer(container, warnings=(placement.warning(reason),))


def _flags(placement: Placement) -> tuple[Flag, ...]:
    """The flags of a node; the rank of a worker is computed by a shell."""
    leader = placement.addresses.leader
    rank = Flag("--node-rank", "0") if placement.role is Role.LEADER else Flag("--node-rank", placement.addresses.rank, "")
    return (
        Flag("--dist-init-addr", f"{leader(in_shell)}:{PORT}", f"{leader(by_kubelet)}:{PORT}"),
        Flag("--nnodes", str(placement.nodes)),
        rank,
    )


def _written(container: Body) -> tuple[str, ...]:
    """The flags of ours that the user's command has."""
    return written_flags(framework_words(container, Framework.SGLANG)).among(NAMES)


def _about(own: tuple[str, ...], placement: Placement) -> tuple[str, ...]:
    if not own or placement.role is not Role.LEADER:
        return ()
    return (placement.warning(f"its command has {', '.join(own)}: what is written stays, and is not added again"),)
