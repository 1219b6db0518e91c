"""The framework of a service, detected from its command."""

import pytest

from resources.dynamo.model.framework import Framework, FrameworkError, framework_of

LONG = 100_000
"""How often a word is repeated. A search whose time grows faster than the text would not end."""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["python3 -m dynamo.vllm --model m"], Framework.VLLM),
        (["python3", "-m", "dynamo.sglang"], Framework.SGLANG),
        (["cd /x && exec /usr/bin/python3.11 -u -m dynamo.trtllm | tee log"], Framework.TRTLLM),
        (["python3 \\\n  -m dynamo.vllm"], Framework.VLLM),
        (["python3 -m dynamo.vllm.worker"], Framework.VLLM),
        (["python3 -m dynamo.frontend & python3 -m dynamo.vllm"], Framework.VLLM),
        (["python3 -m dynamo.frontend & dynamo.vllm"], Framework.NONE),
        (["python3 x.py; run -m dynamo.vllm"], Framework.NONE),
        (["python3 dynamo.vllm -m other"], Framework.NONE),
        (["-m dynamo.vllm"], Framework.NONE),
        (["python3-m dynamo.vllm"], Framework.NONE),
        ([], Framework.NONE),
    ],
)
def test_the_framework_is_the_module_that_a_python_interpreter_starts(words: list[str], expected: Framework) -> None:
    assert framework_of("worker", words[:1], words[1:], "") is expected


@pytest.mark.parametrize("kind", ["worker", "Worker", "prefill", "Decode"])
def test_component_types_are_compared_without_case(kind: str) -> None:
    assert framework_of(kind, ["python3 -m dynamo.vllm"], [], "") is Framework.VLLM


def test_a_service_that_is_no_worker_has_no_framework() -> None:
    assert framework_of("frontend", ["python3 -m dynamo.vllm"], [], "vllm") is Framework.NONE


def test_the_name_in_the_graph_counts_where_the_command_shows_none_or_several() -> None:
    several = ["python3 -m dynamo.vllm & python3 -m dynamo.sglang"]

    assert framework_of("worker", ["serve"], [], "trtllm") is Framework.TRTLLM
    assert framework_of("worker", several, [], "sglang") is Framework.SGLANG
    with pytest.raises(FrameworkError, match=r"multiple backend frameworks detected from command: \[vllm sglang\] in "):
        framework_of("worker", several, [], "")


def test_another_framework_than_the_graph_names_is_an_error() -> None:
    with pytest.raises(FrameworkError, match='detected "vllm" from command but explicitly configured as "sglang"'):
        framework_of("worker", ["python3 -m dynamo.vllm"], [], "sglang")


@pytest.mark.parametrize("word", ["python3 -m ", "python3 ", "-m ", "python", "python3 -m x dynamo.", "|"])
def test_a_long_command_without_a_framework_is_read_in_one_go(word: str) -> None:
    assert framework_of("worker", [word * LONG], [], "") is Framework.NONE
