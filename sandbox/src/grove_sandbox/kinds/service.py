"""Services: their addresses, which are random numbers, and their ports."""

from grove_sandbox.kinds import metadata
from grove_sandbox.kinds.rules import Draft, Environment, Rules, fill, keep_spec
from grove_sandbox.product import Body, label_faults
from grove_sandbox.types import causes
from grove_sandbox.types.status import Cause

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def _default(service: Draft) -> None:
    spec = service["spec"]
    fill(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    for port in spec.get("ports") or ():
        fill(port, {"protocol": "TCP"})
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port["port"]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")


def _create(service: Draft, scene: Environment) -> None:
    spec = service["spec"]
    service["status"] = {"loadBalancer": {}}
    if spec["type"] == "ExternalName":
        return
    address = spec.get("clusterIP") or f"10.0.{scene.random.randrange(256)}.{scene.random.randrange(1, 255)}"
    spec["clusterIP"] = address
    spec["clusterIPs"] = [address]
    # Without a selector the families of the endpoints are not known.
    both = address == "None" and not spec.get("selector")
    spec["ipFamilies"] = ["IPv4", "IPv6"] if both else ["IPv4"]
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if both else "SingleStack")


def _update(service: Draft, old: Body, _: Environment) -> None:
    service["status"] = old["status"]
    spec, before = service["spec"], old["spec"]
    if spec["type"] == before["type"]:
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(key) and before.get(key):
                spec[key] = before[key]


def _validate(service: Body) -> list[Cause]:
    spec = service["spec"]
    faults: list[Cause] = []
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and not headless and spec["type"] != "ExternalName":
        faults.append(causes.required("spec.ports"))
    if spec["type"] not in _TYPES:
        faults.append(causes.unsupported("spec.type", spec["type"], _TYPES))
    if spec["sessionAffinity"] not in ("ClientIP", "None"):
        faults.append(causes.unsupported("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None")))
    faults += metadata.label_faults(spec.get("selector"), "spec.selector")
    for at, port in enumerate(spec.get("ports") or ()):
        if not 0 < port.get("port", 0) < 65536:
            faults.append(causes.invalid(f"spec.ports[{at}].port", port.get("port", 0), "must be between 1 and 65535, inclusive"))
        if len(spec["ports"]) > 1 and not port.get("name"):
            faults.append(causes.required(f"spec.ports[{at}].name"))
    return faults


def _change_faults(new: Body, old: Body) -> list[Cause]:
    before, now = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    if before and now != before and new["spec"]["type"] == old["spec"]["type"] != "ExternalName":
        shown = new["spec"].get("clusterIPs")
        return [causes.invalid("spec.clusterIPs[0]", shown, "may not change once set")]
    return []


SERVICE = Rules(
    default=_default,
    create=_create,
    update=_update,
    status=keep_spec,
    validate=_validate,
    validate_change=_change_faults,
    name_faults=label_faults,
    returns_deleted=True,
)
