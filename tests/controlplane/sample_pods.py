"""Sample pods: valid pod specs of five shapes that together set nearly every field of a pod spec."""

from collections.abc import Mapping
from typing import Final

from tests.controlplane.sample_volumes import IMAGE, SELECTOR, VOLUMES, Spec

PLAIN: Final[Spec] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 60,
    "activeDeadlineSeconds": 3600,
    "dnsPolicy": "None",
    "dnsConfig": {
        "nameservers": ["10.0.0.10", "fd00::a"],
        "searches": ["svc.cluster.local", "example.com"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    },
    "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["model", "model.example.com"]}],
    "imagePullSecrets": [{"name": "pull"}],
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
    "shareProcessNamespace": True,
    "setHostnameAsFQDN": False,
    "hostname": "model-0",
    "subdomain": "models",
    "schedulerName": "my-scheduler",
    "nodeSelector": {"example.com/pool": "gpu", "zone": ""},
    "readinessGates": [{"conditionType": "example.com/ready"}],
    "schedulingGates": [{"name": "example.com/hold"}],
    "preemptionPolicy": "Never",
    "priorityClassName": "high",
    "runtimeClassName": "runc",
    "serviceAccountName": "model",
    "initContainers": [
        {"name": "fetch", "image": IMAGE, "command": ["fetch"], "env": [{"name": "FROM", "value": "s3"}]},
        {"name": "sidecar", "image": IMAGE, "restartPolicy": "Always", "args": ["--serve"]},
    ],
    "containers": [
        {
            "name": "main",
            "image": IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "command": ["serve"],
            "args": ["--model", "$(MODEL)"],
            "workingDir": "/srv",
            "stdin": True,
            "stdinOnce": True,
            "tty": True,
            "terminationMessagePath": "/dev/log",
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "env": [
                {"name": "MODEL", "value": "llama"},
                {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
                {"name": "RACK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['rack']"}}},
                {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1"}}},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "value", "optional": True}}},
                {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode", "optional": True}}},
            ],
            "envFrom": [
                {"prefix": "A_", "configMapRef": {"name": "settings", "optional": True}},
                {"secretRef": {"name": "token", "optional": False}},
            ],
            "resources": {
                "requests": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi"},
                "limits": {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "2Gi"},
            },
            "resizePolicy": [
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                {"resourceName": "memory", "restartPolicy": "RestartContainer"},
            ],
            "restartPolicy": "Always",
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42, 43]}}],
        }
    ],
}
"""Commands, environment, resources, names."""

GPU: Final[Spec] = {
    "terminationGracePeriodSeconds": 30,
    "hostnameOverride": "worker.example.com",
    "overhead": {"cpu": "100m", "memory": "64Mi"},
    "runtimeClassName": "nvidia",
    "resources": {"requests": {"cpu": "8", "memory": "32Gi"}, "limits": {"cpu": "16", "memory": "64Gi"}},
    "resourceClaims": [
        {"name": "domain", "resourceClaimTemplateName": "domain-template"},
        {"name": "shared", "resourceClaimName": "shared-claim"},
    ],
    "volumes": [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
        {"name": "huge", "emptyDir": {"medium": "HugePages-2Mi"}},
    ],
    "tolerations": [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "pool", "operator": "Equal", "value": "a100", "effect": "NoExecute", "tolerationSeconds": 300},
        {"operator": "Exists"},
    ],
    "initContainers": [{"name": "check", "image": IMAGE, "resources": {"limits": {"nvidia.com/gpu": "1"}, "claims": [{"name": "shared"}]}}],
    "containers": [
        {
            "name": "worker",
            "image": "registry.test/vllm:latest",
            "imagePullPolicy": "Always",
            "resources": {
                "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "8", "hugepages-2Mi": "512Mi"},
                "limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "8", "hugepages-2Mi": "512Mi"},
                "claims": [{"name": "domain"}, {"name": "shared", "request": "gpu"}],
            },
            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "huge", "mountPath": "/dev/huge"}],
        },
        {"name": "agent", "image": IMAGE, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
    ],
}
"""GPUs, claims, huge pages, resources of the pod, tolerations."""

