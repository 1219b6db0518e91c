"""Optional imports: a library is imported without what it prepares for features that we do not use."""

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

AUTHORITIES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables by which OpenSSL finds the certificate authorities of the system, as it documents them."""


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


@contextmanager
def without_authorities() -> Iterator[None]:
    """In the block OpenSSL finds no certificate authorities.

    For libraries that read all of them when they are imported: a tenth of a second, for TLS settings that we do not use.
    """
    before = {name: os.environ.get(name) for name in AUTHORITIES}
    os.environ.update(dict.fromkeys(AUTHORITIES, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
