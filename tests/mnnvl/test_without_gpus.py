"""R7, R36: a set with `enabled` none of whose pods asks for a GPU has no domain; a domain that it has already is kept."""

from pathlib import Path
from typing import Any

import yaml

from engine.verb import Verb
from enginectl.base.exit_codes import Exit
from providers.fabrics.nvidia.names import AUTO
from resources.base import kinds
from resources.domains.status import State, domain_statuses
from tests.builders import clique, group, podcliqueset
from tests.enginectl import test_requirements as fitness
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.laws.fabric_worlds import settle
from tests.laws.rack import Rack
from tests.mnnvl.asking import ask, claimed, done_to_domains, plan_of, up
from tests.mnnvl.sets import OURS, auto, computedomain, gpu

DEMO = kinds.PODCLIQUESET.id("default", "demo")
NONE_MADE = "no ComputeDomain is created for the replicas of the set, although it requests them: no pod requests an accelerator"


def without_gpus(replicas: int = 1) -> dict[str, Any]:
    """A set that requests automatic domains, and whose pods have no GPUs."""
    return auto(replicas, clique("alone"), clique("member"), groups=(group("pool", "member"),))


def with_domain(replicas: int = 1) -> Rack:
    """Such a set with the domain that an earlier version made for its first replica."""
    toy = Rack()
    root = toy.put(without_gpus(replicas))
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "demo", "uid": root["metadata"]["uid"]}
    labels = {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "app.kubernetes.io/name": "demo-0",
        "app.kubernetes.io/component": "pcs-computedomain",
        "grove.io/podcliqueset-replica-index": "0",
    }
    owners = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    toy.put(computedomain("demo-0", labels=labels, finalizers=[OURS], ownerReferences=owners))
    toy.live()
    settle(toy)
    return toy


def test_R36_enabled_without_a_gpu_is_accepted_with_a_warning_and_makes_no_domain() -> None:
    decision = ask(without_gpus())
    toy = up(without_gpus(2))

    assert (decision.allowed, list(decision.warnings)) == (True, [NONE_MADE])
    assert (toy.domains(), set(map(tuple, claimed(toy).values()))) == ({}, {()})
    assert not [wait for wait in plan_of(toy).deferred if wait.id.kind == "ComputeDomain"]
    assert ask(auto(1, gpu(), clique("frontend"))).warnings == ()
    assert ask(podcliqueset("demo", clique("frontend"))).warnings == ()


def test_R36_gpus_that_an_edit_adds_join_a_domain_that_is_created_then() -> None:
    toy = up(without_gpus())
    edited = auto(1, gpu("alone"), clique("member"), groups=(group("pool", "member"),))
    toy.write(DEMO, {"spec": {"template": edited["spec"]["template"]}})
    settle(toy)

    assert list(toy.domains()) == ["demo-0"]
    assert claimed(toy) == {"demo-0-alone": ["demo-0"], "demo-0-pool-0-member": []}


def test_R36_a_domain_from_before_is_kept_untouched_until_its_replica_or_its_set_goes() -> None:
    toy = with_domain(2)
    before = toy.domains()["demo-0"]
    (observed,) = toy.world().roots
    (status,) = domain_statuses(observed, plan_of(toy), toy.configuration)

    assert done_to_domains(toy) == []
    assert toy.domains() == {"demo-0": before}
    assert (status.id.name, status.state) == ("demo-0", State.EMPTY)
    toy.delete(DEMO)
    settle(toy)
    assert toy.objects == {}


def test_R36_such_a_domain_that_its_user_deletes_is_released_and_not_created_again() -> None:
    toy = with_domain()
    toy.delete(toy.domain("demo-0"))
    toy.live()
    (why,) = [each.why for each in plan_of(toy).operations if each.verb is Verb.RELEASE]
    settle(toy)

    assert why == "is being deleted, and no pod joins it"
    assert toy.domains() == {}


def test_R36_a_preview_says_that_no_domain_is_made(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(yaml.safe_dump(without_gpus()))
    options = ("--config", fitness.configured(tmp_path, auto=True))
    preview = engine("diff", "-f", file, *options)

    assert preview.code is Exit.DONE
    assert preview.err.count(NONE_MADE) + preview.out.count(NONE_MADE) == 1
    assert "ComputeDomain demo-0" not in preview.out
    assert engine("sync", "-f", file, "--no-wait", *options).code is Exit.DONE
    stored = engine("diff", *options)
    assert stored.out.count(NONE_MADE) == 1
    assert AUTO in file.read_text()
