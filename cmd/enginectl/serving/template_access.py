"""Template access: asks the API server whether the user of a request may read the templates of other namespaces that it refers to."""

from collections.abc import Mapping
from typing import Any, Final

import anyio
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden, NotFound
from engine.ids import ResourceId
from engine.runtime.provider import Client
from enginectl.serving.access import access_spec, is_allowed
from resources.admission.consent_rules import TemplateAccess
from resources.admission.request import Request
from resources.base import kinds
from resources.base.fields import mapping
from resources.install.permissions import ACCESS_REVIEW
from resources.schema.formats import label_faults, subdomain_faults

LONGEST: Final = 3.0
"""Seconds that the calls for one review may take together: an API server waits for the answer."""
MOST: Final = 20
"""About how many templates the API server is asked for one review."""
AT_ONCE: Final = 8
"""Calls that are made at a time for all reviews."""
NO_ANSWER: Final = TemplateAccess(unchecked=f"no answer within {LONGEST:g} s")
TOO_MANY: Final = TemplateAccess(unchecked=f"the request refers to more than {MOST} templates of other namespaces")


class TemplateReader:
    """Reads templates of other namespaces for users who may do so."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._slots = anyio.CapacityLimiter(AT_ONCE)

    async def access(self, request: Request, ids: frozenset[ResourceId]) -> Mapping[ResourceId, TemplateAccess]:
        """What is known about each of these templates and the user of the request."""
        wanted = sorted(ids)
        known = dict.fromkeys(wanted[:MOST], NO_ANSWER) | dict.fromkeys(wanted[MOST:], TOO_MANY)

        async def learn(id: ResourceId) -> None:
            async with self._slots:
                known[id] = await self._access(request, id)

        with anyio.move_on_after(LONGEST):
            async with anyio.create_task_group() as tasks:
                for id in wanted[:MOST]:
                    if label_faults(id.namespace) or subdomain_faults(id.name):
                        known[id] = TemplateAccess()  # No object has such a name, and it becomes no part of a URL.
                    else:
                        tasks.start_soon(learn, id)
        return known

    async def _access(self, request: Request, id: ResourceId) -> TemplateAccess:
        """Whether the user may read a template; and if so, the template: others learn nothing about it, not even whether it exists."""
        kind = kinds.RESOURCE_CLAIM_TEMPLATE
        asked = {"verb": "get", "group": kind.group, "version": kind.version, "resource": kind.plural}
        attributes = {"resourceAttributes": {**asked, "namespace": id.namespace, "name": id.name}}
        try:
            status = await self._review(access_spec(request.user, request.user_info, attributes))
        except ClusterError as error:
            # The text of an error may quote the request.
            hint = ": the engine may not create subjectaccessreviews" if isinstance(error, Forbidden) else ""
            return TemplateAccess(unchecked=f"{type(error).__name__}{hint}")
        permitted = TemplateAccess(is_permitted=is_allowed(status))
        if not permitted.is_permitted:
            return permitted
        try:
            return replace(permitted, template=await self._client.get(kind, id.namespace, id.name))
        except NotFound:
            return permitted
        except ClusterError as error:
            return replace(permitted, unread=f"could not be read ({type(error).__name__})")

    async def _review(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The status of a SubjectAccessReview. Raises `ClusterError`."""
        body = {"apiVersion": ACCESS_REVIEW.api_version, "kind": ACCESS_REVIEW.name, "metadata": {}, "spec": dict(spec)}
        return mapping((await self._client.create(ACCESS_REVIEW, "", body)).get("status"))
