"""Service: one for each replica, without an address of its own; it gives the pods of the replica their names."""

from collections.abc import Iterator

from engine.resource import Policy, Resource
from resources.base import kinds, labels, names
from resources.base.manifest import manifest
from resources.model.view import View


def render(view: View) -> Iterator[Resource]:
    """The headless Service of a replica. It has no ports: it is there for DNS."""
    name = names.headless_service(view.root, view.index)
    selector = {**labels.default(view.root), labels.REPLICA_INDEX: str(view.index)}
    body = manifest(
        kinds.SERVICE,
        view.namespace,
        name,
        {**labels.child(view.root, "pcs-headless-service", name), labels.REPLICA_INDEX: str(view.index)},
        spec={"clusterIP": "None", "publishNotReadyAddresses": view.template.publish_not_ready, "selector": selector},
    )
    policy = Policy(immutable=(("spec", "clusterIP"),), exact=(("spec", "selector"),))
    yield Resource(kinds.SERVICE.id(view.namespace, name), body, f"names the pods of replica {view.index}", (view.owner,), policy=policy)
