"""Certificates are rotated while a real API server calls the webhooks without a pause, and no review fails."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.install.webhooks import WEBHOOKS
from resources.schema.crds import crds
from tests.controlplane.cluster import ControlPlane, free_port
from tests.controlplane.fixtures import started
from tests.reliability.process import engine_run, installed
from tests.resources.admission.requests import put, small

pytestmark = pytest.mark.e2e

HOST = "127.0.0.1"
SECRET = "/api/v1/namespaces/default/secrets/grove-webhook-server-cert"
SETS = "/apis/grove.io/v1alpha1/namespaces/ml/podcliquesets?dryRun=All"
PATIENCE = 60.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of its own that knows our kinds."""
    with started(tmp_path_factory, []) as plane:
        for definition in crds():
            plane.call("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        plane.call("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        until(lambda: plane.call(SETS.partition("?")[0])[0] == 200)
        yield plane


def until(holds: object) -> None:
    """Wait until something holds."""
    assert callable(holds)
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@contextmanager
def reviewing(plane: ControlPlane, answers: Counter[str]) -> Iterator[None]:
    """Two users who try out sets without a pause while the block runs: one that is completed, and one that is refused."""
    ended = threading.Event()
    bad = put(small(), {"spec.template.cliques.0.spec.minAvailable": 9})

    def review(body: object, expected: tuple[int, bytes]) -> None:
        while not ended.is_set():
            code, answer = plane.call(SETS, body)
            is_expected = code == expected[0] and expected[1] in answer
            answers["reviewed" if is_expected else f"{code} {answer[:300].decode()}"] += 1

    users = [
        threading.Thread(target=review, args=(small(), (201, b"terminationDelay"))),
        threading.Thread(target=review, args=(bad, (422, b"minAvailable"))),
    ]
    for user in users:
        user.start()
    try:
        yield
    finally:
        ended.set()
        for user in users:
            user.join()


def register(plane: ControlPlane, port: int) -> None:
    """Register the webhooks of sets by URL; they trust nobody until the engine has written its authority into them."""
    for webhook in WEBHOOKS:
        entry = webhook.body({"url": f"https://{HOST}:{port}{webhook.path}"})
        body = {"metadata": {"name": webhook.configuration}, "webhooks": [entry]}
        code, answer = plane.call(f"/apis/admissionregistration.k8s.io/v1/{webhook.kind.lower()}s", body)
        assert code == 201, answer


def secret(plane: ControlPlane) -> dict[str, str]:
    """The data of the Secret; empty if there is none."""
    code, answer = plane.call(SECRET)
    return dict(json.loads(answer)["data"]) if code == 200 else {}


def test_a_server_certificate_and_then_its_authority_are_replaced_under_load_and_no_review_fails(
    plane: ControlPlane, tmp_path: Path
) -> None:
    installation = installed(tmp_path, plane, "default")
    port, answers = free_port(), Counter[str]()
    disabled = {"bindAddress": HOST, "port": 0}
    server = {"webhooks": {"bindAddress": HOST, "port": port}, "healthProbes": disabled, "metrics": disabled}
    configuration = installation.folder / "operator.yaml"
    configuration.write_text(json.dumps(json.loads(configuration.read_text()) | {"server": server}))
    with engine_run(installation) as engine:
        until(lambda: secret(plane))
        register(plane, port)
        until(lambda: b"terminationDelay" in plane.call(SETS, small())[1])
        first = secret(plane)

        with reviewing(plane, answers):
            assert (
                plane.call(SECRET, {**json.loads(plane.call(SECRET)[1]), "data": {**first, "tls.crt": "", "tls.key": ""}}, method="PUT")[0]
                == 200
            )
            until(lambda: secret(plane)["tls.crt"])
            second = secret(plane)
            assert plane.call(SECRET, method="DELETE")[0] == 200
            until(lambda: secret(plane).get("tls.crt", second["tls.crt"]) != second["tls.crt"])
            until(lambda: len(engine.logged("server certificate is in use")) >= 3)
            time.sleep(2)

        assert first["ca.crt"] == second["ca.crt"]
        assert secret(plane)["ca.crt"] != first["ca.crt"]
        assert set(answers) == {"reviewed"}, answers
        assert answers["reviewed"] > 100
