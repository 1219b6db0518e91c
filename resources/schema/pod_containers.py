"""Pod containers: the rules for containers by themselves and for those of a pod together."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from resources.schema.formats import qualified_faults
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.pod_amounts import container_requirements
from resources.schema.pod_checks import (
    Fields,
    Rule,
    duplicate,
    entries,
    exactly_one,
    fault,
    forbidden,
    invalid,
    missing,
    part,
    size,
    text,
    unsupported,
    whole,
)

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
ALWAYS: Final = "Always"
ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
MOST_RESTART_RULES: Final = 20
GRACE_PERIOD: Final = 30
"""The default of `terminationGracePeriodSeconds`."""
ENV_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
ONE_ENV_SOURCE: Final = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
ONE_HANDLER: Final = "must specify a handler type"
ONE_AT_A_TIME: Final = "may not have more than one field specified at a time"

probe: Final[Rule] = exactly_one(
    ("exec", "httpGet", "tcpSocket", "grpc"), none=ONE_HANDLER, many="may not specify more than 1 handler type", at_field=True
)
hook: Final[Rule] = exactly_one(
    ("exec", "httpGet", "tcpSocket", "sleep"), none=ONE_HANDLER, many="may not specify more than 1 handler type", at_field=True
)
env_from: Final[Rule] = exactly_one(
    ("configMapRef", "secretRef"), none="must specify one of: `configMapRef` or `secretRef`", many=ONE_AT_A_TIME
)
env_source: Final[Rule] = exactly_one(ENV_SOURCES, none=ONE_ENV_SOURCE, many=ONE_AT_A_TIME)
SUBSCRIPTED: Final = ("metadata.labels", "metadata.annotations")
ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
"""The fields of its pod that a variable can have the value of."""
RENAMED: Final[Mapping[str, str]] = {"spec.host": "spec.nodeName"}
VOLUME_FIELDS: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
"""The fields of its pod that a file can have."""


class Placed(Struct, frozen=True):
    """A container of a pod."""

    path: Path
    fields: Fields
    is_init: bool

    @property
    def is_sidecar(self) -> bool:
        """Whether it is an init container that runs as long as the pod."""
        return self.is_init and self.fields.get("restartPolicy") == ALWAYS

    @property
    def serves(self) -> bool:
        """Whether it may have probes and hooks."""
        return not self.is_init or self.is_sidecar


def containers_of(spec: Fields, path: Path) -> Iterator[Placed]:
    """The containers of a pod, then its init containers."""
    for field in ("containers", "initContainers"):
        for number, container in entries(spec, field):
            yield Placed((*path, field, number), container, field == "initContainers")


def env_variable(variable: Fields, path: Path) -> Iterator[Issue]:
    """A variable has a value, or a source for it."""
    if variable.get("valueFrom") is not None and text(variable, "value"):
        yield invalid((*path, "valueFrom"), "", "may not be specified when `value` is not empty")


def container(fields: Fields, path: Path) -> Iterator[Issue]:
    """The rules for a container by itself."""
    image = text(fields, "image")
    if image != image.strip():
        yield invalid((*path, "image"), image, "must not have leading or trailing whitespace")
    if size(fields, "restartPolicyRules"):
        if fields.get("restartPolicy") is None:
            yield missing((*path, "restartPolicy"), "must specify restartPolicy when restart rules are used")
        if size(fields, "restartPolicyRules") > MOST_RESTART_RULES:
            yield fault((*path, "restartPolicyRules"), ErrorType.TOO_LONG, f"must have at most {MOST_RESTART_RULES} items")
    yield from _overlaps(fields, path)
    yield from container_requirements(part(fields, "resources"), (*path, "resources"))


def _overlaps(fields: Fields, path: Path) -> Iterator[Issue]:
    """A volume is mounted or a device, and no two things are at one path."""
    devices = list(entries(fields, "volumeDevices"))
    names, paths = {text(device, "name") for _, device in devices}, {text(device, "devicePath") for _, device in devices}
    for number, mount in entries(fields, "volumeMounts") if devices else ():
        at = (*path, "volumeMounts", number)
        if (name := text(mount, "name")) and name in names:
            yield invalid((*at, "name"), name, "must not already exist in volumeDevices")
        if (where := text(mount, "mountPath")) and where in paths:
            yield invalid((*at, "mountPath"), where, "must not already exist as a path in volumeDevices")


def mount(fields: Fields, path: Path) -> Iterator[Issue]:
    """The rules for a mount by itself."""
    if text(fields, "subPath") and text(fields, "subPathExpr"):
        yield invalid((*path, "subPathExpr"), fields["subPathExpr"], "subPathExpr and subPath are mutually exclusive")
    if text(fields, "recursiveReadOnly") in ("Enabled", "IfPossible"):
        if fields.get("readOnly") is not True:
            yield forbidden((*path, "recursiveReadOnly"), "may only be specified when readOnly is true")
        if text(fields, "mountPropagation") not in ("", "None"):
            yield forbidden((*path, "recursiveReadOnly"), "may only be specified when mountPropagation is None or not specified")


def names(spec: Fields, path: Path, containers: Sequence[Placed]) -> Iterator[Issue]:
    """No two containers of a pod have the same name; ephemeral ones are added to running pods only."""
    if size(spec, "ephemeralContainers"):
        yield forbidden((*path, "ephemeralContainers"), "cannot be set on create")
    earlier: set[str] = set()
    for placed in containers:
        name = text(placed.fields, "name")
        if name and name in earlier:
            yield duplicate((*placed.path, "name"), name)
        earlier.add(name)


def roles(spec: Fields, path: Path, containers: Sequence[Placed]) -> Iterator[Issue]:
    """What depends on whether a container starts the pod, runs beside it, or is one of those that serve."""
    period = whole(spec, "terminationGracePeriodSeconds") if spec.get("terminationGracePeriodSeconds") is not None else GRACE_PERIOD
    for placed in containers:
        for field in ("lifecycle", *PROBES) if not placed.serves else ():
            if placed.fields.get(field) is not None:
                yield forbidden((*placed.path, field), ONLY_SIDECARS)
        if placed.serves:
            yield from _probes(placed)
            yield from _sleeps(placed, period)
        if spec.get("restartPolicy") == "Never":
            yield from _resizes(placed)


def _probes(placed: Placed) -> Iterator[Issue]:
    """A liveness or startup probe succeeds at once; a readiness probe ends nothing."""
    for field in ("livenessProbe", "startupProbe"):
        threshold = whole(part(placed.fields, field), "successThreshold")
        if threshold not in (None, 0, 1):
            yield invalid((*placed.path, field, "successThreshold"), threshold, "must be 1")
    period = part(placed.fields, "readinessProbe").get("terminationGracePeriodSeconds")
    if period is not None:
        at = (*placed.path, "readinessProbe", "terminationGracePeriodSeconds")
        yield invalid(at, period, "must not be set for readinessProbes")


def _sleeps(placed: Placed, period: int | None) -> Iterator[Issue]:
    """A hook does not sleep longer than the pod has to end."""
    for field in ("postStart", "preStop"):
        sleep = part(placed.fields, "lifecycle", field, "sleep")
        seconds = whole(sleep, "seconds") if sleep.get("seconds") is not None else 0
        if period is not None and seconds is not None and sleep and not 0 <= seconds <= period:
            message = f"must be non-negative and less than terminationGracePeriodSeconds ({period})"
            yield invalid((*placed.path, "lifecycle", field, "sleep"), seconds, message)


def _resizes(placed: Placed) -> Iterator[Issue]:
    """A pod that never restarts cannot restart a container to resize it."""
    for number, policy in entries(placed.fields, "resizePolicy"):
        if text(policy, "restartPolicy") not in ("", "NotRequired"):
            at = (*placed.path, "resizePolicy", number, "restartPolicy")
            yield invalid(at, policy["restartPolicy"], "must be 'NotRequired' when `restartPolicy` is 'Never'")


def host_ports(spec: Fields, path: Path, containers: Sequence[Placed]) -> Iterator[Issue]:
    """No two containers that run together take the same port of a node; with the node's network it is the container's own port."""
    on_host = spec.get("hostNetwork") is True
    serving: set[tuple[str, str, int]] = set()
    for placed in containers:
        taken = set() if placed.is_init else serving
        for number, port in entries(placed.fields, "ports"):
            at = (*placed.path, "ports", number, "hostPort")
            own, host = whole(port, "containerPort") or 0, whole(port, "hostPort") or 0
            if on_host and host and host != own and not placed.is_init:
                yield invalid(at, host, "must match `containerPort` when `hostNetwork` is true")
            key = (text(port, "protocol") or "TCP", text(port, "hostIP"), host or (own if on_host else 0))
            if key[2] and key in taken:
                yield duplicate(at, "/".join(map(str, key)))
            taken.add(key)


def claims(spec: Fields, path: Path, containers: Sequence[Placed]) -> Iterator[Issue]:
    """Containers use claims that the pod has, each once."""
    known = sorted({text(claim, "name") for _, claim in entries(spec, "resourceClaims")} - {""})
    where = f": {', '.join(known[:20])}" if known else " which is empty"
    for placed in containers:
        used: set[str] = set()
        for number, claim in entries(part(placed.fields, "resources"), "claims"):
            name, request = text(claim, "name"), text(claim, "request")
            at = (*placed.path, "resources", "claims", number)
            if not name:
                continue
            if name not in known:
                yield fault(at, ErrorType.NOT_FOUND, f"must be one of the names in pod.spec.resourceClaims{where}", name)
            # A claim that is used as a whole must not be used again, nor after one of its requests.
            repeated = name in used or f"{name}/{request}" in used or (not request and f"{name}/*" in used)
            if repeated:
                yield duplicate(at, f"{name}/{request}" if request else name)
            used.update({f"{name}/{request}", f"{name}/*"} if request else {name})


def claim_source(claim: Fields, path: Path) -> Iterator[Issue]:
    """A claim of a pod exists already, or is made from a template."""
    sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
    if not sources:
        yield missing(path, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
    elif len(sources) > 1:
        yield invalid(path, dict(claim), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")


def field_of_pod(reference: Any, path: Path, known: tuple[str, ...]) -> Iterator[Issue]:
    """The rules for a reference to a field of the pod itself."""
    if not isinstance(reference, Mapping):
        return
    at, field, version = (*path, "fieldPath"), text(reference, "fieldPath"), text(reference, "apiVersion") or "v1"
    if not field:
        return
    if version != "v1":
        yield invalid(at, field, f"error converting fieldPath: unsupported pod version: {version}")
        return
    holder, bracket, rest = field.partition("['")
    if bracket and rest.endswith("']"):
        key = rest.removesuffix("']")
        if holder not in SUBSCRIPTED:
            yield invalid(path, holder, "does not support subscript")
        else:
            yield from (invalid(path, key, message) for message in qualified_faults(key if holder == SUBSCRIPTED[0] else key.lower()))
    elif RENAMED.get(field, field) not in known:
        yield unsupported(at, field, known)


def env_reference(source: Fields, path: Path) -> Iterator[Issue]:
    """The rules for a variable with the value of a field of the pod."""
    return field_of_pod(source.get("fieldRef"), (*path, "fieldRef"), ENV_FIELDS)
