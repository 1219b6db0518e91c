"""A process that has imported the engine, and runs each command in a fork of itself: for tests of what commands do, not of how they start.

Python takes half a second of a processor to start and to import the engine; a fork takes a fiftieth of that.

python -m tests.enginectl.fork_server ADDRESS      serves at this Unix socket until stdin ends; writes a line as soon as it does
"""

import gc
import marshal
import os
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from select import select
from typing import Final

from enginectl import actions, commands, serving, wiring
from enginectl.main import main
from providers import schedulers
from resources import schema

STREAMS: Final = 3
"""stdin, stdout and stderr."""

PROGRAM: Final = """\
#!{python} -IS
import _signal, _socket, marshal, os, sys
FORWARDED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)
_signal.pthread_sigmask(_signal.SIG_BLOCK, FORWARDED)
connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
connection.connect({address!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
connection.sendmsg([b"3"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
command = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
connection.sendall(len(command).to_bytes(4, "big") + command)
for each in FORWARDED:
    _signal.signal(each, lambda number, frame: connection.send(bytes([number])))
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, FORWARDED)
code = int(connection.recv(9))
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""
"""It imports only what is built into Python, which takes no time."""


def write_program(file: Path, address: str) -> None:
    """Write `engine` as an executable file that has its commands run by the server at this address.

    A command has its words, folder, environment and streams, receives the signals that it does, and ends when it is killed. It ends as the
    command does.
    """
    file.write_text(PROGRAM.format(python=sys.executable, address=address))
    file.chmod(0o755)


def serve(address: str) -> None:
    """Serve until stdin ends. Also returns in the process of each command, which has its words, folder, environment and streams then."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while listener in select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
        else:
            sys.exit()
    _become_command(connection)


def _become_command(connection: socket.socket) -> None:
    """Returns in the process of the command alone. The one that calls this watches over it."""
    _, streams, _, _ = socket.recv_fds(connection, 1, STREAMS)
    length = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    words, folder, variables = marshal.loads(connection.recv(length, socket.MSG_WAITALL))
    is_over, runs = os.pipe()
    if process := os.fork():
        for number in (runs, *streams):
            os.close(number)
        _watch(process, connection, is_over)
        os._exit(0)
    os.close(is_over)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[1:] = words


def _watch(process: int, connection: socket.socket, is_over: int) -> None:
    """Forward signals to the process of a command until it is over, and send how it ended; kill it when the program is killed."""
    while is_over not in select([connection.fileno(), is_over], [], [])[0]:
        for number in connection.recv(9) or (signal.SIGKILL,):
            os.kill(process, number)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with suppress(BrokenPipeError):
        connection.sendall(b"%d" % code)


if __name__ == "__main__":
    for package in (actions, commands, serving, wiring, schedulers, schema):
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    for name in ("anyio._backends._asyncio", "providers.kubernetes.connect", "structlog"):
        import_module(name)
    gc.freeze()
    serve(sys.argv[1])
    sys.exit(main())
