"""A child kind is one row and one renderer. The page about the architecture shows the one of this file."""

import re
from collections.abc import Iterator

from engine.ids import ResourceId
from engine.observed import Live, Unlisted
from engine.plan import Plan
from engine.reason import Because, Reason
from engine.resource import Want
from engine.verb import Verb
from enginectl.wiring.scope import EVERYTHING, scope_of
from resources.base import kinds, labels
from resources.base.fields import manifest
from resources.blueprints.podcliqueset import PodCliqueSetBlueprint
from resources.children.child_kind import CHANGES, ChildKind, ChildTable, DeletionGroup
from resources.children.table import CHILDREN
from resources.install.permissions import permissions
from resources.model.view import View
from resources.registry import BLUEPRINTS
from resources.status import errors
from tests import builders
from tests.laws.toy import CONFIGURATION, Toy
from tests.resources.status.test_errors import failed
from tests.test_layout import ROOT


# --- the example of the page
def render(view: View) -> Iterator[Want]:
    """One ConfigMap for each clique, with the number of its pods."""
    for clique in view.cliques:
        if view.keeps(clique):
            id = kinds.CONFIG_MAP.id(view.namespace, f"{clique.name}-size")
            data = {"pods": str(clique.replicas)}
            body = manifest(kinds.CONFIG_MAP, id.namespace, id.name, labels.child(view.root, "clique-size"), data=data)
            yield Want(id, f"size of {clique.name}", (view.owner,), frozenset({clique.id}), body=body)


def obsolete(view: View, live: Live) -> DeletionGroup:
    """It is deleted when its clique is gone."""
    return DeletionGroup(Because(Reason.SCALED_IN, f"{live.id.name} is of no clique"))


SIZES = ChildKind(
    kinds.CONFIG_MAP,
    reads=(kinds.PODCLIQUE, kinds.SCALING_GROUP),
    of_replica=render,
    obsolete=obsolete,
    protected=CHANGES,
)
# --- its end

TABLE = ChildTable((*CHILDREN.rows, SIZES))
WITH_SIZES = (PodCliqueSetBlueprint(TABLE), *BLUEPRINTS[1:])
CLIQUES = (builders.clique("a", 2), builders.clique("b"))
DEMO = builders.podcliqueset("demo", *CLIQUES, groups=(builders.group("g", "b", replicas=2, minAvailable=1),))
SET = kinds.PODCLIQUESET.id("default", "demo")
SIZE = kinds.CONFIG_MAP.id("default", "demo-0-a-size")


class Sized(Toy):
    """A cluster whose sets also have the new kind."""

    blueprints = WITH_SIZES


def settled() -> Sized:
    """A cluster in which everything of the set exists."""
    toy = Sized()
    toy.put(DEMO)
    toy.settle()
    return toy


def sizes(toy: Toy) -> dict[str, str]:
    """The name of each ConfigMap -> the number in it."""
    return {id.name: body["data"]["pods"] for id, body in toy.objects.items() if id.kind == kinds.CONFIG_MAP.name}


def planned(plans: tuple[Plan, ...], id: ResourceId) -> list[Verb]:
    """What is planned for one object."""
    return [operation.verb for plan in plans for operation in plan.operations if operation.id == id]


def test_its_objects_are_created_after_what_they_refer_to() -> None:
    toy = settled()

    assert sizes(toy) == {"demo-0-a-size": "2", "demo-0-g-0-b-size": "1", "demo-0-g-1-b-size": "1"}
    assert toy.created.index(kinds.PODCLIQUE.id("default", "demo-0-a")) < toy.created.index(SIZE)


def test_they_follow_what_is_read_and_are_left_alone_while_that_could_not_be_listed() -> None:
    toy = settled()
    toy.write(kinds.PODCLIQUE.id("default", "demo-0-a"), {"spec": {"replicas": 3}})

    assert planned(toy.plans(), SIZE) == [Verb.PATCH]
    toy.unlisted = {kinds.PODCLIQUE.key: Unlisted("forbidden")}
    assert planned(toy.plans(), SIZE) == []
    toy.unlisted = {}
    toy.settle()
    assert sizes(toy)["demo-0-a-size"] == "3"


def test_they_are_repaired() -> None:
    toy = settled()
    toy.write(SIZE, {"data": {"pods": "7"}})
    del toy.objects[kinds.CONFIG_MAP.id("default", "demo-0-g-0-b-size")]
    toy.settle()

    assert sizes(toy) == {"demo-0-a-size": "2", "demo-0-g-0-b-size": "1", "demo-0-g-1-b-size": "1"}


def test_obsolete_ones_are_deleted() -> None:
    toy = settled()
    toy.write(kinds.SCALING_GROUP.id("default", "demo-0-g"), {"spec": {"replicas": 1}})
    toy.settle()

    assert sizes(toy) == {"demo-0-a-size": "2", "demo-0-g-0-b-size": "1"}


def test_they_are_deleted_after_the_pods_of_their_set() -> None:
    toy = settled()
    toy.delete(SET)

    assert planned(toy.plans(), SIZE) == []
    toy.settle()
    assert toy.objects == {}


def test_permissions_lists_protection_and_error_codes_follow_from_the_row() -> None:
    allowed = {permission.resource: permission.verbs for permission in permissions(WITH_SIZES, CONFIGURATION)}
    (call,) = failed(operation for plan in _new().plans() for operation in plan.operations if operation.id == SIZE)

    assert allowed["configmaps"] == ("get", "list", "watch", "create", "patch", "delete")
    assert kinds.CONFIG_MAP in scope_of(CONFIGURATION, EVERYTHING, WITH_SIZES).children
    assert TABLE.protected(CONFIGURATION)[kinds.CONFIG_MAP] == CHANGES
    assert errors.of(SET, [call], {}, TABLE.codes)["lastErrors"][0]["code"] == "ERR_SYNC_CONFIGMAP"


def _new() -> Toy:
    toy = Sized()
    toy.put(DEMO)
    return toy


def test_the_page_shows_this_example() -> None:
    _, _, rest = (ROOT / "tests/resources/children/test_new_kind.py").read_text().partition("# --- the example of the page\n")
    (shown,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE | re.DOTALL)

    assert shown == rest.partition("# --- its end\n")[0]
