"""Optional imports: a library is imported as if one of its optional dependencies were not installed."""

import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def without(module: str) -> Iterator[None]:
    """In the block the module cannot be imported, unless it has been imported before.

    For libraries that import, with themselves, what only those of their features need that we do not use. A module that is `None` in
    `sys.modules` cannot be imported, as Python documents it.
    """
    modules: MutableMapping[str, Any] = sys.modules
    if module in modules:
        yield
        return
    modules[module] = None
    try:
        yield
    finally:
        del modules[module]
