"""Leader wait: the init container in which a worker waits until its leader listens, so that it joins no leader that is not there yet."""

from typing import Any, Final

from engine.resource import Body
from resources.base.added_to_pods import NOBODY, NON_ROOT, RESTRICTED
from resources.dynamo.backends.addresses import by_kubelet
from resources.dynamo.backends.port import Placement

NAME: Final = "wait-for-leader-mp"
WAIT: Final = """\
import os, socket, time
leader = os.environ["LEADER_HOST"], int(os.environ["LEADER_PORT"])
while True:
    try:
        socket.create_connection(leader, timeout=5).close()
        break
    except OSError as error:
        print("waiting for %s:%d: %s" % (*leader, error), flush=True)
        time.sleep(5)
"""
"""Python, because every image of a framework has it. It has no limit: a worker without its leader has nothing to do."""


def leader_wait(container: Body, placement: Placement, port: int) -> dict[str, Any]:
    """The init container, with the image of the main one. It is restricted, and runs as the user that the pod names, else as `nobody`.

    If the pod names root, it runs as root: only root may be able to read the interpreter.

    The user has a number, unlike that of the set's init container, because the image is the user's: those of frameworks have root or a
    name as their user, and with `runAsNonRoot` alone a kubelet would not start them. A cluster that chooses users by namespace admits no
    number outside its range: there the pod has to name one.
    """
    variables = {"LEADER_HOST": placement.addresses.leader(by_kubelet), "LEADER_PORT": str(port)}
    copied = {field: container[field] for field in ("image", "imagePullPolicy") if container.get(field)}
    user = {} if placement.user == 0 else {**NON_ROOT, "runAsUser": placement.user or NOBODY}
    return {
        "name": NAME,
        **copied,
        "command": ["python3", "-c", WAIT],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "securityContext": {**RESTRICTED, **user},
    }
