"""Ports for servers of tests."""

import os
import random
import socket
from itertools import count

FIRST, LAST = 10_000, 16_000
"""Below the ports that systems give to clients, so that no connection takes one before its server has started."""

_share = (LAST - FIRST) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_first = FIRST + _share * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""Workers of one run have ports of their own: none takes one that another has chosen and not bound yet."""
_started_at = random.Random(os.getpid()).randrange(_share)
_taken = count()


def free_port() -> int:
    """A TCP port of the loopback interface on which nothing listens, which this process returns again only after hundreds of others."""
    while True:
        port = _first + (_started_at + next(_taken)) % _share
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
