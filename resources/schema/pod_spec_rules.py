"""Pod spec rules: judges pod specs as a Kubernetes API server does, in one walk: the types that it publishes, and what its validation asks.

The messages are those of an API server. A finding is an issue for which the server refuses the object that has the pod spec; or one for
which it refuses the pods (`pods_only`); or an unknown field (type `UNKNOWN`), which a newer Kubernetes may have.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from math import isfinite
from typing import Any, Final

from engine.canonical import canonical
from engine.ids import Kind
from resources.schema import pod_amounts, pod_containers, pod_placement, pod_security, pod_volumes
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.pod_checks import Check, Fields, Rule, is_map
from resources.schema.pod_containers import Placed, containers_of
from resources.schema.pod_volumes import secret_name
from resources.schema.published import EXTENDED, METRIC, POD_SPEC, definitions, parts, properties, union
from resources.schema.wire import QUANTITY

Schema = Mapping[str, Any]

REPLACED: Final = frozenset({("hostname",), ("subdomain",)})
"""The fields of a pod spec that pods get from the engine, whatever the template says."""
AUTOSCALERS: Final = frozenset({"autoScalingConfig", "scaleConfig"})
"""The fields of our kinds from which autoscalers are made."""
VALID: Final[tuple[Issue, ...]] = ()
EMPTY: Final[tuple[Any, ...]] = (None, "", [], ())
QUANTITY_PATTERN: Final = re.compile(QUANTITY)
TIME_PATTERN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")
"""RFC 3339."""
TYPE_NAMES: Final[tuple[tuple[Any, str], ...]] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (Mapping, "object"),
    (list | tuple, "array"),
)
"""An API server's name for the type of a value; the first that applies."""


def issues(spec: Any, path: Path = ()) -> Iterator[Issue]:
    """The issues for which an API server would reject a pod spec. `path` is the path of the pod spec in its object."""
    return (finding for finding in findings(spec, path) if is_fault(finding))


def is_fault(finding: Issue) -> bool:
    """Whether an API server refuses the object that has the pod spec, and not the pods alone."""
    return finding.type is not ErrorType.UNKNOWN and not finding.pods_only


def warnings(spec: Any, path: Path = ()) -> Iterator[str]:
    """A warning for each unknown field, in the words of an API server with strict field validation."""
    return (warning(finding) for finding in findings(spec, path) if finding.type is ErrorType.UNKNOWN)


def warning(finding: Issue) -> str:
    """The warning about an unknown field, in the words of an API server; or about what it would refuse in the pods."""
    if finding.pods_only:
        refused = "autoscaler" if not AUTOSCALERS.isdisjoint(finding.path) else "pods"
        return f"the API server would refuse the {refused}: {finding}"
    return f'unknown field "{finding.field}"' + (f"; {finding.message}" if finding.message else "")


def findings(spec: Any, path: Path = ()) -> Iterable[Issue]:
    """All issues of a pod spec, those of unknown fields included (type `UNKNOWN`)."""
    return _check_of_type(POD_SPEC)(spec, path)


def object_findings(kind: Kind, body: Any) -> tuple[Issue, ...]:
    """The findings of all pod specs of an object, and of the other parts whose types Kubernetes publishes."""
    return tuple(finding for path, name, part in parts(kind, body) for finding in _findings_of_part(path, name, part))


def new_parts(kind: Kind, body: Any, old: Any) -> frozenset[Path]:
    """The paths of the parts of an object, whose types Kubernetes publishes, that `old` does not have as well.

    Older rules may have admitted the others, and they must not prevent other changes.
    """
    admitted = {(name, canonical(part)) for _, name, part in parts(kind, old)}
    return frozenset(path for path, name, part in parts(kind, body) if (name, canonical(part)) not in admitted)


def below(paths: Set[Path], findings: Iterable[Issue]) -> tuple[Issue, ...]:
    """The findings at these paths or below one of them."""
    return tuple(finding for finding in findings if any(finding.path[:end] in paths for end in range(len(finding.path) + 1)))


def template_findings(spec: Any, path: Path = ()) -> Iterator[Issue]:
    """The findings of a pod spec from which pods are made; not those of fields that pods get from the engine."""
    return (finding for finding in findings(spec, path) if not (finding.pods_only and finding.path[len(path) :][:1] in REPLACED))


def _findings_of_part(path: Path, type_: str, part: Any) -> Iterator[Issue]:
    """The findings of a part of an object. Those of a graph are completed later, so nothing is missing in them."""
    if type_ == METRIC:
        from resources.schema.metric_rules import metric_issues  # Few sets have metrics.

        return metric_issues(part, path)
    if type_ == POD_SPEC:
        return template_findings(part, path)
    return (finding for finding in _check_of_type(type_)(part, path) if not (finding.pods_only and finding.type is ErrorType.REQUIRED))


