"""Quantities: Kubernetes amounts such as `500m` or `1Gi`, of which one amount has many spellings."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

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
