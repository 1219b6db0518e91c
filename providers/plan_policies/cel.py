"""CEL: checks and evaluates expressions with the library of the CEL project."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext.ext_strings import ExtStrings
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from resources.plan_policies.data_types import BOOL, DATA_TYPES, INT, STRING, STRINGS, item_of
from resources.plan_policies.expressions import Answer, Fault, RuleSubject
from resources.schema.plan_policy import RuleScope

POSITION: Final = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?=\n \| |\nERROR: |$)", re.DOTALL)
"""Where and what the library reports first."""
NOISE: Final = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$| \(in container ''\)")
"""What the library puts around its messages."""
IN_OUR_WORDS: Final[Mapping[str, str]] = {
    "Iteration budget exceeded": "it looks at more than 10000 items: let it judge each set, or the summary",
    "Invalid timezone": "the time zone is not known on this system",
}
"""Messages of the library that say little to those who write rules."""
ERROR: Final = "ERROR"
"""The type of a value that is an error."""
DYNAMIC: Final = "DYN"
LONGEST_TEXT: Final = 4_000
"""The most characters of a text that is the value of an expression."""


@cache
def environment(scope: RuleScope) -> Any:
    """The variables that expressions of a scope see, with their types."""
    types = cel.Type
    variables = {scope.variable: types(scope.value), "now": types.TIMESTAMP, "params": types.Map(types.STRING, types.DYN)}
    return cel.NewEnv(pool(), variables=variables, extensions=[ExtStrings()])


def check(scope: RuleScope, expression: str, type: str) -> Fault | None:
    """Why an expression cannot be used: its syntax, a name or field that does not exist, a type. `type`: what its value must be."""
    try:
        compiled = environment(scope).compile(encodable_text(expression))
    except (RuntimeError, ValueError) as error:
        return _fault(str(error))
    actual = str(compiled.return_type().name())
    if actual not in (type, DYNAMIC):
        return Fault(f"its value is of type {actual.lower()}, and must be of type {type.lower()}")
    return None


def _fault(text: str) -> Fault:
    """The first error of the library."""
    match = POSITION.search(text)
    if match is None:
        return Fault(_plain(text.partition("\n")[0]))
    line, column, message = match.groups()
    return Fault(_plain(message.partition("\n")[0]), max(1, int(line)), max(1, int(column)))


def _plain(message: str) -> str:
    """A message of the library without what it puts around it."""
    bare = NOISE.sub("", message)
    return IN_OUR_WORDS.get(bare, bare)


class CelExpressions:
    """`resources.plan_policies.expressions.Expressions` in this process, which what an expression does can slow down, or end."""

    def __init__(self) -> None:
        self._messages: dict[int, tuple[Mapping[str, Any], Any]] = {}
        """Identity of data -> the data, which keeps its identity from being given to another, and its message."""

    def evaluate(self, subject: RuleSubject, expressions: Sequence[str]) -> Sequence[Answer]:
        """The answer of each expression."""
        return list(self.answers(subject, expressions))

    def answers(self, subject: RuleSubject, expressions: Sequence[str]) -> Iterator[Answer]:
        """The answer of each expression, as soon as it is there."""
        env = environment(subject.scope)
        variables = {
            subject.scope.variable: self._message(subject),
            "now": datetime.fromisoformat(subject.now),
            "params": dict(encodable(subject.params)),
        }
        activation = env.Activation(variables)
        for expression in expressions:
            answer = _answer(env, activation, expression)
            yield answer
            if answer.fault:  # The library keeps some errors, and reports them again for whatever is evaluated next.
                activation = env.Activation(variables)

    def _message(self, subject: RuleSubject) -> Any:
        """The message of the plan or the set, made once for each."""
        known = self._messages.get(id(subject.data))
        if known is None:
            known = self._messages[id(subject.data)] = subject.data, message_of(subject.scope.value, subject.data)
        return known[1]


def _answer(env: Any, activation: Any, expression: str) -> Answer:
    try:
        value = env.compile(encodable_text(expression)).eval(activation)
        if value.type().name() == ERROR:
            return Answer(fault=_plain(str(value.value())))
        plain = value.plain_value()
    except (RuntimeError, ValueError) as error:
        return Answer(fault=_fault(str(error)).message)
    if isinstance(plain, str):
        return Answer(plain[:LONGEST_TEXT])
    return Answer(plain) if isinstance(plain, bool) else Answer(fault="its value is neither true nor false, and no text")


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
