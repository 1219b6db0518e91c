"""VllmNodes: how the nodes of a vLLM service join, and the flags of one node, from its parallel sizes and the GPUs of a node."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.report.printable import counted
from resources.dynamo.backends.addresses import by_kubelet, in_shell
from resources.dynamo.backends.executor import HYBRID_LOAD_BALANCING, Executor
from resources.dynamo.backends.flags import Flag
from resources.dynamo.backends.parallelism import DATA, PIPELINE, TENSOR, sizes_in
from resources.dynamo.backends.port import Placement
from resources.dynamo.backends.written_flags import EXECUTOR, WrittenFlags
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import Role

MASTER_PORT: Final = 29500
MASTER_PORT_FLAG: Final = "--master-port"
DATA_PORT: Final = 13445
OWN_RANKS: Final = ("--data-parallel-external-lb", "--data-parallel-rank")
"""Flags with which the user numbers the ranks and balances their load: ours would contradict them."""


class Joining(StrEnum):
    """What makes the nodes of a replica work together."""

    RAY = "Ray"
    MP = "mp"
    DATA = "data parallelism"
    """Each node runs some of the data parallel ranks, with an API server of its own."""
    NOTHING = "nothing"
    """The parts of the model fit into one node: every node runs the user's command."""


class VllmNodes(Struct, frozen=True):
    """How the nodes of a service join."""

    joining: Joining
    flags: tuple[Flag, ...]
    """The flags of one node, those that the user wrote among them."""
    warnings: tuple[str, ...] = ()
    port: int = MASTER_PORT
    """The port on which the leader waits for the workers, with `mp`."""


class Sizes(Struct, frozen=True):
    """The sizes by which nodes are joined."""

    world: int
    """Tensor × pipeline parallel size: how many GPUs one data parallel rank needs."""
    data: int
    gpus: int
    """The GPUs of a node: the number that is given, else the one with which the sizes are those of all nodes."""
    is_known: bool
    """Whether the command shows all its sizes."""

    @property
    def local(self) -> int:
        """How many data parallel ranks fit into one node."""
        return self.gpus // self.world


def vllm_nodes(words: Sequence[str], written: WrittenFlags, placement: Placement) -> VllmNodes:
    """How the nodes join of a service whose framework is started with these words.

    What does not fit into one node is joined by the executor; data parallel ranks that do are spread over the nodes. With Ray all else is
    joined as well; with `mp` only where the user says so by `--nnodes`.
    """
    sizes = _sizes(words, placement)
    is_mp = placement.executor is Executor.MP
    if sizes.world > sizes.gpus or (is_mp and written.has("--nnodes")):
        joining = Joining.MP if is_mp else Joining.RAY
    elif sizes.world * sizes.data > sizes.gpus and sizes.data > 1:
        joining = Joining.DATA
    else:
        joining = Joining.NOTHING if is_mp else Joining.RAY
    port = written.value(MASTER_PORT_FLAG)
    flags = _FLAGS[joining](placement, sizes, written)
    return VllmNodes(joining, tuple(flags), tuple(_warnings(joining, sizes, placement)), int(port) if _is_port(port) else MASTER_PORT)


def _sizes(words: Sequence[str], placement: Placement) -> Sizes:
    sizes = sizes_in(words, Framework.VLLM)
    named: Mapping[str, int] = {kind: size for kind, size in sizes.known.items() if size > 0}
    world, data = named.get(TENSOR, 1) * named.get(PIPELINE, 1), named.get(DATA, 1)
    gpus = placement.node_gpus or max(1, world * data // placement.nodes)
    return Sizes(world, data, gpus, bool(words) and sizes.is_complete and bool(named))


def _ray_flags(placement: Placement, sizes: Sizes, written: WrittenFlags) -> Iterator[Flag]:
    yield Flag(EXECUTOR, Executor.RAY.value)


def _mp_flags(placement: Placement, sizes: Sizes, written: WrittenFlags) -> Iterator[Flag]:
    addresses = placement.addresses
    yield Flag(EXECUTOR, Executor.MP.value)
    yield Flag("--nnodes", str(placement.nodes))
    yield Flag("--master-addr", addresses.leader(in_shell), addresses.leader(by_kubelet))
    yield Flag(MASTER_PORT_FLAG, str(MASTER_PORT))
    if placement.role is Role.LEADER:
        yield Flag("--node-rank", "0")
    else:
        yield Flag("--node-rank", addresses.rank, addresses.rank_word)
        yield Flag("--headless")


def _data_flags(placement: Placement, sizes: Sizes, written: WrittenFlags) -> Iterator[Flag]:
    addresses = placement.addresses
    if not written.among(OWN_RANKS):
        own = written.value("--data-parallel-size-local")
        local = int(own) if _is_port(own) else sizes.local
        yield Flag(HYBRID_LOAD_BALANCING)
        yield Flag("--data-parallel-size-local", str(local))
        if placement.role is Role.LEADER:
            yield Flag("--data-parallel-start-rank", "0")
        else:
            # No word: only a shell computes it. Variables have no dollar sign, by which a kubelet would read `$(` as its own.
            yield Flag("--data-parallel-start-rank", f"$(({local} * {addresses.rank_term}))", "")
    yield Flag("--data-parallel-address", addresses.leader(in_shell), addresses.leader(by_kubelet))
    yield Flag("--data-parallel-rpc-port", str(DATA_PORT))


def _no_flags(placement: Placement, sizes: Sizes, written: WrittenFlags) -> Iterator[Flag]:
    return iter(())


_FLAGS: Final = {Joining.RAY: _ray_flags, Joining.MP: _mp_flags, Joining.DATA: _data_flags, Joining.NOTHING: _no_flags}


def _warnings(joining: Joining, sizes: Sizes, placement: Placement) -> Iterator[str]:
    """What cannot start, or starts as something else than one server, with the numbers."""
    nodes = placement.nodes
    started = nodes * sizes.local
    if joining is Joining.NOTHING:
        why = (
            f"tensor × pipeline parallel size {sizes.world} fits into the {counted(sizes.gpus, 'GPU')} of one node"
            if sizes.is_known
            else "its command shows no parallel size that needs more than one node"
        )
        yield f"every node runs the same command, as {nodes} independent servers: {why}"
    elif joining is Joining.DATA and started != sizes.data:
        yield (
            f"data parallel size {sizes.data}, but {nodes} nodes × {counted(sizes.local, 'rank')} = {started}: they must be equal, "
            f"for a node of {counted(sizes.gpus, 'GPU')} has {counted(sizes.local, 'rank')} of {sizes.world}"
        )
    elif joining is not Joining.RAY and sizes.data > 1 and sizes.world > sizes.gpus:
        yield (
            f"data parallel size {sizes.data} is left to vLLM, because each rank of {sizes.world} GPUs needs more than one node of "
            f"{sizes.gpus}: {joining} joins the {nodes} nodes into one group"
        )


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5
