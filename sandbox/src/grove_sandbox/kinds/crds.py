"""CRDs: the rules of CustomResourceDefinitions, and the kinds that they make the API serve."""

import re
from functools import lru_cache

import orjson

from grove_sandbox.kinds.rules import Draft, Environment, Rules, keep_spec
from grove_sandbox.kinds.served import ScalePaths, Served
from grove_sandbox.product import Body, Kind, get
from grove_sandbox.types import causes, structural
from grove_sandbox.types.schema import Validator
from grove_sandbox.types.shapes import Shape
from grove_sandbox.types.status import Cause
from grove_sandbox.types.transitions import transitions

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"


def _default(crd: Draft) -> None:
    spec = crd["spec"]
    names = spec["names"]
    if kind := names.get("kind"):
        names["listKind"] = names.get("listKind") or f"{kind}List"
        names["singular"] = names.get("singular") or kind.lower()
    spec.setdefault("conversion", {"strategy": "None"})


def _create(crd: Draft, _: Environment) -> None:
    stored = [version["name"] for version in crd["spec"].get("versions") or () if version.get("storage")]
    crd["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


_ACCEPTED = {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"}
_ESTABLISHED = {
    "type": "Established",
    "status": "True",
    "reason": "InitialNamesAccepted",
    "message": "the initial names have been accepted",
}
_TERMINATING = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
}
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def established(crd: Body, now: str) -> Body:
    """The status of a CRD whose kinds are served."""
    conditions = crd["status"].get("conditions") or [{**each, "lastTransitionTime": now} for each in (_ACCEPTED, _ESTABLISHED)]
    return {**crd["status"], "conditions": conditions, "acceptedNames": dict(crd["spec"]["names"])}


def terminating(crd: Body, now: str) -> Draft:
    """A CRD that is being deleted and still has objects."""
    finalizers = [*(crd["metadata"].get("finalizers") or ()), CLEANUP]
    conditions = [*(crd["status"].get("conditions") or ()), {**_TERMINATING, "lastTransitionTime": now}]
    metadata = {**crd["metadata"], "finalizers": finalizers, "deletionTimestamp": now}
    return {**crd, "metadata": metadata, "status": {**crd["status"], "conditions": conditions}}


def _update(crd: Draft, old: Body, _: Environment) -> None:
    stored = list(old["status"].get("storedVersions") or ())
    stored += [version["name"] for version in crd["spec"]["versions"] if version.get("storage") and version["name"] not in stored]
    crd["status"] = {**old["status"], "storedVersions": stored}


def _validate(crd: Body) -> list[Cause]:
    spec, names = crd["spec"], crd["spec"]["names"]
    faults: list[Cause] = []
    # Of an existing CRD the server reports the change of the plural, not the name.
    expected = f"{names.get('plural')}.{spec.get('group')}"
    if crd["metadata"].get("name") != expected and not crd["metadata"].get("resourceVersion"):
        faults.append(causes.invalid("metadata.name", crd["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group'))
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        faults.append(causes.unsupported("spec.scope", spec.get("scope"), ("Cluster", "Namespaced")))
    versions = spec.get("versions") or ()
    if sum(bool(version.get("storage")) for version in versions) != 1:
        faults.append(causes.invalid("spec.versions", versions, "must have exactly one version marked as storage version"))
    faults += [causes.required(f"spec.names.{name}") for name in ("plural", "singular", "kind", "listKind") if not names.get(name)]
    for at, version in enumerate(versions):
        path = f"spec.versions[{at}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not schema:
            faults.append(causes.required(path, "schemas are required"))
        elif fault := _schema_fault(schema):
            faults.append(causes.invalid(path, schema, fault))
    return faults


def _schema_fault(schema: Body) -> str:
    """Why the schema cannot be compiled; a real server reports it field by field."""
    try:
        _compiled(orjson.dumps(schema))
    except ValueError as error:
        return str(error).partition("\n")[0]
    return ""


def _change_faults(new: Body, old: Body) -> list[Cause]:
    paths = (("spec", "group"), ("spec", "names", "plural"), ("spec", "names", "kind"), ("spec", "scope"))
    return [cause for path in paths for cause in causes.changed(".".join(path), get(new, path), get(old, path))]


CRD = Rules(
    default=_default,
    create=_create,
    update=_update,
    status=keep_spec,
    validate=_validate,
    validate_change=_change_faults,
    generation=("spec",),
    unconditional=False,
)


def versions_of(crd: Body) -> tuple[Served, ...]:
    """The kinds that a CRD makes the API serve: one for each served version."""
    served = [version for version in crd["spec"]["versions"] if version.get("served")]
    preferred = max(served, key=lambda version: _priority(version["name"]), default=None)
    return tuple(_served(crd["spec"], version, preferred is version) for version in served)


def _served(spec: Body, version: Body, preferred: bool) -> Served:
    names, subresources = spec["names"], version.get("subresources") or {}
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    scale = subresources.get("scale")
    shape, validator = _compiled(orjson.dumps(schema))
    return Served(
        kind=Kind(
            spec["group"],
            version["name"],
            names["kind"],
            names["plural"],
            namespaced=spec["scope"] == "Namespaced",
            status="status" in subresources,
        ),
        singular=names["singular"],
        list_name=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(key for key in ("status", "scale") if key in subresources),
        shape=shape,
        scale=scale and ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", "")),
        custom=True,
        schema=schema,
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        preferred=preferred,
        validator=validator,
        transitions=tuple(transitions(schema)),
        selectable=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
    )


@lru_cache(maxsize=32)
def _compiled(schema: bytes) -> tuple[Shape, Validator]:
    """The shape and the validator of a schema. Cached, because tests define the same few again and again."""
    text = orjson.loads(schema)
    shape = structural.root_shape(text)
    return shape, Validator(text, shape)


def _priority(version: str) -> tuple[int, int, int]:
    """The rank of a version: stable before beta before alpha, then by number."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (0, 0, 0)
    major, stage, minor = match.groups()
    return {None: 3, "beta": 2, "alpha": 1}[stage], int(major), int(minor or 0)
