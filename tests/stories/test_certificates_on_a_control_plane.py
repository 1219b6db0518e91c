"""A real API server calls the webhooks without a break while their certificate and its authority are replaced."""

import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from providers.certificates.bundles import targets_of
from providers.certificates.secret import stored_in
from resources.install.webhooks import DEFAULT_SET, VALIDATE_SET
from resources.schema.crds import crds
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started as plane_started
from tests.enginectl.calling import started
from tests.ports import free_port
from tests.resources.admission.requests import put, small
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.e2e

HOST = "127.0.0.1"
SETS = "/apis/grove.io/v1alpha1/namespaces/ml/podcliquesets?dryRun=All"
SECRET = "/api/v1/namespaces/default/secrets/grove-webhook-server-cert"
WEBHOOKS = (DEFAULT_SET, VALIDATE_SET)
TARGETS = targets_of(WEBHOOKS)
REVIEWERS = 3
"""Threads that create sets, without storing them."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of its own with Grove's kinds."""
    with plane_started(tmp_path_factory, []) as plane:
        for definition in crds():
            plane.call("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        plane.call("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        until(lambda: plane.call(SETS)[0] == 200)
        yield plane


@contextmanager
def installed(plane: ControlPlane, folder: Path) -> Iterator[int]:
    """`engine run` with certificates of its own, and webhooks that it serves, without a `caBundle`. Yields the port."""
    ports = {name: free_port() for name in ("webhooks", "healthProbes", "metrics")}
    server = {name: {"bindAddress": HOST, "port": port} for name, port in ports.items()}
    file = folder / "operator.yaml"
    file.write_text(yaml.safe_dump({"server": server}))
    for webhook in WEBHOOKS:
        body = {
            "metadata": {"name": webhook.configuration},
            "webhooks": [webhook.body({"url": f"https://{HOST}:{server['webhooks']['port']}{webhook.path}"})],
        }
        code, answer = plane.call(f"/apis/admissionregistration.k8s.io/v1/{webhook.kind.lower()}s", body)
        assert code == 201, answer
    with started("run", "--config", file, "--log-format", "json", KUBECONFIG=str(plane.kubeconfig())) as process:
        try:
            yield ports["webhooks"]
        finally:
            process.kill()


class Load:
    """Reviews that the API server asks for, and handshakes of clients that trust what is published, for as long as the block runs."""

    def __init__(self, plane: ControlPlane, port: int) -> None:
        self.reviews = self.handshakes = 0
        self.faults: list[str] = []
        self._plane, self._port = plane, port
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(work,)) for work in [self._review] * REVIEWERS + [self._handshake]]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._end.is_set():
            try:
                work()
            except Exception as error:
                self.faults.append(repr(error))

    def _review(self) -> None:
        code, answer = self._plane.call(SETS, small())
        bad_code, _ = self._plane.call(SETS, put(small(), {"spec.template.cliques": []}))
        if (code, bad_code) != (201, 422):
            self.faults.append(f"{code}, {bad_code}: {answer[:300]!r}")
        self.reviews += 2

    def _handshake(self) -> None:
        for target in TARGETS:
            context = ssl.create_default_context(cadata=bundle(self._plane, target).decode())
            with (
                socket.create_connection((HOST, self._port), PATIENCE) as connection,
                context.wrap_socket(connection, server_hostname=HOST),
            ):
                self.handshakes += 1
        time.sleep(0.1)


def bundle(plane: ControlPlane, target: Any) -> bytes:
    """`caBundle` of a webhook configuration, decoded."""
    _, answer = plane.call(f"/apis/admissionregistration.k8s.io/v1/{target.kind.plural}/{target.name}")
    return base64.b64decode(orjson.loads(answer)["webhooks"][0]["clientConfig"].get("caBundle", ""))


def secret(plane: ControlPlane) -> dict[str, Any]:
    """The Secret with the certificates."""
    code, answer = plane.call(SECRET)
    return dict(orjson.loads(answer)) if code == 200 else {}


def serial(port: int) -> bytes:
    """The certificate that is served."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((HOST, port), PATIENCE) as connection, context.wrap_socket(connection) as secured:
        return secured.getpeercert(binary_form=True) or b""


def test_reviews_go_on_while_the_certificate_and_its_authority_are_replaced(plane: ControlPlane, tmp_path: Path) -> None:
    with installed(plane, tmp_path) as port:
        until(lambda: plane.call(SETS, put(small(), {"spec.template.cliques": []}))[0] == 422)
        until(lambda: all(bundle(plane, target) for target in TARGETS))
        first, (authority,) = serial(port), stored_in(secret(plane)).authorities
        with Load(plane, port) as load:
            until(lambda: load.reviews > 20 and load.handshakes > 20)
            body = secret(plane)
            plane.call(SECRET, {**body, "data": {**body["data"], "tls.crt": "", "tls.key": ""}}, method="PUT")
            until(lambda: serial(port) != first)
            second = serial(port)
            plane.call(SECRET, method="DELETE")
            until(lambda: serial(port) != second)
            reviews, handshakes = load.reviews, load.handshakes
            until(lambda: load.reviews > reviews + 20 and load.handshakes > handshakes + 20)

        new, *old = stored_in(secret(plane)).authorities
        assert load.faults == []
        assert old == [authority] and new != authority
