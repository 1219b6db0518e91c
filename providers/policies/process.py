"""Evaluation process: evaluates expressions where they harm nobody: one that takes too long, or too much memory, ends only that process."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from resources.plan_policies.expressions import Answer, Subject

PATIENCE: Final = 10.0
"""The seconds in which each expression must be evaluated. The first one has to wait for the process to start."""
COMMAND: Final = (sys.executable, "-P", "-m", "providers.policies.child")
"""`-P`: no module of the working directory is taken for one of ours."""
ENDED: Final = "its evaluation ended the process: it needs too much memory, or the library for CEL has a defect"


@dataclass(slots=True)
class ChildExpressions:
    """`resources.plan_policies.expressions.Expressions` in a process of its own, which is started when it is needed."""

    patience: float = PATIENCE
    _process: subprocess.Popen[bytes] | None = None
    _unread: bytes = field(default=b"")

    def evaluate(self, subject: Subject, expressions: Sequence[str]) -> Sequence[Answer]:
        """The answer of each expression. After one that had to be ended, the others are evaluated in a new process."""
        answers: list[Answer] = []
        while len(answers) < len(expressions):
            self._send(subject, expressions[len(answers) :])
            for _ in range(len(answers), len(expressions)):
                answer = self._receive()
                answers.append(answer)
                if self._process is None:
                    break
        return answers

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process, self._unread = self._process, None, b""
        if process is not None:
            process.kill()
            process.communicate()

    def _send(self, subject: Subject, expressions: Sequence[str]) -> None:
        if self._process is None:
            self._process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        request = {
            "scope": subject.scope.value,
            "data": subject.data,
            "params": dict(subject.params),
            "now": subject.now,
            "expressions": list(expressions),
        }
        if self._process.stdin is not None:
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                pass  # `_receive` finds the same, and says so.

    def _receive(self) -> Answer:
        """The next answer. If there is none in time, the process is ended, and the answer says why."""
        while b"\n" not in self._unread:
            stream = self._process.stdout if self._process else None
            if stream is None or not select.select([stream], [], [], self.patience)[0]:
                self.close()
                return Answer(fault=f"its evaluation takes longer than {self.patience:g} seconds")
            received = os.read(stream.fileno(), 1 << 16)
            if not received:
                self.close()
                return Answer(fault=ENDED)
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        answer = json.loads(line)
        return Answer(answer["value"], answer["fault"])


@contextmanager
def expressions_of_child() -> Iterator[ChildExpressions]:
    """Expressions that are evaluated in a process of their own, which ends with the block."""
    expressions = ChildExpressions()
    try:
        yield expressions
    finally:
        expressions.close()
