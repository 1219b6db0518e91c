"""Names of the extended resources that GPUs are requested by."""

from typing import Final

NVIDIA: Final = "nvidia.com/gpu"
AMD: Final = "amd.com/gpu"
ALL: Final = (NVIDIA, AMD)
