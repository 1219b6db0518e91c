"""Notes about services whose pods run on different nodes."""

import pytest

from resources.base.labels import POD_FORM
from resources.dynamo.model.form import PodForm
from resources.dynamo.objects.spread import spread_notes
from tests.resources.dynamo.reading import graph_in


@pytest.mark.parametrize(("gpus", "each"), [("1", "2 different nodes with 1 GPU each;"), ("4", "2 different nodes with 4 GPUs each;")])
def test_the_gpus_of_each_node_are_counted_in_words(gpus: str, each: str) -> None:
    service = {"componentType": "worker", "multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": gpus}}}
    graph = graph_in({"name": "g", "annotations": {POD_FORM: str(PodForm.CURRENT)}}, {"services": {"decode": service}})

    (note,) = spread_notes(graph)

    assert each in note
