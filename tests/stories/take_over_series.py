"""The edits of take-overs from Grove's operator that are compared on a real API server."""

from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.stories.edits import Act, Edit, EditSeries, User, deleted, scaled
from tests.stories.pods import is_bound, is_ready
from tests.takeover.epochs import EpochGrove
from tests.takeover.grove import Body
from tests.takeover.grove_operator import Grove
from tests.takeover.stored_set import Options
from tests.takeover.worlds import inference
from tests.waiting import Objects, until_objects


def workload(version: int = 1, replicas: int = 2) -> Body:
    """A set of the operator that the nodes of a control plane can run."""
    manifest = inference(version, replicas=replicas)
    del manifest["spec"]["template"]["priorityClassName"]
    return manifest


def are_running(pods: Objects) -> bool:
    """Whether all pods run and are ready."""
    return all(is_bound(pod) and is_ready(pod) for pod in pods.values())


def deployed(*, by_later_release: bool = False) -> Act:
    """Grove's operator has brought a set to rest; the later release has renamed its PodGangs after epochs."""

    async def do(user: User) -> None:
        async def pause() -> None:
            await until_objects(user.client, kinds.POD, user.namespace, are_running)

        grove = Grove(user.operator, pause, Options(), user.namespace)
        await grove.deploy(user.located(workload()))
        if by_later_release:
            await EpochGrove(grove).migrate()

    return do


TAKE_OVERS = (
    EditSeries(
        "taken-over",
        [],
        [
            Edit("a set of the operator", deployed()),
            Edit("another image after that", manifests=[workload(2)]),
            Edit("the set is deleted", deleted(kinds.PODCLIQUESET, "llm")),
        ],
    ),
    EditSeries("taken-over-with-an-edit", [], [Edit("a set of the operator with another image", deployed(), [workload(2)])]),
    EditSeries(
        "epochs",
        [],
        [
            Edit("a set of the later release", deployed(by_later_release=True), ending=Ending.DENIED),
        ],
    ),
    EditSeries(
        "epochs-taken-over",
        [],
        [
            Edit("a set of the later release", deployed(by_later_release=True)),
            Edit("a replica more after that", scaled(kinds.PODCLIQUESET, "llm", 3)),
        ],
        take_over=True,
    ),
    EditSeries(
        "epochs-with-an-edit",
        [],
        [Edit("a set of the later release with another image and a replica more", deployed(by_later_release=True), [workload(2, 3)])],
        take_over=True,
    ),
    EditSeries(
        "epochs-scaled-in",
        [],
        [Edit("a set of the later release with a replica less", deployed(by_later_release=True), [workload(1, 1)])],
        take_over=True,
    ),
)
