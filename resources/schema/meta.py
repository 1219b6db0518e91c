"""Meta: what objects of every kind carry: names, owners, conditions and errors."""

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from resources.schema.wire import Int64, Opaque, Seq, Timestamp, Wire

CONDITION_TYPE = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class OwnerReference(Wire):
    """An object without which this one has no reason to be."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire):
    """The metadata of one object. The server owns most of it; clients print and send it back, unset parts as null."""

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


class Root(Wire):
    """An object as a whole; each kind adds its `spec` and `status`."""

    api_version: str = ""
    """The group and version in which this object is written."""
    kind: str = ""
    """What sort of object this is."""
    metadata: Annotated[ObjectMeta, WithJsonSchema({"type": "object"})] = Field(default_factory=ObjectMeta)


class Condition(Wire):
    """One answer about an object's state, and since when it holds."""

    type: Annotated[str, Field(max_length=316, pattern=CONDITION_TYPE)]
    """What is asked."""
    status: Literal["True", "False", "Unknown"]
    """The answer."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=CONDITION_REASON)]
    """One word for machines: why the answer is so."""
    message: Annotated[str, Field(max_length=32768)]
    """A sentence for people; may be empty."""
    last_transition_time: Timestamp
    """When the answer last changed."""
    observed_generation: Annotated[Int64, Field(ge=0, json_schema_extra={"minimum": 0})] | None = None
    """The metadata.generation that the answer is about."""


class LastError(Wire):
    """Something that went wrong in the latest pass."""

    code: str
    """A stable word for the situation."""
    description: str
    """What happened, in a sentence."""
    observed_at: Timestamp
    """When it was seen."""


class ClaimTemplateSpec(Wire):
    """What a resource claim made from this template will be."""

    metadata: Opaque | None = None
    """Labels and annotations for the claim."""
    spec: Opaque
    """The claim's specification: a ResourceClaimSpec of resource.k8s.io/v1, passed on as it is."""
