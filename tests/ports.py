"""Ports for servers of tests."""

import os
import random
import socket
from itertools import count

FIRST, LAST = 10_000, 16_000
"""Below the ports that systems give to clients, so that no connection takes one before its server has started."""

_started_at = random.Random(os.getpid()).randrange(FIRST, LAST)
_taken = count()


def free_port() -> int:
    """A TCP port of the loopback interface on which nothing listens, which this process returns again only after thousands of others."""
    while True:
        port = FIRST + (_started_at - FIRST + next(_taken)) % (LAST - FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
