"""One reading: from pass to pass a stored set is read once for each edit, whatever happens to it and its objects besides."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from engine.guard import Limits
from engine.memo import Memo
from engine.observed import live
from engine.proposal import compose
from engine.tick import plan_all
from engine.world import assemble
from resources.admission import graph_decision
from resources.registry import BLUEPRINTS
from tests.counting import READING, READING_GRAPHS, counted, read, read_graph
from tests.laws.toy import START
from tests.resources.admission.graphs import graph
from tests.resources.admission.requests import SETUP, put, small

STORED = {"uid": "u-1", "generation": 1, "finalizers": ["grove.io/podcliqueset.grove.io"]}


class Loop:
    """The passes of one process."""

    def __init__(self, earlier: Memo | None = None) -> None:
        self.memo = Memo(earlier)
        self.revision = 0

    def pass_over(self, *bodies: dict[str, Any], functions: Mapping[str, Callable[..., Any]] = READING) -> Counter[str]:
        """What is counted in a pass over these stored sets, each read from its bytes and with a new revision."""
        self.revision += 1
        stamp = {"resourceVersion": str(self.revision)}
        lives = [live(orjson.loads(orjson.dumps({**body, "metadata": {**body["metadata"], **STORED, **stamp}}))) for body in bodies]
        with counted(functions) as counts:
            world = compose(assemble(BLUEPRINTS, lives, [], {}), BLUEPRINTS, SETUP, self.memo)
            planned = plan_all(BLUEPRINTS, world, START, SETUP, self.memo, Limits())
        assert not any(plan.problems or plan.error for plan in planned.plans)
        return counts


IMAGE = "spec.template.cliques.0.spec.podSpec.containers.0.image"


def test_a_status_a_label_or_a_scale_does_not_make_the_pods_of_a_set_be_read_again() -> None:
    loop, body = Loop(), small()

    first = loop.pass_over(body)
    again = loop.pass_over(put(body, {"status": {"replicas": 1}}))
    labelled = loop.pass_over(put(body, {"metadata.labels": {"team": "a"}}))
    scaled = loop.pass_over(put(body, {"spec.replicas": 2}))

    assert (first, again, labelled, scaled) == (read(1, 1), {}, {}, {"judged": 1})


def test_an_edit_is_read_once_and_beside_another_set() -> None:
    loop, body, other = Loop(), small(), put(small(), {"metadata.name": "other"})
    loop.pass_over(body, other)

    edited = loop.pass_over(put(body, {IMAGE: "new"}), other)
    settled = loop.pass_over(put(body, {IMAGE: "new", "status": {"replicas": 1}}), other)

    assert (edited, settled) == (read(1, 1), {})


def test_what_begins_with_the_memo_of_others_reads_nothing_again_and_leaves_it_as_it_is() -> None:
    loop = Loop()
    loop.pass_over(small())

    forecast = Loop(loop.memo)
    beginning, edited = forecast.pass_over(small()), forecast.pass_over(put(small(), {IMAGE: "new"}))

    assert (beginning, edited, loop.pass_over(put(small(), {"status": {"replicas": 1}}))) == ({}, read(1, 1), {})


def test_a_status_or_a_label_does_not_make_a_graph_and_its_set_be_read_again() -> None:
    loop, body, other = Loop(), graph(), put(graph(), {"metadata.labels": {"team": "a"}})
    image = "spec.services.decode.extraPodSpec.mainContainer.image"

    first = loop.pass_over(body, functions=READING_GRAPHS)
    again = loop.pass_over(put(body, {"status": {"state": "pending"}}), functions=READING_GRAPHS)
    labelled = loop.pass_over(other, functions=READING_GRAPHS)
    edited = loop.pass_over(put(other, {image: "new"}), functions=READING_GRAPHS)

    assert (first, again, labelled, edited) == (read_graph(1, 2), {}, {}, read_graph(1, 2))


def test_a_graph_is_judged_once_for_each_edit_although_its_set_and_its_objects_are_computed_from_it() -> None:
    loop, body, judged = Loop(), graph(), {"judged": graph_decision.decide}

    first = loop.pass_over(body, functions=judged)
    again = loop.pass_over(put(body, {"status": {"state": "pending"}}), functions=judged)
    edited = loop.pass_over(put(body, {"metadata.labels": {"team": "a"}}), functions=judged)

    assert (first, again, edited) == ({"judged": 1}, {}, {"judged": 1})
