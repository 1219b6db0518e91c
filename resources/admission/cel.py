"""CEL: builds admission rules in the language that an API server evaluates itself.

A file with rules for sets states them twice: for the model of a set, and as CEL (`policy_rules`), with the same fields and the same
reasons. `tests/laws/test_admission_policy_laws.py` compares both. An API server evaluates rules before the engine has filled in defaults,
so the CEL form fills them in itself.
"""

import json
import re
from collections.abc import Callable
from typing import Final

from resources.admission.request import Act
from resources.model.template import EXPLICIT
from resources.ports.fabric import PolicyRule, PolicyVariable
from resources.schema.formats import LONGEST_SUBDOMAIN, SUBDOMAIN
from resources.schema.issues import ErrorType

REPEATED: Final = ErrorType.DUPLICATE.value
"""The reason of a rule about a value that occurs twice."""
PLACEHOLDER: Final = re.compile(r"\{\w+\}")

ForEach = Callable[[str, str, str], PolicyRule]
"""Builds a rule from what is wrong, as CEL, the field and the reason."""


def text(value: str) -> str:
    """A CEL string literal. CEL reads the escapes of JSON."""
    return json.dumps(value, ensure_ascii=True)


def general(reason: str) -> str:
    """A reason without the values that it is formatted with: a policy names only cliques and scaling groups."""
    return PLACEHOLDER.sub("…", reason)


def matches(value: str, pattern: str) -> str:
    """CEL: whether a string matches the whole of a pattern."""
    return f"{value}.matches({text(f'^{pattern}$')})"


def no_subdomain(value: str) -> str:
    """CEL: whether a string is no DNS subdomain."""
    return f"({value}.size() > {LONGEST_SUBDOMAIN} || !{matches(value, SUBDOMAIN)})"


def is_repeated(value: str, values: str) -> str:
    """CEL: whether a list contains a value twice. An API server limits the cost of an expression, and looking up an index costs little."""
    return f"{values}.indexOf({value}) != {values}.lastIndexOf({value})"


def replicas_of(item: str) -> str:
    """CEL: the pods of a clique. 0 counts as absent, and the default is 1."""
    return f"({item}.spec.?replicas.orValue(0) == 0 ? 1 : {item}.spec.replicas)"


def kept(field: str, default: str) -> str:
    """CEL: the field of clique `c`; where an update leaves it out, that of the stored clique. `default` is CEL about clique `o`."""
    stored = f"variables.oldCliques.filter(o, o.name == c.name).map(o, o.spec.?{field}.orValue({default}))"
    return f"c.spec.?{field}.orValue(({stored} + [c].map(o, {default}))[0])"


ROLE: Final = kept("roleName", "''")
MINIMUM: Final = kept("minAvailable", replicas_of("o"))


def is_repaired(old: str, new: str) -> str:
    """CEL: whether a holder's constraint with the deprecated `packDomain` gets the `topologyName` that it lacked."""
    before, after = f"{old}.topologyConstraint", f"{new}.?topologyConstraint.?topologyName.orValue('')"
    return f"(has({before}) && has({before}.packDomain) && {before}.?topologyName.orValue('') == '' && {after} != '')"


VARIABLES: Final = (
    PolicyVariable("template", "object.spec.template"),
    PolicyVariable("cliques", "variables.template.?cliques.orValue([])"),
    PolicyVariable("groups", "variables.template.?podCliqueScalingGroups.orValue([])"),
    PolicyVariable("annotations", "object.metadata.?annotations.orValue({})"),
    PolicyVariable("oldTemplate", "request.operation == 'UPDATE' ? oldObject.spec.template : object.spec.template"),
    PolicyVariable("oldCliques", "variables.oldTemplate.?cliques.orValue([])"),
    PolicyVariable("oldGroups", "variables.oldTemplate.?podCliqueScalingGroups.orValue([])"),
    PolicyVariable(
        "oldAnnotations",
        "request.operation == 'UPDATE' ? oldObject.metadata.?annotations.orValue({}) : object.metadata.?annotations.orValue({})",
    ),
    PolicyVariable("names", "variables.cliques.map(c, c.name)"),
    PolicyVariable("oldNames", "variables.oldCliques.map(c, c.name)"),
    PolicyVariable("groupNames", "variables.groups.map(g, g.name)"),
    PolicyVariable("roles", f"variables.cliques.map(c, {ROLE})"),
    PolicyVariable("nameLength", "object.metadata.?name.orValue('').size()"),
    PolicyVariable("explicit", f"variables.template.?cliqueStartupType.orValue('') == {text(EXPLICIT)}"),
    PolicyVariable("ownTemplates", "variables.template.?resourceClaimTemplates.orValue([])"),
    PolicyVariable("topology", "variables.template.?topologyConstraint.?topologyName.orValue('')"),
    PolicyVariable(
        "topologies",
        "([variables.topology] + variables.groups.map(g, g.?topologyConstraint.?topologyName.orValue(''))"
        " + variables.cliques.map(c, c.?topologyConstraint.?topologyName.orValue(''))).filter(n, n != '')",
    ),
    PolicyVariable(
        "repaired",
        f"{is_repaired('variables.oldTemplate', 'variables.template')}"
        f" || variables.groups.exists(g, variables.oldGroups.exists(o, o.name == g.name && {is_repaired('o', 'g')}))"
        f" || variables.cliques.exists(c, variables.oldCliques.exists(o, o.name == c.name && {is_repaired('o', 'c')}))",
    ),
)
"""The variables that rules for sets may use. Those that begin with `old` are of the stored version; on create they are of the new one."""


def rule(bad: str, field: str, reason: str) -> PolicyRule:
    """A rule that denies an object for which the CEL expression `bad` is true."""
    return PolicyRule(f"!({bad})", f"{field}: {reason}")


def for_template(bad: str, field: str, reason: str) -> PolicyRule:
    """A rule that denies a set for which `bad` is true, about a field of its template."""
    return rule(bad, f"spec.template.{field}", reason)


def for_each_clique(bad: str, field: str, reason: str) -> PolicyRule:
    """A rule that denies a set with a clique `c` for which `bad` is true; the message names these cliques."""
    return _for_each("variables.cliques", "c", bad, "spec.template.cliques", field, reason)


def for_each_group(bad: str, field: str, reason: str) -> PolicyRule:
    """A rule that denies a set with a scaling group `g` for which `bad` is true; the message names these groups."""
    return _for_each("variables.groups", "g", bad, "spec.template.podCliqueScalingGroups", field, reason)


HOLDERS: Final[tuple[tuple[str, ForEach], ...]] = (("variables.template", for_template), ("g", for_each_group), ("c", for_each_clique))
"""The template, a scaling group and a clique as CEL, and what builds a rule about each of them."""


def _for_each(items: str, item: str, bad: str, path: str, field: str, reason: str) -> PolicyRule:
    names = f"{items}.filter({item}, {bad}).map({item}, string({item}.name)).join(', ')"
    message = f"{text(f'{path}[')} + {names} + {text(f'].{field}: {reason}')}"
    return PolicyRule(f"!{items}.exists({item}, {bad})", f"{path}[].{field}: {reason}", message)


def on_create(rule: PolicyRule) -> PolicyRule:
    """The rule, for new objects only."""
    return _only(Act.CREATE, rule)


def on_update(rule: PolicyRule) -> PolicyRule:
    """The rule, for changes of stored objects only."""
    return _only(Act.UPDATE, rule)


def _only(act: Act, rule: PolicyRule) -> PolicyRule:
    return PolicyRule(f"request.operation != '{act.value}' || ({rule.expression})", rule.message, rule.message_expression)
