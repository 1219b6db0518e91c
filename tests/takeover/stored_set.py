"""The set as Grove's operator stores it, with the defaults of its CRD and its webhook, and the hashes that it computes of it."""

import json
import zlib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.takeover import go_form
from tests.takeover.pod_additions import has_gpus

Body = dict[str, Any]
AUTO = "grove.io/auto-mnnvl"
GROUP = "grove.io/mnnvl-group"
DIGITS = "456789bcdf"
"""The characters of the operator's hashes."""


@dataclass(frozen=True)
class Options:
    """How the operator is configured, and what autoscalers have done."""

    auto_mnnvl: bool = False
    scheduler: str = "default-scheduler"
    levels: Mapping[str, str] = field(default_factory=dict)
    """Topology domain -> label of nodes; empty: topology-aware scheduling is disabled."""
    replicas: Mapping[str, int] = field(default_factory=dict)
    """Full name of a PodClique or PodCliqueScalingGroup -> its replicas, if they differ from the template's."""
    token: str = "ic-sat"
    """How the names of token Secrets end."""
    pod_index: bool = False
    """Whether pods of scaling groups have an index within their group replica, as the release after the next gives them."""


def stored(manifest: Mapping[str, Any], options: Options = Options()) -> Body:
    """The set as the operator's CRD and its webhook store it."""
    pcs = deepcopy(dict(manifest))
    meta, spec = pcs["metadata"], pcs["spec"]
    meta.setdefault("namespace", "default")
    spec.setdefault("replicas", 0)
    template = spec["template"]
    template.setdefault("cliqueStartupType", "CliqueStartupTypeAnyOrder")
    template.setdefault("terminationDelay", "4h0m0s")
    template.setdefault("headlessServiceConfig", {"publishNotReadyAddresses": True})
    if "updateStrategy" in spec:
        spec["updateStrategy"].setdefault("type", "RollingRecreate")
    for clique in template["cliques"]:
        inner = clique["spec"]
        given = inner.get("replicas") or 1
        inner["replicas"] = given
        inner.setdefault("minAvailable", given)
        if "autoScalingConfig" in inner:
            inner["autoScalingConfig"].setdefault("minReplicas", given)
        pod = go_form.pod_spec(inner["podSpec"])
        pod.setdefault("restartPolicy", "Always")
        pod.setdefault("terminationGracePeriodSeconds", 30)
        inner["podSpec"] = pod
    groups = template.setdefault("podCliqueScalingGroups", [])
    for group in groups:
        group.setdefault("replicas", 1)
        group.setdefault("minAvailable", 1)
        if "scaleConfig" in group:
            group["scaleConfig"].setdefault("minReplicas", group["replicas"])
    if options.auto_mnnvl and any(has_gpus(clique["spec"]["podSpec"]) for clique in template["cliques"]):
        meta.setdefault("annotations", {}).setdefault(AUTO, "enabled")
    return pcs


def opaque_hash(value: Any) -> str:
    """A hash that looks like the operator's: up to twenty of its characters."""
    text = json.dumps(value, sort_keys=True).encode()
    number = zlib.crc32(text) * zlib.adler32(text)
    return "".join(DIGITS[int(digit)] for digit in str(number))[:20]


def clique_hash(pcs: Mapping[str, Any], clique: Mapping[str, Any]) -> str:
    """The value of `grove.io/pod-template-hash` of a clique."""
    return opaque_hash(_hashed(pcs, clique))


def generation_hash(pcs: Mapping[str, Any]) -> str:
    """The value of `status.currentGenerationHash`."""
    return opaque_hash([_hashed(pcs, clique) for clique in pcs["spec"]["template"]["cliques"]])


def _hashed(pcs: Mapping[str, Any], clique: Mapping[str, Any]) -> Body:
    spec = {**clique["spec"]["podSpec"], "priorityClassName": pcs["spec"]["template"].get("priorityClassName", "")}
    return {"labels": clique.get("labels"), "annotations": clique.get("annotations"), "spec": spec}
