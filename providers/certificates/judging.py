"""Judging: what is wrong with certificates and keys that were read. Nothing here raises, whatever the bytes are; time is an argument."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from providers.certificates.making import ORGANIZATION, Authority, Pair

DAY: Final = "%Y-%m-%d"
MOST_BYTES: Final = 64 * 1024
"""Longer PEM texts are not parsed: a Secret or a webhook configuration may contain anything."""

_UNREADABLE: Final = (ValueError, TypeError, UnsupportedAlgorithm)


def certificates_in(pem: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates in a PEM text; empty if any part of it cannot be read."""
    if not pem.strip() or len(pem) > MOST_BYTES:
        return ()
    try:
        certificates = tuple(x509.load_pem_x509_certificates(pem))
        for certificate in certificates:
            # Parsed on first use; here, so that what is returned never raises.
            _ = certificate.extensions, certificate.public_key(), certificate.subject, certificate.not_valid_after_utc
        return certificates
    except _UNREADABLE:
        return ()


def authorities_in(pem: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates in a PEM text that may sign others."""
    return tuple(certificate for certificate in certificates_in(pem) if is_authority(certificate))


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether a certificate may sign others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def pair_of(chain: bytes, key: bytes) -> Pair | str:
    """The pair in two PEM texts, or what is wrong with them."""
    certificates = certificates_in(chain)
    if not certificates:
        return "the certificate cannot be read"
    private = _key_in(key)
    if private is None:
        return "the private key cannot be read; it must be in PEM and not encrypted"
    if not _fits(certificates[0], private):
        return "the private key is not that of the certificate"
    return Pair(certificates[0], chain, key)


def authority_of(certificates: Iterable[x509.Certificate], key: bytes) -> Authority | None:
    """The authority among the certificates that the key belongs to, if it is one of ours."""
    private = _key_in(key)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        return None
    for certificate in certificates:
        if is_ours(certificate) and _fits(certificate, private):
            return Authority(certificate, private)
    return None


def is_ours(certificate: x509.Certificate) -> bool:
    """Whether the subject says that we made the certificate."""
    return any(attribute.value == ORGANIZATION for attribute in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether that authority has signed the certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
        return True
    except (*_UNREADABLE, InvalidSignature):
        return False


def time_fault(certificate: x509.Certificate, now: datetime) -> str:
    """Why the certificate is not valid now; empty if it is."""
    if now >= certificate.not_valid_after_utc:
        return f"it has expired on {certificate.not_valid_after_utc:{DAY}}"
    if now < certificate.not_valid_before_utc:
        return f"it is not valid before {certificate.not_valid_before_utc:{DAY}}"
    return ""


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether two thirds of the certificate's life are over, so that it should be renewed."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= begin + (end - begin) * 2 / 3


def missing_names(certificate: x509.Certificate, names: Sequence[str]) -> list[str]:
    """Those of the DNS names and IP addresses that the certificate is not for."""
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return list(names)
    covered = {str(name.value) for name in alternatives if isinstance(name, x509.DNSName | x509.IPAddress)}
    return [name for name in names if name not in covered]


def _key_in(pem: bytes) -> PrivateKeyTypes | None:
    if len(pem) > MOST_BYTES:
        return None
    try:
        return load_pem_private_key(pem, password=None)
    except _UNREADABLE:
        return None


def _fits(certificate: x509.Certificate, key: PrivateKeyTypes) -> bool:
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)
