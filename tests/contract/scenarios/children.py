"""Every sort of child that this project makes, created and then applied the way it applies them."""

from typing import Any

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.applying import applied
from tests.contract.scenarios.bodies import NS
from tests.contract.scenarios.kinds import HPAS, RBAC, made

_LABELS = {"app.kubernetes.io/managed-by": "engine"}


def _labelled(body: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "labels": _LABELS, **more}}


_CONTAINER = {
    "name": "main",
    "image": "i:1",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "resources": {"requests": {"cpu": "10m"}},
}
_POD = made(
    "v1", "Pod", "p", spec={"containers": [_CONTAINER], "schedulingGates": [{"name": "example.com/g"}], "hostname": "h", "subdomain": "s"}
)
_SERVICE = made("v1", "Service", "s", spec={"clusterIP": "None", "publishNotReadyAddresses": True, "selector": _LABELS})
_SECRET = made("v1", "Secret", "t", type="kubernetes.io/service-account-token")
_ROLE = made("rbac.authorization.k8s.io/v1", "Role", "r", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}])
_BINDING = made(
    "rbac.authorization.k8s.io/v1",
    "RoleBinding",
    "b",
    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
    subjects=[{"kind": "ServiceAccount", "name": "a", "namespace": "{ns}"}],
)
_TARGET = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "c"}
_AUTOSCALER = made("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": _TARGET, "minReplicas": 2, "maxReplicas": 3})

_CHILDREN = (
    (f"{NS}/pods", _labelled(_POD)),
    (f"{NS}/services", _labelled(_SERVICE)),
    (f"{NS}/serviceaccounts", _labelled(made("v1", "ServiceAccount", "a"))),
    (f"{RBAC}/roles", _labelled(_ROLE)),
    (f"{RBAC}/rolebindings", _labelled(_BINDING)),
    (HPAS, _labelled(_AUTOSCALER)),
)


def _born(path: str, body: dict[str, Any]) -> tuple[Step, ...]:
    """A child is created, applied by its maker, applied by another in conflict, patched back, and applied from nothing."""
    name, kind = body["metadata"]["name"], body["kind"]
    other = {**body, "metadata": {**body["metadata"], "name": f"{name}2"}}
    mine = {**body, "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "me"}}}
    return (
        Step(f"{kind}: created", "POST", path, body),
        applied(f"{kind}: applied as it is", f"{path}/{name}", body, "contract"),
        applied(f"{kind}: in conflict", f"{path}/{name}", mine, "other"),
        Step(f"{kind}: patched", "PATCH", f"{path}/{name}", {"metadata": {"annotations": {"a": "b"}}}, "merge"),
        applied(f"{kind}: from nothing", f"{path}/{name}2", other, "contract"),
        Step(f"{kind}: deleted", "DELETE", f"{path}/{name}2"),
    )


CHILDREN = Scenario(
    "children",
    (
        *(step for path, body in _CHILDREN for step in _born(path, body)),
        Step(
            "Secret: of an account",
            "POST",
            f"{NS}/secrets?dryRun=All",
            _labelled(_SECRET, annotations={"kubernetes.io/service-account.name": "a"}),
        ),
    ),
)

SCENARIOS = (CHILDREN,)
