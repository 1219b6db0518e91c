"""Making: new certificate authorities and server certificates. ECDSA P-256, in PEM."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ORGANIZATION: Final = "grove-engine"
"""The organization in the subject of every certificate that we make; by it an authority of ours is recognised."""
AUTHORITY_LIFE: Final = timedelta(days=3650)
SERVER_LIFE: Final = timedelta(days=90)
BACKDATED: Final = timedelta(hours=1)
"""How long before its making a certificate is valid: clocks of API servers may be behind ours."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority of ours, with the key that it signs with."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """A server's certificate and its private key, which fit."""

    certificate: x509.Certificate
    chain: bytes
    """The certificate and the intermediate ones behind it, in PEM."""
    key: bytes = field(repr=False)
    """The private key, in PEM and not encrypted."""

    @property
    def expires_at(self) -> datetime:
        """When clients begin to reject the certificate."""
        return self.certificate.not_valid_after_utc


def new_authority(now: datetime, life: timedelta = AUTHORITY_LIFE) -> Authority:
    """A new authority, valid for so long. Each has another key and subject, so that two of them can be told apart."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject(f"{ORGANIZATION} webhook CA {now:%Y-%m-%d}")
    builder = (
        _builder(name, name, key, now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    return Authority(builder.sign(key, hashes.SHA256()), key)


def new_pair(authority: Authority, names: Sequence[str], now: datetime, life: timedelta = SERVER_LIFE) -> Pair:
    """A new server certificate for these DNS names and IP addresses, signed by the authority, valid for so long."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_subject(f"{ORGANIZATION} webhooks"), authority.certificate.subject, key, now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
    certificate = builder.sign(authority.key, hashes.SHA256())
    return Pair(certificate, pem_of(certificate), key_pem(key))


def made_at(certificate: x509.Certificate) -> datetime:
    """When a certificate of ours was made."""
    return certificate.not_valid_before_utc + BACKDATED


def pem_of(*certificates: x509.Certificate) -> bytes:
    """The certificates in PEM, one after the other."""
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The private key in PEM, not encrypted."""
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION), x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _alternative_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only")
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **dict.fromkeys(unused, False))
