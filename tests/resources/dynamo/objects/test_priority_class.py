"""The priority class of a graph without Grove: that of the pods of all services that name none themselves."""

from engine.paths import get
from resources.dynamo.objects.components import component_resources
from resources.dynamo.objects.group_scheduler import BY_VOLCANO
from resources.ports.configuration import DynamoSettings
from tests.resources.dynamo.objects.component_graphs import NOTHING
from tests.resources.dynamo.reading import graph_in
from tests.stories.graphs import service

LEADER, WORKER = (("spec", "leaderWorkerTemplate", name, "spec", "priorityClassName") for name in ("leaderTemplate", "workerTemplate"))
ONE = ("spec", "template", "spec", "priorityClassName")


def test_pods_have_the_priority_class_of_the_graph_unless_their_service_names_one() -> None:
    own = service()
    own["extraPodSpec"] = {**own["extraPodSpec"], "priorityClassName": "own"}
    services = {"wide": service(nodes=2), "one": service(), "other": own}
    specified = graph_in({"name": "g", "namespace": "default"}, {"priorityClassName": "high", "services": services})

    made = component_resources(specified, DynamoSettings(), NOTHING, {}, dict.fromkeys(services, BY_VOLCANO), was_ready=True)

    bodies = {f"{each.id.kind}/{each.id.name}": each.body for each in made if hasattr(each, "body")}
    assert [get(bodies["LeaderWorkerSet/g-wide-0"], path) for path in (LEADER, WORKER)] == ["high", "high"]
    assert [get(bodies[f"Deployment/g-{name}"], ONE) for name in ("one", "other")] == ["high", "own"]
