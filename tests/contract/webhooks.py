"""Our webhooks before a real API server: the pure answers of the product, carried over HTTPS for as long as a test lasts.

python -m tests.contract.webhooks KUBECONFIG      records anew what the server says with them
"""

import base64
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import orjson

from engine.observed import live
from providers.fabrics.nvidia.fabric import Nvidia
from providers.sandbox.api.webhooks import Webhooks
from providers.sandbox.http.tls import LOOPBACK, ServerIdentity, loopback_identity
from providers.schedulers.kube import KubeScheduler
from resources.admission.admit import admit
from resources.admission.managed_rules import Protection
from resources.admission.request import Decision, Request
from resources.admission.review import Decide, answered
from resources.base.kinds import PODCLIQUESET
from resources.ports.configuration import Configuration
from resources.ports.references import known_references
from tests.contract.asking import asking, told
from tests.contract.golden import file_of
from tests.contract.scenario import Ask
from tests.contract.scenarios.webhooks import SEEN, UNSOUND, WEBHOOKS, a_set
from tests.contract.server import Server, described

INSTALLED = Webhooks(
    Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", fabrics=(Nvidia(auto=True),)), Protection(enabled=True)
)
"""Everything that there is to ask about: enrolment, and the protection of managed objects."""

NAME = "contract-webhooks"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
JSON = "application/json"


def rules(request: Request) -> Decision:
    """What our rules say; the set that managed objects are part of is always there."""
    parent = {**a_set(), "metadata": {"name": "s", "namespace": request.id.namespace}}
    return admit(request, INSTALLED.configuration, known_references([live(parent)], [PODCLIQUESET.name]), INSTALLED.protection)


def filled(request: Request) -> Decision:
    """What our rules fill in, whatever else they say."""
    return Decision(body=rules(request).body)


JUDGES: Mapping[str, Decide] = {"/default": filled, "/validate": rules}


class _Handler(BaseHTTPRequestHandler):
    """One review a request."""

    def do_POST(self) -> None:
        document = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = orjson.dumps(answered(document, JUDGES[self.path.partition("?")[0]]))
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@contextmanager
def serving(identity: ServerIdentity) -> Iterator[int]:
    """The webhooks on a port of their own."""
    with ThreadingHTTPServer((LOOPBACK, 0), _Handler) as server:
        server.socket = identity.context().wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield int(server.server_port)
        server.shutdown()
        thread.join()


def webhook(name: str, path: str, authority: bytes, port: int, group: str, *resources: str) -> dict[str, Any]:
    """The registration of one webhook, with the failure policy and the limits that ours have."""
    return {
        "name": name,
        "clientConfig": {"url": f"https://{LOOPBACK}:{port}{path}", "caBundle": base64.b64encode(authority).decode()},
        "rules": [{"apiGroups": [group], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"], "resources": list(resources)}],
        "objectSelector": {"matchLabels": SEEN},
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
    }


def configurations(authority: bytes, port: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Both sorts of configuration."""

    def one(name: str, path: str, resource: str) -> dict[str, Any]:
        return webhook(f"{name}.webhooks.grove.io", path, authority, port, "grove.io", resource)

    validating = [
        one("pcs.validating", "/validate", "podcliquesets"),
        one("clustertopology.validating", "/validate", "clustertopologybindings"),
        one("authorizer", "/validate", "podcliques"),
    ]
    for sort, webhooks in (("mutating", [one("pcs.defaulting", "/default", "podcliquesets")]), ("validating", validating)):
        yield CONFIGURATIONS.format(sort), {"metadata": {"name": NAME}, "webhooks": webhooks}


@asynccontextmanager
async def registered(server: Server) -> AsyncIterator[None]:
    """The webhooks before that server, from when it asks them until the block ends."""
    identity = loopback_identity()
    with serving(identity) as port:
        async with asking(server) as ask:
            for step in WEBHOOKS.steps:
                if step.method in ("ENSURE", "AWAIT"):
                    await ask(step.method, step.path.format(ns="default"), step.body, JSON)
            made = list(configurations(identity.authority, port))
            try:
                for path, body in made:
                    await ask("POST", path, body, JSON)
                await _heard(ask)
                yield
            finally:
                for path, _ in made:
                    await ask("DELETE", f"{path}/{NAME}", None, JSON)


async def _heard(ask: Ask) -> None:
    """Until the server asks both."""
    path = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets?dryRun=All"
    with anyio.fail_after(30):
        while True:
            _, refused = await ask("POST", path, a_set(UNSOUND[0]), JSON)
            _, made = await ask("POST", path, a_set(), JSON)
            if "admission webhook" in refused.get("message", "") and made.get("metadata", {}).get("annotations"):
                return
            await anyio.sleep(0.2)


async def said(server: Server) -> list[dict[str, Any]]:
    """What a real server says to the scenario with our webhooks before it."""
    async with registered(server):
        return await told(server, WEBHOOKS)


async def record(kubeconfig: Path) -> None:
    """Write down what a real server says."""
    answers = await said(described("real", kubeconfig))
    file_of(WEBHOOKS).write_bytes(orjson.dumps(answers, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


if __name__ == "__main__":
    anyio.run(record, Path(sys.argv[1]))
