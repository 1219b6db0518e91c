"""Key pair: the content of Secrets whose keys are generated at the time of the call, so that plans do not depend on chance."""

import base64
from collections.abc import Mapping
from typing import Any

from resources.ports.configuration import GENERATED, SSH_KEYS

BITS = 2048


def with_key_pair(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The Secret with a new SSH key pair in the place of the marks; any other object unchanged."""
    data = body.get("data")
    if body.get("kind") != "Secret" or not isinstance(data, Mapping) or GENERATED not in data.values():
        return body
    private, public = (base64.b64encode(key).decode() for key in _key_pair())
    return {**body, "data": {**data, **dict(zip(SSH_KEYS, (private, public), strict=True))}}


def _key_pair() -> tuple[bytes, bytes]:
    """A new RSA key pair in OpenSSH's formats: the private key and the public one."""
    # Imported here: few clusters need it.
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=BITS)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
