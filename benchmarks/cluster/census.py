"""Census: how many objects of each kind a cluster has, and how many of its pods are ready, kept up to date by watches."""

import http.client
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import orjson

from tests.controlplane.cluster import ControlPlane

RESOURCES: Final[Mapping[str, str]] = {
    "pods": "/api/v1/pods",
    "services": "/api/v1/services",
    "podcliquesets": "/apis/grove.io/v1alpha1/podcliquesets",
    "podcliques": "/apis/grove.io/v1alpha1/podcliques",
    "podcliquescalinggroups": "/apis/grove.io/v1alpha1/podcliquescalinggroups",
    "podgangs": "/apis/scheduler.grove.io/v1alpha1/podgangs",
}
"""Resource -> path of its collection."""
READY, GATED = "ready pods", "gated pods"
AVAILABLE, UPDATED = "available sets", "updated sets"

Counts = Counter[str]
Condition = Callable[[Counts], bool]


def facts(resource: str, body: Mapping[str, Any]) -> frozenset[str]:
    """What an object is counted as."""
    found, status = {resource}, body.get("status") or {}
    if resource == "pods":
        found.add(image(body["spec"]["containers"][0]["image"]))
        if body["spec"].get("schedulingGates"):
            found.add(GATED)
        conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
        if conditions.get("Ready") == "True" and "deletionTimestamp" not in body["metadata"]:
            found.add(READY)
    if resource == "podcliquesets":
        if status.get("availableReplicas") == body["spec"]["replicas"]:
            found.add(AVAILABLE)
        if (status.get("updateProgress") or {}).get("updateEndedAt"):
            found.add(UPDATED)
    return frozenset(found)


def image(name: str) -> str:
    """What the pods of an image are counted as."""
    return f"pods of {name}"


class Connection:
    """A connection to the API server as the administrator, for one thread. It is opened again when it breaks."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._context = ssl.create_default_context(cafile=plane.ca)
        self._open: http.client.HTTPSConnection | None = None

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """The answer. Raises `RuntimeError` if the server refuses."""
        content = None if body is None else orjson.dumps(body)
        for attempt in (1, 2):
            self._open = self._open or self.connect()
            try:
                self._open.request(method, path, content, self.headers() | {"Content-Type": content_type})
                answer = self._open.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                self._open = None
                if attempt == 2:
                    raise
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")
        return orjson.loads(text)

    def stream(self, path: str) -> Iterator[Any]:
        """The lines of an answer, on a connection of its own. Nothing if the server refuses."""
        connection = self.connect()
        try:
            connection.request("GET", path, headers=self.headers())
            answer = connection.getresponse()
            if answer.status == 200:
                yield from map(orjson.loads, answer)
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPSConnection:
        """A new connection."""
        return http.client.HTTPSConnection(self._plane.url.removeprefix("https://"), context=self._context, timeout=400)

    def headers(self) -> dict[str, str]:
        """Those of every request."""
        return {"Authorization": f"Bearer {self._plane.token}", "Accept": "application/json"}


class Census:
    """The counts of one cluster. Its threads end with the process."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._changed = threading.Condition()
        self._objects: dict[str, dict[str, frozenset[str]]] = {resource: {} for resource in RESOURCES}
        self.counts: Counts = Counter()
        for resource in RESOURCES:
            threading.Thread(target=self._follow, args=(resource,), daemon=True).start()

    def wait(self, since: float, condition: Condition, limit: float = 600.0) -> float | None:
        """Wait until the counts meet the condition. Returns the seconds since that monotonic time; None after `limit` seconds."""
        deadline = time.monotonic() + limit
        with self._changed:
            while not condition(self.counts):
                if not self._changed.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    return None
        return round(time.monotonic() - since, 2)

    @contextmanager
    def fewest(self, fact: str) -> Iterator[list[int]]:
        """A list with one number: the lowest count of that fact while the block runs."""
        lowest, stop = [self.counts[fact]], threading.Event()

        def sample() -> None:
            while not stop.wait(0.02):
                lowest[0] = min(lowest[0], self.counts[fact])

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield lowest
        finally:
            stop.set()
            thread.join()

    def put(self, resource: str, body: Mapping[str, Any], *, is_deleted: bool = False) -> None:
        """Count a new version of an object, or no longer count one."""
        uid = body["metadata"]["uid"]
        with self._changed:
            self.counts.subtract(self._objects[resource].pop(uid, frozenset()))
            if not is_deleted:
                self._objects[resource][uid] = facts(resource, body)
                self.counts.update(self._objects[resource][uid])
            self._changed.notify_all()

    def _follow(self, resource: str) -> None:
        """List and watch, for ever."""
        connection = Connection(self._plane)
        while True:
            try:
                listed = connection.call("GET", f"{RESOURCES[resource]}?resourceVersion=0")
                self._replace(resource, listed["items"])
                revision = listed["metadata"]["resourceVersion"]
                while revision:
                    revision = self._watch(connection, resource, revision)
            except (OSError, http.client.HTTPException, ValueError, RuntimeError):
                time.sleep(0.2)

    def _replace(self, resource: str, bodies: list[dict[str, Any]]) -> None:
        with self._changed:
            for counted in self._objects[resource].values():
                self.counts.subtract(counted)
            self._objects[resource] = {}
            for body in bodies:
                self.put(resource, body)

    def _watch(self, connection: Connection, resource: str, revision: str) -> str:
        """Follow one watch to its end. Returns the last revision; empty: everything has to be listed again."""
        for event in connection.stream(f"{RESOURCES[resource]}?watch=1&allowWatchBookmarks=true&resourceVersion={revision}"):
            if event["type"] == "ERROR":
                return ""
            revision = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self.put(resource, event["object"], is_deleted=event["type"] == "DELETED")
        return revision