SERVING: Final[Spec] = {
    "hostNetwork": True,
    "dnsPolicy": "ClusterFirstWithHostNet",
    "os": {"name": "linux"},
    "nodeName": "node-1",
    "initContainers": [
        {
            "name": "proxy",
            "image": IMAGE,
            "restartPolicy": "Always",
            "startupProbe": {"exec": {"command": ["true"]}, "failureThreshold": 5},
            "ports": [{"name": "proxy", "containerPort": 15001, "hostPort": 15001, "protocol": "TCP"}],
        }
    ],
    "containers": [
        {
            "name": "server",
            "image": IMAGE,
            "ports": [
                {"name": "http", "containerPort": 8000, "hostPort": 8000, "hostIP": "10.0.0.1", "protocol": "TCP"},
                {"name": "metrics", "containerPort": 9000, "hostPort": 9000},
                {"containerPort": 9001, "hostPort": 9001, "protocol": "UDP"},
            ],
            "livenessProbe": {
                "httpGet": {
                    "path": "/live",
                    "port": "http",
                    "host": "localhost",
                    "scheme": "HTTPS",
                    "httpHeaders": [{"name": "X-Probe", "value": "1"}, {"name": "Accept", "value": ""}],
                },
                "initialDelaySeconds": 5,
                "timeoutSeconds": 2,
                "periodSeconds": 20,
                "successThreshold": 1,
                "failureThreshold": 5,
                "terminationGracePeriodSeconds": 15,
            },
            "readinessProbe": {"grpc": {"port": 8001, "service": "health"}, "successThreshold": 2, "periodSeconds": 5},
            "startupProbe": {"tcpSocket": {"port": 8000, "host": "localhost"}, "failureThreshold": 60},
            "lifecycle": {
                "postStart": {
                    "httpGet": {"port": 8000, "path": "/warm", "host": "localhost", "httpHeaders": [{"name": "A", "value": "b"}]}
                },
                "preStop": {"sleep": {"seconds": 5}},
                "stopSignal": "SIGINT",
            },
        },
        {
            "name": "client",
            "image": IMAGE,
            "livenessProbe": {"exec": {"command": ["true"]}},
            "lifecycle": {"postStart": {"exec": {"command": ["true"]}}, "preStop": {"tcpSocket": {"port": "http", "host": "localhost"}}},
        },
    ],
}
"""Ports, probes, hooks, the network of the host."""

NODE_TERM: Final[Spec] = {
    "matchExpressions": [
        {"key": "example.com/rack", "operator": "In", "values": ["r1", "r2"]},
        {"key": "gpu", "operator": "Exists"},
        {"key": "cores", "operator": "Gt", "values": ["8"]},
    ],
    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}],
}
POD_TERM: Final[Spec] = {
    "labelSelector": SELECTOR,
    "topologyKey": "example.com/rack",
    "namespaces": ["default", "models"],
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "matchLabelKeys": ["revision"],
    "mismatchLabelKeys": ["other"],
}

PLACED: Final[Spec] = {
    "hostUsers": True,
    "hostPID": True,
    "hostIPC": True,
    "securityContext": {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "runAsNonRoot": True,
        "fsGroup": 2000,
        "fsGroupChangePolicy": "OnRootMismatch",
        "supplementalGroups": [1, 2],
        "supplementalGroupsPolicy": "Merge",
        "seLinuxOptions": {"level": "s0:c1", "role": "r", "type": "t", "user": "u"},
        "seLinuxChangePolicy": "Recursive",
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "RuntimeDefault"},
        "sysctls": [{"name": "net.core.somaxconn", "value": "1024"}],
    },
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODE_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": NODE_TERM}],
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [POD_TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": POD_TERM}],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [POD_TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": POD_TERM}],
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "minDomains": 2,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "matchLabelKeys": ["revision"],
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        },
        {"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "model"}}},
    ],
    "containers": [
        {
            "name": "main",
            "image": IMAGE,
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"add": ["SYS_PTRACE"], "drop": ["ALL"]},
                "privileged": False,
                "procMount": "Default",
                "readOnlyRootFilesystem": True,
                "runAsUser": 1001,
                "runAsGroup": 1001,
                "runAsNonRoot": True,
                "seLinuxOptions": {"level": "s0:c2"},
                "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/a.json"},
                "appArmorProfile": {"type": "Localhost", "localhostProfile": "a"},
            },
        }
    ],
}
"""Security, affinity, spreading."""

WINDOWS: Final[Spec] = {
    "os": {"name": "windows"},
    "hostNetwork": True,
    "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}},
    "containers": [
        {
            "name": "main",
            "image": IMAGE,
            "securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "spec", "gmsaCredentialSpec": "{}", "runAsUserName": "user"}},
        }
    ],
}
"""A container of Windows' host."""

SHAPES: Final[Mapping[str, Spec]] = {
    "plain": PLAIN,
    "gpu": GPU,
    "serving": SERVING,
    "volumes": VOLUMES,
    "placed": PLACED,
    "windows": WINDOWS,
}
"""Shape -> a valid pod spec of it."""
