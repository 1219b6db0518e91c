"""Formats: the rules of Kubernetes for names, label keys and label values, with its messages."""

import re
from typing import Final

SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
QUALIFIED: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
VALUE: Final = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
VARIABLE: Final = r"[-._a-zA-Z][-._a-zA-Z0-9]*"

LONGEST_SUBDOMAIN: Final = 253
LONGEST_LABEL: Final = 63


def example(pattern: str, *examples: str) -> str:
    """The end of an API server's message: examples and the pattern."""
    shown = " or ".join(f"'{example}', " for example in examples).removesuffix(", ") if len(examples) > 1 else f"'{examples[0]}'"
    return f"(e.g. {shown}, regex used for validation is '{pattern}')"


def subdomain_faults(name: str) -> list[str]:
    """What is wrong with an object name; empty if nothing."""
    faults = []
    if len(name) > LONGEST_SUBDOMAIN:
        faults.append(f"must be no more than {LONGEST_SUBDOMAIN} characters")
    if not re.fullmatch(SUBDOMAIN, name):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
            "with an alphanumeric character " + example(SUBDOMAIN, "example.com")
        )
    return faults


def label_faults(name: str) -> list[str]:
    """What is wrong with the name of a namespace, a container or a volume; empty if nothing."""
    faults = []
    if len(name) > LONGEST_LABEL:
        faults.append(f"must be no more than {LONGEST_LABEL} characters")
    if not re.fullmatch(LABEL, name) and re.fullmatch(SUBDOMAIN, name):
        faults.append("must not contain dots")
    elif not re.fullmatch(LABEL, name):
        faults.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
            "alphanumeric character " + example(LABEL, "my-name", "123-abc")
        )
    return faults


_QUALIFIED_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    + example(QUALIFIED, "MyName", "my.name", "123-abc")
)


def qualified_faults(key: str) -> list[str]:
    """What is wrong with a label key, an annotation key or a finalizer; empty if nothing."""
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
    elif len(name) > LONGEST_LABEL:
        faults.append(f"name part must be no more than {LONGEST_LABEL} characters")
    if not re.fullmatch(QUALIFIED, name):
        faults.append(f"name part {_QUALIFIED_RULE}")
    return faults


def value_faults(value: str) -> list[str]:
    """What is wrong with the value of a label; empty if nothing."""
    faults = []
    if len(value) > LONGEST_LABEL:
        faults.append(f"must be no more than {LONGEST_LABEL} characters")
    if not re.fullmatch(VALUE, value):
        faults.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character " + example(VALUE, "MyValue", "my_value", "12345")
        )
    return faults


def variable_faults(name: str) -> list[str]:
    """What is wrong with the name of an environment variable; empty if nothing."""
    faults = []
    if not re.fullmatch(VARIABLE, name):
        faults.append(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with "
            "a digit " + example(VARIABLE, "my.env-name", "MY_ENV.NAME", "MyEnvName1")
        )
    if name in (".", ".."):
        faults.append(f"must not be '{name}'")
    elif name.startswith(".."):
        faults.append("must not start with '..'")
    return faults
