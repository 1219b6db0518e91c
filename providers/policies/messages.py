"""Messages: the data types of expressions as messages of protocol buffers, from which the library knows every field and its type."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from resources.plan_policies.data_types import BOOL, DATA_TYPES, INT, STRING, STRINGS, item_of

FIELD: Final = descriptor_pb2.FieldDescriptorProto
SCALARS: Final[Mapping[str, int]] = {BOOL: FIELD.TYPE_BOOL, INT: FIELD.TYPE_INT64, STRING: FIELD.TYPE_STRING}


@cache
def pool() -> Any:
    """The descriptors of all data types."""
    file = descriptor_pb2.FileDescriptorProto(name="plan_policy.proto", syntax="proto3")
    for name, data_type in DATA_TYPES.items():
        message = file.message_type.add(name=name)
        for number, (field, (type, _)) in enumerate(data_type.fields.items(), start=1):
            _add_field(message, field, number, type)
    result = descriptor_pool.DescriptorPool()
    result.Add(file)
    return result


def _add_field(message: Any, name: str, number: int, type: str) -> None:
    """Add a field of a data type to the descriptor of a message."""
    item = item_of(type)
    added = message.field.add(name=name, json_name=name, number=number, label=FIELD.LABEL_REPEATED if item else FIELD.LABEL_OPTIONAL)
    if type == STRINGS:
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        for place, key in enumerate(("key", "value"), start=1):
            entry.field.add(name=key, json_name=key, number=place, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
        added.label, added.type, added.type_name = FIELD.LABEL_REPEATED, FIELD.TYPE_MESSAGE, f".{message.name}.{entry.name}"
    elif (scalar := SCALARS.get(item or type)) is not None:
        added.type = scalar
    else:
        added.type, added.type_name = FIELD.TYPE_MESSAGE, f".{item or type}"


def message_of(type: str, data: Mapping[str, Any]) -> Any:
    """The message of a data type with these fields."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(type))(**dict(encodable(data)))


def encodable(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of a map, with every character that has no encoding in UTF-8 replaced in all its texts."""
    for key, value in data.items():
        yield encodable_text(key), _encodable(value)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable_text(value)
    if isinstance(value, Mapping):
        return dict(encodable(value))
    if isinstance(value, Sequence):
        return [_encodable(item) for item in value]
    return value


def encodable_text(text: str) -> str:
    """The text with `?` for every character that has no encoding in UTF-8."""
    return text.encode("utf-8", "replace").decode()
