"""Services: one headless Service for each replica. It gives the pods of the replica their DNS names."""

from collections.abc import Iterator

from engine.resource import Policy, Want
from resources.base import kinds, labels, names
from resources.base.fields import manifest, omitted_fields
from resources.model.view import View

POLICY = Policy(immutable=(("spec", "clusterIP"),), exact=(("spec", "selector"),), omitted=omitted_fields(kinds.SERVICE))


def render(view: View) -> Iterator[Want]:
    """The headless Service of a replica. It has no ports: it exists for DNS only."""
    name = names.headless_service(view.root, view.index)
    selector = {**labels.default(view.root), labels.REPLICA_INDEX: str(view.index)}
    body = manifest(
        kinds.SERVICE,
        view.namespace,
        name,
        {**labels.child(view.root, "pcs-headless-service", name), labels.REPLICA_INDEX: str(view.index)},
        spec={"clusterIP": "None", "publishNotReadyAddresses": view.template.publish_not_ready, "selector": selector},
    )
    yield Want(kinds.SERVICE.id(view.namespace, name), f"headless Service of replica {view.index}", (view.owner,), body=body, policy=POLICY)
