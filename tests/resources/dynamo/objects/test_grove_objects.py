"""Objects beside the PodCliqueSet: Services, Ingresses, claims, SSH Secrets, and the objects whose replicas follow services."""

from typing import Any

import pytest

from engine import world
from engine.diff import Rules, compare
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import live
from engine.operation import Cause
from engine.paths import overlay
from engine.proposal import propose
from engine.resource import Hold, Want
from engine.tick import plan_all
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.model.names import grove_target
from resources.dynamo.objects.ingress import ingress_notes, ingresses
from resources.dynamo.objects.podcliqueset import podcliqueset
from resources.dynamo.objects.pvc import created_claims, missing_claims
from resources.dynamo.objects.scaling import scale_targets
from resources.dynamo.objects.service import frontend_services, service_notes
from resources.dynamo.objects.ssh_secret import created_secrets, missing_secrets, needed_secrets
from resources.ports.configuration import GENERATED, DynamoSettings
from resources.registry import BLUEPRINTS
from tests.laws.toy import CONFIGURATION, START
from tests.resources.dynamo.objects.grove_graphs import frontend, graph, worker

OWN_LABELS = {"app.kubernetes.io/managed-by": "dynamo-operator", "app.kubernetes.io/part-of": "g"}
NGINX = DynamoSettings(ingress_class="nginx")
CREATING = DynamoSettings(create_ssh_secret=True)


def services_of(graph: InferenceGraph) -> list[Want | Hold]:
    """The Services of the frontends of a graph."""
    return list(frontend_services(graph, DynamoSettings()))


def patch(resource: Want | Hold, live_body: dict[str, Any]) -> dict[str, Any]:
    """The patch of a live object that a second pass would send."""
    return compare(resource.body, live_body, Rules(resource.policy, Cause.DRIFT)).patch


def stored(resource: Want | Hold, **server: Any) -> dict[str, Any]:
    """The object as an API server returns it, with what it filled in."""
    metadata = {"uid": "u", "resourceVersion": "1", "managedFields": [{"manager": "engine", "fieldsV1": fields(resource.body)}]}
    return overlay(resource.body, {"metadata": metadata, **server})


def fields(body: Any) -> dict[str, Any]:
    """The ownership of all maps of a body; lists are owned as a whole."""
    return {
        f"f:{key}": fields(value) if isinstance(value, dict) else {} for key, value in body.items() if key not in ("apiVersion", "kind")
    }


# Services


def serving(port: str) -> dict[str, Any]:
    """A frontend whose container has a port of that name."""
    container = {"image": "example/frontend:1", "ports": [{"name": port, "containerPort": 8000}]}
    return frontend(extraPodSpec={"mainContainer": container})


def test_every_frontend_has_a_service_that_selects_its_pods() -> None:
    (service,) = services_of(graph(Frontend=serving("http"), decode=worker()))

    assert service.id.name == "g-frontend"
    assert [owner.id.kind for owner in service.owners] == ["DynamoGraphDeployment"]
    assert service.body["metadata"]["labels"] == OWN_LABELS
    assert service.body["spec"] == {
        "selector": {"nvidia.com/selector": "g-frontend"},
        "ports": [{"name": "http", "port": 8000, "targetPort": "http", "protocol": "TCP"}],
    }


@pytest.mark.parametrize("port", ["http", "web"])
def test_a_service_leads_to_the_port_http_or_where_no_container_has_one_to_its_number(port: str) -> None:
    (service,) = services_of(graph(Frontend=serving(port)))

    assert service.body["spec"]["ports"][0]["targetPort"] == ("http" if port == "http" else 8000)


def test_a_service_whose_name_kubernetes_does_not_allow_is_held_with_the_reason() -> None:
    (service,) = services_of(graph(name="7b", Frontend=frontend()))

    assert isinstance(service, Hold) and service.blocked
    assert "'7b-frontend' is not a DNS label" in service.why


