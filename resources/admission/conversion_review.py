"""Conversion review: answers ConversionReviews (v1): an API server asks for graphs of one version in the other."""

from collections.abc import Mapping
from typing import Any, Final

from engine.report.printable import printable
from resources.admission import json_rules
from resources.admission.review import MalformedReview, uid_of
from resources.base.kinds import DYNAMO_GRAPH
from resources.dynamo.versions.api_versions import ALPHA, BETA
from resources.dynamo.versions.converted import as_version
from resources.schema.issues import shown

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"
VERSIONS: Final = (ALPHA, BETA)


def converted(document: Any) -> dict[str, Any]:
    """The ConversionReview that answers a document: with all its objects in the version that it asks for, or with the reason why not.

    Raises `MalformedReview` if the document has no uid.
    """
    uid = uid_of(document)
    try:
        objects = _objects(document, uid)
    except MalformedReview as error:
        return _answer(uid, (), {"status": "Failure", "message": printable(str(error)), "reason": "BadRequest", "code": 400})
    return _answer(uid, objects, {"status": "Success"})


def _objects(document: Mapping[str, Any], uid: str) -> list[Any]:
    """The converted objects. Raises `MalformedReview`."""
    for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != expected:
            raise MalformedReview(f'{field}: must be "{expected}", got {shown(document.get(field))}', uid)
    request = document["request"]
    desired, objects = request.get("desiredAPIVersion"), request.get("objects")
    if desired not in VERSIONS:
        raise MalformedReview(f"request.desiredAPIVersion: must be one of {', '.join(VERSIONS)}, got {shown(desired)}", uid)
    if not isinstance(objects, list):
        raise MalformedReview(f"request.objects: must be a list, got {shown(objects)}", uid)
    for number, body in enumerate(objects):
        if issue := next(iter(json_rules.issues(body, ("request", "objects", number))), None):
            raise MalformedReview(str(issue), uid)
        if not isinstance(body, Mapping) or body.get("kind") != DYNAMO_GRAPH.name or body.get("apiVersion") not in VERSIONS:
            raise MalformedReview(f"request.objects[{number}]: only {DYNAMO_GRAPH.name}s of {' and '.join(VERSIONS)} are converted", uid)
    return [as_version(body, desired) for body in objects]


def _answer(uid: str, objects: Any, result: Mapping[str, Any]) -> dict[str, Any]:
    response = {"uid": uid, "convertedObjects": list(objects), "result": dict(result)}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}
