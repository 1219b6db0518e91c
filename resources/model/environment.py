"""Environment: the GROVE_ variables of containers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from resources.base import labels
from resources.model.template import Clique, Group

Variable = Mapping[str, Any]

REPLICA_VARIABLE = "GROVE_PCS_INDEX"
"""The variable with the index of the replica of the set."""


def literal(name: str, value: str) -> Variable:
    """A variable with a value."""
    return {"name": name, "value": value}


def from_label(name: str, label: str) -> Variable:
    """A variable whose value is a label of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}


def group_variables(pods: int) -> tuple[Variable, ...]:
    """The variables of members of a scaling group; `pods` is the number of pods in one replica of the group, by the template."""
    return (
        from_label("GROVE_PCSG_NAME", labels.SCALING_GROUP),
        literal("GROVE_PCSG_TEMPLATE_NUM_PODS", str(pods)),
        from_label("GROVE_PCSG_INDEX", labels.GROUP_REPLICA_INDEX),
    )


def pod_variables(root: str, replica: int, podclique: str, address: str) -> tuple[Variable, ...]:
    """The variables of every pod; `address` is the DNS name of the replica's headless Service."""
    return (
        literal("GROVE_PCS_NAME", root),
        literal(REPLICA_VARIABLE, str(replica)),
        literal("GROVE_PCLQ_NAME", podclique),
        literal("GROVE_HEADLESS_SERVICE", address),
        from_label("GROVE_PCLQ_POD_INDEX", labels.POD_INDEX),
    )


IN_GROUP: Final = (from_label("GROVE_PCSG_POD_INDEX", labels.GROUP_POD_INDEX),)
"""The variables of pods of a scaling group. They are not in the pod spec of their PodClique, which running pods were made from."""


OF_EVERY_POD: Final = frozenset(str(variable["name"]) for variable in pod_variables("", 0, "", ""))
"""The names of the variables of every pod."""
OF_MEMBERS: Final = frozenset(str(variable["name"]) for variable in (*IN_GROUP, *group_variables(0)))
"""The names of the further variables of pods of a scaling group."""


def prepend(pod_spec: Mapping[str, Any], variables: Sequence[Variable]) -> dict[str, Any]:
    """The pod spec with `variables` first in every container and init container; a user's variable of the same name is removed."""
    result = dict(pod_spec)
    for field in ("containers", "initContainers"):
        if pod_spec.get(field):
            result[field] = [_with_variables(container, variables) for container in pod_spec[field]]
    return result


def template_spec(clique: Clique, group: Group | None) -> dict[str, Any]:
    """The clique's pod spec in the template; with the group's variables prepended if it belongs to a scaling group."""
    return prepend(clique.pod_spec, group_variables(group.pods)) if group else dict(clique.pod_spec)


def _with_variables(container: Mapping[str, Any], variables: Sequence[Variable]) -> dict[str, Any]:
    replaced = {variable["name"] for variable in variables}
    rest = [variable for variable in container.get("env") or () if variable.get("name") not in replaced]
    return {**container, "env": [*variables, *rest]}