@cache
def _check_of_type(name: str) -> Check:
    """The check for values of a type: of its fields, of each with the rules for it, then of all together."""
    schema = definitions()[name]
    if not schema.get("properties"):
        return _check_of(schema)
    # Read when the first pod spec is judged: most commands judge none.
    from resources.schema.pod_fields import FIELDS, MAY_BE_EMPTY, NEEDED
    from resources.schema.pod_spec_rules import RULES

    base = EXTENDED[name][0] if name in EXTENDED else name
    forms, required = FIELDS.get(base, {}), tuple(schema.get("required", ()))
    fields = {field: _with_rules(_check_of(inner), forms.get(field)) for field, inner in properties(schema).items()}
    needed = tuple(NEEDED.get(name, ())) + tuple(field for field in required if (name, field) not in MAY_BE_EMPTY)
    return _object(base, fields, required, needed, RULES.get(name, ()))


def _with_rules(check: Check, rule: Check | None) -> Check:
    """The check, and the rule for values whose types are right."""
    if rule is None:
        return check
    return lambda value, path: check(value, path) or tuple(rule(value, path))


def _check_of(schema: Schema) -> Check:
    """The check for values of a schema. Building it is expensive: `_check_of_type` does it once for each type."""
    if "$ref" in schema:
        return _check_of_type(schema["$ref"])
    if types := union(schema):
        return UNIONS[types]
    if "items" in schema:
        return _list(_check_of(schema["items"]))
    if "additionalProperties" in schema:
        return _map(_check_of(schema["additionalProperties"]))
    if schema["type"] == "object":
        return _scalar("object", _is_object)
    return _enum(tuple(schema["enum"])) if "enum" in schema else SCALARS[schema["type"], schema.get("format", "")]


def _object(name: str, fields: Mapping[str, Check], required: tuple[str, ...], needed: tuple[str, ...], rules: tuple[Rule, ...]) -> Check:
    """The check for objects: `required` by their types, `needed` by validation, which takes empty values as absent."""

    def check(value: Any, path: Path) -> Iterable[Issue]:
        if not is_map(value):
            return (_mistyped("object", value, path),)
        issues: list[Issue] = []
        for key, entry in value.items():
            field = fields.get(key)
            if field is None:
                issues.append(Issue((*path, key), ErrorType.UNKNOWN, within=name))
            elif entry is not None:  # A null counts as absent.
                issues += field(entry, (*path, key))
        for key in required:
            if value.get(key) is None:
                issues.append(Issue((*path, key), ErrorType.REQUIRED))
        for key in needed:
            entry = value.get(key)
            if not entry and entry in EMPTY and not (key in required and entry is None):
                issues.append(Issue((*path, key), ErrorType.REQUIRED, pods_only=True))
        if not rules:
            return issues
        of_rules = [issue for rule in rules for issue in rule(value, path)]
        if of_rules and any(issue.within == name and issue.path[:-1] == path for issue in issues):
            # A field that we do not know may be what is missing: the handler of a newer Kubernetes, or one that is misspelt.
            of_rules = [issue for issue in of_rules if issue.path != path or issue.type is not ErrorType.REQUIRED]
        return [*issues, *of_rules]

    return check


def _map(inner: Check) -> Check:
    def check(value: Any, path: Path) -> Iterable[Issue]:
        if not is_map(value):
            return (_mistyped("object", value, path),)
        return [issue for key, entry in value.items() if entry is not None for issue in inner(entry, (*path, key))]

    return check


def _list(inner: Check) -> Check:
    def check(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, list | tuple):
            return (_mistyped("array", value, path),)
        return [issue for number, entry in enumerate(value) for issue in inner(entry, (*path, number))]

    return check


def _scalar(type_: str, is_valid: Callable[[Any], bool]) -> Check:
    return lambda value, path: VALID if is_valid(value) else (_mistyped(type_, value, path),)


def _enum(words: tuple[str, ...]) -> Check:
    known, supported = frozenset(words), ", ".join(f'"{word}"' for word in words if word)

    def check(value: Any, path: Path) -> Iterable[Issue]:
        if not isinstance(value, str):
            return (_mistyped("string", value, path),)
        return VALID if value in known else (Issue(path, ErrorType.UNSUPPORTED, f"supported values: {supported}", value),)

    return check


def _integer(bits: int, *, or_text: bool = False) -> Check:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    type_ = "integer,string" if or_text else "integer"

    def check(value: Any, path: Path) -> Iterable[Issue]:
        if or_text and isinstance(value, str):
            return VALID
        if not _is_integer(value):
            return (_mistyped(type_, value, path),)
        return VALID if least <= value <= most else (Issue(path, ErrorType.INVALID, f"must fit {bits} bits", value),)

    return check


def _quantity(value: Any, path: Path) -> Iterable[Issue]:
    if isinstance(value, str) and not QUANTITY_PATTERN.fullmatch(value):
        return (Issue(path, ErrorType.INVALID, "must be a quantity such as 2, 500m or 4Gi", value),)
    return VALID if isinstance(value, str) or _is_number(value) else (_mistyped("number,string", value, path),)


