"""Pods: what the server adds to them, which fields cannot change, and their grace period."""

from collections.abc import Iterable
from typing import Any

from grove_sandbox.kinds import containers
from grove_sandbox.kinds.rules import Draft, Environment, Rules, fill, keep_spec, keep_status
from grove_sandbox.product import CRITICAL, Body, Kind
from grove_sandbox.types import causes, names, quantity, status
from grove_sandbox.types.status import Cause

_POD = Kind("", "v1", "Pod", "pods")
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607
_NODE_SECONDS = 300
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def _default(pod: Draft) -> None:
    containers.default_spec(pod["spec"])
    fill(pod["spec"], {"enableServiceLinks": True})


def _admit(pod: Draft, scene: Environment) -> None:
    _admit_service_account(pod, scene)
    _admit_priority(pod, scene)
    tolerations = pod["spec"].setdefault("tolerations", [])
    for taint in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            tolerations.append({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NODE_SECONDS})


def _tolerates(toleration: Body, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


def _admit_service_account(pod: Draft, scene: Environment) -> None:
    """Set the service account, which must exist, and mount its token."""
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = scene.lookup("", "serviceaccounts", namespace, name)
    if account is None:
        raise _refused(pod, f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found')
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = list(account["imagePullSecrets"])
    if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
        _mount_token(spec, scene)


def _admit_priority(pod: Draft, scene: Environment) -> None:
    """Set the priority of the PriorityClass that the pod names, which must exist."""
    spec = pod["spec"]
    if not (name := spec.get("priorityClassName")):
        return
    named = scene.lookup("scheduling.k8s.io", "priorityclasses", "", name) or ({"value": CRITICAL[name]} if name in CRITICAL else None)
    if named is None:
        raise _refused(pod, f"no PriorityClass with name {name} was found")
    if spec.get("priority", named["value"]) != named["value"]:
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec"
        computed = f"priority admission controller computed {named['value']} from the given PriorityClass name"
        raise _refused(pod, f"{why}; {computed}")
    spec["priority"] = named["value"]
    spec["preemptionPolicy"] = named.get("preemptionPolicy", "PreemptLowerPriority")


def _refused(pod: Body, why: str) -> status.StatusError:
    metadata = pod["metadata"]
    return status.forbidden(_POD, metadata.get("name") or metadata.get("generateName", ""), why)


def _mount_token(spec: Draft, scene: Environment) -> None:
    name = ""
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.setdefault("volumeMounts", [])
        if any(mount.get("mountPath") == _TOKEN_PATH for mount in mounts):
            continue
        name = name or names.generated("kube-api-access-", scene.random)
        mounts.append({"name": name, "readOnly": True, "mountPath": _TOKEN_PATH})
    if name:
        spec.setdefault("volumes", []).append(_token_volume(name))


def _token_volume(name: str) -> Draft:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}


def _create(pod: Draft, scene: Environment) -> None:
    if not scene.gangs:
        pod["spec"].pop("schedulingGroup", None)
    pod["status"] = {"phase": "Pending", "qosClass": _qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [{**_GATED, "lastTransitionTime": scene.now}]


def _qos_class(spec: Body) -> str:
    """Guaranteed: all limits equal the requests; BestEffort: there are neither; otherwise Burstable."""
    guaranteed, requested = True, False
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        limits, requests = _computed(resources.get("limits")), _computed(resources.get("requests"))
        requested = requested or bool(limits or requests)
        guaranteed = guaranteed and set(limits) == {"cpu", "memory"} and requests == limits
    return "BestEffort" if not requested else "Guaranteed" if guaranteed else "Burstable"


def _computed(amounts: Body | None) -> dict[str, Any]:
    """The amounts of CPU and memory, without zeros."""
    numbers = {key: quantity.value(amount) for key, amount in (amounts or {}).items() if key in ("cpu", "memory")}
    return {key: number for key, number in numbers.items() if number > 0}


def _update_status(pod: Draft, old: Body, environment: Environment) -> None:
    keep_spec(pod, old, environment)
    pod["metadata"].pop("ownerReferences", None)
    if owners := old["metadata"].get("ownerReferences"):
        pod["metadata"]["ownerReferences"] = owners
    pod["status"].setdefault("qosClass", old["status"].get("qosClass", ""))


def _validate(pod: Body) -> list[Cause]:
    return containers.spec_faults(pod["spec"], "spec")


_REFUSAL = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def _change_faults(new: Body, old: Body) -> list[Cause]:
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return []
    faults = [*_gate_faults(spec, before), *_toleration_faults(spec, before)]
    gated = bool(before.get("schedulingGates"))
    if _fixed(spec, gated) != _fixed(before, gated):
        faults.append(causes.forbidden("spec", f"{_REFUSAL}\n{_difference(_fixed(before, gated), _fixed(spec, gated))}"))
    return faults


def _fixed(spec: Body, gated: bool) -> dict[str, Any]:
    """The part of a spec that no update may change; in a gated pod, node selector and affinity may change too."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"} | ({"nodeSelector", "affinity"} if gated else set())
    fixed = {key: value for key, value in spec.items() if key not in free}
    for key in ("containers", "initContainers"):
        if key in fixed:
            fixed[key] = [{k: v for k, v in container.items() if k != "image"} for container in fixed[key] or ()]
    return fixed


def _difference(old: Body, new: Body) -> str:
    """The fields that differ. A real server prints Go's own notation of the difference instead."""
    return ", ".join(sorted(key for key in {*old, *new} if old.get(key) != new.get(key)))


def _gate_faults(spec: Body, before: Body) -> Iterable[Cause]:
    old = {gate["name"] for gate in before.get("schedulingGates") or ()}
    for at, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate["name"] not in old:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield causes.forbidden(f"spec.schedulingGates[{at}].name", detail)
            return


def _toleration_faults(spec: Body, before: Body) -> Iterable[Cause]:
    kept = [{**toleration, "tolerationSeconds": None} for toleration in spec.get("tolerations") or ()]
    for toleration in before.get("tolerations") or ():
        if {**toleration, "tolerationSeconds": None} not in kept:
            yield causes.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
            return


def _grace(pod: Body, given: int | None) -> int:
    """Seconds: none for a pod without a node or that has ended, otherwise those of DeleteOptions or of the spec."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Failed", "Succeeded"):
        return 0
    own = pod["spec"].get("terminationGracePeriodSeconds", 30)
    return max(int(own) if given is None else given, 0)


POD = Rules(
    default=_default,
    admit=_admit,
    create=_create,
    update=keep_status,
    status=_update_status,
    validate=_validate,
    validate_change=_change_faults,
    generation=("spec",),
    returns_deleted=True,
    grace=_grace,
)
