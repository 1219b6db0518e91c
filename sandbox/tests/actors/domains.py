"""ComputeDomains and pods in them, for tests of the driver."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from engine.ids import Kind
from grove_sandbox.actors.options import PARTS, ActorOptions, DriverOptions
from grove_sandbox.installation.installation import NAMESPACE_OF_DRIVER
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DOMAIN_LABEL
from resources.base.kinds import EVENT, NODE, POD, RESOURCE_CLAIM
from sandbox.tests.actors.manifests import pod
from sandbox.tests.actors.stage import Stage, running

OTHERS = ("scheduler", "kubelet", "garbage", "claims", "namespace", "token")
"""Every actor that a domain needs besides the driver."""
EVERYBODY = (*OTHERS, "driver")
NODES = ActorOptions(nodes=3)
CONTROLLER = replace(NODES, driver=DriverOptions(parts=frozenset({"controller"})))
NO_CONTROLLER = replace(NODES, driver=DriverOptions(parts=PARTS - {"controller"}))


def domain(name: str, *, template: str = "", nodes: int = 0, finalizers: tuple[str, ...] = (), namespace: str = "ml") -> dict[str, Any]:
    """A ComputeDomain."""
    spec = {"numNodes": nodes, "channel": {"resourceClaimTemplate": {"name": template or name}}}
    metadata = {"name": name, "namespace": namespace, "finalizers": list(finalizers)}
    return {"apiVersion": COMPUTE_DOMAIN.api_version, "kind": COMPUTE_DOMAIN.name, "metadata": metadata, "spec": spec}


def member(name: str, template: str, **more: Any) -> dict[str, Any]:
    """A pod that is in the domain of that claim template."""
    made = pod(name, gpus=4, **more)
    made["spec"]["resourceClaims"] = [{"name": "mnnvl-claim", "resourceClaimTemplateName": template}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "mnnvl-claim"}]
    return made


class Domains:
    """What tests of the driver do with a cluster."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    async def create(self, body: Mapping[str, Any]) -> str:
        """Create a domain; its uid."""
        made = await self.stage.client.create(COMPUTE_DOMAIN, body["metadata"]["namespace"], body)
        return str(made["metadata"]["uid"])

    async def get(self, name: str) -> dict[str, Any] | None:
        """A domain, if it is there."""
        return await self.stage.get(COMPUTE_DOMAIN, name)

    async def delete(self, name: str) -> None:
        """Ask for its deletion."""
        await self.stage.client.delete(COMPUTE_DOMAIN, "ml", name)

    async def status(self, name: str) -> tuple[str, list[tuple[str, int, str]]]:
        """The overall status, and name, index and status of each node."""
        found = await self.stage.client.get(COMPUTE_DOMAIN, "ml", name)
        status = found.get("status") or {}
        return status.get("status", ""), [(one["name"], one["index"], one["status"]) for one in status.get("nodes") or ()]

    async def finalizers(self, name: str) -> list[str]:
        """What keeps the domain."""
        found = await self.stage.client.get(COMPUTE_DOMAIN, "ml", name)
        return list(found["metadata"].get("finalizers") or ())

    async def labelled(self) -> dict[str, str]:
        """The domains' uids on the nodes."""
        nodes = (await self.stage.client.list(NODE)).items
        return {
            one["metadata"]["name"]: one["metadata"]["labels"][DOMAIN_LABEL] for one in nodes if DOMAIN_LABEL in one["metadata"]["labels"]
        }

    async def made(self, uid: str, kind: Kind) -> list[str]:
        """Names of what bears the uid."""
        return [body["metadata"]["name"] for body in (await self.stage.client.list(kind, labels=f"{DOMAIN_LABEL}={uid}")).items]

    async def event_messages(self, name: str, reason: str) -> list[str]:
        """The warnings of that reason about a pod."""
        events = (await self.stage.client.list(EVENT, "ml")).items
        return [one["message"] for one in events if (one["involvedObject"]["name"], one["reason"]) == (name, reason)]

    async def claim_of(self, name: str) -> dict[str, Any]:
        """The claim that was made for a pod."""
        statuses = (await self.stage.pod(name))["status"]["resourceClaimStatuses"]
        return await self.stage.client.get(RESOURCE_CLAIM, "ml", statuses[0]["resourceClaimName"])

    async def waiting(self, name: str) -> str:
        """What a pod's container waits with."""
        (container,) = (await self.stage.pod(name))["status"]["containerStatuses"]
        return str((container["state"].get("waiting") or {}).get("reason", ""))

    async def daemons(self) -> list[dict[str, Any]]:
        """The pods of the driver."""
        return (await self.stage.client.list(POD, NAMESPACE_OF_DRIVER)).items

    async def relabel(self, node: str, key: str, value: str | None) -> None:
        """Put a label on a node, or take it off."""
        await self.stage.client.patch(NODE, "", node, {"metadata": {"labels": {key: value}}})


@asynccontextmanager
async def serving(*actors: str, options: ActorOptions = NODES) -> AsyncGenerator[tuple[Stage, Domains]]:
    """A cluster in which these actors play; everybody unless some are named."""
    async with running(*(actors or EVERYBODY), options=options) as stage:
        await stage.turn(1)
        yield stage, Domains(stage)
