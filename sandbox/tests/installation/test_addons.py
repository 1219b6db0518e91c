"""Add-ons: what is served once they are installed."""

import pytest

from engine.ids import Kind
from grove_sandbox.api.verbs import Api
from grove_sandbox.installation.addons import ADDONS, addon_objects
from grove_sandbox.types.status import StatusError
from resources.base.kinds import KAI_POD_GROUP, KAI_QUEUE, KAI_TOPOLOGY, LEADER_WORKER_SET, VOLCANO_POD_GROUP, VOLCANO_QUEUE
from sandbox.tests.in_memory import about, fresh

KINDS: dict[str, set[Kind]] = {
    "lws": {LEADER_WORKER_SET},
    "volcano": {VOLCANO_POD_GROUP, VOLCANO_QUEUE},
    "kai": {KAI_POD_GROUP, KAI_QUEUE, KAI_TOPOLOGY},
}


def with_addons(*names: str) -> Api:
    """An API in which these are installed."""
    api = fresh()
    for kind, body in addon_objects(names):
        api.create(about(api, kind), dict(body))
    return api


def body_of(kind: Kind, name: str, spec: dict[str, object]) -> dict[str, object]:
    """A manifest."""
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}, "spec": spec}


def served(api: Api) -> set[tuple[str, str, str]]:
    """Group, version and plural of every served kind."""
    return {(each.kind.group, each.kind.version, each.kind.plural) for each in api.catalogue}


@pytest.mark.parametrize("name", ADDONS)
def test_an_addon_makes_its_kinds_served_and_no_others(name: str) -> None:
    kinds = {(kind.group, kind.version, kind.plural) for kind in KINDS[name]}

    assert served(with_addons(name)) - served(fresh()) == kinds


def test_addons_of_which_kinds_have_the_same_name_are_installed_together() -> None:
    api = with_addons("volcano", "kai", "lws", "kai")
    api.create(about(api, VOLCANO_POD_GROUP), body_of(VOLCANO_POD_GROUP, "g", {"minMember": 2}))
    api.create(about(api, KAI_POD_GROUP), body_of(KAI_POD_GROUP, "g", {"minMember": 3}))

    assert api.get(about(api, VOLCANO_POD_GROUP, "g")).body["spec"] == {"minMember": 2, "queue": "default"}
    assert api.get(about(api, KAI_POD_GROUP, "g")).body["spec"] == {"minMember": 3}


def test_volcano_has_two_queues_from_the_start_and_kai_has_none() -> None:
    api = with_addons("volcano", "kai")

    assert [item.body["metadata"]["name"] for item in api.list(about(api, VOLCANO_QUEUE)).items] == ["default", "root"]
    assert not api.list(about(api, KAI_QUEUE)).items


def test_the_status_of_volcano_s_groups_is_no_subresource() -> None:
    api = with_addons("volcano")
    assert api.catalogue.find(VOLCANO_POD_GROUP.group, VOLCANO_POD_GROUP.version, VOLCANO_POD_GROUP.plural).subresources == ()


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (VOLCANO_POD_GROUP, {"minMember": -1}),
        (VOLCANO_POD_GROUP, {"queue": "Not A Name"}),
        (VOLCANO_QUEUE, {"weight": 0}),
        (KAI_POD_GROUP, {"minMember": 0}),
        (KAI_POD_GROUP, {"subGroups": [{"minMember": 1}]}),
        (KAI_QUEUE, {"resources": {"gpu": {"limit": "8"}}}),
        (KAI_TOPOLOGY, {"levels": []}),
    ],
)
def test_what_a_definition_forbids_is_rejected(kind: Kind, spec: dict[str, object]) -> None:
    api = with_addons("volcano", "kai")

    with pytest.raises(StatusError, match="is invalid"):
        api.create(about(api, kind), body_of(kind, "x", spec))


def test_the_levels_of_a_topology_cannot_change() -> None:
    api = with_addons("kai")
    api.create(about(api, KAI_TOPOLOGY), body_of(KAI_TOPOLOGY, "x", {"levels": [{"nodeLabel": "rack"}]}))

    with pytest.raises(StatusError, match="field is immutable"):
        api.patch(about(api, KAI_TOPOLOGY, "x"), {"spec": {"levels": [{"nodeLabel": "zone"}]}}, "merge")


def test_an_unknown_addon_is_an_error() -> None:
    with pytest.raises(KeyError):
        list(addon_objects(["slurm"]))
