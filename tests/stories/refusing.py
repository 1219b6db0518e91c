"""Refusing: what an API server refuses in the sandbox although nothing is wrong with a manifest: quotas, and policies of others."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from grove_sandbox.api.request import Request, Selection
from grove_sandbox.api.verbs import Api
from grove_sandbox.types import status
from resources.base import kinds

NAME = "few"
ENDED = ("Succeeded", "Failed")
LAG = 1.5
"""Seconds for which a pod is counted that is gone: the controller of quotas learns of it later."""


class Quota:
    """A ResourceQuota for pods in the namespace `default`, as its controller counts and the API server enforces it."""

    def __init__(self, api: Api, pods: int) -> None:
        self._api, self.pods = api, pods
        self._counted: dict[str, float | None] = {}
        """Uid -> until when the pod is counted, on the monotonic clock; None: it exists."""
        spec = {"hard": {"pods": str(pods)}}
        body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": NAME, "namespace": "default"}, "spec": spec}
        api.create(self._request(kinds.RESOURCE_QUOTA), body)
        api.core.validation = (*api.core.validation, self._check)
        self.count()

    def count(self) -> int:
        """How many pods count now; the status of the quota says so, too."""
        at = self._api.clock.monotonic()
        items = self._api.list(self._request(kinds.POD), Selection()).items
        there = {each.body["metadata"]["uid"] for each in items if (each.body.get("status") or {}).get("phase") not in ENDED}
        gone = {uid: at + LAG if until is None else until for uid, until in self._counted.items() if uid not in there}
        self._counted = {**{uid: until for uid, until in gone.items() if until > at}, **dict.fromkeys(there)}
        used = {"hard": {"pods": str(self.pods)}, "used": {"pods": str(len(self._counted))}}
        self._api.patch(self._request(kinds.RESOURCE_QUOTA, NAME, "status"), {"status": used}, "merge")
        return len(self._counted)

    def _check(self, operation: str, request: Request, new: Any, old: Any) -> tuple[str, ...]:
        if operation == "CREATE" and request.served.kind == kinds.POD and request.namespace == "default":
            used = self.count()
            if used >= self.pods:
                why = f"exceeded quota: {NAME}, requested: pods=1, used: pods={used}, limited: pods={self.pods}"
                raise status.forbidden(kinds.POD, new["metadata"]["name"], why)
        return ()

    def _request(self, kind: Any, name: str = "", subresource: str = "") -> Request:
        served = self._api.catalogue.find(kind.group, kind.version, kind.plural)
        return Request(served, "default", name, subresource, manager="quota")


def refuse(
    api: Api,
    refuses: Callable[[Mapping[str, Any]], bool],
    *,
    words: str = 'violates PodSecurity "restricted:latest"',
    refused: str = "CREATE",
) -> None:
    """From now on the API server refuses the creation of these objects, or another operation (`refused`), as an admission plug-in does."""

    def check(operation: str, request: Request, new: Any, old: Any) -> tuple[str, ...]:
        if operation == refused and refuses(new):
            raise status.forbidden(request.served.kind, new["metadata"]["name"], words)
        return ()

    api.core.validation = (*api.core.validation, check)


def pods_of_image(*images: str) -> Callable[[Mapping[str, Any]], bool]:
    """Pods with one of these images."""

    def has_image(body: Mapping[str, Any]) -> bool:
        return body.get("kind") == "Pod" and not set(images).isdisjoint(_images(body["spec"].get("containers") or ()))

    return has_image


def _images(containers: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    return (str(each.get("image")) for each in containers)
