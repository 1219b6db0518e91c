"""Waiting until enough pods of every clique are ready at one instant, however long it takes and whatever errors the API server returns."""

import json
import random
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from http.client import HTTPException, HTTPResponse, HTTPSConnection
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


Pod = Mapping[str, Any]


class Tally:
    """The ready pods of a gang at one instant, kept up to date by events."""

    def __init__(self, required: Mapping[str, int]) -> None:
        self._required = dict(required)
        self._ready: dict[str, str] = {}
        """Name of a ready pod -> its clique."""

    def apply(self, event: str, body: Mapping[str, Any]) -> None:
        """Apply one event. A `LIST` replaces everything that was known."""
        match event:
            case "LIST":
                self._ready = {}
                for pod in body["items"] or ():
                    self._update(pod)
            case "DELETED":
                self._ready.pop(body["metadata"]["name"], None)
            case "ADDED" | "MODIFIED":
                self._update(body)

    def _update(self, pod: Pod) -> None:
        metadata = pod["metadata"]
        if is_ready(pod):
            self._ready[metadata["name"]] = (metadata.get("labels") or {}).get(CLIQUE, "")
        else:
            self._ready.pop(metadata["name"], None)

    @property
    def missing(self) -> dict[str, int]:
        """Clique -> how many more of its pods must be ready; empty if enough pods of all cliques are ready at this instant."""
        ready = Counter(self._ready.values())
        return {clique: required - ready[clique] for clique, required in self._required.items() if ready[clique] < required}


SHORTEST, LONGEST = 1.0, 30.0
"""Seconds between two attempts, before jitter takes off up to half of them: pods that wait together must not call together."""

RETRIED = (ErrorAnswer, OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError)
"""Errors that the next attempt may not have: late permissions, replaced tokens, restarting servers, a proxy's own JSON."""


def wait(environment: Environment, required: Mapping[str, int], report: Callable[[str], None], sleep: Callable[[float], object]) -> None:
    """Return when enough pods are ready. Calls `report` with a line when something changes, `sleep` with the seconds to pause."""
    tally, failures, cached = Tally(required), 0, True
    while True:
        received = 0
        try:
            for event, body in pod_events(environment, cached=cached):
                received += 1
                if _is_complete(tally, event, body, report):
                    return
            failures, cached = 0, True
        except RETRIED as error:
            # More than the list came through: the connection worked, so this counts as the first failure.
            failures = 1 if received > 1 else failures + 1
            cached = not (isinstance(error, ErrorAnswer) and error.status == 410)
            report(f"{str(error) or type(error).__name__}; retrying")
        sleep(pause(failures))


def _is_complete(tally: Tally, event: str, body: Mapping[str, Any], report: Callable[[str], None]) -> bool:
    """Apply an event to the tally, report what is still missing if that has changed, and return whether nothing is."""
    before = tally.missing
    tally.apply(event, body)
    missing = tally.missing
    if missing and (missing != before or event == "LIST"):
        report(f"waiting for {', '.join(f'{count} of {clique}' for clique, count in missing.items())}")
    return not missing


def pause(failures: int) -> float:
    """Seconds to sleep after that many failures in a row."""
    return min(LONGEST, SHORTEST * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1.0)


CLIQUE = "grove.io/podclique"
"""The label that names a pod's clique."""


def is_ready(pod: Pod) -> bool:
    """Whether a pod is ready and not being deleted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")
