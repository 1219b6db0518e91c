"""Spellings: amounts such as `500m` or `1Gi`, and values that a server leaves out: what is equal although it is spelled otherwise."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import Struct, field

# Possessive quantifiers: a long text that is no quantity is rejected in linear time.
_PATTERN = re.compile(r"([+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?[0-9]+)?")

_FACTORS = {suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)} | {
    suffix: Decimal(1000) ** power for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), start=-3)
}


def amount(text: str) -> Decimal | None:
    """The number that a quantity stands for; None if the text is no quantity or its exponent is beyond any number."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        return None
    number, suffix = match.groups(default="")
    try:
        return Decimal(number) * _FACTORS[suffix] if suffix in _FACTORS else Decimal(number + suffix)
    except InvalidOperation:
        return None


def is_same_quantity(left: Any, right: Any) -> bool:
    """Whether two values (strings or whole numbers) spell the same amount."""
    amounts = [amount(str(value)) for value in (left, right) if isinstance(value, str | int) and not isinstance(value, bool)]
    return len(amounts) == 2 and amounts[0] is not None and amounts[0] == amounts[1]


def is_zero(value: Any) -> bool:
    """Whether the value is a quantity of zero, however it is spelled."""
    return amount(str(value)) == 0


class Omitted(Struct, frozen=True, eq=False):
    """The omitted fields of an object, or of each entry of a list of objects. Compared by identity."""

    fields: frozenset[str] = frozenset()
    """The scalar fields that are left out where they are `""`, `0` or `false`. Values of maps never are."""
    below: Mapping[str, "Omitted"] = field(default_factory=dict)
    """Field -> the omitted fields in its value; without fields in which nothing is omitted."""

    def at(self, path: tuple[str, ...]) -> "Omitted":
        """The omitted fields of the object at a path."""
        node = self
        for key in path:
            node = node.below.get(key, NOTHING_OMITTED)
        return node

    def is_absent(self, key: str, value: Any) -> bool:
        """Whether a server leaves out this value of a field."""
        return key in self.fields and is_zero_value(value)


NOTHING_OMITTED = Omitted()
"""The server keeps what it is sent, as it does for custom resources."""


def is_zero_value(value: Any) -> bool:
    """Whether a value is `""`, `0` or `false`."""
    return value == "" or (isinstance(value, int | float) and not value)


def without_omitted(value: Any, omitted: Omitted) -> Any:
    """The value as the server returns it."""
    if omitted is NOTHING_OMITTED:
        return value
    if isinstance(value, list | tuple):
        return [without_omitted(item, omitted) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {key: without_omitted(inner, omitted.at((key,))) for key, inner in value.items() if not omitted.is_absent(key, inner)}
