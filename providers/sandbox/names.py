"""Names: what Kubernetes accepts as names, label keys and values, and how it says no."""

import re
from collections.abc import Callable, Sequence
from random import Random

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SERVICE = r"[a-z]([-a-z0-9]*[a-z0-9])?"
QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58

Check = Callable[[str], str | None]


def generated(base: str, random: Random) -> str:
    """A name that begins with `base` and ends in five letters that spell no words."""
    return base[:_LONGEST_BASE] + "".join(random.choice(_SUFFIX_LETTERS) for _ in range(5))


def _example(pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples).removesuffix(", ") if len(examples) > 1 else f"'{examples[0]}'"
    return f"(e.g. {shown}, regex used for validation is '{pattern}')"


def subdomain_faults(name: str) -> list[str]:
    """What is wrong with an object name, in the server's words."""
    faults = []
    if len(name) > 253:
        faults.append("must be no more than 253 characters")
    if not re.fullmatch(SUBDOMAIN, name):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
            "with an alphanumeric character " + _example(SUBDOMAIN, "example.com")
        )
    return faults


def label_faults(name: str) -> list[str]:
    """What is wrong with the name of a namespace, a container or a volume."""
    faults = []
    if len(name) > 63:
        faults.append("must be no more than 63 characters")
    if not re.fullmatch(LABEL, name) and re.fullmatch(SUBDOMAIN, name):
        faults.append("must not contain dots")
    elif not re.fullmatch(LABEL, name):
        faults.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
            "alphanumeric character " + _example(LABEL, "my-name", "123-abc")
        )
    return faults


def service_faults(name: str) -> list[str]:
    """What is wrong with the name of a Service."""
    faults = []
    if len(name) > 63:
        faults.append("must be no more than 63 characters")
    if not re.fullmatch(SERVICE, name):
        faults.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
            "with an alphanumeric character " + _example(SERVICE, "my-name", "abc-123")
        )
    return faults


def path_faults(name: str) -> list[str]:
    """What is wrong with a name that only has to fit into a URL (roles and their bindings)."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def qualified_faults(key: str) -> list[str]:
    """What is wrong with a label key, an annotation key or a finalizer."""
    prefix, slash, name = key.rpartition("/")
    faults: list[str] = []
    if slash and "/" in prefix:
        return [f"a valid label key {_QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash:
        faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 characters")
    if not re.fullmatch(QUALIFIED, name):
        faults.append(f"name part {_QUALIFIED_RULE}")
    return faults


_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    + _example(QUALIFIED, "MyName", "my.name", "123-abc")
)


def value_faults(value: str) -> list[str]:
    """What is wrong with a label's value."""
    faults = []
    if len(value) > 63:
        faults.append("must be no more than 63 characters")
    if not re.fullmatch(VALUE, value):
        faults.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character " + _example(VALUE, "MyValue", "my_value", "12345")
        )
    return faults


def first(faults: Sequence[str]) -> str | None:
    """The first fault, if there is one."""
    return faults[0] if faults else None
