"""Newer types of pods move no hash of a template, and their fields are known."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.canonical import digest
from resources.model.template import HASH_LENGTH, hashed_content
from resources.schema.pod_spec_rules import findings
from tests.controlplane.sample_pods import SHAPES

WITH_THE_TYPES_OF_1_35 = {
    "plain": "59fef2cf3cc47cff32248c7c717bc87199071105",
    "gpu": "2c09a917a4984f9440fac6adc302684f85c4213f",
    "serving": "d709c15189c1bf6267bcaf353636a7918dc13f54",
    "volumes": "62f2ec4a0f78f2bb2985fb35cd1209d8842a0a47",
    "placed": "95376236b4a1351e6734b1d42098173e5c04042d",
    "windows": "138572d188d588841f0657b5fb661fa955f78a87",
}
"""Sample pod -> the digest of its template, computed while the types of pods were those of Kubernetes 1.35. They set nearly every field."""
SINCE_1_36: list[dict[str, Any]] = [
    {"schedulingGroup": {"podGroupName": "gang"}},
    {"evictionResponders": [{"name": "responder.example.com", "priority": 100}]},
    {"volumes": [{"name": "v", "emptyDir": {"mode": 0o770}}]},
    {"volumes": [{"name": "v", "configMap": {"name": "c", "defaultUser": 1000, "items": [{"key": "k", "path": "p", "user": 1000}]}}]},
]
"""Fields of pod specs that Kubernetes 1.35 does not have."""


def without_trust_bundles(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """A sample pod as it was when its digest was computed: without trust bundles, and with one Azure disk."""
    volumes = [
        {**volume, "projected": _plain(volume["projected"])} if "projected" in volume else volume
        for volume in spec.get("volumes", ())
        if volume["name"] != "azureblob"
    ]
    return {**spec, "volumes": volumes} if volumes else spec


def _plain(projected: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**projected, "sources": [source for source in projected["sources"] if "clusterTrustBundle" not in source]}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_hash_of_a_template_is_what_it_was(shape: str) -> None:
    content = hashed_content({"spec": {"podSpec": without_trust_bundles(SHAPES[shape])}}, "")

    assert digest(content)[:HASH_LENGTH] == WITH_THE_TYPES_OF_1_35[shape]


@pytest.mark.parametrize("fields", SINCE_1_36, ids=lambda fields: next(iter(fields)))
def test_newer_fields_are_known_and_their_mistakes_are_found(fields: dict[str, Any]) -> None:
    containers = [{"name": "c", "image": "x"}]
    misspelt = {f"{name}x": value for name, value in fields.items()}

    assert list(findings({"containers": containers, **fields})) == []
    assert [each.path for each in findings({"containers": containers, **misspelt})] == [(next(iter(misspelt)),)]