def test_a_service_whose_name_the_headless_service_of_the_set_has_is_held_with_the_reason() -> None:
    services: dict[str, Any] = {"0": frontend()}
    (service,) = services_of(graph(**services))

    assert service.id.name == "g-0"
    assert isinstance(service, Hold) and service.blocked
    assert "'g-0' is that of the headless Service of the PodCliqueSet" in service.why


@pytest.mark.parametrize("kind", ["frontend", "Frontend", "FRONTEND"])
def test_component_types_are_compared_without_case(kind: str) -> None:
    assert len(services_of(graph(web=frontend(componentType=kind)))) == 1


@pytest.mark.parametrize(
    "service",
    [frontend(), frontend(multinode={"nodeCount": 2}), frontend(labels={"nvidia.com/selector": "own"})],
    ids=["one node", "several nodes", "own label"],
)
def test_a_service_selects_labels_that_the_pods_that_serve_have(service: dict[str, Any]) -> None:
    front = graph(Frontend=service)
    made = podcliqueset(front, DynamoSettings(), None)
    assert made is not None
    (resource,) = services_of(front)

    selected = [
        clique["name"]
        for clique in made.body["spec"]["template"]["cliques"]
        if resource.body["spec"]["selector"].items() <= clique["labels"].items()
    ]

    assert selected == [made.body["spec"]["template"]["cliques"][0]["name"]]


