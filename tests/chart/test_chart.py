"""The chart and `engine manifests all` install the same objects, and what is computed in the chart is up to date."""

import json
import re
import runpy
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from enginectl.wiring.configuration import configuration_of
from resources.install.operator_configuration import DEFAULTS, FILE, RESTART_SECTIONS, restart_digest
from resources.ports.configuration import GangMode
from resources.settings import Settings, valid_settings
from resources.settings_fields import NEEDS_RESTART
from tests.chart.foreign_values import FOREIGN
from tests.chart.generated import CHART, generated_files
from tests.chart.rendering import normalized, rendered, rendered_with_notes, run_helm, template
from tests.enginectl.calling import Engine


@dataclass(frozen=True)
class Case:
    """An installation: by the values of the chart, and by the options and the configuration of the command."""

    values: dict[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    namespace: str = "grove-system"

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration file: that of the values."""
        return dict(self.values.get("config", {}))


def configured(**config: Any) -> Case:
    """An installation with this configuration."""
    return Case({"config": config})


VOLCANO = [{"name": "volcano", "config": {}}]
AUTHORIZER = {"enabled": True, "exemptServiceAccountUserNames": ["system:serviceaccount:argo:o'brien"]}
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
CASES = {
    "defaults": Case(),
    "another namespace": Case({}, (), "engine"),
    "images of a mirror": Case(
        {
            "image": {"repository": "mirror:5000/grove-engine", "tag": "v9"},
            "initImage": {"repository": "mirror:5000/grove-initc", "tag": "v9"},
            "imagePullSecrets": [{"name": "mirror"}],
        },
        ("--image", "mirror:5000/grove-engine", "--init-image", "mirror:5000/grove-initc", "--tag", "v9", "--image-pull-secret", "mirror"),
    ),
    "images by digest": Case(
        {"image": {"repository": f"mirror:5000/engine@{DIGEST}"}, "initImage": {"repository": "mirror/initc", "tag": DIGEST}},
        ("--image", f"mirror:5000/engine@{DIGEST}", "--init-image", f"mirror/initc@{DIGEST}"),
    ),
    "one replica and a page": Case({"replicaCount": 1, "ui": True}, ("--replicas", "1", "--ui")),
    "shards": Case({"replicaCount": 3, "shards": 3}, ("--replicas", "3", "--shards", "3")),
    "without graphs": Case({"graphs": False}, ("--no-graphs",)),
    "graphs off in the configuration": configured(dynamo={"enabled": False, "natsAddress": "nats://nats:4222"}),
    "no gangs of kube-scheduler": configured(scheduler={"profiles": [{"name": "default-scheduler", "config": {"gangScheduling": False}}]}),
    "no gangs of kube-scheduler, and no profiles": configured(scheduler={"profiles": [], "gangScheduling": "Off"}),
    "some namespaces": Case(
        {"namespaces": ["team-a", "team-b"], "config": {"authorizer": AUTHORIZER, "namespaces": ["replaced"]}},
        ("--workload-namespace", "team-a", "--workload-namespace", "team-b"),
    ),
    "some namespaces, among them its own": Case(
        {"graphs": False, "config": {"namespaces": ["engine", "default"], "leaderElection": {"resourceNamespace": "default"}}},
        ("--no-graphs",),
        "engine",
    ),
    "some namespaces for a cron job": Case(
        {"mode": "cronjob", "mutatingPolicies": True, "config": {"namespaces": ["team-a"], "network": {"autoMNNVLEnabled": True}}},
        ("--mode", "cronjob", "--mutating"),
    ),
    "a cron job": Case(
        {"mode": "cronjob", "cronJob": {"schedule": "*/2 * * * *", "timeout": "90s"}},
        ("--mode", "cronjob", "--schedule", "*/2 * * * *", "--timeout", "90s"),
    ),
    "a cron job that judges nothing": Case({"mode": "cronjob", "admission": "none"}, ("--mode", "cronjob", "--admission", "none")),
    "policies": Case({"admission": "policies"}, ("--admission", "policies")),
    "policies for everything": Case(
        {
            "admission": "policies",
            "mutatingPolicies": True,
            "config": {
                "authorizer": AUTHORIZER,
                "network": {"autoMNNVLEnabled": True},
                "topologyAwareScheduling": {"enabled": True},
                "scheduler": {"profiles": [{"name": "kai-scheduler"}, *VOLCANO], "defaultProfileName": "volcano"},
            },
        },
        ("--admission", "policies", "--mutating"),
    ),
    "policies with topology": Case(
        {"admission": "policies", "config": {"topologyAwareScheduling": {"enabled": True}}}, ("--admission", "policies")
    ),
    "policies with automatic domains": Case(
        {"admission": "policies", "config": {"network": {"autoMNNVLEnabled": True}}}, ("--admission", "policies")
    ),
    "no admission": Case({"admission": "none"}, ("--admission", "none")),
    "protection": configured(authorizer=AUTHORIZER),
    "automatic domains": configured(network={"autoMNNVLEnabled": True}),
    "no other scheduler": configured(scheduler={"profiles": []}),
    "volcano and topology": configured(scheduler={"profiles": VOLCANO}, topologyAwareScheduling={"enabled": True}),
    "a given certificate": configured(
        server={"webhooks": {"certProvisionMode": "manual", "secretName": "given", "serverCertDir": "/given"}}
    ),
    "other ports": configured(server={"webhooks": {"port": 443}, "healthProbes": {"port": 0}, "metrics": {"port": 0}}),
    "a lease elsewhere": configured(leaderElection={"resourceName": "lock", "resourceNamespace": "locks", "leaseDuration": "1m"}),
    "no leader election": Case({"replicaCount": 1, "config": {"leaderElection": {"enabled": False}}}, ("--replicas", "1")),
    "an init image in the configuration": configured(initContainer={"image": "mirror/<grove>&initc:v1"}),
    "addresses with credentials": configured(dynamo={"natsAddress": "nats://user:secret@nats:4222", "etcdAddress": "http://etcd:2379"}),
    "a scheduler with options": configured(
        scheduler={"profiles": [{"name": "kai-scheduler", "config": {"queue": "x"}}, {"name": "default-scheduler"}]}
    ),
    "a null": configured(authorizer={"exemptServiceAccountUserNames": None}),
    "a service monitor": Case({"metrics": {"serviceMonitor": {"enabled": True}}}, ("--service-monitor",)),
    "a service monitor, and no metrics": Case(
        {"metrics": {"serviceMonitor": {"enabled": True}}, "config": {"server": {"metrics": {"port": 0}}}}, ("--service-monitor",)
    ),
    "closed network": Case({"networkPolicy": {"enabled": True}}, ("--network-policy",)),
}


@pytest.mark.e2e
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_chart_and_the_command_install_the_same(case: Case, engine: Engine, tmp_path: Path) -> None:
    from_chart = rendered(case.values, tmp_path, case.namespace)

    assert printed(engine, case, tmp_path) == from_chart


@pytest.mark.e2e
@pytest.mark.parametrize("mode", ["Off", "Require"])
def test_whether_gangs_are_scheduled_is_a_value_that_the_configuration_may_say_itself(mode: str, tmp_path: Path) -> None:
    def profiles(config: dict[str, Any]) -> dict[str, Any]:
        return {"scheduler": {"profiles": [{"name": "default-scheduler", **config}, {"name": "kai-scheduler"}]}}

    def read(objects: dict[Any, Any]) -> tuple[set[GangMode], bool]:
        """What the configurations in it say of gangs, and whether there are rights on the kinds for them."""
        return {each.scheduler.gang_mode for each in configurations(objects)}, "scheduling.k8s.io" in str(objects)

    by_value = rendered({"scheduler": {"gangs": mode}, "config": profiles({})}, tmp_path, "grove-system")
    own = profiles({"config": {"gangScheduling": mode}})
    for values in ({"config": own}, {"scheduler": {"gangs": "Auto"}, "config": own}):
        assert read(rendered(values, tmp_path, "grove-system")) == read(by_value) == ({GangMode(mode)}, mode == "Require")


@pytest.mark.e2e
@pytest.mark.parametrize("mode", [str(mode) for mode in GangMode])
def test_a_value_for_gangs_lists_no_profiles_so_that_new_graphs_have_kai(mode: str, tmp_path: Path) -> None:
    values = {"scheduler": {"gangs": mode}, "config": {"scheduler": {"profiles": []}}}
    objects = rendered(values, tmp_path, "grove-system")

    read = configurations(objects)
    assert [(each.scheduler.profiles, each.scheduler.gang_mode) for each in read] == [((), GangMode(mode))] * 2
    assert {configuration_of(each).graph_scheduler_where_served for each in read} == {"kai-scheduler"}


@pytest.mark.e2e
@pytest.mark.parametrize("value", [False, "Off"])
def test_an_unquoted_off_is_off(value: bool | str, tmp_path: Path) -> None:
    objects = rendered({"scheduler": {"gangs": value}}, tmp_path, "grove-system")

    assert {each.scheduler.gang_mode for each in configurations(objects)} == {GangMode.OFF}
    assert "scheduling.k8s.io" not in str(objects)


def configurations(objects: dict[Any, Any]) -> list[Settings]:
    """What is installed and what is published of the configuration."""
    found = [body["data"].get(FILE) for body in objects.values() if body["kind"] == "ConfigMap"]
    return [valid_settings(each) for each in found if each]


def printed(engine: Engine, case: Case, folder: Path) -> dict[Any, Any]:
    """The objects of `engine manifests all`, without the namespace and the definitions, which Helm installs itself."""
    file = folder / "operator.json"
    file.write_text(json.dumps(case.configuration))
    result = engine("manifests", "all", "--no-crds", "--config", file, "-n", case.namespace, *case.options)
    assert result.code == Exit.DONE, result.err
    objects = normalized(yaml.load_all(result.out, yaml.CSafeLoader))
    del objects["Namespace", "", case.namespace]
    return objects


@pytest.mark.e2e
def test_the_chart_has_no_faults(tmp_path: Path) -> None:
    result = run_helm("lint", "--strict", CHART, folder=tmp_path)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"replicas": 3}, "additional properties 'replicas' not allowed"),
        ({"replicaCount": "3"}, "at '/replicaCount': got string, want integer"),
        ({"mode": "statefulset"}, "at '/mode': value must be one of 'deployment', 'cronjob'"),
        ({"config": {"network": {"autoMnnvlEnabled": True}}}, "at '/config/network': additional properties 'autoMnnvlEnabled' not allowed"),
        ({"config": {"network": {"autoMNNVLEnabled": "yes"}}}, "at '/config/network/autoMNNVLEnabled': got string, want boolean"),
        ({"config": {"scheduler": {"profiles": [{"name": "slurm"}]}}}, "at '/config/scheduler/profiles/0/name': value must be one of"),
        ({"mode": "cronjob", "admission": "webhooks"}, "exclude each other"),
        ({"shards": 101}, "at '/shards': maximum: got 101, want 100"),
        ({"image": {"repository": ""}}, "at '/image/repository'"),
        ({"config": {"leaderElection": {"enabled": False}}}, "several replicas or shards need leader election"),
    ],
)
def test_wrong_values_are_refused_with_their_path(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    result = template(values, tmp_path)

    assert (result.returncode, message in result.stderr) == (1, True), result.stderr


@pytest.mark.e2e
def test_values_of_groves_chart_are_understood(tmp_path: Path) -> None:
    values = {
        "deployment": {"env": [{"name": "GROVE_INIT_CONTAINER_IMAGE", "value": "registry/grove-initc"}]},
        "config": {
            "runtimeClientConnection": {"qps": 100, "burst": 150},
            "server": {"healthProbes": {"enable": False, "port": 9444}},
            "debugging": {"enableProfiling": False, "pprofBindHost": "127.0.0.1", "pprofBindPort": 2753},
            "controllers": {"podCliqueSet": {"concurrentSyncs": 3}},
        },
        "priorityClass": {"enabled": True, "name": "critical", "value": 999999550},
    }

    objects = rendered(values, tmp_path)

    pod = objects["Deployment", "grove-system", "grove-engine"]["spec"]["template"]["spec"]
    variables = [(variable["name"], variable["value"]) for variable in pod["containers"][0]["env"]]
    assert variables == [
        ("GROVE_INIT_CONTAINER_IMAGE", "registry/grove-initc"),
        ("GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", "grove-engine"),
    ]
    assert pod["priorityClassName"] == "critical"
    assert "livenessProbe" not in pod["containers"][0]
    assert objects["PriorityClass", "", "critical"]["value"] == 999999550


GROVES_FILE: dict[str, Any] = {
    "replicaCount": 1,
    "image": {"repository": "ghcr.io/ai-dynamo/grove-operator", "tag": "v0.1.0-dev"},
    "serviceAccount": {"automount": False, "name": "grove-operator", "labels": {"app.kubernetes.io/name": "grove-operator"}},
    "service": {
        "name": "grove-operator",
        "type": "ClusterIP",
        "port": 80,
        "labels": {"app.kubernetes.io/name": "grove-operator", "own": "1"},
    },
    "clusterRole": {"name": "grove:system:grove-operator"},
    "clusterRoleBinding": {"name": "grove:system:grove-operator"},
    "leaseRole": {"name": "grove:system:grove-operator-lease"},
    "leaseRoleBinding": {"name": "grove:system:grove-operator-lease"},
    "metrics": {"serviceMonitor": {"name": "grove-operator-monitor"}},
    "serviceMonitor": {"enable": True, "name": "grove-operator-monitor", "labels": {"release": "prometheus"}},
    "crdInstaller": {"enabled": False, "image": {"repository": "grove-install-crds", "tag": "v0.1.0-dev"}},
    "deployment": {"env": [{"name": "GROVE_INIT_CONTAINER_IMAGE", "value": "grove-initc"}, {"name": "HTTPS_PROXY", "value": "proxy"}]},
}
"""The values of Grove's chart that this one has not, or has with another meaning, from releases with either place of the ServiceMonitor."""


@pytest.mark.e2e
def test_a_values_file_of_groves_chart_is_accepted_and_its_image_is_not_run(tmp_path: Path) -> None:
    objects = rendered(GROVES_FILE, tmp_path)

    deployment = objects["Deployment", "grove-system", "grove-engine"]["spec"]
    version = yaml.load((CHART / "Chart.yaml").read_text(), yaml.CSafeLoader)["appVersion"]
    assert deployment["replicas"] == 1
    assert deployment["template"]["spec"]["containers"][0]["image"] == f"grove-engine:{version}"
    service = objects["Service", "grove-system", "grove-engine"]["metadata"]["labels"]
    monitor = objects["ServiceMonitor", "grove-system", "grove-engine"]
    assert service.items() >= monitor["spec"]["selector"]["matchLabels"].items()
    assert service["own"] == "1"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.e2e
@pytest.mark.parametrize("of_grove", [True, False])
def test_the_chart_of_a_release_installs_the_images_that_it_pushed_with_groves_values_too(of_grove: bool, tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    completed_chart(chart, "https://host/owner/name", "ghcr.io/owner")

    objects = rendered(GROVES_FILE if of_grove else {}, tmp_path, chart=chart)

    text = json.dumps([body for key, body in objects.items() if key[0] in ("Deployment", "ConfigMap")])
    version = yaml.load((CHART / "Chart.yaml").read_text(), yaml.CSafeLoader)["version"]
    images = set(re.findall(r"[\w./-]*grove-(?:engine|initc|operator):[\w.-]+", text))
    assert images == {f"ghcr.io/owner/grove-engine:{version}", f"ghcr.io/owner/grove-initc:{version}"}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("repository", "image", "is_groves"),
    [
        ("grove-operator", "registry:5001/grove-initc", True),
        ("registry/grove-engine", "ghcr.io/ai-dynamo/grove/grove-initc", True),
        ("registry/grove-engine", "mirror/nvidia/grove-initc:v0.1.0-alpha.9", True),
        ("registry/grove-engine", "grove-initc", True),
        ("registry/grove-engine", "grove-initc:dev", False),
        ("registry/grove-engine", "registry/grove-initc", False),
        ("grove-operator", "registry/our-waiter:7", False),
        ("registry/grove-engine", "ai-dynamo/our-waiter", False),
    ],
)
def test_pods_never_start_with_groves_init_container(repository: str, image: str, is_groves: bool, tmp_path: Path) -> None:
    env = [{"name": "OTHER", "value": "1"}, {"name": "GROVE_INIT_CONTAINER_IMAGE", "value": image}]
    objects = rendered({"image": {"repository": repository}, "deployment": {"env": env}}, tmp_path)

    version = yaml.load((CHART / "Chart.yaml").read_text(), yaml.CSafeLoader)["appVersion"]
    used = f"grove-initc:{version}" if is_groves else image
    variables = objects["Deployment", "grove-system", "grove-engine"]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert [each["value"] for each in variables if each["name"] == "GROVE_INIT_CONTAINER_IMAGE"] == [used]
    assert {"name": "OTHER", "value": "1"} in variables
    assert any(used in str(body) for key, body in objects.items() if key[0] == "ConfigMap")


@pytest.mark.e2e
def test_notes_have_a_line_for_each_value_without_effect(tmp_path: Path) -> None:
    shown = notes(GROVES_FILE, tmp_path)

    said = shown.partition("no effect here:\n")[2].partition("\n\nHelm does not")[0].splitlines()
    assert [line.strip().partition(":")[0] for line in said if line.strip()] == [
        "image.repository, image.tag",
        "deployment.env",
        *FOREIGN,
    ]
    assert "no effect" not in notes({"image": {"repository": "mirror/not-grove-operator"}, "service": {"labels": {"own": "1"}}}, tmp_path)


@pytest.mark.e2e
def test_values_that_only_groves_chart_has_are_checked_too(tmp_path: Path) -> None:
    result = template({"serviceMonitor": {"enabled": True}}, tmp_path)

    assert (result.returncode, "at '/serviceMonitor': additional properties 'enabled' not allowed" in result.stderr) == (1, True)


def completed_chart(folder: Path, repository: str, registry: str) -> None:
    """Makes a copy of the chart that of a release, as the release does."""
    script = runpy.run_path(str(CHART.parent / "release" / "chart.py"))
    assert script["main"](folder, repository, registry) == 0


def notes(values: dict[str, Any], folder: Path) -> str:
    """What NOTES.txt says."""
    return rendered_with_notes(values, folder)[1]


@pytest.mark.e2e
def test_the_command_of_the_first_page_takes_both_images_from_the_registry(tmp_path: Path) -> None:
    page = (CHART.parents[1] / "README.md").read_text()
    words = shlex.split(page.partition("\nhelm install ")[2].partition("\n#")[0])

    shown = run_helm("template", "grove-engine", CHART, *words[words.index("--set") :], folder=tmp_path).stdout

    assert "REGISTRY/grove-engine:" in shown and "REGISTRY/grove-initc:" in shown


@pytest.mark.e2e
def test_alerts_and_the_dashboard_are_those_of_the_project(tmp_path: Path) -> None:
    objects = rendered({"metrics": {"prometheusRule": {"enabled": True}}, "dashboards": {"enabled": True}}, tmp_path)

    rules = yaml.load((CHART.parent / "prometheus" / "rules.yaml").read_text(), yaml.CSafeLoader)
    assert objects["PrometheusRule", "grove-system", "grove-engine"]["spec"] == rules["spec"]
    dashboard = objects["ConfigMap", "grove-system", "grove-engine-dashboard"]["data"]["grove-engine.json"]
    assert json.loads(dashboard) == json.loads((CHART.parent / "grafana" / "engine.json").read_text())


def test_the_computed_parts_of_the_chart_are_up_to_date() -> None:
    files = dict(generated_files())

    assert [path for path, text in files.items() if (CHART / path).read_text() != text] == [], "run `make chart`"
    assert {path.name for path in (CHART / "crds").iterdir()} == {Path(path).name for path in files if path.startswith("crds/")}


def test_the_values_of_the_configuration_are_the_defaults_of_an_installation() -> None:
    config = yaml.load((CHART / "values.yaml").read_text(), yaml.CSafeLoader)["config"]

    # The namespace of the release stands in for the empty value.
    assert config["leaderElection"].pop("resourceNamespace") == ""
    assert config == DEFAULTS


def test_what_needs_a_restart_replaces_the_pods_and_nothing_else_does() -> None:
    assert set(NEEDS_RESTART) == {*RESTART_SECTIONS, "namespaces", "dynamo.enabled"}
    assert restart_digest({"namespaces": [], "dynamo": {"enabled": True, "natsAddress": "nats://nats"}}) == restart_digest({})
    assert restart_digest({"namespaces": ["a"]}) != restart_digest({"namespaces": ["b"]}) != restart_digest({})
    assert restart_digest({"dynamo": {"enabled": False}}) != restart_digest({})
    assert restart_digest({"network": {"autoMNNVLEnabled": True}}) == restart_digest({})
    assert restart_digest({"leaderElection": {"enabled": False}}) != restart_digest({})
