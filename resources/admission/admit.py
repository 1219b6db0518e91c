"""Admit: one door for everybody who asks whether something may be done to an object: the webhook, the preview and the sandbox."""

from functools import reduce
from typing import Final

from engine.resource import Body
from resources import kinds
from resources.admission.defaults import defaulted
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Decision, Neighbourhood, Request, Unseen
from resources.schema.parse import faults
from resources.setup import Setup

UNSEEN: Final = Unseen()
UNPROTECTED: Final = Protection()


def admit(request: Request, setup: Setup, around: Neighbourhood = UNSEEN, protection: Protection = UNPROTECTED) -> Decision:
    """What becomes of a request. Pure, and never raises, whatever the object is."""
    body = request.body
    if body is None or request.subresource or request.id.kind != kinds.PODCLIQUESET.name:
        return Decision(body=body)
    body = defaulted(body)
    if issues := faults(kinds.PODCLIQUESET, body, strict=False):
        return Decision(issues, body=body)
    return Decision(body=_enrolled(body, setup) if request.act is Act.CREATE else body)


def _enrolled(body: Body, setup: Setup) -> Body:
    return reduce(lambda so_far, fabric: fabric.enrolled(so_far), setup.fabrics, body)
