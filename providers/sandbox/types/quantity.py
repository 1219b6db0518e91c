"""Quantities: Kubernetes' numbers with a suffix, in the one form in which the server writes each of them."""

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

_SYNTAX = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

FAULT = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def value(text: str) -> Decimal:
    """The number that is meant. Raises `ValueError` with the server's words."""
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise ValueError(FAULT)
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    return number.scaleb(int(suffix[1:]))


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The form in which the server writes it: `0.5` is `500m`, `1024Mi` is `1Gi`, `1e3` keeps its exponent. Raises `ValueError`."""
    number = value(text)
    match = _SYNTAX.fullmatch(text)
    suffix = (match["suffix"] if match else "") or ""
    if suffix in _BINARY:
        return _binary(number)
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return _scaled(number, exponent=True)
    return _scaled(number, exponent=False)


def _binary(number: Decimal) -> str:
    if number != number.to_integral_value() or abs(number) < 1024:
        # Binary suffixes have no fractions of one: such a number is written in decimal.
        return _scaled(number, exponent=False)
    whole, chosen = int(number), ""
    for suffix, bits in _BINARY.items():
        if whole % (1 << bits) == 0:
            chosen = suffix
    return f"{whole >> _BINARY[chosen]}{chosen}" if chosen else str(whole)


def _scaled(number: Decimal, *, exponent: bool) -> str:
    if number == 0:
        return "0"
    nano = int(number.scaleb(9).to_integral_value(rounding=ROUND_CEILING))
    power = -9
    while nano % 1000 == 0 and power < 18:
        nano //= 1000
        power += 3
    if exponent:
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{next(suffix for suffix, p in _DECIMAL.items() if p == power)}"
