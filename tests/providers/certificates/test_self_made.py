"""Self-made certificates: made, kept in a Secret, published, renewed with overlap, and nothing else touched."""

import pytest

from engine.errors import Forbidden
from providers.certificates.making import SERVER_LIFE
from providers.certificates.secret import LABELS
from resources.base.kinds import SECRET
from tests.providers.certificates.fleet import TARGETS, fleet

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
