"""The pods of one gang, listed and watched."""

import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode

from initc.environment import Environment

GANG = "grove.io/podgang"
"""The label that names a pod's gang."""
WATCH_SECONDS = 240
"""Seconds after which the server ends a watch."""
READ_TIMEOUT = 90.0
"""Seconds without data after which a connection counts as dead. A watch that works gets a bookmark about every minute."""

Event = tuple[str, dict[str, Any]]
"""`LIST` with a list of pods, or the type of a watch event with its object."""
REASONS = {
    401: ": the token is not valid",
    403: ": the service account may not list and watch pods",
    410: ": the watch has expired",
    429: ": too many requests",
}


class ErrorAnswer(Exception):
    """The API server answered with an error."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the API server answers {status}{REASONS.get(status, '')}")


def pod_events(environment: Environment, *, cached: bool) -> Iterator[Event]:
    """All pods as one `LIST`, then each watch event, until the server ends the watch.

    `cached` allows a list from the server's cache, which is cheap and may be old; the watch then brings what changed since. Raises
    `ErrorAnswer`, and `OSError`, `HTTPException` or `ValueError` if the connection or its data is broken.
    """
    with closing(_connection(environment)) as server:
        with _get_pods(server, environment, {"resourceVersion": "0"} if cached else {}) as response:
            listing = json.load(response)
        yield "LIST", listing
        watch = {"watch": "1", "allowWatchBookmarks": "1", "timeoutSeconds": str(WATCH_SECONDS)}
        with _get_pods(server, environment, {**watch, "resourceVersion": listing["metadata"]["resourceVersion"]}) as stream:
            for line in stream:
                yield _event(json.loads(line))


def _event(event: dict[str, Any]) -> Event:
    """The event of one line of a watch. Raises `ErrorAnswer` for an `ERROR` event."""
    if event["type"] == "ERROR":
        raise ErrorAnswer(event["object"].get("code", 500))
    return event["type"], event["object"]


def _connection(environment: Environment) -> HTTPSConnection:
    """A direct connection: proxies of the environment are meant for the main containers."""
    tls = ssl.create_default_context(cadata=environment.authority)
    # Since Python 3.13 certificates are checked against RFC 5280 strictly, which the authorities of many clusters do not conform to.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return HTTPSConnection(environment.host, environment.port, timeout=READ_TIMEOUT, context=tls)


def _get_pods(server: HTTPSConnection, environment: Environment, query: dict[str, str]) -> HTTPResponse:
    """The response to a GET for the pods of the gang. Raises `ErrorAnswer` unless its status is 200."""
    parameters = urlencode({"labelSelector": f"{GANG}={environment.gang}", **query})
    # The token is read for every request: it may have been replaced since the last one.
    headers = {"Authorization": f"Bearer {environment.token}", "Accept": "application/json", "User-Agent": "grove-initc"}
    server.request("GET", f"/api/v1/namespaces/{quote(environment.namespace, safe='')}/pods?{parameters}", headers=headers)
    response = server.getresponse()
    if response.status != 200:
        raise ErrorAnswer(response.status)
    return response
