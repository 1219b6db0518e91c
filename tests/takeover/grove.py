"""What Grove's operator makes of a PodCliqueSet: the stored set, its children and their pods, as manifests.

Written from what is documented of the operator's API, not from the engine's renderers: where the two differ, a take-over would change
something. Uids are the server's: an object names its owner by kind and name, in `Child.owner`.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from engine.ids import Kind
from resources.base import kinds
from tests.takeover.pod_additions import from_label, has_gpus, with_channel, with_claims, with_env
from tests.takeover.stored_set import AUTO, GROUP, Options, clique_hash

Body = dict[str, Any]

COMPUTE_DOMAIN = Kind("resource.nvidia.com", "v1beta1", "ComputeDomain", "computedomains", status=True, newer=("v1beta2",))
INIT_IMAGE = "ghcr.io/ai-dynamo/grove-initc:v0.1.0-alpha.11"


@dataclass(frozen=True)
class Child:
    """An object that the operator creates, and the kind and name of its controller."""

    kind: Kind
    body: Body
    owner: tuple[str, str]

    @property
    def name(self) -> str:
        """Its name; empty if the server generates one."""
        return str(self.body["metadata"].get("name", ""))


class Rendering:
    """The children of one stored set."""

    def __init__(self, pcs: Mapping[str, Any], options: Options) -> None:
        self.pcs, self.options = pcs, options
        self.name, self.namespace = pcs["metadata"]["name"], pcs["metadata"]["namespace"]
        self.template = pcs["spec"]["template"]
        self.groups = self.template["podCliqueScalingGroups"]
        self.default = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": self.name}
        self.root = ("PodCliqueSet", self.name)
        self.cliques = {clique["name"]: clique for clique in self.template["cliques"]}
        members = {name for group in self.groups for name in group["cliqueNames"]}
        self.standalone = [clique for clique in self.template["cliques"] if clique["name"] not in members]
        self.enabled = (pcs["metadata"].get("annotations") or {}).get(AUTO) == "enabled"

    @property
    def indices(self) -> range:
        """The indices of the replicas of the set."""
        return range(self.pcs["spec"]["replicas"])

    @property
    def token_secret(self) -> str:
        """The name of the token Secret."""
        return f"{self.name}-{self.options.token}"

    def children(self) -> Iterator[Child]:
        """Everything but the pods, owners first."""
        yield from self._identity()
        for i in self.indices:
            yield self._service(i)
        for i in self.indices:
            yield from self._autoscalers(i)
            yield from self._compute_domains(i)
        yield from self._claims(self.name, "PodCliqueSet", self.template, {}, "grove.io/podcliqueset-replica-index", self.indices)
        for i in self.indices:
            for clique in self.standalone:
                yield from self._clique(i, clique)
            for group in self.groups:
                yield from self._group(i, group)
            yield from self.gangs(i)
            yield from self.pod_groups(i)

    def _child(self, kind: Kind, name: str, component: str, *, owner: tuple[str, str] = ("", ""), **rest: Any) -> Child:
        """An object with the labels of its component; `labels` and `annotations` are added to its metadata."""
        meta: Body = {"name": name, "namespace": self.namespace}
        named = rest.pop("named", name)
        own = {"app.kubernetes.io/name": named} if named else {}
        meta["labels"] = {**rest.pop("template_labels", {}), **self.default, **own, "app.kubernetes.io/component": component}
        meta["labels"] |= rest.pop("labels", {})
        if annotations := rest.pop("annotations", {}):
            meta["annotations"] = dict(annotations)
        if finalizer := rest.pop("finalizer", ""):
            meta["finalizers"] = [finalizer]
        return Child(kind, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, **rest}, owner if owner[0] else self.root)

    def _identity(self) -> Iterator[Child]:
        role = f"grove.io:pcs:{self.name}"
        named = role.replace(":", "-")
        account = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        yield self._child(kinds.SERVICE_ACCOUNT, self.name, "pod-service-account", automountServiceAccountToken=True)
        rules = [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}]
        yield self._child(kinds.ROLE, role, "pod-role", named=named, rules=rules)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
        yield self._child(kinds.ROLE_BINDING, role, "pod-role-binding", named=named, roleRef=reference, subjects=[account])
        of_account = {"kubernetes.io/service-account.name": self.name}
        secret = self.token_secret
        yield self._child(kinds.SECRET, secret, "pod-sa-token-secret", annotations=of_account, type="kubernetes.io/service-account-token")

    def _service(self, i: int) -> Child:
        index = {"grove.io/podcliqueset-replica-index": str(i)}
        publishes = self.template["headlessServiceConfig"]["publishNotReadyAddresses"]
        spec = {"clusterIP": "None", "publishNotReadyAddresses": publishes, "selector": {**self.default, **index}}
        return self._child(kinds.SERVICE, f"{self.name}-{i}", "pcs-headless-service", labels=index, spec=spec)

    def _autoscalers(self, i: int) -> Iterator[Child]:
        configs = [("PodClique", clique["name"], clique["spec"].get("autoScalingConfig")) for clique in self.standalone]
        configs += [("PodCliqueScalingGroup", group["name"], group.get("scaleConfig")) for group in self.groups]
        for kind, short, config in configs:
            if config:
                name = f"{self.name}-{i}-{short}"
                target = {"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": name}
                yield self._child(kinds.AUTOSCALER, name, "pcs-hpa", spec={"scaleTargetRef": target, **config})

    def _compute_domains(self, i: int) -> Iterator[Child]:
        if self.enabled:
            yield self._compute_domain(f"{self.name}-{i}", i, {})
        groups = {self._mnnvl_group(clique) for clique in self.cliques.values() if has_gpus(clique["spec"]["podSpec"])}
        for group in sorted(groups - {""}):
            yield self._compute_domain(f"{self.name}-{i}-{group}", i, {GROUP: group})

    def _compute_domain(self, name: str, i: int, more: Mapping[str, str]) -> Child:
        return self._child(
            COMPUTE_DOMAIN,
            name,
            "pcs-computedomain",
            labels={"grove.io/podcliqueset-replica-index": str(i), **more},
            finalizer="grove.io/computedomain-finalizer",
            spec={"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}},
        )

    def _mnnvl_group(self, clique: Mapping[str, Any]) -> str:
        """The group of a clique: its own annotation, else that of its scaling group, else that of the set; `none` is no group."""
        group: Mapping[str, Any] = next((entry for entry in self.groups if clique["name"] in entry["cliqueNames"]), {})
        layers = (clique, group, self.pcs["metadata"])
        found = next((value for layer in layers if (value := (layer.get("annotations") or {}).get(GROUP))), "none")
        return "" if found == "none" else str(found)

    def _claims(
        self, owner: str, kind: str, holder: Mapping[str, Any], level: Mapping[str, str], index_label: str, indices: Sequence[int]
    ) -> Iterator[Child]:
        """The shared ResourceClaims of a set, group or clique."""
        specs = {entry["name"]: entry["templateSpec"]["spec"] for entry in self.template.get("resourceClaimTemplates") or ()}
        for share in holder.get("resourceSharing") or ():
            keys: list[tuple[str, Body]] = [("all", {})]
            if share["scope"] == "PerReplica":
                keys = [(str(index), {index_label: str(index)}) for index in indices]
            for key, extra in keys:
                name = f"{owner}-{key}-{share['name']}"
                spec = specs[share["name"]]
                more = {**level, **extra}
                yield self._child(kinds.RESOURCE_CLAIM, name, "resource-claim", owner=(kind, owner), named="", labels=more, spec=spec)

    def _group(self, i: int, group: Mapping[str, Any]) -> Iterator[Child]:
        name = f"{self.name}-{i}-{group['name']}"
        of_set = self.pcs["metadata"].get("annotations") or {}
        annotations = dict(group.get("annotations") or {}) | ({AUTO: "enabled"} if self.enabled else {})
        if GROUP in of_set:
            annotations.setdefault(GROUP, of_set[GROUP])
        replicas = self.options.replicas.get(name, group["replicas"])
        yield self._child(
            kinds.SCALING_GROUP,
            name,
            "pcs-podcliquescalinggroup",
            labels={"grove.io/podcliqueset-replica-index": str(i)},
            annotations=annotations,
            finalizer="grove.io/podcliquescalinggroup.grove.io",
            spec={"replicas": replicas, "minAvailable": group["minAvailable"], "cliqueNames": list(group["cliqueNames"])},
        )
        level = {"grove.io/podcliquescalinggroup": name}
        index_label = "grove.io/podcliquescalinggroup-replica-index"
        yield from self._claims(name, "PodCliqueScalingGroup", group, level, index_label, range(replicas))
        for j in range(replicas):
            yield from self.members(i, group, j)

    def members(self, i: int, group: Mapping[str, Any], j: int) -> Iterator[Child]:
        """The PodCliques of one replica of a scaling group, each followed by its claims."""
        for clique in group["cliqueNames"]:
            yield from self._clique(i, self.cliques[clique], group, j)

    def _clique(self, i: int, clique: Mapping[str, Any], group: Mapping[str, Any] | None = None, j: int = 0) -> Iterator[Child]:
        owner, component = self.root, "pcs-podclique"
        name = f"{self.name}-{i}-{clique['name']}"
        own = {"grove.io/podcliqueset-replica-index": str(i), "grove.io/podgang": f"{self.name}-{i}"}
        spec = deepcopy(clique["spec"])
        if group is not None:
            group_name = f"{self.name}-{i}-{group['name']}"
            owner, component, name = ("PodCliqueScalingGroup", group_name), "pcsg-podclique", f"{group_name}-{j}-{clique['name']}"
            own |= {"grove.io/podcliquescalinggroup": group_name, "grove.io/podcliquescalinggroup-replica-index": str(j)}
            if j >= group["minAvailable"]:
                own |= {"grove.io/podgang": f"{group_name}-{j - group['minAvailable']}", "grove.io/base-podgang": f"{self.name}-{i}"}
            spec["podSpec"] = with_env(spec["podSpec"], self._group_env(group))
        own["grove.io/pod-template-hash"] = clique_hash(self.pcs, clique)
        spec["replicas"] = self.options.replicas.get(name, spec["replicas"])
        spec.pop("startsAfter", None)
        if after := self._starts_after(i, clique, group, j):
            spec["startsAfter"] = after
        if self.enabled:
            spec["podSpec"] = with_channel(spec["podSpec"], f"{self.name}-{i}")
        elif mnnvl_group := self._mnnvl_group(clique):
            spec["podSpec"] = with_channel(spec["podSpec"], f"{self.name}-{i}-{mnnvl_group}")
        annotations = {key: value for key, value in (clique.get("annotations") or {}).items() if key != "grove.io/topology-name"}
        if group is not None and self.options.pod_index:
            annotations["grove.io/podcliquescalinggroup-pod-index-offset"] = str(self._offset(group, clique))
        finalizer, template_labels = "grove.io/podclique.grove.io", clique.get("labels") or {}
        yield self._child(
            kinds.PODCLIQUE,
            name,
            component,
            owner=owner,
            template_labels=template_labels,
            labels=own,
            annotations=annotations,
            finalizer=finalizer,
            spec=spec,
        )
        level = {"grove.io/podclique": name}
        yield from self._claims(name, "PodClique", clique, level, "grove.io/podclique-pod-index", range(spec["replicas"]))

    def _offset(self, group: Mapping[str, Any], clique: Mapping[str, Any]) -> int:
        """How many pods the cliques before it have in one replica of the group."""
        names = group["cliqueNames"]
        return sum(self.cliques[name]["spec"]["replicas"] for name in names[: names.index(clique["name"])])

    def _group_env(self, group: Mapping[str, Any]) -> list[Body]:
        pods = sum(self.cliques[name]["spec"]["replicas"] for name in group["cliqueNames"])
        return [
            from_label("GROVE_PCSG_NAME", "grove.io/podcliquescalinggroup"),
            {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": str(pods)},
            from_label("GROVE_PCSG_INDEX", "grove.io/podcliquescalinggroup-replica-index"),
        ]

    def _starts_after(self, i: int, clique: Mapping[str, Any], group: Mapping[str, Any] | None, j: int) -> list[str]:
        startup, order = self.template["cliqueStartupType"], list(self.cliques)
        parents = list(clique["spec"].get("startsAfter") or ()) if startup == "CliqueStartupTypeExplicit" else []
        if startup == "CliqueStartupTypeInOrder" and order.index(clique["name"]):
            parents = [order[order.index(clique["name"]) - 1]]
        if group is not None and j >= group["minAvailable"]:
            return [f"{self.name}-{i}-{group['name']}-{j}-{parent}" for parent in parents if parent in group["cliqueNames"]]
        return [name for parent in parents for name in self._expanded(i, parent)]

    def _expanded(self, i: int, parent: str) -> list[str]:
        for group in self.groups:
            if parent in group["cliqueNames"]:
                return [f"{self.name}-{i}-{group['name']}-{x}-{parent}" for x in range(group["minAvailable"])]
        return [f"{self.name}-{i}-{parent}"]

    def gangs(self, i: int, pods: Mapping[str, Sequence[str]] | None = None) -> Iterator[Child]:
        """The PodGangs of a replica; `pods` are the names of the pods of each PodClique."""
        standalone = [(f"{self.name}-{i}-{clique['name']}", clique) for clique in self.standalone]
        base, scaled = list(standalone), []
        for group in self.groups:
            name = f"{self.name}-{i}-{group['name']}"
            for j in range(self.options.replicas.get(name, group["replicas"])):
                members = [(f"{name}-{j}-{member}", self.cliques[member]) for member in group["cliqueNames"]]
                if j < group["minAvailable"]:
                    base += members
                else:
                    scaled.append((f"{name}-{j - group['minAvailable']}", group, members))
        yield self._gang(f"{self.name}-{i}", i, base, None, pods or {})
        for name, group, members in scaled:
            yield self._gang(name, i, members, group, pods or {})

    def pod_groups(self, i: int) -> Iterator[Child]:
        """The PodGroups of KAI or Volcano, one for each PodGang; none for other schedulers."""
        render = {"kai-scheduler": self._kai_pod_group, "volcano": self._volcano_pod_group}.get(self.options.scheduler)
        if render is not None:
            yield from map(render, self.gangs(i))

    def _kai_pod_group(self, gang: Child) -> Child:
        meta, groups = gang.body["metadata"], gang.body["spec"]["podgroups"]
        members = [{"name": group["name"], "minMember": group["minReplicas"]} for group in groups]
        queue = self.pcs["metadata"]["labels"]["kai.scheduler/queue"]
        spec = {"minMember": sum(group["minReplicas"] for group in groups), "queue": queue, "subGroups": members}
        if priority := gang.body["spec"].get("priorityClassName"):
            spec["priorityClassName"] = priority
        return self._pod_group_of(kinds.KAI_POD_GROUP, gang, {**meta.get("annotations", {}), "kai.scheduler/skip-podgrouper": "true"}, spec)

    def _volcano_pod_group(self, gang: Child) -> Child:
        groups = gang.body["spec"]["podgroups"]
        policies = [
            {
                "name": group["name"],
                "labelSelector": {"matchLabels": {"grove.io/podclique": group["name"]}},
                "matchLabelKeys": ["grove.io/podclique"],
                "subGroupSize": group["minReplicas"],
                "minSubGroups": 1,
            }
            for group in groups
        ]
        spec = {"minMember": sum(group["minReplicas"] for group in groups), "queue": "default", "subGroupPolicy": policies}
        if priority := gang.body["spec"].get("priorityClassName"):
            spec["priorityClassName"] = priority
        return self._pod_group_of(kinds.VOLCANO_POD_GROUP, gang, {}, spec)

    def _pod_group_of(self, kind: Kind, gang: Child, annotations: Mapping[str, str], spec: Body) -> Child:
        meta: Body = {"name": gang.name, "namespace": self.namespace, "labels": dict(gang.body["metadata"]["labels"])}
        if annotations:
            meta["annotations"] = dict(annotations)
        return Child(kind, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}, ("PodGang", gang.name))

    def _gang(
        self, name: str, i: int, members: list[tuple[str, Any]], group: Mapping[str, Any] | None, pods: Mapping[str, Sequence[str]]
    ) -> Child:
        meta = self.pcs["metadata"]
        spec: Body = {"podgroups": [self._pod_group(clique, entry, pods.get(clique, ())) for clique, entry in members]}
        constraint = self._constraint(group if group is not None and group.get("topologyConstraint") else self.template)
        if constraint:
            spec["topologyConstraint"] = constraint
        configs = self._group_configs(i) if group is None else []
        if configs:
            spec["topologyConstraintGroupConfigs"] = configs
        if priority := self.template.get("priorityClassName"):
            spec["priorityClassName"] = priority
        labels = {key: value for key, value in (meta.get("labels") or {}).items() if not key.startswith("grove.io/")}
        annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if not key.startswith("grove.io/")}
        scheduler = next((s for clique in self.cliques.values() if (s := clique["spec"]["podSpec"].get("schedulerName"))), "")
        if constraint or configs or any("topologyConstraint" in entry for entry in spec["podgroups"]):
            annotations["grove.io/topology-name"] = self.template["topologyConstraint"]["topologyName"]
        own = {"grove.io/scheduler-name": scheduler or self.options.scheduler}
        return self._child(kinds.PODGANG, name, "podgang", named="", template_labels=labels, labels=own, annotations=annotations, spec=spec)

    def _pod_group(self, name: str, clique: Mapping[str, Any], pods: Sequence[str]) -> Body:
        references = [{"namespace": self.namespace, "name": pod} for pod in sorted(pods)]
        entry: Body = {"name": name, "minReplicas": clique["spec"]["minAvailable"], "podReferences": references}
        constraint = self._constraint(clique)
        return entry | {"topologyConstraint": constraint} if constraint else entry

    def _constraint(self, holder: Mapping[str, Any]) -> Body | None:
        pack = (holder.get("topologyConstraint") or {}).get("pack") or {}
        translated = {side: self.options.levels[domain] for side, domain in pack.items() if domain in self.options.levels}
        return {"packConstraint": translated} if translated else None

    def _group_configs(self, i: int) -> list[Body]:
        return [
            {
                "name": f"{self.name}-{i}-{group['name']}-{x}",
                "podGroupNames": [f"{self.name}-{i}-{group['name']}-{x}-{member}" for member in group["cliqueNames"]],
                "topologyConstraint": constraint,
            }
            for group in self.groups
            if (constraint := self._constraint(group))
            for x in range(group["minAvailable"])
        ]

    def pods(self, clique: Child, indices: Sequence[int] | None = None, *, gated: bool = False) -> Iterator[Child]:
        """The pods of a PodClique. The server generates their names."""
        spec, meta = clique.body["spec"], clique.body["metadata"]
        for k in range(spec["replicas"]) if indices is None else indices:
            yield Child(kinds.POD, self._pod(spec, meta, k, gated=gated), ("PodClique", meta["name"]))

    def _pod(self, clique: Mapping[str, Any], meta: Mapping[str, Any], k: int, *, gated: bool) -> Body:
        name, labels = meta["name"], meta["labels"]
        i = name.removeprefix(f"{self.name}-").partition("-")[0]
        pod = deepcopy(clique["podSpec"])
        pod.setdefault("schedulerName", self.options.scheduler)
        service = f"{self.name}-{i}"
        pod = with_env(
            pod,
            [
                {"name": "GROVE_PCS_NAME", "value": self.name},
                {"name": "GROVE_PCS_INDEX", "value": i},
                {"name": "GROVE_PCLQ_NAME", "value": name},
                {"name": "GROVE_HEADLESS_SERVICE", "value": f"{service}.{self.namespace}.svc.cluster.local"},
                from_label("GROVE_PCLQ_POD_INDEX", "grove.io/podclique-pod-index"),
            ],
        )
        pod |= {"hostname": f"{name}-{k}", "subdomain": service}
        pod = with_claims(pod, self._claims_of_pod(labels, name, i, k))
        if clique.get("startsAfter"):
            pod = self._with_waiter(pod, clique["startsAfter"])
        if gated:
            pod["schedulingGates"] = [{"name": "grove.io/podgang-pending-creation"}]
        else:
            pod.pop("schedulingGates", None)
        annotations = dict(meta.get("annotations") or {})
        offset = annotations.pop("grove.io/podcliquescalinggroup-pod-index-offset", None)
        if offset is not None:
            index = "grove.io/podcliquescalinggroup-pod-index"
            pod, labels = with_env(pod, [from_label("GROVE_PCSG_POD_INDEX", index)]), {**labels, index: str(int(offset) + k)}
        keys = {**labels, "grove.io/podclique": name, "grove.io/podclique-pod-index": str(k)}
        if pod["schedulerName"] == "kai-scheduler":
            keys["kai.scheduler/subgroup-name"] = name
            annotations |= {"kai.scheduler/skip-podgrouper": "true", "pod-group-name": labels["grove.io/podgang"]}
        if pod["schedulerName"] == "volcano":
            groups = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")
            annotations |= dict.fromkeys(groups, labels["grove.io/podgang"])
        pod_meta: Body = {"generateName": f"{name}-", "namespace": self.namespace, "labels": keys}
        if annotations:
            pod_meta["annotations"] = annotations
        return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_meta, "spec": pod}

    def _claims_of_pod(self, labels: Mapping[str, str], clique: str, i: str, k: int) -> list[str]:
        group = labels.get("grove.io/podcliquescalinggroup", "")
        levels: list[tuple[str, Mapping[str, Any], str]] = [(self.name, self.template, i)]
        if group:
            config = next(entry for entry in self.groups if entry["name"] == group.removeprefix(f"{self.name}-{i}-"))
            levels.append((group, config, labels["grove.io/podcliquescalinggroup-replica-index"]))
        short = next(name for name in self.cliques if clique.endswith(f"-{name}"))
        levels.append((clique, self.cliques[short], str(k)))
        return [
            f"{owner}-{'all' if scope == 'AllReplicas' else index}-{share['name']}"
            for owner, holder, index in levels
            for scope in ("AllReplicas", "PerReplica")
            for share in holder.get("resourceSharing") or ()
            if share["scope"] == scope
        ]

    def _with_waiter(self, pod: Mapping[str, Any], parents: Sequence[str]) -> Body:
        minima = {name: clique["spec"]["minAvailable"] for name, clique in self.cliques.items()}
        args = [f"--podcliques={parent}:{minima[next(n for n in minima if parent.endswith(f'-{n}'))]}" for parent in parents]
        waiter = {
            "name": "grove-initc",
            "image": INIT_IMAGE,
            "args": args,
            "volumeMounts": [
                {"name": "pod-info-vol", "mountPath": "/var/grove/pod-info", "readOnly": True},
                {"name": "sa-token-secret-vol", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
            ],
        }
        items = [
            {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
            {"path": "podgangname", "fieldRef": {"fieldPath": "metadata.labels['grove.io/podgang']"}},
        ]
        volumes = [
            *(pod.get("volumes") or ()),
            {"name": "sa-token-secret-vol", "secret": {"secretName": self.token_secret, "defaultMode": 420}},
            {"name": "pod-info-vol", "downwardAPI": {"items": items}},
        ]
        return {**pod, "initContainers": [*(pod.get("initContainers") or ()), waiter], "volumes": volumes}
