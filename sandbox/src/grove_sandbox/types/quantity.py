"""Quantities: numbers with a suffix, and the canonical form in which the server stores each of them."""

from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

from grove_sandbox.product import amount

_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

FAULT = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def value(text: str) -> Decimal:
    """The number that a quantity stands for. Raises `ValueError` with the server's message."""
    number = amount(text)
    if number is None:
        raise ValueError(FAULT)
    return number


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The stored form: `500m` for `0.5`, `1Gi` for `1024Mi`; `1e3` keeps its exponent. Raises `ValueError` with the server's message."""
    number = value(text)
    if text[-2:] in _BINARY and number == number.to_integral_value() and abs(number) >= 1024:
        return _binary(int(number))
    # A suffix is the last letter; only in an exponent do digits follow it.
    return _decimal(number, exponent="e" in text.lower() and text[-1].isdigit())


def _binary(number: int) -> str:
    suffix, bits = max((each for each in {"": 0, **_BINARY}.items() if number % (1 << each[1]) == 0), key=lambda each: each[1])
    return f"{number >> bits}{suffix}"


def _decimal(number: Decimal, *, exponent: bool) -> str:
    if number == 0:
        return "0"
    scaled, power = int(number.scaleb(9).to_integral_value(rounding=ROUND_CEILING)), -9
    while scaled % 1000 == 0 and power < 18:
        scaled //= 1000
        power += 3
    suffix = (f"e{power}" if power else "") if exponent else _DECIMAL[power]
    return f"{scaled}{suffix}"
