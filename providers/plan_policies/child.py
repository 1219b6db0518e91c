"""Child: evaluates expressions in a process of its own. Reads requests from standard input, and writes one line for each expression.

A request is a line of JSON: `scope`, `subject` (a number), `data` (null if it was sent before under that number), `params`, `now`,
`expressions`. An answer is a line of JSON: `value`, `fault`.
"""

import json
import sys
from typing import Any

from providers.plan_policies.cel import CelExpressions
from resources.plan_policies.expressions import RuleSubject
from resources.schema.plan_policy import RuleScope

READY = b"ready\n"
"""What is written first, before any request is read."""


def limit_memory(size: int) -> None:
    """Let the process end rather than take more bytes of address space, where the system can do that."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        return


def main() -> None:
    """Answer requests until there are no more. The only argument is the most bytes of memory."""
    limit_memory(int(sys.argv[1]))
    expressions = CelExpressions()
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    known: dict[int, Any] = {}
    for line in sys.stdin.buffer:
        request: dict[str, Any] = json.loads(line)
        data = known.setdefault(request["subject"], request["data"])
        subject = RuleSubject(RuleScope(request["scope"]), data, request["params"], request["now"])
        for answer in expressions.answers(subject, request["expressions"]):
            sys.stdout.write(json.dumps({"value": answer.value, "fault": answer.fault}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
