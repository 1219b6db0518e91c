"""N28: a preview says which domains are shared, and counts their creation once (docs/behaviour)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.report.model import compose
from engine.verb import Verb
from enginectl.base.exit_codes import Exit
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import NAMED
from resources.domains.requests import scaled_groups, sharing_notes
from tests.builders import group
from tests.enginectl.calling import Engine
from tests.laws.rack import Rack
from tests.mnnvl.asking import root, sharing, up
from tests.mnnvl.sets import gpu, named
from tests.mnnvl.test_group_replicas import pooled, scale_pool
from tests.mnnvl.vendors import Acme

OWN, OWN_GROUP = "$(GROVE_PCS_INDEX)", "$(GROVE_PCSG_INDEX)"
EACH = "each has its own with"


def notes(*manifests: dict[str, Any], fabric: Any = None, groups: Any = None) -> dict[str, tuple[str, ...]]:
    """Set -> its notes."""
    sets = [(root(manifest["metadata"]["name"]), manifest) for manifest in manifests]
    return {id.name: listed for id, listed in sharing_notes(fabric or Nvidia(), sets, groups or {}).items()}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (named("rack"), None),
        (named("rack", replicas=2), f"shared by 2 replicas of the set; {EACH} {OWN} in the name"),
        (named(f"rack-{OWN}", replicas=2), None),
        (pooled("rack", units=2), f"shared by 2 replicas of the scaling group pool; {EACH} {OWN_GROUP} in the name"),
        (pooled("rack", units=1), None),
        (pooled(f"rack-{OWN}", units=3, replicas=2), f"shared by 3 replicas of the scaling group pool; {EACH} {OWN_GROUP} in the name"),
        (pooled(f"rack-{OWN_GROUP}", units=3, replicas=2), f"shared by 2 replicas of the set; {EACH} {OWN} in the name"),
        (pooled(f"rack-{OWN}-{OWN_GROUP}", units=3, replicas=2), None),
        (
            pooled("rack", units=3, replicas=2),
            f"shared by 2 replicas of the set and 3 replicas of the scaling group pool; {EACH} {OWN} or {OWN_GROUP} in the name",
        ),
        (named("rack", replicas=0), None),
        (sharing(gpu(), replicas=3), None),
    ],
)
def test_N28_a_name_that_joins_replicas_has_one_note(manifest: dict[str, Any], expected: str | None) -> None:
    name = manifest["spec"]["template"]["cliques"][0].get("annotations", {}).get(NAMED)

    assert notes(manifest) == ({"demo": (f"ComputeDomain {name} is {expected}",)} if expected else {})


def test_N28_sets_of_one_namespace_that_share_a_name_have_a_note_each() -> None:
    elsewhere = named("rack", "far")
    far = root("far")._replace(namespace="other")
    found = sharing_notes(Nvidia(), [(root("a"), named("rack", "a")), (root("b"), named("rack", "b")), (far, elsewhere)])

    assert {id.name: listed for id, listed in found.items()} == {
        "a": ("ComputeDomain rack is shared by the set b",),
        "b": ("ComputeDomain rack is shared by the set a",),
    }


def test_N28_a_note_names_few_of_many_sets() -> None:
    found = notes(*(named("rack", f"s{number}") for number in range(6)))

    assert found["s5"] == ("ComputeDomain rack is shared by the sets s0, s1, s2 and 2 more",)
    assert found["s1"] == ("ComputeDomain rack is shared by the sets s0, s2, s3 and 2 more",)


def test_N28_the_replicas_of_a_scaling_group_are_those_that_it_has_now() -> None:
    manifest = pooled("rack", units=1)
    toy = up(manifest)
    scale_pool(toy, 4)

    assert "4 replicas of the scaling group pool" in notes(manifest, groups=scaled_groups(toy.world().roots))["demo"][0]


def test_N28_only_fabrics_with_indices_in_names_recommend_them() -> None:
    class Plain(Acme):
        """A fabric whose names are literal."""

        indexed_names = False

    manifest = sharing(gpu(annotations={"acme.example/mesh": "blue"}), groups=(group("pool", "worker", replicas=2),))

    assert notes(manifest, fabric=Plain()) == {"demo": ("Mesh blue is shared by 2 replicas of the scaling group pool",)}


def test_N28_the_creation_of_a_shared_domain_is_reported_with_the_first_set_and_the_others_join() -> None:
    toy = Rack()
    for name in ("a", "b", "c"):
        toy.put(named("rack", name))
    plans = toy.plans()
    report = compose(plans, lambda _, child: "")
    creates = [(each.root.name, step.operation.id.name) for each in report.roots for step in each.steps if step.operation.id.name == "rack"]
    keys = {step.operation.key for each in report.roots for step in each.steps}

    assert creates == [("a", "rack")]
    assert {each.root.name: [note for note in each.notes if "joins" in note] for each in report.roots} == {
        "a": [],
        "b": ["joins ComputeDomain rack, which PodCliqueSet a creates"],
        "c": ["joins ComputeDomain rack, which PodCliqueSet a creates"],
    }
    assert report.counts[Verb.CREATE] == sum(operation.verb is Verb.CREATE for plan in plans for operation in plan.operations) - 2
    assert all(step.operation.after <= keys for each in report.roots for step in each.steps)


def test_N28_diff_of_files_counts_it_once_and_notes_change_no_exit_code(tmp_path: Path, engine: Engine) -> None:
    file = tmp_path / "sets.yaml"
    file.write_text(yaml.safe_dump_all([named("rack", "a", replicas=2), named("rack", "b")]))
    shown = engine("diff", "-v", "-f", file, "--against", "empty")
    document = engine("diff", "-f", file, "--against", "empty", "-o", "json").document
    domains = [each for entry in document["roots"] for each in entry["operations"] if each["object"]["kind"] == "ComputeDomain"]

    assert (shown.code, shown.out.count("ComputeDomain/rack ")) == (Exit.DONE, 1)
    assert f"note: ComputeDomain rack is shared by 2 replicas of the set and the set b; {EACH} {OWN} in the name" in shown.out
    assert "note: joins ComputeDomain rack, which PodCliqueSet a creates" in shown.out
    assert len(domains) == 1
    assert document["summary"]["create"] == sum(each["verb"] == "create" for entry in document["roots"] for each in entry["operations"])
