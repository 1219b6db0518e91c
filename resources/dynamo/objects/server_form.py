"""Server form: a pod template as an API server returns it. Servers and webhooks add defaults, spell quantities in their own way and leave
out values that are zero."""

from collections.abc import Iterable, Mapping
from typing import Any

from engine.diff import same
from engine.observed import Live
from engine.resource import Body
from resources.base.fields import mapping
from resources.dynamo.objects.pod_template import TEMPLATE_HASH
from resources.schema.pod_spec_form import KUBERNETES_SCHEDULER, respelled


def server_form(desired: Body, live: Any) -> Body:
    """The desired pod template in the spelling of the live one, if there is one, wherever both mean the same."""
    stored = mapping(live)
    if not stored:
        return desired
    metadata = mapping(stored.get("metadata"))
    is_same_metadata = same(_without_time(metadata), desired["metadata"])
    spec = respelled(desired["spec"], mapping(stored.get("spec")), scheduler=KUBERNETES_SCHEDULER)
    return {**desired, "metadata": metadata if is_same_metadata else desired["metadata"], "spec": spec}


def hash_label(own_hash: str, forms: Iterable[tuple[Body, Any]], live: Live | None) -> str:
    """The value of `TEMPLATE_HASH`: `own_hash`, unless the live templates differ from the desired ones in their spelling alone.

    `forms`: the server form of each desired template, and the live one.
    """
    is_same = live is not None and all(same(form, template) for form, template in forms)
    return live.labels.get(TEMPLATE_HASH, own_hash) if live is not None and is_same else own_hash


def _without_time(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata without the creation time, which servers write into templates as null."""
    return {key: value for key, value in metadata.items() if key != "creationTimestamp"}
