"""WrittenFlags: the flags that a user wrote in the command of a framework, so that none is added a second time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from resources.dynamo.backends.command import is_python

EXECUTOR: Final = "--distributed-executor-backend"
USUAL: Final[Mapping[str, str]] = {
    "-n": "--nnodes",
    "-r": "--node-rank",
    "-dp": "--data-parallel-size",
    "-dpl": "--data-parallel-size-local",
    "-dpr": "--data-parallel-start-rank",
    "-dpn": "--data-parallel-rank",
    "-dpa": "--data-parallel-address",
    "-dpp": "--data-parallel-rpc-port",
    "-dph": "--data-parallel-hybrid-lb",
    "-dpe": "--data-parallel-external-lb",
    "--nccl-init-addr": "--dist-init-addr",
}
"""Another spelling of a flag -> its usual one. An underscore in a flag counts as a dash."""


class WrittenFlags(Struct, frozen=True):
    """The flags of a command."""

    values: Mapping[str, str]
    """Flag in its usual spelling -> its value, the last if it repeats; of a switch, whatever follows it."""

    def value(self, flag: str) -> str:
        """The value of a flag; empty without the flag."""
        return self.values.get(flag, "")

    def has(self, flag: str) -> bool:
        """Whether the flag is written."""
        return flag in self.values

    def among(self, flags: Iterable[str]) -> tuple[str, ...]:
        """Those of these flags that are written, in the order in which they are given."""
        return tuple(flag for flag in flags if flag in self.values)


def written_flags(words: Sequence[str]) -> WrittenFlags:
    """The flags among the words of a command, as its program receives them; not those of a launcher before a Python interpreter."""
    first = next((index for index, word in enumerate(words) if is_python(word)), 0)
    values: dict[str, str] = {}
    for position in range(first, len(words)):
        flag, equals, value = words[position].partition("=")
        if flag.startswith("-"):
            following = words[position + 1] if position + 1 < len(words) else ""
            values[_usual(flag)] = value if equals else following
    return WrittenFlags(values)


def _usual(flag: str) -> str:
    plain = flag.replace("_", "-")
    return USUAL.get(plain, plain)
