"""Table: the backend of each framework, and of services without one."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.resource import Body
from resources.dynamo.backends.port import FrameworkBackend, Placement, RewrittenContainer
from resources.dynamo.backends.sglang import Sglang
from resources.dynamo.backends.trtllm import TensorRtLlm
from resources.dynamo.backends.vllm import Vllm
from resources.dynamo.model.framework import Framework


class Unmodified(Struct, frozen=True):
    """Every node runs the user's command."""

    cache_variable: str = ""
    cache_directory: str = ""

    def rewritten(self, container: Body, placement: Placement) -> RewrittenContainer:
        """The container as it is."""
        return RewrittenContainer(container)


BACKENDS: Final[Mapping[Framework, FrameworkBackend]] = {
    Framework.VLLM: Vllm(),
    Framework.SGLANG: Sglang(),
    Framework.TRTLLM: TensorRtLlm(),
    Framework.NONE: Unmodified(),
}
