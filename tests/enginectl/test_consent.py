"""What commands say of a set that refers to a claim template which another namespace does not share."""

import json
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from resources.base import kinds, labels
from tests.builders import claim_template, clique, podcliqueset, share
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.resources.admission.test_review import review

WHY = "ResourceClaimTemplate vault/gpu is not shared with namespace default; do: add default to its annotation engine.grove.io/shared-with"
SET = podcliqueset("web", clique("worker", resourceSharing=[share("gpu", namespace="vault")]), clique("router"))


@pytest.fixture
def vault(box: Box) -> Box:
    """A cluster with a template in another namespace."""
    client = box.cluster.client("user")
    template = {
        "apiVersion": kinds.RESOURCE_CLAIM_TEMPLATE.api_version,
        "kind": kinds.RESOURCE_CLAIM_TEMPLATE.name,
        "metadata": {"name": "gpu", "namespace": "vault"},
        "spec": claim_template("gpu")["templateSpec"],
    }
    box.portal.call(client.create, kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vault"}})
    box.portal.call(client.create, kinds.RESOURCE_CLAIM_TEMPLATE, "vault", template)
    return box


def shared(box: Box, value: str) -> None:
    """The other team annotates its template."""
    patch = {"metadata": {"annotations": {labels.SHARED_WITH: value}}}
    box.portal.call(box.cluster.client("user").patch, kinds.RESOURCE_CLAIM_TEMPLATE, "vault", "gpu", patch)


def written(folder: Path, document: Any) -> Path:
    """A file with one document."""
    file = folder / "document.json"
    file.write_text(json.dumps(document))
    return file


def flat(text: str) -> str:
    """The text with one space for all white space between words."""
    return " ".join(text.split())


def test_diff_sync_status_and_why_say_what_waits_and_what_to_do(vault: Box, engine: Engine, tmp_path: Path) -> None:
    file = written(tmp_path, SET)

    shown = engine("diff", "-A", "-f", file)
    document = engine("diff", "-A", "-f", file, "-o", "json").document
    synced = engine("sync", "-A", "-f", file, "--no-wait")

    assert (shown.code, synced.code) == (Exit.STUCK, Exit.STUCK)
    assert WHY in flat(shown.out) and WHY in flat(synced.out + synced.err)
    blocked = [each for root in document["roots"] for each in root["blocked"]]
    assert "NotShared" in {each["reason"] for each in blocked}
    for words in (("diff", "-A"), ("status", "-A"), ("status",), ("why", "pcs/web"), ("why", "resourceclaim/web-0-worker-all-gpu")):
        said = engine(*words)
        assert WHY in flat(said.out), said.out
    assert [name.startswith("web-0-router") for name in vault.names(kinds.POD)] == [True]

    shared(vault, "default")
    assert engine("sync", "-A").code == Exit.DONE
    assert len(vault.names(kinds.POD)) == 2
    assert engine("diff", "-A").code == Exit.DONE


@pytest.mark.parametrize(("value", "code"), [("other", Exit.DENIED), ("default", Exit.DONE)])
def test_review_judges_by_the_annotation_and_says_that_the_user_was_not_asked_for(
    vault: Box, engine: Engine, tmp_path: Path, value: str, code: Exit
) -> None:
    shared(vault, value)

    said = engine("review", "-f", written(tmp_path, review(object=SET, namespace="default", name="web")), "--against", "live")

    assert said.code == code
    (response,) = [json.loads(line)["response"] for line in said.out.splitlines()]
    if code is Exit.DENIED:
        assert f"spec.template.cliques[0].resourceSharing[0].namespace: Forbidden: {WHY}" in response["status"]["message"]
    else:
        assert "whether user ann may get resourceclaimtemplates.resource.k8s.io vault/gpu was not checked" in response["warnings"][0]


def test_review_without_a_cluster_says_that_the_template_was_not_read(engine: Engine, tmp_path: Path) -> None:
    said = engine("review", "-f", written(tmp_path, review(object=SET, namespace="default", name="web")))

    (response,) = [json.loads(line)["response"] for line in said.out.splitlines()]
    assert (said.code, response["allowed"]) == (Exit.DONE, True)
    assert "ResourceClaimTemplate vault/gpu was not read" in response["warnings"][0]


@pytest.mark.parametrize("verbose", [False, True])
def test_a_pod_of_a_new_set_that_waits_now_and_at_the_end_is_told_once(vault: Box, engine: Engine, tmp_path: Path, verbose: bool) -> None:
    workers = podcliqueset("web", clique("worker", 4, resourceSharing=[share("gpu", namespace="vault")]), clique("router"))

    shown = engine("diff", "-A", "-f", written(tmp_path, workers), *(("-v",) if verbose else ())).out

    waiting = [line for line in shown.splitlines() if "! blocked" in line and "Pod" in line]
    assert (len(waiting), "4 Pods: web-0-worker-*" in shown) == ((4, False) if verbose else (1, True)), shown
