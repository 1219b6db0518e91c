"""Self-made certificates: made, kept in a Secret, published, renewed with overlap, and nothing else touched."""

import datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from engine.errors import Forbidden, Unreachable
from providers.certificates.bundles import ServedService
from providers.certificates.making import AUTHORITY_LIFE, SERVER_LIFE, pem_of
from providers.certificates.secret import CERT_MANAGER, LABELS
from providers.certificates.self_made import SETTLED
from resources.base.kinds import SECRET
from tests.providers.certificates.fleet import NAME, PLACE, SYSTEM, TARGETS, Fleet, fleet, handshake_fault

pytestmark = pytest.mark.anyio


async def test_the_first_replica_makes_everything_and_api_servers_trust_it() -> None:
    async with fleet() as cluster:
        (replica,) = cluster.replicas

        assert replica.certificate.is_ready() and cluster.refused() == []
        secret = await cluster.secret()
        assert secret["type"] == "kubernetes.io/tls" and set(secret["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
        assert secret["metadata"]["labels"] == LABELS


async def test_it_is_not_ready_before_it_has_a_certificate_and_refuses_handshakes_until_then() -> None:
    async with fleet(0) as cluster:
        replica = cluster.start()
        replica.forbid(Forbidden("no"), SECRET.name)
        await cluster.clock.advance(30)

        assert not replica.certificate.is_ready() and replica.certificate.expires_at is None
        assert cluster.log.getvalue().count("the permission is missing: get secrets grove-webhook-server-cert in grove-system") == 1


@pytest.mark.parametrize("replicas", [1, 3])
async def test_a_server_certificate_is_renewed_when_two_thirds_of_its_life_are_over(replicas: int) -> None:
    async with fleet(replicas) as cluster:
        before, authorities = [each.certificate.expires_at for each in cluster.replicas], await cluster.authorities()
        cluster.clock.leaped += SERVER_LIFE * 2 / 3
        await cluster.clock.advance(30)

        after = [each.certificate.expires_at for each in cluster.replicas]
        assert len(set(before)) == len(set(after)) == 1 and set(after) != set(before)
        assert await cluster.authorities() == authorities and cluster.refused() == []


async def test_replicas_at_rest_write_nothing() -> None:
    async with fleet(3) as cluster:
        before = sum(each.process.count for each in cluster.replicas)
        await cluster.clock.advance(600)

        assert sum(each.process.count for each in cluster.replicas) == before
        assert before == 1 + len(TARGETS)


async def test_a_bundle_that_somebody_overwrites_is_corrected_within_a_round() -> None:
    async with fleet() as cluster:
        await cluster.set_bundle("")
        await cluster.clock.advance(11)

        assert cluster.refused() == []


async def test_other_fields_and_other_webhooks_are_not_touched() -> None:
    async with fleet() as cluster:
        target = TARGETS[0]
        ours, other = (await cluster.kubectl.get(target.kind, "", target.name))["webhooks"]

        assert "caBundle" not in other["clientConfig"]
        assert ours["clientConfig"].pop("caBundle") and {**ours, "name": ""} == {**other, "name": ""}


async def test_a_configuration_that_is_created_later_is_found() -> None:
    async with fleet(install=False) as cluster:
        (replica,) = cluster.replicas
        was_ready = replica.certificate.is_ready()
        await cluster.install()
        await cluster.clock.advance(11)

        assert was_ready and cluster.refused() == [] and await cluster.bundle()


async def test_a_new_authority_is_published_before_anything_is_signed_by_it_and_the_old_one_stays_for_the_overlap() -> None:
    async with fleet(2) as cluster:
        (old,), first = await cluster.authorities(), (await cluster.secret())["data"]["tls.crt"]
        await _leap(cluster, AUTHORITY_LIFE * 2 / 3)  # Renews the server certificate too, which had expired.
        await cluster.clock.advance(1.5 * SETTLED)
        new, *rest = await cluster.authorities()
        served = (await cluster.secret())["data"]["tls.crt"]
        await cluster.clock.advance(4 * SETTLED)
        during = await cluster.authorities()
        await _leap(cluster, SERVER_LIFE)
        after = await cluster.authorities()

        assert rest == [old] and new != old and during == (new, old) and after == (new,)
        assert served != first and cluster.refused() == []


async def _leap(cluster: Fleet, time: datetime.timedelta) -> None:
    """Let time pass in steps in which no server certificate expires."""
    end = cluster.clock.now() + time
    while cluster.clock.now() < end:
        cluster.clock.leaped += min(SERVER_LIFE / 4, end - cluster.clock.now())
        await cluster.clock.advance(22)


@pytest.mark.parametrize("key", ["ca_crt", "ca_key", "tls_crt", "tls_key"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", None])
async def test_a_broken_secret_is_repaired_without_a_refused_handshake(key: str, content: bytes | None) -> None:
    async with fleet(2) as cluster:
        await cluster.write_secret(**{key: content}, mine=b"stays")
        faults = []
        for _ in range(40):
            await cluster.clock.advance(1)
            faults += cluster.refused(lag=SETTLED / 2)

        assert faults == [] and set((await cluster.secret())["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key", "mine"}


async def test_deleting_the_secret_renews_everything_without_a_refused_handshake() -> None:
    async with fleet(2) as cluster:
        (old,), before = await cluster.authorities(), cluster.replicas[0].certificate.expires_at
        cluster.clock.leaped += SERVER_LIFE / 10
        await cluster.kubectl.delete(SECRET, SYSTEM, NAME)
        faults = []
        for _ in range(40):
            await cluster.clock.advance(1)
            faults += cluster.refused(lag=SETTLED / 2)

        assert faults == [] and (await cluster.authorities())[1:] == (old,)
        assert {each.certificate.expires_at for each in cluster.replicas}.isdisjoint({before})


async def test_the_secret_of_groves_operator_is_taken_over_and_its_authority_stays_trusted_for_the_overlap() -> None:
    async with fleet(0) as cluster:
        groves = groves_authority(cluster.clock.now())
        empty = dict.fromkeys(("ca.crt", "ca.key", "tls.crt", "tls.key"), "")
        labels = {"app.kubernetes.io/managed-by": "grove-operator"}
        body = {"metadata": {"name": NAME, "labels": labels}, "type": "kubernetes.io/tls", "data": empty}
        await cluster.kubectl.create(SECRET, SYSTEM, body)
        await cluster.write_secret(ca_crt=groves)
        cluster.start()
        await cluster.clock.advance(30)

        assert cluster.refused() == [] and cluster.replicas[0].certificate.is_ready()
        assert pem_of(*(await cluster.authorities())[1:]) == groves


async def test_a_secret_that_cert_manager_fills_is_left_alone() -> None:
    async with fleet(0) as cluster:
        body = {"metadata": {"name": NAME, "annotations": {CERT_MANAGER: "grove"}}, "type": "kubernetes.io/tls"}
        await cluster.kubectl.create(SECRET, SYSTEM, {**body, "data": {"tls.crt": "", "tls.key": ""}})
        replica = cluster.start()
        await cluster.clock.advance(60)

        assert replica.process.count == 0 and not replica.certificate.is_ready()
        assert cluster.log.getvalue().count("cert-manager fills this Secret") == 1


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        ({"annotations": {"cert-manager.io/inject-ca-from": "a/b"}}, "cert-manager writes its caBundle"),
        (
            {"service": ServedService(SYSTEM, "grove-operator")},
            "calls the Service grove-system/grove-operator, not",
        ),
    ],
)
async def test_a_configuration_of_somebody_else_is_left_alone(installed: dict[str, Any], said: str) -> None:
    async with fleet(0, install=False) as cluster:
        await cluster.install(**installed)
        replica = cluster.start()
        await cluster.clock.advance(60)

        assert await cluster.bundle() == "" and replica.certificate.is_ready()
        assert cluster.log.getvalue().count(said) == len(TARGETS)


@pytest.mark.parametrize("verb", ["get", "patch"])
async def test_a_missing_permission_for_webhook_configurations_is_said_once(verb: str) -> None:
    async with fleet(0) as cluster:
        replica = cluster.start()
        replica.forbid(Forbidden("no"), *(target.kind.name for target in TARGETS), verbs=(verb,))
        await cluster.clock.advance(60)

        assert cluster.log.getvalue().count("the permission is missing") == len(TARGETS)
        # What could not be read may be in order; what is known to be wrong is not.
        assert replica.certificate.is_ready() == (verb == "get")


async def test_an_api_server_that_does_not_answer_is_waited_for_and_said_once() -> None:
    async with fleet() as cluster:
        (replica,) = cluster.replicas
        replica.forbid(Unreachable("no answer"), SECRET.name, *(target.kind.name for target in TARGETS))
        await cluster.clock.advance(600)
        was_ready = replica.certificate.is_ready()
        replica.process.refuses = lambda call: None
        cluster.clock.leaped += SERVER_LIFE * 3 / 4
        await cluster.clock.advance(15)

        assert was_ready and replica.certificate.is_ready() and cluster.refused() == []
        assert cluster.log.getvalue().count("subject=grove-webhook-server-cert") == 2  # The problem, and its end.


async def test_a_webhook_may_have_the_address_that_the_server_listens_on() -> None:
    async with fleet(place=replace(PLACE, address="127.0.0.1")) as cluster:
        context = cluster.replicas[0].certificate.context

        assert handshake_fault(context, await cluster.bundle(), cluster.clock.now(), "127.0.0.1") == ""


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::"])
def test_an_address_that_means_all_is_no_name(address: str) -> None:
    assert len(replace(PLACE, address=address).names()) == 4


async def test_what_is_logged_contains_no_key() -> None:
    async with fleet(2) as cluster:
        await cluster.write_secret(tls_key=b"garbage")
        await cluster.clock.advance(60)

        assert "PRIVATE" not in cluster.log.getvalue() and "BEGIN" not in cluster.log.getvalue()


def groves_authority(now: datetime.datetime) -> bytes:
    """An authority like that of Grove's rotator, in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Grove"), x509.NameAttribute(NameOID.COMMON_NAME, "Grove-CA")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now).not_valid_after(now + AUTHORITY_LIFE)
    return pem_of(made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256()))


async def test_of_replicas_that_start_at_the_same_time_one_fills_the_secret() -> None:
    async with fleet(0, latency=1.0) as cluster:
        body = {"metadata": {"name": NAME}, "type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}
        await cluster.kubectl.create(SECRET, SYSTEM, body)
        for _ in range(3):
            cluster.start()
        await cluster.clock.advance(30)

        assert cluster.log.getvalue().count("a certificate authority was made") == 1 and cluster.refused() == []
