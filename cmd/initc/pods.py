"""Pods: what the API server says of the pods of one gang, first all of them, then each change."""

import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode

from initc.place import Place

GANG = "grove.io/podgang"
"""The label that names a pod's gang."""
WATCHED_FOR = 240
"""Seconds after which a watch ends in good order."""
SILENCE = 90.0
"""Seconds of silence after which a connection is taken to be dead; a watch that works has a bookmark about every minute."""

News = tuple[str, dict[str, Any]]


class Refused(Exception):
    """The API server does not give what was asked for."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the API server answers {status}{WORDS.get(status, '')}")


WORDS = {
    401: ": it does not know the token",
    403: ": the account may not see pods",
    410: ": it has forgotten that revision",
    429: ": it is busy",
}


def news(place: Place, *, cached: bool) -> Iterator[News]:
    """All pods as one `LIST`, then event by event, until the server ends the watch.

    `cached`: the list may be as old as the server's cache, which costs it little; what happened since comes with the events. Raises
    `Refused`, and `OSError`, `HTTPException` and `ValueError` when the connection or what comes through it is no good.
    """
    with closing(_connection(place)) as server:
        with _answer(server, place, {"resourceVersion": "0"} if cached else {}) as answer:
            listing = json.load(answer)
        yield "LIST", listing
        since = {"watch": "1", "allowWatchBookmarks": "1", "timeoutSeconds": str(WATCHED_FOR)}
        with _answer(server, place, {**since, "resourceVersion": listing["metadata"]["resourceVersion"]}) as stream:
            for line in stream:
                yield _event(json.loads(line))


def _event(event: dict[str, Any]) -> News:
    if event["type"] == "ERROR":
        raise Refused(event["object"].get("code", 500))
    return event["type"], event["object"]


def _connection(place: Place) -> HTTPSConnection:
    """Straight to the server: what the environment says about proxies is meant for others."""
    tls = ssl.create_default_context(cadata=place.authority)
    # From Python 3.13 on certificates are held to the letter of RFC 5280, which many a cluster's own authority does not keep.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return HTTPSConnection(place.host, place.port, timeout=SILENCE, context=tls)


def _answer(server: HTTPSConnection, place: Place, query: dict[str, str]) -> HTTPResponse:
    asked = urlencode({"labelSelector": f"{GANG}={place.gang}", **query})
    # The token is read for every request: it may have been replaced since the last one.
    headers = {"Authorization": f"Bearer {place.token}", "Accept": "application/json", "User-Agent": "grove-initc"}
    server.request("GET", f"/api/v1/namespaces/{quote(place.namespace, safe='')}/pods?{asked}", headers=headers)
    answer = server.getresponse()
    if answer.status != 200:
        raise Refused(answer.status)
    return answer
