"""Parallel sizes are those of the command that starts the framework, as a shell reads it, and a service on several nodes names one."""

from typing import Any

import pytest

from resources.dynamo.backends.parallelism import mismatch
from tests.resources.dynamo.pods.graphs import current, worker

VLLM = "python3 -m dynamo.vllm"
NONE = "its command names no parallel size, but 2 nodes × 4 GPUs = 8: add --tensor-parallel-size 8"
HALF = "tensor parallel size 4, but 2 nodes × 4 GPUs = 8: they must be equal"


def difference(*args: str, **fields: Any) -> str:
    """What is said of the sizes of a service on two nodes with four GPUs each; empty if nothing is."""
    (service,) = current(worker(*args, **fields)).services
    return str(mismatch(service) or "")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (f"{VLLM} --tensor-parallel-size 8", ""),
        (f"{VLLM} --tensor-parallel-size '8' # --tensor-parallel-size 4", ""),
        (f"# --tp 4\n{VLLM} --tp 8", ""),
        (f"echo --tensor-parallel-size 4; {VLLM} --tensor-parallel-size=8", ""),
        (f"echo {VLLM} --tp 4 && {VLLM} --tp 8", ""),
        (f"python3 prepare.py --tp 2 && exec {VLLM} -tp 8", ""),
        (f"{VLLM} --tp 8 > --tp", ""),
        (f"{VLLM} --note '--tp 4' --tp 8", ""),
        (f"cat <<END\n{VLLM} --tp 2\nEND\n{VLLM} --tp 4", HALF),
        (f"{VLLM} --tp 8 --tp 4", HALF),
        (f"numactl -N 0 {VLLM} --tensor_parallel_size 4", HALF),
        (f"{VLLM} --pp 2 --tp=4", ""),
        (f"{VLLM} --model m", NONE),
        (f"{VLLM} --model m # --tensor-parallel-size 8", NONE),
        (f"echo --tp 8; {VLLM}", NONE),
        (f"{VLLM} --enable-expert-parallel --expert-parallel-size 8", NONE),
        (f'{VLLM} --tensor-parallel-size "$SIZE"', ""),
        (f"{VLLM} --tensor-parallel-size $((2 * 4)) --pp 2", ""),
        (f"{VLLM} --config /models/config.yaml", ""),
        ("./start.sh", ""),
        (f"{VLLM} --tp 'unclosed", ""),
    ],
)
def test_sizes_are_read_where_the_framework_is_started(script: str, expected: str) -> None:
    assert difference(script) == expected


def test_words_of_a_command_count_as_well() -> None:
    assert difference("-m", "dynamo.vllm", "--tp", "4", command=("python3",)) == HALF
    assert difference("-m", "dynamo.vllm", command=("python3",)) == NONE


def test_a_service_on_one_node_needs_no_size() -> None:
    assert difference(VLLM, nodes=1) == ""


def test_data_parallelism_counts_where_it_multiplies_gpus() -> None:
    sglang = "python3 -m dynamo.sglang --tp 8 --dp 8"
    assert difference(f"{sglang} --enable-dp-attention") == ""
    assert difference(sglang).startswith("tensor parallel size 8 × data parallel size 8 = 64")
    assert difference("python3 -m dynamo.trtllm --data-parallel-size 8") == NONE
    assert difference(f"{VLLM} --tp 4 --data-parallel-size 2") == ""
