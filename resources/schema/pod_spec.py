"""PodSpec: a core/v1 PodSpec, passed through unchanged. Only the fields that the engine reads have a model here."""

from typing import Annotated, Any

from pydantic import ConfigDict, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from resources.schema.wire import PUBLISHED, Int64, Seq, Wire


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
ExtraPodSpec = Annotated[dict[str, Any], PlainValidator(_shaped_extra), WithJsonSchema({PUBLISHED: "ExtraPodSpec"})]
"""A core/v1 PodSpec without required fields and with `mainContainer`, a core/v1 Container without required fields; never copied."""
