"""Evaluation process: evaluates expressions by itself: one that takes too long, or too much memory, ends only that process."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from msgspec import Struct, field

from engine.errors import EngineError
from resources.plan_policies.expressions import Answer, RuleSubject

PATIENCE: Final = 10.0
"""The seconds in which each expression must be evaluated."""
STARTING: Final = 60.0
"""The seconds in which the process must start."""
MEMORY: Final = 2 << 30
"""The most bytes of memory of the process: an expression of a few hundred characters can ask for any amount."""
COMMAND: Final = (sys.executable, "-P", "-m", "providers.plan_policies.child")
"""`-P`: no module of the working directory is taken for one of ours."""
MOST_ENDED: Final = 3
"""After so many expressions that had to be ended, the others are not evaluated: the command must come to its end."""
NOT_EVALUATED: Final = "it is not evaluated: too many others took too much time or memory"
ENDED: Final = "its evaluation ended the process: it needs too much memory, or the library for CEL has a defect"


class ChildExpressions(Struct):
    """`resources.plan_policies.expressions.Expressions` in a process of its own, which is started when it is needed."""

    patience: float = PATIENCE
    memory: int = MEMORY
    _process: subprocess.Popen[bytes] | None = None
    _unread: bytes = field(default=b"")
    _sent: dict[int, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    """Identity of data -> its number, and the data itself, which keeps its identity from being given to another."""
    _ended: int = 0
    """How many expressions had to be ended."""

    def evaluate(self, subject: RuleSubject, expressions: Sequence[str]) -> Sequence[Answer]:
        """The answer of each expression. After one that had to be ended, the others are evaluated in a new process."""
        answers: list[Answer] = []
        while len(answers) < len(expressions):
            if self._ended >= MOST_ENDED:
                return [*answers, *[Answer(fault=NOT_EVALUATED)] * (len(expressions) - len(answers))]
            self._send(subject, expressions[len(answers) :])
            for _ in range(len(answers), len(expressions)):
                answer = self._receive()
                answers.append(answer)
                if self._process is None:
                    break
        return answers

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process, self._unread, self._sent = self._process, None, b"", {}
        if process is not None:
            process.kill()
            process.communicate()

    def _send(self, subject: RuleSubject, expressions: Sequence[str]) -> None:
        """Send a request, to a new process if there is none."""
        process = self._process or self._start()
        number, is_known = self._number_of(subject.data)
        request = {
            "scope": subject.scope.value,
            "subject": number,
            "data": None if is_known else subject.data,
            "params": dict(subject.params),
            "now": subject.now,
            "expressions": list(expressions),
        }
        if process.stdin is not None:
            with suppress(BrokenPipeError):  # `_receive` finds that the process has ended, and says so.
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()

    def _number_of(self, data: Mapping[str, Any]) -> tuple[int, bool]:
        """The number by which the process knows this data, and whether it has it already."""
        number, _ = known = self._sent.get(id(data), (len(self._sent), data))
        is_known = id(data) in self._sent
        self._sent[id(data)] = known
        return number, is_known

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process. Raises `EngineError` if it does not answer: then no expression can be evaluated."""
        words = (*COMMAND, str(self.memory))
        process = self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if self._line(STARTING) is None:
            self.close()
            raise EngineError("policies cannot be judged: the process that evaluates their expressions does not start")
        return process

    def _receive(self) -> Answer:
        """The next answer. If there is none in time, the process is ended, and the answer says why."""
        line = self._line(self.patience)
        if line is None:
            self._ended += 1
            is_running = self._process is not None and self._process.poll() is None
            self.close()
            return Answer(fault=f"its evaluation takes longer than {self.patience:g} seconds" if is_running else ENDED)
        answer = json.loads(line)
        return Answer(answer["value"], answer["fault"])

    def _line(self, seconds: float) -> bytes | None:
        """The next line that the process writes; None if it writes none for so many seconds, or ends."""
        stream = self._process.stdout if self._process else None
        while b"\n" not in self._unread:
            if stream is None or not select.select([stream], [], [], seconds)[0]:
                return None
            received = os.read(stream.fileno(), 1 << 16)
            if not received:
                if self._process is not None:
                    self._process.wait()
                return None
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line


@contextmanager
def expressions_of_child() -> Iterator[ChildExpressions]:
    """Expressions that are evaluated in a process of their own, which ends with the block."""
    expressions = ChildExpressions()
    try:
        yield expressions
    finally:
        expressions.close()
