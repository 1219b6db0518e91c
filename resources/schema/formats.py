"""Formats: the rules of Kubernetes for names, label keys and label values, with its messages."""

import re
from typing import Final

SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
QUALIFIED: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
VALUE: Final = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
VARIABLE: Final = r"[-._a-zA-Z][-._a-zA-Z0-9]*"
RELAXED_VARIABLE: Final = re.compile(r"[ -<>-~]+")
"""Printable ASCII without `=`."""
KEY: Final = r"[-._a-zA-Z0-9]+"
SEARCH: Final = r"[a-z0-9_]([-_a-z0-9]*[a-z0-9])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9])?)*"
HEADER: Final = r"[-A-Za-z0-9]+"
SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
LONGEST_PORT_NAME: Final = 15

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
    return faults + _dot_faults(name)


def port_name_faults(name: str) -> list[str]:
    """What is wrong with the name of a port; empty if nothing."""
    faults = []
    if len(name) > LONGEST_PORT_NAME:
        faults.append(f"must be no more than {LONGEST_PORT_NAME} characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def key_faults(key: str) -> list[str]:
    """What is wrong with a key of a ConfigMap or Secret; empty if nothing."""
    faults = []
    if len(key) > LONGEST_SUBDOMAIN:
        faults.append(f"must be no more than {LONGEST_SUBDOMAIN} characters")
    if not re.fullmatch(KEY, key):
        faults.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
            + example(KEY, "key.name", "KEY_NAME", "key-name")
        )
    return faults + _dot_faults(key)


def _dot_faults(name: str) -> list[str]:
    if name in (".", ".."):
        return [f"must not be '{name}'"]
    return ["must not start with '..'"] if name.startswith("..") else []


def search_faults(name: str) -> list[str]:
    """What is wrong with a DNS search path; empty if nothing."""
    plain = name.removesuffix(".")
    if name != "." and (len(plain) > LONGEST_SUBDOMAIN or not re.fullmatch(SEARCH, plain)):
        return [
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end "
            "with an alphanumeric character " + example(SEARCH, "example.com")
        ]
    return []


def header_faults(name: str) -> list[str]:
    """What is wrong with the name of an HTTP header; empty if nothing."""
    rule = "a valid HTTP header must consist of alphanumeric characters or '-' "
    return [] if re.fullmatch(HEADER, name) else [rule + example(HEADER, "X-Header-Name")]


def signer_faults(name: str) -> list[str]:
    """What is wrong with the name of a signer of certificates, e.g. `example.com/signer`; empty if nothing."""
    domain, slash, path = name.partition("/")
    if not slash or "/" in path:
        return ["must be a fully qualified domain and path of the form 'example.com/signer-name'"]
    if "." not in domain:
        return ["should be a domain with at least two segments separated by dots"]
    faults = [fault for label in domain.split(".") for fault in label_faults(label)]
    return faults or [fault for label in path.split(".") for fault in subdomain_faults(label)]


def bundle_faults(name: str) -> list[str]:
    """What is wrong with the name of a trust bundle, e.g. `example.com:signer:name`; empty if nothing."""
    signer, _, own = name.rpartition(":")
    if "/" in signer:
        prefix = f"{signer.replace('/', ':')}:"
        return [f"not a valid clustertrustbundlename: ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return [f"not a valid clustertrustbundlename: {fault}" for fault in subdomain_faults(own)]


def sysctl_faults(name: str) -> list[str]:
    """What is wrong with the name of a sysctl; empty if nothing."""
    is_valid = len(name) <= LONGEST_SUBDOMAIN and re.fullmatch(SYSCTL, name)
    return [] if is_valid else [f"must have at most {LONGEST_SUBDOMAIN} characters and match regex ^{SYSCTL}$"]


def relaxed_variable_faults(name: str) -> list[str]:
    """What is wrong with the name of an environment variable of a pod, where an API server allows more than in older releases."""
    return (
        []
        if RELAXED_VARIABLE.fullmatch(name)
        else ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
    )


def ip_faults(address: str) -> list[str]:
    """What is wrong with an IP address; empty if nothing."""
    from ipaddress import ip_address  # Few pod specs have addresses.

    try:
        ip_address(address)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if "%" not in address else ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
