"""What pods refer to and only a cluster could show is unknown offline: nothing waits for it, and the forecast says that it is assumed."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.forecast.cluster_model import Assumption
from enginectl.base.exit_codes import Exit
from tests.builders import clique, podcliqueset
from tests.enginectl.calling import Engine

Body = dict[str, Any]
MAIN: Body = {"name": "main", "image": "example/worker:1"}
REFERENCES: dict[str, tuple[Body, Body]] = {
    "ResourceClaimTemplate": ({"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "none"}]}, {}),
    "ResourceClaim": ({"resourceClaims": [{"name": "d", "resourceClaimName": "none"}]}, {}),
    "PersistentVolumeClaim": ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}, {}),
    "Secret, as a volume": ({"volumes": [{"name": "v", "secret": {"secretName": "none"}}]}, {}),
    "ConfigMap, as a volume": ({"volumes": [{"name": "v", "configMap": {"name": "none"}}]}, {}),
    "Secret, in a projected volume": ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "none"}}]}}]}, {}),
    "Secret, for images": ({"imagePullSecrets": [{"name": "none"}]}, {}),
    "Secret, as an environment": ({}, {"envFrom": [{"secretRef": {"name": "none"}}]}),
    "ConfigMap, as an environment": ({}, {"envFrom": [{"configMapRef": {"name": "none"}}]}),
    "Secret, as a variable": ({}, {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "none", "key": "k"}}}]}),
    "ConfigMap, as a variable": ({}, {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k"}}}]}),
    "ServiceAccount": ({"serviceAccountName": "none"}, {}),
    "PriorityClass": ({"priorityClassName": "none"}, {}),
    "RuntimeClass": ({"runtimeClassName": "none"}, {}),
}


def written(folder: Path, name: str, pod: Body, container: Body, image: str = "example/worker:1") -> Path:
    """A file with a set whose pods have these fields."""
    spec = {"containers": [{**MAIN, "image": image, **container}], **pod}
    file = folder / name
    file.write_text(json.dumps(podcliqueset("demo", clique("a", 2, pod_spec=spec))))
    return file


@pytest.mark.parametrize("what", REFERENCES)
def test_offline_nothing_waits_for_it_and_the_forecast_says_what_it_assumes(engine: Engine, tmp_path: Path, what: str) -> None:
    old, new = (written(tmp_path, f"{image}.json", *REFERENCES[what], image=image) for image in ("one", "two"))
    for options in (("--against", "empty"), ("--base", old)):
        answer = engine("diff", "-f", new, *options)

        assert answer.code == Exit.DONE, answer.out
        assert "; settled," in answer.out and Assumption.REFERENCES in answer.out, answer.out
        assert "not settled" not in answer.out, answer.out


def test_optional_objects_and_those_of_kubernetes_are_not_assumed(engine: Engine, tmp_path: Path) -> None:
    optional = {"envFrom": [{"secretRef": {"name": "none", "optional": True}}]}
    always = {"serviceAccountName": "default", "priorityClassName": "system-node-critical"}
    answer = engine("diff", "-f", written(tmp_path, "x.json", always, optional), "--against", "empty")

    assert answer.code == Exit.DONE and Assumption.REFERENCES not in answer.out
