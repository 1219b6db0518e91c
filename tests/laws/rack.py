"""A rack: the toy cluster with a DRA driver, which answers to ComputeDomains with templates, and gives pods claims."""

from typing import Any

from engine.ids import ResourceId
from engine.observed import live
from providers.fabrics import nvidia_channels
from providers.fabrics.nvidia_words import CLAIM, COMPUTE_DOMAIN, DOMAIN_LABEL, DRIVER, TARGET_LABEL
from resources.base import kinds
from resources.domains.drain import ENDED
from tests.laws.toy import Toy

DRIVERS_FINALIZER = "resource.nvidia.com/computeDomain"
Body = dict[str, Any]


class Rack(Toy):
    """A cluster whose driver can be switched off."""

    driver = True

    def domain(self, name: str) -> ResourceId:
        """The ComputeDomain of that name."""
        return COMPUTE_DOMAIN.id("default", name)

    def domains(self) -> dict[str, Body]:
        """All of them, by name."""
        return {id.name: body for id, body in sorted(self.objects.items()) if id.kind == COMPUTE_DOMAIN.name}

    def live(self) -> None:
        """Time passes: the driver acts, claims follow their pods, pods come and go."""
        if self.driver:
            for id in [id for id in self.objects if id.kind == COMPUTE_DOMAIN.name]:
                self._serve(id)
            self._sweep()
        super().live()
        self._claim()
        self._collect()

    def _collect(self) -> None:
        """The garbage collector: what has lost all its owners goes, what has lost some forgets them."""
        uids = {body["metadata"]["uid"] for body in self.objects.values()}
        for id, body in list(self.objects.items()):
            owners = body["metadata"].get("ownerReferences") or []
            there = [owner for owner in owners if owner["uid"] in uids]
            if id not in self.objects or len(there) == len(owners):
                continue
            if there:
                self.write(id, {"metadata": {"ownerReferences": there}})
            elif "deletionTimestamp" not in body["metadata"]:
                self.delete(id)

    def leads_into(self, template: str) -> str:
        """The uid of the domain that a template of the driver's leads into; empty if there is none of that name, or another's."""
        body = self.objects.get(kinds.RESOURCE_CLAIM_TEMPLATE.id("default", template))
        return str((body["metadata"].get("labels") or {}).get(DOMAIN_LABEL, "")) if body else ""

    def given(self, pod: str) -> str:
        """The uid of the domain that the claim of a pod leads into; empty as long as it has none."""
        claim = self.objects.get(kinds.RESOURCE_CLAIM.id("default", f"{pod}-{CLAIM}"))
        return nvidia_channels.domain_of(live(claim)) if claim else ""

    def _serve(self, id: ResourceId) -> None:
        """What is in the way of the template stays, and then there is none; it is taken down by the uid in its label."""
        body = self.objects[id]
        name, uid = body["spec"]["channel"]["resourceClaimTemplate"]["name"], body["metadata"]["uid"]
        template = kinds.RESOURCE_CLAIM_TEMPLATE.id(id.namespace, name)
        finalizers = body["metadata"].get("finalizers") or []
        if body["metadata"].get("deletionTimestamp"):
            if self.leads_into(name) == uid:
                del self.objects[template]
            if DRIVERS_FINALIZER in finalizers:
                self.write(id, {"metadata": {"finalizers": [one for one in finalizers if one != DRIVERS_FINALIZER]}})
            return
        if DRIVERS_FINALIZER not in finalizers:
            self.write(id, {"metadata": {"finalizers": [*finalizers, DRIVERS_FINALIZER]}})
        if template not in self.objects:
            self.put(self._template(name, uid))

    def _sweep(self) -> None:
        """Templates of domains that do not exist any more go."""
        uids = {body["metadata"]["uid"] for body in self.domains().values()}
        for id in [id for id in self.objects if id.kind == kinds.RESOURCE_CLAIM_TEMPLATE.name]:
            if (uid := self.leads_into(id.name)) and uid not in uids:
                del self.objects[id]

    def _template(self, name: str, uid: str) -> Body:
        parameters = {"kind": "ComputeDomainChannelConfig", "domainID": uid}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "default", "labels": {DOMAIN_LABEL: uid, TARGET_LABEL: "Workload"}},
            "spec": {"spec": {"devices": {"config": [{"opaque": {"driver": DRIVER, "parameters": parameters}}]}}},
        }

    def _claim(self) -> None:
        pods = {id.name: self.objects[id] for id in self.pods() if (self.objects[id].get("status") or {}).get("phase") not in ENDED}
        for name, pod in pods.items():
            for claim in pod["spec"].get("resourceClaims") or ():
                template = self.objects.get(kinds.RESOURCE_CLAIM_TEMPLATE.id("default", claim.get("resourceClaimTemplateName", "")))
                made = kinds.RESOURCE_CLAIM.id("default", f"{name}-{claim['name']}")
                if template is not None and made not in self.objects:
                    inherited = template["spec"].get("metadata") or {}
                    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"], "controller": True}
                    owned = {"annotations": {"pod": name}, "ownerReferences": [owner]}
                    metadata = {**inherited, "name": made.name, "namespace": "default", **owned}
                    self.put(
                        {
                            "apiVersion": "resource.k8s.io/v1",
                            "kind": "ResourceClaim",
                            "metadata": metadata,
                            "spec": template["spec"]["spec"],
                        }
                    )
        for id, body in list(self.objects.items()):
            if id.kind == "ResourceClaim" and (body["metadata"].get("annotations") or {}).get("pod", id.name) not in (*pods, id.name):
                del self.objects[id]
