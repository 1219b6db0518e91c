"""A rack: the toy cluster with a DRA driver, which creates a claim template for each ComputeDomain, and claims for pods."""

from typing import Any

from engine.ids import ResourceId
from engine.observed import live
from providers.fabrics.nvidia import domain_facts
from providers.fabrics.nvidia.names import CLAIM, COMPUTE_DOMAIN, DOMAIN_LABEL, DRIVER, TARGET_LABEL
from resources.base import kinds
from resources.domains.release import ENDED
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
        """The ComputeDomains by name."""
        return {id.name: body for id, body in sorted(self.objects.items()) if id.kind == COMPUTE_DOMAIN.name}

    def live(self) -> None:
        """The driver, the pods, the claims of pods and the garbage collector each take a step."""
        if self.driver:
            for id in [id for id in self.objects if id.kind == COMPUTE_DOMAIN.name]:
                self._reconcile_domain(id)
            self._delete_templates_without_domain()
        super().live()
        self._reconcile_claims()
        self._collect_garbage()

    def _collect_garbage(self) -> None:
        """The garbage collector: objects without remaining owners are deleted, references to missing owners are removed."""
        uids = {body["metadata"]["uid"] for body in self.objects.values()}
        for id, body in list(self.objects.items()):
            owners = body["metadata"].get("ownerReferences") or []
            existing = [owner for owner in owners if owner["uid"] in uids]
            if id not in self.objects or len(existing) == len(owners):
                continue
            if existing:
                self.write(id, {"metadata": {"ownerReferences": existing}})
            elif "deletionTimestamp" not in body["metadata"]:
                self.delete(id)

    def leads_into(self, template: str) -> str:
        """The uid of the domain that the driver's template of that name belongs to; empty if there is none, or if it is foreign."""
        body = self.objects.get(kinds.RESOURCE_CLAIM_TEMPLATE.id("default", template))
        return str((body["metadata"].get("labels") or {}).get(DOMAIN_LABEL, "")) if body else ""

    def given(self, pod: str) -> str:
        """The uid of the domain that the claim of a pod refers to; empty while it has no claim."""
        claim = self.objects.get(kinds.RESOURCE_CLAIM.id("default", f"{pod}-{CLAIM}"))
        return domain_facts.domain_uid(live(claim)) if claim else ""

    def _reconcile_domain(self, id: ResourceId) -> None:
        """Create the template of a domain, unless its name is taken, or delete the one with the domain's uid in its label."""
        body = self.objects[id]
        name, uid = body["spec"]["channel"]["resourceClaimTemplate"]["name"], body["metadata"]["uid"]
        template = kinds.RESOURCE_CLAIM_TEMPLATE.id(id.namespace, name)
        finalizers = body["metadata"].get("finalizers") or []
        if body["metadata"].get("deletionTimestamp"):
            if self.leads_into(name) == uid:
                del self.objects[template]
            if DRIVERS_FINALIZER in finalizers:
                self.write(id, {"metadata": {"finalizers": [finalizer for finalizer in finalizers if finalizer != DRIVERS_FINALIZER]}})
            return
        if DRIVERS_FINALIZER not in finalizers:
            self.write(id, {"metadata": {"finalizers": [*finalizers, DRIVERS_FINALIZER]}})
        if template not in self.objects:
            self.put(self._template(name, uid))

    def _delete_templates_without_domain(self) -> None:
        """Delete the templates of domains that no longer exist."""
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

    def _reconcile_claims(self) -> None:
        pods = {id.name: self.objects[id] for id in self.pods() if (self.objects[id].get("status") or {}).get("phase") not in ENDED}
        for name, pod in pods.items():
            for claim in pod["spec"].get("resourceClaims") or ():
                template = self.objects.get(kinds.RESOURCE_CLAIM_TEMPLATE.id("default", claim.get("resourceClaimTemplateName", "")))
                claim_id = kinds.RESOURCE_CLAIM.id("default", f"{name}-{claim['name']}")
                if template is not None and claim_id not in self.objects:
                    inherited = template["spec"].get("metadata") or {}
                    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"], "controller": True}
                    owned = {"annotations": {"pod": name}, "ownerReferences": [owner]}
                    metadata = {**inherited, "name": claim_id.name, "namespace": "default", **owned}
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
