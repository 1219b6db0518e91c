"""Creating: what a server makes of bodies, good and bad."""

from typing import Any

from tests.contract.scenario import Scenario, Step

NS = "/api/v1/namespaces/{ns}"
PODS = f"{NS}/pods"
MAPS = f"{NS}/configmaps"


def pod(name: str = "a", /, **spec: Any) -> dict[str, Any]:
    """A pod with one container, and whatever else its spec shall hold."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/a:1"}], **spec},
    }


def config(name: str = "a", /, data: Any = None, **metadata: Any) -> dict[str, Any]:
    """A config map."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"k": "v"}}


def _container(**fields: Any) -> dict[str, Any]:
    return {"name": "main", "image": "i", **fields}


CREATING = Scenario(
    "creating",
    (
        Step("a pod gets its defaults", "POST", PODS, pod()),
        Step("a name is taken once", "POST", PODS, pod()),
        Step("a pod can be read", "GET", f"{PODS}/a"),
        Step("what is not there is not found", "GET", f"{PODS}/none"),
        Step("nor in another group", "GET", "/apis/apps/v1/namespaces/{ns}/deployments/none"),
        Step("no name", "POST", PODS, {**pod(), "metadata": {}}),
        Step("a bad name", "POST", PODS, pod("A_b")),
        Step("a very long name", "POST", MAPS, config("a" * 254)),
        Step("a generated name", "POST", PODS, {**pod(), "metadata": {"generateName": "gen-"}}),
        Step("another namespace in the body", "POST", PODS, {**pod("b"), "metadata": {"name": "b", "namespace": "other"}}),
        Step("a namespace that is not there", "POST", "/api/v1/namespaces/{ns}-none/pods", pod()),
        Step("another kind", "POST", PODS, {**pod("b"), "kind": "Service"}),
        Step("another version", "POST", PODS, {**pod("b"), "apiVersion": "v2"}),
        Step("no kind and no version", "POST", MAPS, {"metadata": {"name": "bare"}}),
        Step("a revision", "POST", MAPS, config("b", resourceVersion="5")),
        Step("a dry run", "POST", f"{MAPS}?dryRun=All", config("dry")),
        Step("leaves nothing behind", "GET", f"{MAPS}/dry"),
        Step("a manager of a name of its own", "POST", f"{MAPS}?fieldManager=somebody", config("managed", labels={"a": "b"})),
        Step(
            "system fields are not the caller's",
            "POST",
            MAPS,
            config("system", uid="x", generation=7, selfLink="/x", deletionGracePeriodSeconds=3),
        ),
    ),
)

STRICTNESS = Scenario(
    "strictness",
    (
        Step("strict", "POST", f"{PODS}?fieldValidation=Strict", pod("a", foo=1, containers=[_container(bar=2)])),
        Step("warned", "POST", f"{PODS}?fieldValidation=Warn", pod("warned", foo=1, containers=[_container(bar=2)])),
        Step("ignored", "POST", f"{PODS}?fieldValidation=Ignore", pod("ignored", foo=1)),
        Step("in metadata", "POST", f"{MAPS}?fieldValidation=Strict", config("b", foo="bar")),
        Step("a text for a number", "POST", PODS, pod("b", terminationGracePeriodSeconds="x")),
        Step("a number for a text", "POST", PODS, pod("b", containers=[_container(image=5)])),
        Step("a number for a label", "POST", MAPS, config("b", labels={"a": 1})),
        Step("a text for a spec", "POST", PODS, {**pod("b"), "spec": "x"}),
        Step("an object for a list", "POST", PODS, pod("b", containers={"name": "x"})),
        Step("a text for a flag", "POST", PODS, pod("b", hostNetwork="yes")),
        Step("nulls are absences", "POST", MAPS, {**config("nulls", labels=None), "immutable": None}),
        Step(
            "zeros of optional fields vanish", "POST", PODS, pod("zeros", hostname="", hostNetwork=False, nodeSelector={}, tolerations=[])
        ),
    ),
)

