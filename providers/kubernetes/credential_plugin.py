"""Credential plugins: programs that a kubeconfig names, and that return a token or a certificate (ExecCredential)."""

import os
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import orjson

from engine.errors import InputError
from engine.report.printable import clipped

TIMEOUT = 60.0
"""Seconds that a plugin may take."""
RETURNED: Mapping[str, str] = {
    "token": "token",
    "clientCertificateData": "client-certificate-data",
    "clientKeyData": "client-key-data",
}
"""Field of what a plugin returns -> field of a user in a kubeconfig."""


async def credentials_of(plugin: Mapping[str, Any]) -> dict[str, str]:
    """The credentials that the plugin of a kubeconfig (`exec`) returns, as fields of a user.

    Raises `InputError`: with the last line that it wrote to stderr if it failed, never with its output. kr8s runs plugins as well, but
    writes the key that one returns to the temporary directory, and leaves it there.
    """
    name = f"the credential plugin {clipped(str(plugin['command']), 200)}"
    added = {str(each["name"]): str(each["value"]) for each in plugin.get("env") or ()}
    command = [str(plugin["command"]), *map(str, plugin.get("args") or ())]
    try:
        with anyio.fail_after(TIMEOUT):
            process = await anyio.run_process(command, check=False, env={**os.environ, **added})
    except FileNotFoundError:
        hint = clipped(" ".join(str(plugin.get("installHint") or "").split()), 300)
        raise InputError(f"{name} is not installed{f': {hint}' if hint else ''}") from None
    except TimeoutError:
        for _ in range(3):
            await anyio.lowlevel.checkpoint()  # The event loop closes the pipes of the process that it has killed.
        raise InputError(f"{name} did not answer within {TIMEOUT:.0f} s") from None
    except OSError as error:
        raise InputError(f"{name} cannot be started: {os.strerror(error.errno or 0).lower()}") from None
    if process.returncode:
        last_line = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise InputError(f"{name} failed: {clipped(last_line, 300) or f'exit code {process.returncode}'}")
    try:
        status = orjson.loads(process.stdout)["status"]
        returned = {field: status[key] for key, field in RETURNED.items() if isinstance(status.get(key), str)}
        return returned if "token" in returned else {field: returned[field] for field in RETURNED.values() if field != "token"}
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{name} returned no usable credentials ({type(error).__name__})") from None
