"""Dead and users' domains, as `engine status` and `engine why` show them."""

from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.test_why import config, domains, written
from tests.mnnvl.sets import computedomain

__all__ = ["config"]


def crashing(body: dict[str, Any]) -> bool:
    """Whether a container of a pod fails again and again."""
    statuses = (body.get("status") or {}).get("containerStatuses") or ()
    return any(((one.get("state") or {}).get("waiting") or {}).get("reason") == "CrashLoopBackOff" for one in statuses)


def pod_of(box: Box) -> str:
    """The name of the only pod of the set."""
    (name,) = [name for name in box.names(kinds.POD) if name.startswith("demo-")]
    return name


def test_status_and_why_name_the_pods_of_a_deleted_domain_and_the_command_that_mends_it(
    box: Box, engine: Engine, config: Path, tmp_path: Path
) -> None:
    assert engine("sync", "-f", written(tmp_path), "--config", config, "--timeout", "30m").code == Exit.DONE
    name = pod_of(box)
    box.delete(COMPUTE_DOMAIN, "demo-0")
    box.wait_for(kinds.POD, crashing, name)
    domain, pod = engine("why", "computedomain/demo-0"), engine("why", f"pod/{name}")
    text, document = engine("status"), engine("status", "-o", "json")
    entry = domains(document)["demo-0"]

    remedy = f"delete it: kubectl -n default delete pod {name}"
    assert [workload["state"] for workload in document.document["workloads"]] == ["blocked"]
    assert f"NVLink is cut for 1 pod ({name}) since " in text.out and remedy in text.out
    assert (entry["cutOff"]["pods"], entry["cutOff"]["link"], entry["cutOff"]["do"]) == ([name], "NVLink", remedy)
    for answer in (domain, pod):
        lines = [text.strip() for text in answer.out.splitlines()]
        place = lines.index(f"pod {name}: CrashLoopBackOff, NVLink is cut")
        assert lines[place + 1].startswith("because ComputeDomain demo-0 is being deleted since ")
        assert lines[place + 1].endswith("; this is the likely cause of its failures")
        assert lines[place + 2] == f"do: {remedy}"
        assert "because" not in " ".join(lines[:place])


def test_a_preview_and_a_quiet_sync_say_alike_that_somebody_must_act_and_the_sync_gives_the_command(
    box: Box, engine: Engine, config: Path, tmp_path: Path
) -> None:
    assert engine("sync", "-f", written(tmp_path), "--config", config, "--timeout", "30m").code == Exit.DONE
    name = pod_of(box)
    box.delete(COMPUTE_DOMAIN, "demo-0")
    box.wait_for(kinds.POD, crashing, name)

    shown, answer = engine("diff", "--config", config), engine("sync", "-q", "--config", config, "--timeout", "40s")

    assert (shown.code, answer.code, answer.out) == (Exit.STUCK, Exit.STUCK, ""), shown.out
    assert "! blocked  ComputeDomain/demo-0  InUse: is being deleted; waits for 1 pod and 1 claim" in shown.out, shown.out
    assert f"NVLink is cut for 1 pod ({name})" in answer.err and f"kubectl -n default delete pod {name}" in answer.err


def test_a_preview_of_an_edit_says_too_that_somebody_must_act_on_a_domain(box: Box, engine: Engine, config: Path, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path), "--config", config, "--timeout", "30m").code == Exit.DONE
    name = pod_of(box)
    box.delete(COMPUTE_DOMAIN, "demo-0")
    box.wait_for(kinds.POD, crashing, name)
    file = written(tmp_path, replicas=2)

    shown, answer = engine("diff", "-f", file, "--config", config), engine("sync", "-f", file, "--config", config, "--timeout", "60s")

    assert (shown.code, answer.code) == (Exit.STUCK, Exit.STUCK), shown.out
    assert "replicas: 1 → 2" in shown.out and "! blocked  ComputeDomain/demo-0  InUse" in shown.out, shown.out


@pytest.mark.parametrize("domain", ["", "rack"])
def test_an_update_that_deletes_the_pods_of_a_deleted_domain_asks_nobody_to_act(
    box: Box, engine: Engine, config: Path, tmp_path: Path, domain: str
) -> None:
    file = written(tmp_path, domain=domain)
    assert engine("sync", "-f", file, "--config", config, "--timeout", "30m").code == Exit.DONE
    name = pod_of(box)
    box.delete(COMPUTE_DOMAIN, domain or "demo-0")
    box.wait_for(kinds.POD, crashing, name)
    file.write_text(file.read_text().replace("x:1", "x:2"))

    shown, answer = engine("diff", "-f", file, "--config", config), engine("sync", "-f", file, "--config", config, "--timeout", "30m")

    assert (shown.code, answer.code) == (Exit.DONE, Exit.DONE), (shown.out, answer)
    assert "blocked" not in shown.out.lower() and "delete the pods" not in shown.out, shown.out


def test_why_of_a_user_domain_names_its_users_before_it_says_that_no_set_has_made_it(box: Box, engine: Engine, tmp_path: Path) -> None:
    box.create(COMPUTE_DOMAIN, computedomain("rack", "channel"))
    assert engine("sync", "-f", written(tmp_path, domain="rack"), "--timeout", "30m").code == Exit.DONE
    why = engine("why", "computedomain/rack")
    document = engine("why", "computedomain/rack", "-o", "json").document

    used, unmanaged = "used by PodCliqueSet/default/demo, pods: 1 of demo-0-worker", "not managed: no workload has made it"
    assert why.out.index(used) < why.out.index(unmanaged)
    assert [(one["object"]["name"], one["pods"]) for one in document["usedBy"]] == [("demo", {"demo-0-worker": 1})]
    pod = pod_of(box)

    box.delete(COMPUTE_DOMAIN, "rack")
    assert engine("sync", "--timeout", "30m", "--no-wait").code in (Exit.DONE, Exit.FAILED)
    lost = engine("why", f"pod/{pod}")
    assert "NVLink is cut" in lost.out and f"kubectl -n default delete pod {pod}" in lost.out


def test_the_command_is_whole_at_the_end_of_its_line_however_long_names_are(box: Box, engine: Engine, config: Path, tmp_path: Path) -> None:
    long = "a-name-as-long-as-it-may-be-at-most"
    assert engine("sync", "-f", written(tmp_path, long, pods=3), "--config", config, "--timeout", "30m").code == Exit.DONE
    pods = sorted(name for name in box.names(kinds.POD) if name.startswith(long))
    box.delete(COMPUTE_DOMAIN, f"{long}-0")
    remedy = f"delete them: kubectl -n default delete pod {' '.join(pods)}"
    status, why = engine("status"), engine("why", f"computedomain/{long}-0")

    assert [line.split()[0] for line in status.out.splitlines() if line.endswith(remedy)] == ["warning:", "domain"]
    assert f"    do: {remedy}" in why.out.splitlines()
