"""Quantities: amounts as Kubernetes spells them, of which one amount has many spellings."""

import re
from decimal import Decimal
from typing import Any

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?")

_FACTORS = {suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)} | {
    suffix: Decimal(1000) ** power for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), start=-3)
}


def amount(text: str) -> Decimal | None:
    """The number that a quantity stands for; None if it is none."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    number, suffix = found.groups(default="")
    return Decimal(number) * _FACTORS[suffix] if suffix in _FACTORS else Decimal(number + suffix)


def is_same_quantity(one: Any, other: Any) -> bool:
    """Whether two spellings (strings or whole numbers) are the same amount."""
    amounts = [amount(str(value)) for value in (one, other) if isinstance(value, str | int) and not isinstance(value, bool)]
    return len(amounts) == 2 and amounts[0] is not None and amounts[0] == amounts[1]


def is_zero(value: Any) -> bool:
    """Whether it is some spelling of nothing at all."""
    return amount(str(value)) == 0