VALIDATION = Scenario(
    "validation",
    (
        Step("no containers", "POST", PODS, pod(containers=[])),
        Step(
            "several faults at once",
            "POST",
            PODS,
            pod(containers=[{"name": "c"}, {"name": "c", "image": "x"}, {"image": "y", "name": "UP"}], restartPolicy="Perhaps"),
        ),
        Step("labels", "POST", MAPS, config(labels={"a b": "!", "good": "value"})),
        Step("annotations", "POST", MAPS, config(annotations={"a b": "anything goes"})),
        Step("finalizers", "POST", MAPS, config(finalizers=["nonsense"])),
        Step("an owner without a uid", "POST", MAPS, config(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": ""}])),
        Step(
            "two controllers",
            "POST",
            MAPS,
            config(
                ownerReferences=[
                    {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1", "controller": True},
                    {"apiVersion": "v1", "kind": "Pod", "name": "y", "uid": "2", "controller": True},
                ]
            ),
        ),
        Step("a mount of nothing", "POST", PODS, pod(containers=[_container(volumeMounts=[{"name": "v", "mountPath": "/v"}])])),
        Step("a port out of range", "POST", PODS, pod(containers=[_container(ports=[{"containerPort": 70000}])])),
        Step("a pull policy", "POST", PODS, pod(containers=[_container(imagePullPolicy="Maybe")])),
        Step("a bad quantity", "POST", PODS, pod(containers=[_container(resources={"limits": {"cpu": "lots"}})])),
        Step("an account that is not there", "POST", PODS, pod(serviceAccountName="nobody")),
        Step("two gates of one name", "POST", PODS, pod(schedulingGates=[{"name": "example.com/g"}, {"name": "example.com/g"}])),
        Step("a hostname", "POST", PODS, pod(hostname="Not.Good")),
        Step("a negative grace", "POST", PODS, pod(terminationGracePeriodSeconds=-1)),
    ),
)

PODS_AS_MADE = Scenario(
    "pods-as-made",
    (
        Step(
            "quantities, ports, probes, environment, volumes",
            "POST",
            PODS,
            {
                **pod(
                    initContainers=[{"name": "init", "image": "busybox:1.2"}],
                    containers=[
                        _container(
                            ports=[{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP", "name": "u"}],
                            resources={"limits": {"cpu": "0.5", "memory": "1024Mi", "example.com/gpu": 8}, "requests": {"cpu": "100m"}},
                            readinessProbe={"httpGet": {"port": 8080}},
                            livenessProbe={"exec": {"command": ["true"]}, "timeoutSeconds": 3},
                            env=[{"name": "A", "value": "1"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                            volumeMounts=[{"name": "c", "mountPath": "/c"}, {"name": "e", "mountPath": "/e", "readOnly": True}],
                        )
                    ],
                    volumes=[
                        {"name": "c", "configMap": {"name": "x"}},
                        {"name": "e"},
                        {"name": "s", "secret": {"secretName": "y"}},
                        {"name": "h", "hostPath": {"path": "/h"}},
                    ],
                    hostname="h",
                    subdomain="s",
                    tolerations=[{"key": "gpu", "operator": "Exists"}],
                    nodeSelector={"a": "b"},
                ),
                "metadata": {"name": "full", "labels": {"app": "x"}, "annotations": {"note": "y"}, "finalizers": ["example.com/hold"]},
            },
        ),
        Step("gated", "POST", PODS, pod("gated", schedulingGates=[{"name": "example.com/gate"}])),
        Step("an image by digest", "POST", PODS, pod("digest", containers=[_container(image="a@sha256:" + "0" * 64)])),
        Step("no token wanted", "POST", PODS, pod("tokenless", automountServiceAccountToken=False)),
        Step("guaranteed", "POST", PODS, pod("guaranteed", containers=[_container(resources={"limits": {"cpu": 2, "memory": "1Gi"}})])),
        Step("a status of the caller's is not heeded", "POST", PODS, {**pod("status"), "status": {"phase": "Running"}}),
        Step("resource claims", "POST", PODS, pod("claims", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])),
    ),
)

SCENARIOS = (CREATING, STRICTNESS, VALIDATION, PODS_AS_MADE)