def test_a_service_with_defaults_of_the_server_is_in_sync() -> None:
    (resource,) = services_of(graph(Frontend=frontend()))
    served = {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP", "sessionAffinity": "None", "ipFamilies": ["IPv4"]}

    assert patch(resource, stored(resource, spec=served)) == {}


def test_labels_by_which_the_component_path_selected_are_removed_from_the_selector() -> None:
    (resource,) = services_of(graph(Frontend=frontend()))
    others = stored(resource, spec={"selector": {"nvidia.com/dynamo-component-type": "frontend"}})

    assert patch(resource, others) == {"spec": {"selector": {"nvidia.com/dynamo-component-type": None}}}


def test_the_name_of_a_service_is_no_longer_than_kubernetes_allows() -> None:
    (resource,) = services_of(graph({"frontend-with-a-name-of-many-words-so-that-it-is-much-too-long": frontend()}))

    assert len(resource.id.name) == 63


def test_a_model_reference_is_reported_as_being_without_a_service() -> None:
    notes = service_notes(graph(decode=worker(modelRef={"name": "m"}), Frontend=frontend()))

    assert notes == ("spec.services[decode].modelRef: no Service for the model's endpoints is created",)


# Ingresses


def test_an_enabled_ingress_leads_to_the_service_of_the_frontend() -> None:
    ingress = {"enabled": True, "host": "chat", "ingressControllerClassName": "nginx"}

    (resource,) = ingresses(graph(Frontend=frontend(ingress=ingress)), DynamoSettings())

    assert resource.id.name == "g-frontend"
    assert resource.body["apiVersion"] == "networking.k8s.io/v1"
    assert resource.body["spec"] == {
        "ingressClassName": "nginx",
        "rules": [
            {
                "host": "chat.local",
                "http": {
                    "paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "g-frontend", "port": {"number": 8000}}}}]
                },
            }
        ],
    }


@pytest.mark.parametrize(
    ("ingress", "suffix", "host"),
    [
        ({}, "local", "g.local"),
        ({"host": "chat"}, "local", "chat.local"),
        ({"host": "chat", "hostPrefix": "dev-"}, "local", "dev-chat.local"),
        ({"host": "chat", "hostSuffix": "example.com"}, "local", "chat.example.com"),
        ({"host": "chat"}, "", "chat"),
    ],
)
def test_the_host_is_prefix_and_host_and_suffix(ingress: dict[str, Any], suffix: str, host: str) -> None:
    settings = DynamoSettings(ingress_class="nginx", ingress_host_suffix=suffix)

    (resource,) = ingresses(graph(Frontend=frontend(ingress={"enabled": True, **ingress})), settings)

    assert resource.body["spec"]["rules"][0]["host"] == host


def test_tls_labels_and_annotations_of_the_ingress_are_taken_over() -> None:
    ingress = {
        "enabled": True,
        "host": "chat",
        "tls": {"secretName": "cert"},
        "labels": {"team": "a", "app.kubernetes.io/part-of": "x"},
        "annotations": {"a": "b"},
    }

    (resource,) = ingresses(graph(Frontend=frontend(ingress=ingress)), NGINX)

    assert resource.body["spec"]["tls"] == [{"hosts": ["chat.local"], "secretName": "cert"}]
    assert resource.body["metadata"]["labels"] == {"team": "a", **OWN_LABELS}
    assert resource.body["metadata"]["annotations"] == {"a": "b"}


def test_a_certificate_that_is_no_longer_named_is_removed() -> None:
    with_tls, without = (
        next(ingresses(graph(Frontend=frontend(ingress={"enabled": True, "host": "chat", **tls})), NGINX))
        for tls in ({"tls": {"secretName": "cert"}}, {})
    )

    assert patch(without, stored(with_tls)) == {"spec": {"tls": None}}
    assert patch(with_tls, stored(with_tls)) == {}


@pytest.mark.parametrize(
    ("ingress", "settings", "count"),
    [
        (None, DynamoSettings(), 0),
        (None, NGINX, 1),
        ({"enabled": False}, NGINX, 0),
        ({"enabled": True, "host": "x"}, DynamoSettings(), 0),
        ({"enabled": True, "host": "x"}, NGINX, 1),
    ],
)
def test_an_ingress_exists_if_it_is_enabled_and_has_a_class(ingress: Any, settings: DynamoSettings, count: int) -> None:
    fields = {} if ingress is None else {"ingress": ingress}

    assert len(list(ingresses(graph(Frontend=frontend(**fields)), settings))) == count


def test_ingress_settings_without_effect_are_reported() -> None:
    enabled = {"enabled": True, "host": "x"}
    services = {
        "Frontend": frontend(ingress={**enabled, "useVirtualService": True}),
        "decode": worker(ingress=enabled),
        "quiet": frontend(ingress={"enabled": False, "useVirtualService": True}),
    }

    assert list(ingresses(graph(services), DynamoSettings())) == []
    assert ingress_notes(graph(services), DynamoSettings()) == (
        "spec.services[decode].ingress: no Ingress is created, because the component type is not frontend",
        "spec.services[Frontend].ingress.useVirtualService: VirtualServices are not supported, none is created",
        "spec.services[Frontend].ingress.ingressControllerClassName: no Ingress is created, because neither the service nor the "
        "configuration names a class",
    )


# Claims

NEW = {"create": True, "name": "cache", "storageClass": "fast", "size": "10Gi", "volumeAccessMode": "ReadWriteMany"}


def test_a_claim_that_is_to_be_created_belongs_to_the_graph() -> None:
    (resource,) = created_claims(graph(pvcs=[NEW]), ())

    assert resource.id.name == "cache"
    assert [owner.id.name for owner in resource.owners] == ["g"]
    assert resource.body["metadata"]["labels"] == OWN_LABELS
    assert resource.body["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "10Gi"}},
        "storageClassName": "fast",
    }


def test_a_claim_is_never_changed_after_its_creation() -> None:
    (resource,) = created_claims(graph(pvcs=[NEW]), ())

    assert resource.policy.create_only


def test_a_claim_of_somebody_else_is_used_and_not_created() -> None:
    assert list(created_claims(graph(pvcs=[NEW]), {"cache"})) == []


@pytest.mark.parametrize("entry", [{"name": "cache"}, {"name": "cache", "create": False}, {**NEW, "name": ""}, {"create": True}])
def test_claims_that_are_not_to_be_created_or_have_no_name_are_skipped(entry: dict[str, Any]) -> None:
    assert list(created_claims(graph(pvcs=[entry]), ())) == []


def mounting(*names: str) -> dict[str, Any]:
    """A worker that mounts these claims."""
    return worker(volumeMounts=[{"name": name, "mountPoint": f"/{name}"} for name in names])


def test_services_that_mount_missing_claims_are_named_with_the_reason() -> None:
    claims = [NEW, {"name": "models"}, {"name": "data", "create": False}]
    services = {"a": mounting("cache"), "b": mounting("models", "cache"), "c": mounting("models", "data", "models"), "d": mounting("other")}

    assert missing_claims(graph(services, pvcs=claims), ()) == {
        "b": "PersistentVolumeClaim models does not exist, and spec.pvcs does not create it; create it, or add it there",
        "c": "PersistentVolumeClaims models, data do not exist, and spec.pvcs does not create them; create them, or add them there",
        "d": "PersistentVolumeClaim other does not exist, and spec.pvcs does not create it; create it, or add it there",
    }
    assert missing_claims(graph(services, pvcs=claims), {"models", "data", "other"}) == {}


def test_claims_of_volumes_in_pod_specs_count_as_well_each_once() -> None:
    def having(*names: str) -> list[dict[str, Any]]:
        return [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": name}} for n, name in enumerate(names)]

    other = [{"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}, {"name": "s", "secret": {"secretName": "s"}}, {"name": "x"}]
    mixed = mounting("models")
    mixed["extraPodSpec"] = {**mixed.get("extraPodSpec", {}), "volumes": [*having("models", "data"), *other]}

    assert missing_claims(graph({"a": mixed}), {"models"}) == {
        "a": "PersistentVolumeClaim data does not exist, and spec.pvcs does not create it; create it, or add it there"
    }
    assert missing_claims(graph({"a": mixed}, pvcs=[{**NEW, "name": "data"}]), {"models"}) == {}


# SSH Secrets


def test_every_multinode_tensorrt_llm_service_with_replicas_needs_a_secret_of_its_own() -> None:
    services = {
        "Decode": worker("trtllm", nodes=2),
        "prefill": worker("trtllm", nodes=2),
        "off": worker("trtllm", nodes=2, replicas=0),
        "single": worker("trtllm"),
        "other": worker("vllm", nodes=2),
    }

    assert needed_secrets(graph(services), DynamoSettings()) == {
        "Decode": "mpirun-ssh-key-g-decode",
        "prefill": "mpirun-ssh-key-g-prefill",
    }


def test_a_missing_secret_is_named_with_its_service_and_its_keys() -> None:
    services = {"decode": worker("trtllm", nodes=2), "prefill": worker("trtllm", nodes=2)}

    assert missing_secrets(graph(services), DynamoSettings(), {"mpirun-ssh-key-g-prefill"}) == {
        "decode": "Secret mpirun-ssh-key-g-decode does not exist (nor mpirun-ssh-key-g for the whole graph): "
        "TensorRT-LLM on several nodes needs it for the SSH key pair "
        "(keys private.key and private.key.pub); create it, or set dynamo.mpiRun.createSshSecret"
    }


def test_secrets_are_neither_missing_nor_left_to_people_if_the_settings_have_them_created() -> None:
    decode = graph(decode=worker("trtllm", nodes=2))

    (secret,) = created_secrets(decode, CREATING, {})

    assert missing_secrets(decode, CREATING, ()) == {}
    assert secret.id.name == "mpirun-ssh-key-g-decode"
    assert secret.body["type"] == "Opaque"
    assert secret.body["data"] == {"private.key": GENERATED, "private.key.pub": GENERATED}
    assert secret.body["metadata"]["labels"] == OWN_LABELS
    assert secret.policy.create_only
    assert [(owner.id.name, owner.controller) for owner in secret.owners] == [("g", True)]


def test_no_secret_is_created_unless_the_settings_ask_for_it() -> None:
    assert list(created_secrets(graph(decode=worker("trtllm", nodes=2)), DynamoSettings(), {})) == []


def secret_of(name: str, **labels: str) -> dict[str, Any]:
    """Live Secrets by name: one of that name with these labels."""
    return {name: live({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ai", "labels": labels}})}


def labels_of(part_of: str) -> dict[str, str]:
    """The labels of an object of a graph."""
    return {"app.kubernetes.io/managed-by": "dynamo-operator", "app.kubernetes.io/part-of": part_of}


@pytest.mark.parametrize(("labels", "kept"), [({}, 0), (labels_of("another"), 0), (labels_of("g"), 1)])
def test_a_secret_that_somebody_else_created_is_used_as_it_is(labels: dict[str, str], kept: int) -> None:
    decode = graph(decode=worker("trtllm", nodes=2))

    assert len(list(created_secrets(decode, CREATING, secret_of("mpirun-ssh-key-g-decode", **labels)))) == kept


def test_a_secret_with_one_name_for_all_is_shared_by_the_graphs_that_need_it() -> None:
    shared = DynamoSettings(create_ssh_secret=True, ssh_secret="mpi-run-ssh-secret")
    graphs = graph(a=worker("trtllm", nodes=2), b=worker("trtllm", nodes=2))

    for existing in ({}, secret_of("mpi-run-ssh-secret", **labels_of("another"))):
        (secret,) = created_secrets(graphs, shared, existing)

        assert secret.policy.shared
        assert [owner.controller for owner in secret.owners] == [False]
    assert list(created_secrets(graphs, shared, secret_of("mpi-run-ssh-secret"))) == []


# Scaling


def test_what_is_scaled_is_what_becomes_of_the_set() -> None:
    services = graph({"Frontend": frontend(replicas=1), "Decode": worker(nodes=2, replicas=1), "prefill": worker(replicas=1)})
    made = podcliqueset(services, DynamoSettings(), None)
    assert made is not None

    (plan,) = plan_all(BLUEPRINTS, propose(world.empty(), [made.body]), START, CONFIGURATION, Memo(), Limits()).plans

    assert plan.problems == ()
    created = {f"{operation.id.kind}/{operation.id.name}" for operation in plan.operations}
    assert targets(services).keys() == {"PodClique/g-0-frontend", "PodCliqueScalingGroup/g-0-decode", "PodClique/g-0-prefill"}
    assert targets(services).keys() <= created


def targets(graph: InferenceGraph) -> dict[str, int]:
    """`<kind>/<name>` -> replicas."""
    return {f"{id.kind}/{id.name}": replicas for id, replicas in scale_targets(graph)}


def test_replicas_of_services_are_those_of_the_scaling_group_or_the_clique() -> None:
    services = {"Frontend": frontend(replicas=2), "Decode": worker(nodes=2, replicas=3)}

    assert targets(graph(services)) == {"PodCliqueScalingGroup/g-0-decode": 3, "PodClique/g-0-frontend": 2}


def test_a_service_that_names_no_replicas_is_left_to_others() -> None:
    assert targets(graph(Frontend=frontend(), decode=worker(nodes=2))) == {}


def test_a_service_with_0_replicas_has_nothing_to_scale() -> None:
    assert targets(graph(Frontend=frontend(replicas=0), decode=worker(nodes=2, replicas=0))) == {}


def test_what_is_scaled_has_the_name_that_grove_derives_from_the_shortened_one() -> None:
    long = graph({"my-service": worker(nodes=2, replicas=2)}, name="my-multinode-deployment")

    assert targets(long) == {f"PodCliqueScalingGroup/{grove_target(long, long.services[0])}": 2}
    made = podcliqueset(long, DynamoSettings(), None)
    assert made is not None
    name = made.body["spec"]["template"]["podCliqueScalingGroups"][0]["name"]
    assert grove_target(long, long.services[0]) == f"my-multinode-deployment-0-{name}"
