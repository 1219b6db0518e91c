"""The recorded pods of each framework, orchestrator and role in the forms before the current one.

Those of the first form are in `tests/resources/dynamo/golden/pods/`, those of the second in `…/pods-2/` where they differ. They run in
clusters: no release may change them.

python -m tests.resources.dynamo.pods.golden_pods      records those of the first form again; review the change
"""

from itertools import product
from pathlib import Path
from typing import Final

import yaml

from resources.dynamo.model.graph import Orchestrator, Role
from tests.resources.dynamo.pods.graphs import Body, graph_of, pod, worker

FOLDER: Final = Path(__file__).parent.parent / "golden" / "pods"
COMMANDS: Final = {
    "vllm": ("python3 -m dynamo.vllm --model m --tensor-parallel-size 8",),
    "sglang": ("python3 -m dynamo.sglang --model-path m --tp-size 8",),
    "trtllm": ("python3 -m dynamo.trtllm --model-path m --tensor-parallel-size 8",),
    "none": ("python3 serve.py",),
}
CASES: Final = tuple(product(COMMANDS, Orchestrator, Role))
SETTINGS: Final = {"nats_address": "nats://nats:4222", "etcd_address": "etcd:2379"}


def recorded(framework: str, orchestrator: Orchestrator, role: Role, form: str = "") -> str:
    """The recorded pod spec, as YAML."""
    own = FOLDER.with_name(f"{FOLDER.name}-{form}") / _file(framework, orchestrator, role).name
    return (own if own.exists() else _file(framework, orchestrator, role)).read_text("utf-8")


def computed(framework: str, orchestrator: Orchestrator, role: Role, form: str = "") -> str:
    """The pod spec that the service has now, as YAML."""
    graph = graph_of(_service(framework, 1 if role is Role.MAIN else 3), graph="my-dgd", form=form)
    return yaml.safe_dump(pod(graph, role, orchestrator, **SETTINGS).spec, sort_keys=False, width=140)


def record() -> None:
    """Record all pods again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        _file(*case).write_text(computed(*case), "utf-8")


def _service(framework: str, nodes: int) -> Body:
    return worker(
        *COMMANDS[framework],
        command=None,
        nodes=nodes,
        envs=[{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}],
        envFromSecret="shared",
        volumeMounts=[{"name": "cache", "mountPoint": "/cache", "useAsCompilationCache": True}],
        pod={"tolerations": [{"key": "gpu", "operator": "Exists"}], "containers": [{"name": "log", "image": "example/log:1"}]},
    )


def _file(framework: str, orchestrator: Orchestrator, role: Role) -> Path:
    return FOLDER / f"{framework}-{orchestrator}-{role}.yaml"


if __name__ == "__main__":
    record()
