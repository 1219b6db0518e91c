"""Parallelism: into how many parts a service's command splits its model, to compare with the GPUs of its nodes."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import GraphService

TENSOR: Final = "tensor"
PIPELINE: Final = "pipeline"
DATA: Final = "data"

FLAGS: Final[Mapping[str, str]] = {
    "--tensor-parallel-size": TENSOR,
    "--tp-size": TENSOR,
    "--tp": TENSOR,
    "-tp": TENSOR,
    "--pipeline-parallel-size": PIPELINE,
    "--pp-size": PIPELINE,
    "--pp": PIPELINE,
    "-pp": PIPELINE,
    "--data-parallel-size": DATA,
    "--dp-size": DATA,
    "--dp": DATA,
    "-dp": DATA,
}
"""Flag -> the kind of parallelism. An underscore in a flag counts as a dash."""
SHARED_DATA: Final = "--enable-dp-attention"
"""With this flag SGLang's data parallel ranks share the GPUs of tensor parallelism."""
QUOTES: Final = "\"'`;&|()"
"""Characters of a shell line that are no part of a flag or a number."""
LONGEST_NUMBER: Final = 9
"""Longer numbers are no sizes."""


class Mismatch(Struct, frozen=True):
    """A command that needs another number of GPUs than a replica has."""

    sizes: Mapping[str, int]
    """Kind of parallelism -> its size, for those that the command names and that multiply the GPUs."""
    nodes: int
    gpus: int
    """The GPUs of one node."""

    def __str__(self) -> str:
        """One line, with all numbers."""
        factors = " × ".join(f"{kind} parallel size {size}" for kind, size in self.sizes.items())
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        gpus = "1 GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        needed = f"{factors} = {_product(self.sizes)}" if len(self.sizes) > 1 else factors
        return f"{needed}, but {nodes} × {gpus} = {self.nodes * self.gpus}: they must be equal"


def mismatch(service: GraphService) -> Mismatch | None:
    """How the parallel sizes of a command differ from the GPUs; None if they are equal, not given, or the service has no framework."""
    sizes = parallel_sizes(service)
    if service.framework is Framework.NONE or service.gpus is None or not sizes:
        return None
    return Mismatch(sizes, service.nodes, service.gpus) if _product(sizes) != service.nodes * service.gpus else None


def parallel_sizes(service: GraphService) -> Mapping[str, int]:
    """Kind of parallelism -> its size, as the command names them; of a flag that repeats, the last. Data parallelism is left out where
    it does not multiply the GPUs."""
    words = list(_words(service))
    sizes: dict[str, int] = {}
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if kind := FLAGS.get(flag.replace("_", "-")):
            text = value if equals else next(iter(words[position + 1 : position + 2]), "")
            if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER:
                sizes[kind] = int(text)
    is_shared = service.framework is Framework.TRTLLM or (service.framework is Framework.SGLANG and SHARED_DATA in words)
    return {kind: sizes[kind] for kind in (TENSOR, PIPELINE, DATA) if kind in sizes and not (kind == DATA and is_shared)}


def _words(service: GraphService) -> Iterator[str]:
    """The words of the command and its arguments; an argument that is a shell line is split."""
    for field in ("command", "args"):
        for text in service.main_container.get(field) or ():
            yield from (word.strip(QUOTES) for word in text.split())


def _product(sizes: Mapping[str, int]) -> int:
    product = 1
    for size in sizes.values():
        product *= size
    return product
