"""Secret: how certificates are kept in a Secret, under the keys that Grove's operator uses."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from cryptography import x509

from engine.paths import get
from engine.resource import Body
from providers.certificates.judging import authorities_in, authority_of, pair_of
from providers.certificates.making import Pair, key_pem, pem_of
from providers.certificates.rotation import Stored
from resources.base.fields import annotations_of, mapping
from resources.base.kinds import SECRET

AUTHORITIES: Final = "ca.crt"
"""The authorities that clients should trust, the one that signs first."""
AUTHORITY_KEY: Final = "ca.key"
CERTIFICATE: Final = "tls.crt"
CERTIFICATE_KEY: Final = "tls.key"

LABELS: Final = {
    "app.kubernetes.io/name": "grove-engine",
    "app.kubernetes.io/component": "webhook",
    "app.kubernetes.io/part-of": "grove",
}
CERT_MANAGER: Final = "cert-manager.io/certificate-name"
"""The annotation of Secrets that cert-manager fills."""


def stored_in(secret: Body) -> Stored:
    """What a Secret contains that can be used. Empty for an empty one, and for one with anything else in it."""
    data = mapping(secret.get("data"))
    authorities, key = authorities_in(_decoded(data, AUTHORITIES)), _decoded(data, AUTHORITY_KEY)
    signing = authority_of(authorities, key)
    pair = pair_of(_decoded(data, CERTIFICATE), _decoded(data, CERTIFICATE_KEY))
    if signing is not None:
        authorities = _first(signing.certificate, authorities)
    return Stored(authorities, signing, pair if isinstance(pair, Pair) else None)


def is_of_cert_manager(secret: Body) -> bool:
    """Whether cert-manager fills the Secret: it would undo every change."""
    return CERT_MANAGER in annotations_of(secret)


def new_secret(namespace: str, name: str, stored: Stored) -> Body:
    """The Secret to create."""
    return {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.name,
        "metadata": {"name": name, "namespace": namespace, "labels": dict(LABELS)},
        "type": "kubernetes.io/tls",
        "data": data_of(stored),
    }


def change_of(secret: Body, stored: Stored) -> Body:
    """The merge patch that puts `stored` into an existing Secret, bound to its revision. Other keys and labels stay."""
    return {
        "metadata": {"resourceVersion": get(secret, ("metadata", "resourceVersion"), ""), "uid": get(secret, ("metadata", "uid"), "")},
        "data": data_of(stored),
    }


def data_of(stored: Stored) -> Mapping[str, str]:
    """The `data` of the Secret."""
    contents = {
        AUTHORITIES: pem_of(*stored.authorities),
        AUTHORITY_KEY: key_pem(stored.signing.key) if stored.signing else b"",
        CERTIFICATE: stored.pair.chain if stored.pair else b"",
        CERTIFICATE_KEY: stored.pair.key if stored.pair else b"",
    }
    return {key: base64.b64encode(content).decode() for key, content in contents.items()}


def _decoded(data: Mapping[str, Any], key: str) -> bytes:
    try:
        return base64.b64decode(str(data.get(key) or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _first(signing: x509.Certificate, authorities: tuple[x509.Certificate, ...]) -> tuple[x509.Certificate, ...]:
    return (signing, *(each for each in authorities if each != signing))
