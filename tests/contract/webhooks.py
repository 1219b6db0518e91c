"""The engine's webhooks for a real API server: its pure admission function, served over HTTPS while a test runs.

python -m tests.contract.webhooks KUBECONFIG      records the answers of the server again
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
from grove_sandbox.api.webhooks import Webhooks
from grove_sandbox.http.tls import LOOPBACK, ServerIdentity, loopback_identity
from providers.fabrics.nvidia.fabric import Nvidia
from providers.schedulers.kube import KubeScheduler
from resources.admission.admit import admit
from resources.admission.managed_rules import Protection
from resources.admission.request import Decision, Request
from resources.admission.review import Decide, answered
from resources.base.kinds import PODCLIQUESET
from resources.children.table import CHILDREN
from resources.ports.configuration import Configuration
from resources.ports.references import known_references
from tests.contract.answers import answers_of, sending
from tests.contract.golden import release_of, write
from tests.contract.scenario import Send
from tests.contract.scenarios.webhooks import SEEN, UNSOUND, WEBHOOKS, a_set
from tests.contract.server import Server, described
from tests.waiting import eventually

SETUP = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", fabrics=(Nvidia(auto=True),))
INSTALLED = Webhooks(SETUP, Protection(CHILDREN.protected(SETUP)))
"""With enrolment of pods, and with the protection of managed objects."""

NAME = "contract-webhooks"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
JSON = "application/json"


def rules(request: Request) -> Decision:
    """The decision of the rules. The set that owns the managed objects always exists."""
    parent = {**a_set(), "metadata": {"name": "s", "namespace": request.id.namespace}}
    return admit(request, INSTALLED.configuration, known_references([live(parent)], [PODCLIQUESET.name]), INSTALLED.protection)


def defaulted(request: Request) -> Decision:
    """The defaults of the rules, without their issues."""
    return Decision(body=rules(request).body)


DECIDERS: Mapping[str, Decide] = {"/default": defaulted, "/validate": rules}


class _Handler(BaseHTTPRequestHandler):
    """Answers one review for each request."""

    def do_POST(self) -> None:
        document = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        review = orjson.dumps(answered(document, DECIDERS[self.path.partition("?")[0]]))
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(review)))
        self.end_headers()
        self.wfile.write(review)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(identity: ServerIdentity) -> Iterator[int]:
    """Serve the webhooks on a free port while the block runs."""
    with ThreadingHTTPServer((LOOPBACK, 0), _Handler) as server:
        server.socket = identity.context().wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield int(server.server_port)
        server.shutdown()
        thread.join()


def webhook(name: str, path: str, authority: bytes, port: int, group: str, *resources: str) -> dict[str, Any]:
    """The configuration of one webhook."""
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
    """The mutating and the validating configuration: paths and bodies."""

    def configured(name: str, path: str, resource: str) -> dict[str, Any]:
        return webhook(f"{name}.webhooks.grove.io", path, authority, port, "grove.io", resource)

    validating = [
        configured("pcs.validating", "/validate", "podcliquesets"),
        configured("clustertopology.validating", "/validate", "clustertopologybindings"),
        configured("authorizer", "/validate", "podcliques"),
    ]
    for type_, webhooks in (("mutating", [configured("pcs.defaulting", "/default", "podcliquesets")]), ("validating", validating)):
        yield CONFIGURATIONS.format(type_), {"metadata": {"name": NAME}, "webhooks": webhooks}


@asynccontextmanager
async def registered(server: Server) -> AsyncIterator[None]:
    """Register the webhooks while the block runs, which begins once the server calls them."""
    identity = loopback_identity()
    with serving(identity) as port:
        async with sending(server) as send:
            for step in WEBHOOKS.steps:
                if step.method in ("ENSURE", "AWAIT"):
                    await send(step.method, step.path.format(ns="default"), step.body, JSON)
            made = list(configurations(identity.authority, port))
            try:
                for path, body in made:
                    await send("POST", path, body, JSON)
                await _await_calls(send)
                yield
            finally:
                for path, _ in made:
                    await send("DELETE", f"{path}/{NAME}", None, JSON)


async def _await_calls(send: Send) -> None:
    """Wait until the server calls both webhooks."""
    path = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets?dryRun=All"

    async def are_called() -> bool:
        _, refused = await send("POST", path, a_set(UNSOUND[0]), JSON)
        _, made = await send("POST", path, a_set(), JSON)
        return "admission webhook" in refused.get("message", "") and bool(made.get("metadata", {}).get("annotations"))

    await eventually(are_called)


async def real_answers(server: Server) -> list[dict[str, Any]]:
    """The answers of a real server with the webhooks to their scenario."""
    async with registered(server):
        return await answers_of(server, WEBHOOKS)


async def record(kubeconfig: Path) -> None:
    """Record the answers of a real server."""
    server = described("real", kubeconfig)
    write(WEBHOOKS, await real_answers(server), await release_of(server))


if __name__ == "__main__":
    anyio.run(record, Path(sys.argv[1]))
