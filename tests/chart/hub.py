"""What Artifact Hub shows of the chart, as far as it is computed: the definitions, the images, and what is new in the release."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from resources.schema.crds import crds

BEGIN: Final = "  # The annotations below are computed by `make chart`.\n"
"""The line of Chart.yaml above what is computed."""
IMAGES: Final = {"grove-engine": "image", "grove-initc": "initImage"}
"""Image -> the value of the chart that has its repository."""
NEWEST: Final = 8
"""How many changes of each kind are listed."""
LONGEST: Final = 250
"""The most characters of a change."""


def with_annotations(chart: str, values: Mapping[str, Any], changelog: str) -> str:
    """The text of Chart.yaml with its computed annotations. `chart` is the present text, `changelog` that of CHANGELOG.md."""
    before, _, _ = chart.partition(BEGIN)
    version = yaml.load(chart, yaml.CSafeLoader)["version"]
    images = [{"name": name, "image": f"{values[key]['repository']}:{version}"} for name, key in IMAGES.items()]
    computed = {"images": images, "crds": [*definitions()], "changes": [*changes(changelog, version)]}
    return before + BEGIN + "".join(annotation(name, rows) for name, rows in computed.items())


def annotation(name: str, rows: list[dict[str, str]]) -> str:
    """An annotation whose text is a list in YAML, with a line for each entry."""
    lines = (yaml.dump(row, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True).strip() for row in rows)
    return f"  artifacthub.io/{name}: |\n" + "".join(f"    - {line}\n" for line in lines)


def definitions() -> Iterator[dict[str, str]]:
    """Each definition, and what Artifact Hub says of it."""
    for body in crds():
        spec = body["spec"]
        kind = spec["names"]["kind"]
        yield {
            "kind": kind,
            "version": spec["versions"][0]["name"],
            "name": body["metadata"]["name"],
            "displayName": kind,
            "description": DESCRIPTIONS[kind],
        }


def changes(changelog: str, version: str) -> Iterator[dict[str, str]]:
    """The newest changes of each kind of a release: the first sentence of each, without links. None if it has no section."""
    section = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    for heading, text in re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", section[1] if section else "", re.MULTILINE | re.DOTALL):
        entries = re.findall(r"^- (.*?)(?=^- |\Z)", text, re.MULTILINE | re.DOTALL)
        for sentence in [short for each in entries if (short := first_sentence(each))][:NEWEST]:
            yield {"kind": heading.lower(), "description": sentence}


def first_sentence(entry: str) -> str:
    """The first sentence of an entry as plain text; empty if it is too long."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(entry.split()))
    sentence = re.split(r"(?<=[^.]\.) (?=[A-Z`])", plain)[0].replace("`", "")
    return sentence if len(sentence) <= LONGEST else ""


DESCRIPTIONS: Final = {
    "PodCliqueSet": "Identical replicas of cliques and scaling groups",
    "PodClique": "Pods of one role",
    "PodCliqueScalingGroup": "Cliques that scale together",
    "ClusterTopologyBinding": "Levels of the topology of a cluster",
    "PodGang": "Pods that are scheduled together or not at all",
    "DynamoGraphDeployment": "Inference services of a model",
    "DynamoGraphDeploymentScalingAdapter": "The number of replicas of one service",
}
"""Kind -> what Artifact Hub says of it."""
