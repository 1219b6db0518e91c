"""Meta: the models that several kinds share: metadata, conditions, errors."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from resources.schema.wire import ClaimMetadata, ClaimSpec, Int64, Seq, Timestamp, Wire

CONDITION_TYPE = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class OwnerReference(Wire):
    """An owner of an object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire):
    """The metadata of one object. The API server sets most of it."""

    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: Seq[str] | None = None
    owner_references: Seq[OwnerReference] | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int64 | None = None
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: Int64 | None = None
    self_link: str | None = None
    managed_fields: Seq[dict[str, Any]] | None = None


class ApiObject(Wire):
    """The common fields of an object; each kind adds its `spec` and `status`."""

    api_version: str = ""
    """The group and version of this object."""
    kind: str = ""
    """The kind of this object."""
    # Without a docstring: an API server forbids descriptions of it in definitions.
    metadata: Annotated[ObjectMeta, WithJsonSchema({"type": "object"})] = Field(default_factory=ObjectMeta)


class Condition(Wire):
    """One condition of an object, with the time of its last change."""

    type: Annotated[str, Field(max_length=316, pattern=CONDITION_TYPE)]
    """The type of the condition."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition is met."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=CONDITION_REASON)]
    """The reason for the status, as one word."""
    message: Annotated[str, Field(max_length=32768)]
    """The reason for the status, as text; may be empty."""
    last_transition_time: Timestamp
    """When the status last changed."""
    observed_generation: Annotated[Int64, Field(ge=0, json_schema_extra={"minimum": 0})] | None = None
    """The metadata.generation that the condition refers to."""


class LastError(Wire):
    """An error of the latest reconciliation."""

    code: str
    """The error code."""
    description: str
    """The error message."""
    observed_at: Timestamp
    """When the error occurred."""


class ClaimTemplateSpec(Wire):
    """The content of the resource claims that are created from a template."""

    metadata: ClaimMetadata | None = None
    """Labels and annotations of the claim."""
    spec: ClaimSpec
    """The claim's specification: a ResourceClaimSpec of resource.k8s.io/v1, used unchanged."""
