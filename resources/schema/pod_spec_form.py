"""Canonical form of a pod spec: equal for all spellings of the same pods.

`4` and `"4"`, `1024Mi` and `1Gi`, `hostNetwork: false` and nothing, `dnsPolicy: ClusterFirst` and nothing are the same to Kubernetes. A
program that decodes and encodes a set, as the webhook of Grove's operator does, changes such spellings. That must not look like an edit.
What an API server leaves out and fills in is recorded (`resources.schema.published`), by type and field.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_UP, DecimalException
from typing import Annotated, Any, Final

from msgspec import Struct
from pydantic import ConfigDict, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from engine.canonical import digest
from engine.diff import same
from engine.quantity import amount
from resources.schema.published import Schema, definitions, fields_with_default, is_default
from resources.schema.wire import OPAQUE, PUBLISHED, Int64, Seq, Wire

UNORDERED: Final = frozenset({"volumes", "imagePullSecrets", "tolerations", "volumeMounts", "ports"})
"""Lists of a pod spec whose order has no meaning."""

QUANTITY: Final = "Quantity"
"""The type of amounts."""

KUBERNETES_SCHEDULER: Final = "default-scheduler"
"""The scheduler of pods that name none to an API server."""
CONFIGURED: Final = ("PodSpec", "schedulerName")
"""The type and the field of the scheduler: without it, pods of sets have that of the configuration."""

ACCOUNT: Final = ("serviceAccountName", "serviceAccount")
"""The fields with the ServiceAccount of a pod: its name and its old name, which servers read where the other is empty."""
SPELLED_OTHERWISE: Final = frozenset({CONFIGURED[1], ACCOUNT[1]})
"""The fields of a pod spec whose default depends on the configuration or on another field."""

KEPT_FORMERLY: Final = frozenset(
    {
        ("AzureDiskVolumeSource", "kind"),
        ("PodSpec", "ephemeralContainers"),
        ("PodSpec", "evictionResponders"),
        ("VolumeMount", "bindMountOptions"),
    }
)
"""The types and fields with a zero or a default that the former form kept: it was not recorded."""

PLACES, PLACES_OF_RESOURCE = 9, 3
"""The decimal places to which a server rounds amounts up: any amount, and an entry of limits, requests or overhead."""

NOTHING_KNOWN: Final[Schema] = {}
"""The schema of a field that no type has."""


def canonical_form(value: Any, type_: str = "PodSpec", *, scheduler: str = "", is_former: bool = False) -> Any:
    """A copy of a pod spec, or of a part of it of that type, in canonical form. Values of a wrong shape are kept.

    `scheduler`: that of pods that name none, e.g. the default of the configuration; empty if it is not known.
    `is_former`: the form from which hashes of version v3 were computed at first; it took some spellings of the same pods for others.
    """
    return _Form(scheduler, is_former).of(value, {"$ref": type_}, "")


def respelled(desired: Any, live: Any, type_: str = "PodSpec", *, scheduler: str = "") -> Any:
    """The desired pod spec in the spelling of the live one, wherever both mean the same."""
    if desired == live:
        return desired  # Nearly always, and found out quickly. `True` equals 1 here: the comparison of the result tells them apart.
    return _Form(scheduler).respelled(desired, live, {"$ref": type_}, "")


class _Form(Struct, frozen=True):
    """The canonical form. Fields are named as in the types; the entries of a list have the name of their list."""

    scheduler: str
    is_former: bool = False

    def of(self, value: Any, schema: Schema, field: str) -> Any:
        """The canonical form of the value of a field."""
        if schema.get("$ref") == QUANTITY:
            return _amount(value, None if self.is_former else PLACES)
        if isinstance(value, str):  # Most values are text, and found out quickly.
            return value
        if isinstance(value, Mapping):
            return self._of_map(value, schema)
        if isinstance(value, list | tuple):
            of_items = schema.get("items", NOTHING_KNOWN)
            items = [self.of(item if self.is_former else _null_as_zero(item, of_items), of_items, field) for item in value]
            return sorted(items, key=digest) if field in UNORDERED else items
        return value

    def _of_map(self, value: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
        """An object without what a server treats as absent; a map, whose keys are the user's, with all of them."""
        fields = _fields(schema)
        if fields is None:
            of_values = schema.get("additionalProperties", NOTHING_KNOWN)
            return {key: self.of_entry(inner, of_values) for key, inner in value.items()}
        type_: str = schema["$ref"]
        if type_ == "PodSpec" and not self.is_former:
            value = _with_one_account(value)
        with_default = fields_with_default(type_)
        kept: dict[str, Any] = {}
        for key, inner in value.items():
            form = self.of(inner, fields.get(key, NOTHING_KNOWN), key)
            # Most fields have a value that is not zero and no default: they are never absent, which is found out quickly.
            if (form and key not in with_default and key not in SPELLED_OTHERWISE) or not self._is_absent(type_, key, form, value):
                kept[key] = form
        return kept

    def of_entry(self, value: Any, schema: Schema) -> Any:
        """The canonical form of a value of a map, where null is the zero value. Maps of amounts are of resources."""
        if self.is_former:
            return self.of(value, schema, "")
        value = _null_as_zero(value, schema)
        return _amount(value, PLACES_OF_RESOURCE) if schema.get("$ref") == QUANTITY else self.of(value, schema, "")

    def _is_absent(self, type_: str, field: str, value: Any, holder: Mapping[str, Any]) -> bool:
        """Whether a field with this value, in canonical form, means the same as none. `holder` is the object that it is in."""
        if (type_, field) == CONFIGURED:
            return not value or bool(value == self.scheduler)
        if (type_, field) == ("PodSpec", "serviceAccount"):  # The old name, which servers keep equal to the new one.
            return bool(value == holder.get("serviceAccountName", ""))
        if self.is_former and (type_, field) in KEPT_FORMERLY:
            return value is None
        return is_default(type_, field, value, holder)

    def respelled(self, desired: Any, live: Any, schema: Schema, field: str) -> Any:
        """The desired value in the spelling of the live one."""
        if desired is live or same(self.of(desired, schema, field), self.of(live, schema, field)):
            return live
        if isinstance(desired, Mapping) and isinstance(live, Mapping):
            return self._respelled_map(desired, live, schema)
        if isinstance(desired, list | tuple) and isinstance(live, list | tuple):
            items = schema.get("items", NOTHING_KNOWN)
            return [self.respelled(item, match, items, field) for item, match in zip(desired, _matches(desired, live), strict=True)]
        return desired

    def _respelled_map(self, desired: Mapping[str, Any], live: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
        """The desired fields; those that mean the same as none are there if the live object has them."""
        spelled: dict[str, Any] = {}
        if schema.get("$ref") == "PodSpec" and _account(desired) == _account(live):
            desired = {**_without_account(desired), **{key: live[key] for key in ACCOUNT if key in live}}
        is_map = _fields(schema) is None
        for key in (*desired, *(key for key in live if key not in desired)):
            inner = _field(schema, key)
            if key in desired and key in live:
                is_same = is_map and same(self.of_entry(desired[key], inner), self.of_entry(live[key], inner))
                spelled[key] = live[key] if is_same else self.respelled(desired[key], live[key], inner, key)
                continue
            value = desired[key] if key in desired else live[key]
            is_absent = not is_map and self._is_absent(schema["$ref"], key, self.of(value, inner, key), desired)
            if is_absent == (key in live):
                spelled[key] = value
        return spelled


def _fields(schema: Schema) -> Mapping[str, Schema] | None:
    """The schemas of the known fields of an object; None of a map, whose keys are the user's, and of what is no object."""
    fields: Mapping[str, Schema] | None = definitions().get(schema.get("$ref", ""), NOTHING_KNOWN).get("properties")
    return fields


def _field(schema: Schema, key: str) -> Schema:
    """The schema of a field of an object, or of a value of a map."""
    fields = _fields(schema)
    of_values: Schema = schema.get("additionalProperties", NOTHING_KNOWN)
    return of_values if fields is None else fields.get(key, NOTHING_KNOWN)


def _null_as_zero(value: Any, schema: Schema) -> Any:
    """The value of a map or an entry of a list; null, which a server reads as the zero value of its type, as that."""
    if value is not None:
        return value
    return "0" if schema.get("$ref") == QUANTITY else "" if schema.get("type") == "string" else None


def _account(pod_spec: Mapping[str, Any]) -> Any:
    """The ServiceAccount of a pod spec by its new name or, without, by its old one; empty without either."""
    return pod_spec.get(ACCOUNT[0]) or pod_spec.get(ACCOUNT[1]) or ""


def _without_account(pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in pod_spec.items() if key not in ACCOUNT}


def _with_one_account(pod_spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod spec with its ServiceAccount under the new name only, as servers read the old one."""
    return {**_without_account(pod_spec), ACCOUNT[0]: _account(pod_spec)} if ACCOUNT[1] in pod_spec else pod_spec


def _amount(value: Any, places: int | None) -> Any:
    """A quantity as the plain number that it stands for, as text, rounded up to so many decimal places; any other value unchanged."""
    number = amount(str(value).strip()) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    try:
        if number and places is not None:
            number = number.scaleb(places).to_integral_value(ROUND_UP).scaleb(-places)
        return value if number is None else str(number.normalize()) if number else "0"
    except DecimalException:  # An exponent beyond any amount.
        return value


def _matches(desired: Sequence[Any], live: Sequence[Any]) -> list[Any]:
    """The live entry of each desired one: of the same name if all live ones have names, else of the same position; None without one."""
    names = [_name(entry) for entry in live]
    if names and all(names):
        by_name = dict(zip(names, live, strict=True))
        return [by_name.get(_name(entry)) for entry in desired]
    return [live[index] if index < len(live) else None for index in range(len(desired))]


def _name(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return name if isinstance(name, str) else ""


class _Shape(Wire):
    """A part of a pod spec. Fields without a model are ignored."""

    model_config = ConfigDict(extra="ignore")


class _Named(_Shape):
    name: str


class _Resources(_Shape):
    claims: Seq[_Named] = ()


class _Container(_Named):
    env: Seq[_Named] = ()
    volume_mounts: Seq[_Named] = ()
    args: Seq[str] = ()
    command: Seq[str] = ()
    resources: _Resources | None = None


class _PodSpec(_Shape):
    containers: Seq[_Container]
    init_containers: Seq[_Container] = ()
    volumes: Seq[_Named] = ()
    resource_claims: Seq[_Named] = ()
    scheduling_gates: Seq[_Named] = ()
    topology_spread_constraints: Seq[dict[str, Any]] = ()
    restart_policy: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    priority_class_name: str = ""
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    termination_grace_period_seconds: Int64 | None = None


class _MainContainer(_Container):
    name: str = ""


class _ExtraPodSpec(_PodSpec):
    containers: Seq[_Container] = ()
    main_container: _MainContainer | None = None


def _shaped(value: Any) -> Any:
    """The value itself. Raises a validation error if a field that the engine reads has the wrong shape."""
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "must be an object")
    _PodSpec.model_validate(value)
    return value


def _shaped_extra(value: Any) -> Any:
    """The same for a pod spec that may lack containers and has a main container."""
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "must be an object")
    _ExtraPodSpec.model_validate(value)
    return value


PodSpec = Annotated[dict[str, Any], PlainValidator(_shaped), WithJsonSchema({PUBLISHED: "PodSpec"})]
"""A core/v1 PodSpec, never copied. `resources.schema.pod_spec_rules` validates all of it in manifests."""
TemplateSpec = Annotated[dict[str, Any], PlainValidator(_shaped_extra), WithJsonSchema(OPAQUE)]
"""A core/v1 PodSpec without required fields, whose fields no definition lists; never copied."""
ExtraPodSpec = Annotated[dict[str, Any], PlainValidator(_shaped_extra), WithJsonSchema({PUBLISHED: "ExtraPodSpec"})]
"""A core/v1 PodSpec without required fields and with `mainContainer`, a core/v1 Container without required fields; never copied."""
