"""Rendering: the objects of an installation by Helm and by `engine manifests`, in a form in which both can be compared."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.install.operator_configuration import FILE
from tests.chart.generated import CHART
from tests.waiting import PATIENCE

Key = tuple[str, str, str]
"""Kind, namespace, name."""
HELM_LABELS = ("app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart")
LISTED_BY_NAME = frozenset({"env", "ports", "volumes", "volumeMounts"})
"""Lists of pods in which the order of differently named entries does not matter."""


def helm() -> str:
    """The path of helm. Skips the test if HELM_ASSETS does not name its folder."""
    found = shutil.which("helm", path=os.environ.get("HELM_ASSETS", "/nonexistent"))
    if not found:
        pytest.skip("HELM_ASSETS names no folder with helm; tests/controlplane/helm/build prints what it should be")
    return found


def run_helm(*words: str | Path, folder: Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm with everything that it keeps in `folder`."""
    own = {"HOME": str(folder), "PATH": "/usr/bin:/bin", **(environment or {})}
    return subprocess.run([helm(), *map(str, words)], capture_output=True, text=True, env=own, timeout=PATIENCE + 60, check=False)


def rendered(values: Mapping[str, Any], folder: Path, namespace: str = "grove-system", chart: Path = CHART) -> dict[Key, Any]:
    """The objects of the chart with these values."""
    result = template(values, folder, namespace, chart)
    assert result.returncode == 0, result.stderr
    return normalized(yaml.load_all(result.stdout, yaml.CSafeLoader))


def rendered_with_notes(values: Mapping[str, Any], folder: Path) -> tuple[dict[Key, Any], str]:
    """The objects, and what NOTES.txt says. Helm shows it only with a cluster, so a copy of the chart renders it into a ConfigMap."""
    chart = folder / "chart"
    shutil.copytree(CHART, chart, dirs_exist_ok=True)
    text = (CHART / "templates" / "NOTES.txt").read_text()
    probe = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, labels: {}}\ndata:\n  text: {{ include "notes" . | toJson }}\n'
    (chart / "templates" / "notes.yaml").write_text(f'{{{{- define "notes" }}}}{text}{{{{ end -}}}}\n{probe}')
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    result = run_helm("template", "grove-engine", chart, "--namespace", "grove-system", "--values", file, folder=folder)
    assert result.returncode == 0, result.stderr
    objects = normalized(yaml.load_all(result.stdout, yaml.CSafeLoader))
    return objects, str(objects.pop(("ConfigMap", "", "notes"))["data"]["text"])


def template(
    values: Mapping[str, Any], folder: Path, namespace: str = "grove-system", chart: Path = CHART
) -> subprocess.CompletedProcess[str]:
    """`helm template` with these values."""
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    return run_helm("template", "grove-engine", chart, "--namespace", namespace, "--values", file, folder=folder)


def normalized(bodies: Any) -> dict[Key, Any]:
    """The objects by kind, namespace and name, without what only says who has rendered them."""
    result: dict[Key, Any] = {}
    for body in filter(None, bodies):
        metadata = body["metadata"]
        key = (body["kind"], metadata.get("namespace", ""), metadata["name"])
        assert key not in result, key
        metadata["labels"] = {name: value for name, value in metadata["labels"].items() if name not in HELM_LABELS}
        if "rules" in body:
            body["rules"] = sorted(single_rules(body["rules"]))
        if body["kind"] == "ConfigMap" and FILE in body["data"]:
            body["data"] = {**body["data"], FILE: yaml.load(body["data"][FILE], yaml.CSafeLoader)}
        result[key] = in_order(body)
    return result


def single_rules(rules: list[Mapping[str, Any]]) -> set[tuple[str, str, str, str]]:
    """Group, resource, name and verb of everything that rules of a role allow. A URL is in the place of the name."""
    on_objects = {
        (group, resource, name, verb)
        for rule in rules
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }
    return on_objects | {("", "", url, verb) for rule in rules for url in rule.get("nonResourceURLs", ()) for verb in rule["verbs"]}


def in_order(value: Any) -> Any:
    """The value with its lists of named entries sorted."""
    if isinstance(value, dict):
        return {key: by_name(in_order(inner)) if key in LISTED_BY_NAME else in_order(inner) for key, inner in value.items()}
    return [in_order(entry) for entry in value] if isinstance(value, list) else value


def by_name(entries: Any) -> Any:
    """The entries sorted by name, if they have names."""
    return sorted(entries, key=lambda entry: str(entry.get("name", "")))
