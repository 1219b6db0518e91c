"""SetVersion: one version of a PodCliqueSet, read once for admission, its template and its desired objects."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from pydantic import ValidationError

from engine.memo import Memo, is_equal
from engine.paths import get
from engine.resource import Body
from resources.admission import computable_rules, create_rules, json_rules
from resources.admission.create_rules import length_issues, metadata_issues
from resources.admission.defaults import KEPT, defaulted
from resources.base.fields import CLIQUES, cliques_of, mapping
from resources.base.kinds import PODCLIQUESET
from resources.ports.configuration import Configuration
from resources.schema.issues import ErrorType, Issue, Path, rejection
from resources.schema.meta import ApiObject
from resources.schema.parse import kind_issues, without_repeats
from resources.schema.pod_spec_rules import below, is_fault, new_parts, object_findings
from resources.schema.podcliqueset import CliqueTemplate, PodCliqueSet, PodCliqueSetSpec, SetTemplate
from resources.schema.unknown_fields import unknown_paths
from resources.schema.wire import Wire

Model = TypeVar("Model", bound=ApiObject)
SPEC: Final[Path] = ("spec",)
DEPENDENT: Final = frozenset({*KEPT, "minReplicas"})
"""Fields whose issues may be about the value of a field that an update keeps."""
VERSION: Final = "version"
"""The key under which the memo of a root remembers its version."""
STORED: Final = "stored version"
"""The same of the version that an update was compared with."""
UNREAD: Final = PodCliqueSetSpec.model_construct()
"""Stands for a spec whose faults are known, while the rest of its object is read."""


class PodSpecs(Struct, frozen=True, eq=False, dict=True):
    """The pod specs of a set, judged once."""

    spec: Any
    """The `spec` that they are in."""
    hashes: Memo = field(default_factory=Memo)
    """Those of the cliques, as far as they have been computed (`resources.model.template`)."""

    @cached_property
    def findings(self) -> tuple[Issue, ...]:
        """What an API server would say of them (`resources.schema.pod_spec_rules`)."""
        return object_findings(PODCLIQUESET, {"spec": self.spec})


class SetVersion(Struct, frozen=True, eq=False, dict=True):
    """The `spec` of a PodCliqueSet with its defaults: parsed and, when it is asked for, judged; each once."""

    spec: Any
    """The JSON, whatever it is."""
    parsed: PodCliqueSetSpec | None
    """The model; None if the spec does not have its shape."""
    pods: PodSpecs
    not_json: tuple[Issue, ...] = ()
    """Why it is no JSON that can be read: then nothing else is known."""
    malformed: tuple[Issue, ...] = ()
    """Why it does not have its shape."""

    @property
    def template(self) -> SetTemplate:
        """The template of a spec that has its shape."""
        assert self.parsed is not None
        return self.parsed.template

    @cached_property
    def uncomputable(self) -> tuple[Issue, ...]:
        """Why the objects of a set of the right shape cannot be computed, under any configuration."""
        return tuple(computable_rules.issues(self.template))

    @cached_property
    def refused(self) -> tuple[Issue, ...]:
        """What else admission refuses in a set of the right shape."""
        return tuple(create_rules.template_issues(self.template))

    def problems(self, configuration: Configuration) -> tuple[Issue, ...]:
        """Why the objects of the set cannot be computed; empty if they can."""
        if self.parsed is None:
            return self.not_json or self.malformed
        return (*self.uncomputable, *computable_rules.scheduler_issues(self.template, configuration))

    def findings(self, old: "SetVersion | None") -> tuple[Issue, ...]:
        """What is wrong with the pod specs, without those that the old version has as well: older rules may have admitted them."""
        if old is None:
            return self.pods.findings
        new = new_parts(PODCLIQUESET, {"spec": self.spec}, {"spec": old.spec})
        return below(new, self.pods.findings) if new else ()

    def keeping(self, spec: Any) -> "SetVersion":
        """The version of this spec, which differs at most in what an update keeps of the stored set (`defaults.KEPT`)."""
        if is_equal(self.spec, spec):
            return self
        if self.parsed is None:
            return read_version(spec)
        entries = get({"spec": spec}, CLIQUES, ())
        cliques = tuple(_with_kept(clique, entry["spec"]) for clique, entry in zip(self.template.cliques, entries, strict=True))
        template = self.template.model_copy(update={"cliques": cliques})
        return SetVersion(spec, self.parsed.model_copy(update={"template": template}), self.pods)


def _with_kept(clique: CliqueTemplate, spec: Body) -> CliqueTemplate:
    kept = {"min_available": spec["minAvailable"], "role_name": spec["roleName"]}
    return clique.model_copy(update={"spec": clique.spec.model_copy(update=kept)})


def version_of(body: Body, memo: Memo) -> SetVersion:
    """The version of a manifest of a set, as if it were created; it is remembered as that of the set."""
    version = read_version(spec_of(defaulted(body)), memo.last(VERSION))
    memo.remember(VERSION, version)
    return version


def certain_issues(body: Body, memo: Memo) -> tuple[Issue, ...]:
    """The issues that a manifest of a set has whatever is stored: an update keeps what it leaves out (`defaults.KEPT`)."""
    version = version_of(body, memo)
    model, malformed = read_set(defaulted(body), version)
    if model is None:
        return tuple(without_repeats(malformed, tuple(filter(is_fault, version.pods.findings))))
    issues = (*metadata_issues(model), *version.uncomputable, *version.refused, *length_issues(model))
    return tuple(issue for issue in issues if issue.path[-1] not in DEPENDENT or _states_all(body, issue.path))


def _states_all(body: Body, path: Path) -> bool:
    """Whether the clique that a path leads into has all fields that an update would keep."""
    if path[: len(CLIQUES)] != CLIQUES:
        return True
    spec = mapping(cliques_of(body)[int(path[len(CLIQUES)])].get("spec"))
    return all(spec.get(field) is not None for field in KEPT)


def set_faults(body: Body, memo: Memo) -> tuple[Issue, ...]:
    """Why a manifest of a set cannot be read; its unknown fields are faults. What is read is remembered as that of the set."""
    if wrong_kind := tuple(kind_issues(PODCLIQUESET, body)):
        return wrong_kind
    body, version = defaulted(body), version_of(body, memo)
    unknown = (Issue(path, ErrorType.UNKNOWN) for path in unknown_paths(body, PodCliqueSet))
    of_pods = tuple(filter(is_fault, version.pods.findings))
    return (*without_repeats((*unknown, *read_set(body, version)[1]), of_pods), *of_pods)


def read_version(spec: Any, *known: SetVersion | None) -> SetVersion:
    """The version of a spec that has its defaults; one of the known ones if it has the same spec. An equal template is not read again."""
    for version in known:
        if version is not None and not version.not_json and is_equal(version.spec, spec):
            return version
    alike = next((each for each in known if each is not None and each.parsed is not None and _has_template(spec, each)), None)
    template, pods = (alike.template, alike.pods) if alike is not None else (None, PodSpecs(spec))
    rest = {key: value for key, value in spec.items() if key != "template"} if alike is not None else spec
    if not_json := tuple(json_rules.issues(rest, SPEC)):
        return SetVersion(spec, None, PodSpecs(None), not_json=not_json)
    try:
        parsed = _OfSpec.model_validate({"spec": {**rest, "template": template} if alike is not None else spec}, extra="ignore").spec
        return SetVersion(spec, parsed, pods)
    except ValidationError as error:
        return SetVersion(spec, None, pods, malformed=rejection(error).issues)


def _has_template(spec: Any, version: SetVersion) -> bool:
    return isinstance(spec, Mapping) and is_equal(version.spec["template"], spec.get("template"))


class _OfSpec(Wire):
    """The part of a set that a version is read from."""

    spec: PodCliqueSetSpec


def spec_of(body: Any) -> Any:
    """The spec of an object; None if it has none."""
    return body.get("spec") if isinstance(body, Mapping) else None


def read_set(body: Any, version: SetVersion) -> tuple[PodCliqueSet | None, tuple[Issue, ...]]:
    """The model of a set with this version of its spec, or None; and what is malformed in it."""
    return read_object(PodCliqueSet, body, version.parsed, UNREAD, version.malformed)


def read_object(
    type_: type[Model], body: Any, spec: Wire | None, unread: Wire, malformed: tuple[Issue, ...]
) -> tuple[Model | None, tuple[Issue, ...]]:
    """The model of an object whose spec has been read, or None; and what is malformed in it.

    `spec` is None if that is `malformed`: then `unread` stands for it while the rest of the object is read.
    """
    is_map = isinstance(body, Mapping)
    try:
        model = type_.model_validate({**body, "spec": spec or unread} if is_map else body, extra="ignore")
    except ValidationError as error:
        rest = rejection(error).issues
        before = tuple(issue for issue in rest if issue.path[:1] != ("status",))
        return None, (*before, *(malformed if is_map else ()), *rest[len(before) :])
    return (model, ()) if spec is not None else (None, malformed)
