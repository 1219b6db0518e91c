"""Given certificates: files that somebody else writes, followed while they are served."""

import io
import os
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from engine.runtime.logs import logger
from providers.certificates.given import GivenCertificate
from providers.certificates.making import SERVER_LIFE, Authority, Pair, new_authority, new_pair, pem_of
from tests.providers.certificates.fleet import HOST, LeapingClock, presented

NOW = LeapingClock().now()
AUTHORITY = new_authority(NOW)


@dataclass
class Mounted:
    """A folder like that of a mounted Secret, and the certificate that follows it."""

    folder: Path
    clock: LeapingClock
    log: io.StringIO
    certificate: GivenCertificate

    def swap(self, chain: bytes, key: bytes) -> None:
        """Replace all files at once, as the kubelet does: by swapping a symbolic link."""
        data = self.folder / f"..{len(os.listdir(self.folder))}"
        data.mkdir()
        (data / "tls.crt").write_bytes(chain)
        (data / "tls.key").write_bytes(key)
        (self.folder / "next").symlink_to(data.name)
        (self.folder / "next").replace(self.folder / "..data")
        for name in ("tls.crt", "tls.key"):
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        self.certificate.refresh()

    def serial(self) -> int | None:
        """The serial number of the certificate that a client sees; None if there is none."""
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        try:
            shown = presented(self.certificate.context, client, HOST)
        except ssl.SSLError:
            return None
        return x509.load_der_x509_certificate(shown).serial_number


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    clock, log = LeapingClock(), io.StringIO()
    return Mounted(tmp_path, clock, log, GivenCertificate(tmp_path, clock, logger(log, format="text")))


def pair(authority: Authority = AUTHORITY, made: datetime = NOW) -> Pair:
    """A pair for the service."""
    return new_pair(authority, [HOST], made)


def test_it_is_not_ready_without_files_and_says_so_once(mounted: Mounted) -> None:
    mounted.certificate.refresh()
    mounted.certificate.refresh()

    assert not mounted.certificate.is_ready() and mounted.serial() is None
    assert mounted.log.getvalue().count("No such file") == 1


def test_a_pair_is_served_once_it_is_there_and_followed_through_swaps(mounted: Mounted) -> None:
    first, second = pair(), pair()
    mounted.swap(first.chain, first.key)
    seen = mounted.serial()
    mounted.swap(second.chain, second.key)

    assert [seen, mounted.serial()] == [first.certificate.serial_number, second.certificate.serial_number]
    assert mounted.certificate.is_ready() and mounted.certificate.expires_at == second.expires_at


BROKEN = {
    "another key": (pair().chain, pair().key),
    "half a certificate": (pair().chain[:200], pair().key),
    "half a key": (pair().chain, pair().key[:60]),
    "nothing": (b"", b""),
    "garbage": (b"\xff\x00" * 99, b"\xff\x00" * 99),
    "expired": (lambda old: (old.chain, old.key))(pair(made=NOW - SERVER_LIFE)),
    "not valid yet": (lambda new: (new.chain, new.key))(pair(made=NOW + timedelta(days=1))),
    "far too long": (pair().chain * 200, pair().key),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_a_pair_that_cannot_be_served_leaves_the_one_that_is(mounted: Mounted, content: tuple[bytes, bytes]) -> None:
    good = pair()
    mounted.swap(good.chain, good.key)
    mounted.swap(*content)
    mounted.certificate.refresh()

    assert mounted.serial() == good.certificate.serial_number and mounted.certificate.is_ready()
    assert mounted.log.getvalue().count("problem=") == 1


def test_an_encrypted_key_is_refused_and_no_password_is_asked_for(mounted: Mounted) -> None:
    made = pair()
    key = load_pem_private_key(made.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    mounted.swap(made.chain, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))

    assert not mounted.certificate.is_ready() and "not encrypted" in mounted.log.getvalue()


def test_a_pair_with_a_key_of_another_type_replaces_the_old_one(mounted: Mounted) -> None:
    first = pair()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    mounted.swap(first.chain, first.key)
    signed = _with_key(key)
    mounted.swap(signed, key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))

    assert mounted.serial() not in (None, first.certificate.serial_number)


def test_the_expiry_of_what_is_served_is_said_once_and_makes_it_unready(mounted: Mounted) -> None:
    good, fresh = pair(), pair(made=NOW + SERVER_LIFE)
    mounted.swap(good.chain, good.key)
    mounted.clock.leaped += SERVER_LIFE
    mounted.certificate.refresh()
    mounted.certificate.refresh()
    was_ready, said = mounted.certificate.is_ready(), mounted.log.getvalue().count("must be replaced")
    mounted.swap(fresh.chain, fresh.key)

    assert (was_ready, said, mounted.certificate.is_ready()) == (False, 1, True)


def _with_key(key: rsa.RSAPrivateKey) -> bytes:
    template = pair().certificate
    builder = x509.CertificateBuilder().subject_name(template.subject).issuer_name(template.issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(NOW - timedelta(hours=1))
    return pem_of(builder.not_valid_after(NOW + SERVER_LIFE).sign(AUTHORITY.key, hashes.SHA256()))
