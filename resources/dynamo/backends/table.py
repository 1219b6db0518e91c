"""Table: the backend of each framework."""

from collections.abc import Mapping
from typing import Final

from resources.dynamo.backends.port import FrameworkBackend
from resources.dynamo.backends.sglang import Sglang
from resources.dynamo.backends.trtllm import TensorRtLlm
from resources.dynamo.backends.unmodified import Unmodified
from resources.dynamo.backends.vllm import Vllm
from resources.dynamo.model.framework import Framework

BACKENDS: Final[Mapping[Framework, FrameworkBackend]] = {
    Framework.VLLM: Vllm(),
    Framework.SGLANG: Sglang(),
    Framework.TRTLLM: TensorRtLlm(),
    Framework.NONE: Unmodified(),
}
