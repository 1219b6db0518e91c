"""Sockets: binds the addresses of a server, all of them or none."""

import os
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final

from engine.errors import InputError
from engine.report.printable import printable
from providers.serving.address import ALL_INTERFACES, Address

BACKLOG: Final = 1024
"""Connections that the kernel accepts before we do."""


class CannotBind(InputError):
    """An address cannot be listened on; the text names it and says why."""


def bind(addresses: Iterable[Address]) -> tuple[socket.socket, ...]:
    """A listening socket for each address, in their order. Raises `CannotBind` for the first that cannot be had; then none is kept."""
    with ExitStack() as opened:
        sockets = tuple(opened.enter_context(_listening(address)) for address in addresses)
        opened.pop_all()
        return sockets


def _listening(address: Address) -> socket.socket:
    try:
        if address.host == ALL_INTERFACES:
            return _on_all_interfaces(address.port)
        places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = places[0]
        return socket.create_server(place[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotBind(f"cannot serve {address.name} on {printable(str(address))}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """What the system says. The text of `create_server` names the address as well."""
    if error.errno is None or isinstance(error, socket.gaierror):
        return str(error.strerror or error)
    return os.strerror(error.errno)


def _on_all_interfaces(port: int) -> socket.socket:
    """One socket for IPv6 and IPv4, or for IPv4 alone on a machine without IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
        except OSError:
            # IPv6 is compiled in and disabled. If the port is taken, the next attempt fails as well.
            pass
    return socket.create_server(("", port), backlog=BACKLOG)
