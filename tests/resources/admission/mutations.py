"""Mutations: manifests in which arbitrary values have been replaced, removed or duplicated."""

import copy
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from providers.fabrics.nvidia.fabric import Nvidia
from providers.registry import SCHEDULERS as BACK_ENDS
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from tests.resources.admission.requests import SCHEDULERS, clique, small, whole
from tests.resources.manifests import paths
from tests.resources.manifests import put as placed

BLUEPRINT = next(blueprint for blueprint in BLUEPRINTS if blueprint.kind.name == "PodCliqueSet")


def nested(levels: int) -> Any:
    """A value nested in this number of lists."""
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


EXAMPLES = [
    body
    for file in sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))
    for body in yaml.load_all(file.read_text("utf-8"), yaml.CSafeLoader)
    if isinstance(body, dict) and body.get("kind") == "PodCliqueSet"
]
SEEDS = [*EXAMPLES, whole(), small(cliques=[clique("a"), clique("b")])]
SETUPS = [
    Configuration(SCHEDULERS, "default-scheduler", topology=topology, fabrics=(Nvidia(auto=auto),))
    for topology in (False, True)
    for auto in (False, True)
]
SETUPS.append(Configuration(dict(BACK_ENDS), "default-scheduler", topology=True))
BINDINGS = [
    body
    for file in sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))
    for body in yaml.load_all(file.read_text("utf-8"), yaml.CSafeLoader)
    if isinstance(body, dict) and body.get("kind") == "ClusterTopologyBinding"
]
ODD = st.sampled_from(
    [None, True, False, 0, 1, -1, 2**31 - 1, 2**31, 2**63, 10**400, 1.5, float("nan"), "", "a", "NaN", "1e999", "\x00", "\ud800"]
    + [nested(200), [], {}, [None], [[]], {"a": None}, {"": {}}, ["a"], [{"name": "a"}] * 2, "4h", "x" * 300]
)
JUNK = ODD | st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=6
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A manifest in which one or two values have been replaced, removed or duplicated."""
    body: Any = copy.deepcopy(draw(st.sampled_from(SEEDS)))
    targets = draw(st.lists(st.sampled_from(paths(body)), min_size=1, max_size=2))
    for target in targets:
        try:
            holder = body
            for key in target[:-1]:
                holder = holder[key]
            change = draw(st.sampled_from(("replace", "remove", "duplicate"))) if target else "replace"
            if change == "replace":
                body = placed(body, target, draw(JUNK))
            elif change == "remove":
                del holder[target[-1]]
            elif isinstance(holder, list):
                holder.insert(target[-1], copy.deepcopy(holder[target[-1]]))
            else:
                key = draw(st.sampled_from(("name", "spec", "env", "labels", "replicas", "cliqueNames")))
                holder[key] = copy.deepcopy(holder[target[-1]])
        except (KeyError, IndexError, TypeError):
            continue  # The first change has removed the target of the second.
    return body
