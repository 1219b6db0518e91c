"""On the port of the webhooks `engine run` shows the pending plan to those whom a real API server knows and permits, and to nobody else."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from resources.schema.crds import crds
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started as plane_started
from tests.controlplane.installed_accounts import install_account
from tests.enginectl.calling import started
from tests.enginectl.serving.test_endpoints import Installed, Running
from tests.providers.http.talking import HOST
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.e2e

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
RULE = {"nonResourceURLs": ["/debug/plan"], "verbs": ["get"]}


class Viewer:
    """Callers of a running engine on the port of its webhooks."""

    def __init__(self, plane: ControlPlane, installed: Installed, process: Running) -> None:
        self.plane, self.installed, self.process = plane, installed, process

    def token(self, account: str) -> str:
        """A new token of a service account."""
        self.plane.call(ACCOUNTS, {"metadata": {"name": account}})
        code, answer = self.plane.call(f"{ACCOUNTS}/{account}/token", {"spec": {}})
        assert code == 201, answer
        token: str = json.loads(answer)["status"]["token"]
        return token

    def get(self, path: str, token: str = "", host: str = "") -> tuple[int, str, str]:
        """Status, text and challenge of an answer."""
        context = ssl.create_default_context()
        self.installed.authority.configure_trust(context)
        headers = ({"Authorization": f"Bearer {token}"} if token else {}) | ({"Host": host} if host else {})
        request = urllib.request.Request(f"https://{HOST}:{self.installed.ports['webhooks']}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:
                return answer.status, answer.read().decode(), ""
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers.get("WWW-Authenticate", "")


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """An engine that leads on an API server of its own; the service account `reader` may get the plan."""
    with plane_started(tmp_path_factory, []) as plane:
        for definition in crds():
            plane.call("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        plane.call(f"{RBAC}/clusterroles", {"metadata": {"name": "plan-reader"}, "rules": [RULE]})
        subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "plan-reader"}
        plane.call(f"{RBAC}/clusterrolebindings", {"metadata": {"name": "plan-reader"}, "roleRef": role, "subjects": [subject]})
        installed = Installed(tmp_path_factory.mktemp("installed"))
        election = {"resourceNamespace": "default"}
        installed.configure(leaderElection=election)
        account = install_account(plane, "engine-plan", {**installed.document, "leaderElection": election})
        words = ("run", "-v", "--ui", "--config", installed.file, "--log-format", "json")
        with started(*words, KUBECONFIG=str(plane.kubeconfig(account.name))) as process:
            try:
                running = Running(process)
                running.logged("leading")
                viewer = Viewer(plane, installed, running)
                token = viewer.token("reader")
                until(lambda: viewer.get("/debug/plan", token)[0] == 200, lambda: viewer.get("/debug/plan", token))
                yield viewer
            finally:
                process.kill()


def test_a_permitted_service_account_sees_the_plan_and_the_pages(viewer: Viewer) -> None:
    token = viewer.token("reader")

    plan, page = viewer.get("/debug/plan", token), viewer.get("/", token, host="grove-engine.grove-system.svc")

    assert (plan[0], json.loads(plan[1])["pass"]["leads"]) == (200, True)
    assert page[0] == 200 and page[1].startswith("<!DOCTYPE html>")


def test_any_other_service_account_reads_what_it_lacks(viewer: Viewer) -> None:
    status, text, _ = viewer.get("/debug/plan", viewer.token("nobody"))

    assert status == 403
    assert text.startswith("system:serviceaccount:default:nobody may not get /debug/plan: kubectl create clusterrole")


@pytest.mark.parametrize("path", ["/debug/plan", "/", "/sets/default/x"])
@pytest.mark.parametrize("token", ["", "no-such-token"])
def test_without_a_token_that_the_api_server_knows_nothing_is_shown_even_on_the_same_machine(viewer: Viewer, path: str, token: str) -> None:
    status, _, challenge = viewer.get(path, token, host="localhost")

    assert (status, challenge) == (401, 'Bearer realm="engine"')


def test_tokens_are_not_logged(viewer: Viewer) -> None:
    token = viewer.token("nobody")
    viewer.get("/debug/plan", token)
    viewer.get("/debug/plan", "no-such-token")
    process = viewer.process.process
    process.terminate()
    assert process.stderr
    log = json.dumps(viewer.process.events) + process.stderr.read()

    assert token not in log
    assert "no-such-token" not in log
