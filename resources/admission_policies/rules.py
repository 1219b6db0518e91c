"""Rules: builders of rules about each clique, each scaling group or the whole of a PodCliqueSet."""

import json
from typing import Final

from resources.admission.request import Act
from resources.ports.fabric import PolicyRule

SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
"""The pattern of names of objects."""
QUALIFIED: Final = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$"
"""The pattern of keys of labels and annotations; their prefix is also limited in length."""


def text(value: str) -> str:
    """A CEL string literal. CEL reads the escapes of JSON."""
    return json.dumps(value, ensure_ascii=True)


def matches(value: str, pattern: str) -> str:
    """CEL: whether a string matches the whole of a pattern."""
    return f"{value}.matches({text(pattern)})"


def no_subdomain(value: str) -> str:
    """CEL: whether a string is no DNS subdomain."""
    return f"({value}.size() > 253 || !{matches(value, SUBDOMAIN)})"


def repeated(names: str) -> str:
    """CEL: whether a list contains a value twice. An API server limits the cost of an expression, and looking up an index costs little."""
    return f"[{names}].exists(names, names.exists(n, names.indexOf(n) != names.lastIndexOf(n)))"


def for_each_clique(bad: str, field: str, reason: str) -> PolicyRule:
    """A rule that denies a set with a clique `c` for which the CEL expression `bad` is true; the message names these cliques."""
    return _for_each("variables.cliques", "c", bad, "spec.template.cliques", field, reason)


def for_each_group(bad: str, field: str, reason: str) -> PolicyRule:
    """A rule that denies a set with a scaling group `g` for which the CEL expression `bad` is true; the message names these groups."""
    return _for_each("variables.groups", "g", bad, "spec.template.podCliqueScalingGroups", field, reason)


def _for_each(items: str, item: str, bad: str, path: str, field: str, reason: str) -> PolicyRule:
    suffix = f".{field}" if field else ""
    names = f"{items}.filter({item}, {bad}).map({item}, string({item}.name)).join(', ')"
    message = f"{text(f'{path}[')} + {names} + {text(f']{suffix}: {reason}')}"
    return PolicyRule(f"!{items}.exists({item}, {bad})", f"{path}[]{suffix}: {reason}", message)


def on_create(rule: PolicyRule) -> PolicyRule:
    """The rule, for new objects only."""
    return _only(Act.CREATE, rule)


def on_update(rule: PolicyRule) -> PolicyRule:
    """The rule, for changes of stored objects only."""
    return _only(Act.UPDATE, rule)


def _only(act: Act, rule: PolicyRule) -> PolicyRule:
    return PolicyRule(f"request.operation != '{act.value}' || ({rule.expression})", rule.message, rule.message_expression)