def _is_object(value: Any) -> bool:
    return is_map(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and TIME_PATTERN.fullmatch(value) is not None


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and isfinite(value))


def _is_integer(value: Any) -> bool:
    """Whether it is an integer to an API server: `80.0` is."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _mistyped(type_: str, value: Any, path: Path) -> Issue:
    actual = next((name for python_type, name in TYPE_NAMES if isinstance(value, python_type)), "null")
    return Issue(path, ErrorType.INVALID, f'must be of type {type_}: "{actual}"', value)


SCALARS: Final[Mapping[tuple[str, str], Check]] = {
    ("string", ""): _scalar("string", _is_text),
    ("string", "byte"): _scalar("string", _is_text),
    ("string", "date-time"): _scalar("date-time", _is_time),
    ("boolean", ""): _scalar("boolean", _is_bool),
    ("integer", "int32"): _integer(32),
    ("integer", "int64"): _integer(64),
    ("number", ""): _scalar("number", _is_number),
    ("number", "double"): _scalar("number", _is_number),
}
"""Checks by type and format."""
UNIONS: Final[Mapping[frozenset[str], Check]] = {
    frozenset({"integer", "string"}): _integer(32, or_text=True),
    frozenset({"number", "string"}): _quantity,
}
"""Checks of values that may have one of several types."""


ContainersRule = Callable[[Fields, Path, Sequence[Placed]], Iterable[Issue]]
"""A pod spec, its path and its containers -> what is wrong with them together."""
CONTAINERS_RULES: Final[tuple[ContainersRule, ...]] = (
    pod_containers.names,
    pod_containers.roles,
    pod_containers.host_ports,
    pod_containers.claims,
    pod_volumes.uses,
    pod_security.host_users,
    pod_security.host_processes,
)


def _containers_together(spec: Fields, path: Path) -> Iterator[Issue]:
    containers = tuple(containers_of(spec, path))
    for rule in CONTAINERS_RULES:
        yield from rule(spec, path, containers)


RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "PodSpec": (
        _containers_together,
        pod_amounts.pod_requirements,
        pod_amounts.overhead,
        pod_placement.spreading,
        pod_placement.naming,
        pod_security.shared_namespaces,
        pod_security.operating_system,
    ),
    "Container": (pod_containers.container,),
    "MainContainer": (pod_containers.container,),
    "Probe": (pod_containers.probe,),
    "LifecycleHandler": (pod_containers.hook,),
    "EnvVar": (pod_containers.env_variable,),
    "EnvVarSource": (pod_containers.env_source, pod_containers.env_reference),
    "EnvFromSource": (pod_containers.env_from,),
    "ResourceFieldSelector": (pod_amounts.field_reference,),
    "VolumeMount": (pod_containers.mount,),
    "PodResourceClaim": (pod_containers.claim_source,),
    "Volume": (pod_volumes.volume,),
    "VolumeProjection": (pod_volumes.projection,),
    "ProjectedVolumeSource": (pod_volumes.projected,),
    "ClusterTrustBundleProjection": (pod_volumes.trust_bundle,),
    "PodCertificateProjection": (pod_volumes.certificate,),
    "EmptyDirVolumeSource": (pod_volumes.empty_directory,),
    "DownwardAPIVolumeFile": (pod_volumes.downward_file,),
    "CSIVolumeSource": (pod_volumes.csi,),
    "ISCSIVolumeSource": (pod_volumes.iscsi,),
    "FCVolumeSource": (pod_volumes.fibre_channel,),
    "FlockerVolumeSource": (pod_volumes.flocker,),
    "QuobyteVolumeSource": (pod_volumes.quobyte,),
    "AzureDiskVolumeSource": (pod_volumes.azure_disk,),
    "FlexVolumeSource": (pod_volumes.flex,),
    "CinderVolumeSource": (secret_name("secretRef"),),
    "StorageOSVolumeSource": (secret_name("secretRef"),),
    "PersistentVolumeClaimTemplate": (pod_volumes.claim_metadata,),
    "PersistentVolumeClaimSpec": (pod_volumes.claim_spec, pod_amounts.claim_storage),
    "LabelSelectorRequirement": (pod_placement.label_requirement,),
    "NodeSelectorTerm": (pod_placement.node_term,),
    "NodeSelector": (pod_placement.node_selector,),
    "PodAffinityTerm": (pod_placement.pod_term,),
    "TopologySpreadConstraint": (pod_placement.spread_constraint,),
    "Toleration": (pod_placement.toleration,),
    "SeccompProfile": (pod_security.seccomp,),
    "AppArmorProfile": (pod_security.app_armor,),
    "SecurityContext": (pod_security.container_context,),
    "WindowsSecurityContextOptions": (pod_security.windows_options,),
}
"""Type -> the rules for its objects."""
