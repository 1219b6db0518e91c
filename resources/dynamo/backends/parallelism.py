"""Parallelism: into how many parts the command that starts a framework splits its model, to compare with the GPUs of its nodes."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from engine.resource import Body
from resources.dynamo.backends.command import command_of, is_python, with_joined_arguments
from resources.dynamo.backends.script import UnreadableScript, read_script
from resources.dynamo.backends.shell import SHELL
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
"""Flag -> the kind of parallelism. An underscore in a flag counts as a dash. Experts are split over the GPUs of the other kinds, so that
their parallel size multiplies nothing."""
SHARED_DATA: Final = "--enable-dp-attention"
"""With this flag SGLang's data parallel ranks share the GPUs of tensor parallelism."""
IN_FILES: Final = frozenset({"--config", "--extra-engine-args", "--extra-llm-api-options", "--override-engine-args", "--yaml-config"})
"""Flags whose values may name sizes that the command does not show."""
USUAL: Final[Mapping[Framework, str]] = {
    Framework.VLLM: "--tensor-parallel-size",
    Framework.SGLANG: "--tp-size",
    Framework.TRTLLM: "--tensor-parallel-size",
}
"""Framework -> the flag of its tensor parallel size."""
WRITERS: Final = frozenset({"echo", "printf", ":", "true", "export", "#"})
"""Programs that only write or ignore their arguments."""
SERVE: Final = "serve"
"""The subcommand with which a framework's own program starts a server."""
LONGEST_NUMBER: Final = 9
"""Longer numbers are no sizes."""


class ParallelSizes(Struct, frozen=True):
    """The parallel sizes that a command names."""

    known: Mapping[str, int]
    """Kind of parallelism -> its size, for those that multiply the GPUs; of a flag that repeats, the last."""
    is_complete: bool
    """Whether the command shows all of them: none is computed when it runs, and none may be in a file."""


class Mismatch(Struct, frozen=True):
    """A command that needs another number of GPUs than a replica has."""

    sizes: Mapping[str, int]
    """Kind of parallelism -> its size, for those that the command names and that multiply the GPUs. Empty: it names none."""
    nodes: int
    gpus: int
    """The GPUs of one node."""
    flag: str = ""
    """The flag that would name the tensor parallel size."""

    def __str__(self) -> str:
        """One line, with all numbers."""
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        gpus = "1 GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        total = self.nodes * self.gpus
        if not self.sizes:
            return f"its command names no parallel size, but {nodes} × {gpus} = {total}: add {self.flag} {total}"
        factors = " × ".join(f"{kind} parallel size {size}" for kind, size in self.sizes.items())
        needed = f"{factors} = {_product(self.sizes)}" if len(self.sizes) > 1 else factors
        return f"{needed}, but {nodes} × {gpus} = {total}: they must be equal"


def mismatch(service: GraphService) -> Mismatch | None:
    """How the parallel sizes of a command differ from the GPUs. A service on several nodes must name one.

    None if they are equal or cannot be known, or if the service has no framework or no number of GPUs.
    """
    if service.framework is Framework.NONE or not service.gpus:
        return None
    sizes = parallel_sizes(service)
    if sizes is None or not sizes.is_complete or not (sizes.known or service.is_multinode):
        return None
    if sizes.known and _product(sizes.known) == service.nodes * service.gpus:
        return None
    return Mismatch(sizes.known, service.nodes, service.gpus, USUAL[service.framework])


def parallel_sizes(service: GraphService) -> ParallelSizes | None:
    """The sizes that the command of a service names for its framework; None if it is not recognised in the command."""
    words = framework_words(service.main_container, service.framework)
    return sizes_in(words, service.framework) if words else None


def sizes_in(words: Sequence[str], framework: Framework) -> ParallelSizes:
    """The sizes that the words of a command name for its framework."""
    flags = [word.partition("=")[0].replace("_", "-") for word in words]
    is_shared = framework is Framework.TRTLLM or (framework is Framework.SGLANG and SHARED_DATA in flags)
    sizes: dict[str, int | None] = {}
    for position, (word, flag) in enumerate(zip(words, flags, strict=True)):
        kind = FLAGS.get(flag, "")
        if kind and not (kind == DATA and is_shared):
            value = word.partition("=")[2] if "=" in word else next(iter(words[position + 1 : position + 2]), "")
            sizes[kind] = _number(value)
    known = {kind: size for kind in (TENSOR, PIPELINE, DATA) if (size := sizes.get(kind)) is not None}
    return ParallelSizes(known, len(known) == len(sizes) and not (not known and IN_FILES & set(flags)))


def framework_words(user: Body, framework: Framework) -> tuple[str, ...]:
    """The words of the commands of a container that start the framework, as a shell reads them: no comments, and no words of other
    commands. Empty if none does. A container without a command has the default shell."""
    container = with_joined_arguments({**user, "command": user.get("command") or list(SHELL)})
    command = command_of(container)
    if not command.is_shell:
        return command.words if _starts(command.words, framework) else ()
    try:
        commands = read_script(command.text).commands
    except UnreadableScript:
        return ()
    texts = ([word.text for word in words if not word.is_redirection] for words in commands)
    return tuple(text for words in texts if _starts(words, framework) for text in words)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def is_server(words: Sequence[str], framework: str) -> bool:
    """Whether a command starts the framework's own server, e.g. `vllm serve`, possibly behind a launcher."""
    pairs = zip(words, words[1:], strict=False)
    return (
        bool(words)
        and words[0] not in WRITERS
        and any(word.rpartition("/")[2] == framework and following == SERVE for word, following in pairs)
    )


def _starts(words: Sequence[str], framework: Framework) -> bool:
    """Whether a command starts a framework: its module behind a Python interpreter, or a program that is named after it. Arguments alone
    are those of the image's program."""
    if not words or words[0] in WRITERS:
        return False
    interpreter = next((index for index, word in enumerate(words) if is_python(word)), len(words))
    is_named = framework in words[0].rpartition("/")[2] or any(framework in word for word in words[interpreter + 1 :])
    return is_named or words[0].startswith("-") or is_server(words, framework)


def _product(sizes: Mapping[str, int]) -> int:
    product = 1
    for size in sizes.values():
        product *= size
    return product
