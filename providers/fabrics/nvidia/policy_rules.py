"""Policy rules: the admission rules for ComputeDomains that an API server can evaluate itself, as CEL."""

from collections.abc import Iterator
from typing import Final

from providers.fabrics.nvidia import groups, names
from resources.admission.annotations import AFTER_CREATION, immutable_rules, immutable_rules_for_cliques, immutable_rules_for_groups
from resources.admission.cel import for_each_clique, for_each_group, general, matches, no_subdomain, on_create, rule, text
from resources.ports.fabric import GROUP_INDEX, INDEX, Enrolment, PolicyRule
from resources.schema.formats import LABEL, LONGEST_LABEL
from resources.schema.issues import Child

MODE: Final = f"variables.annotations[?{text(names.AUTO)}]"
NAME: Final = f"c.?annotations[?{text(names.NAMED)}]"
AUTO_FIELD: Final = f"metadata.annotations.{names.AUTO}"

GROUP_OF_SET: Final = f"object.metadata.?annotations[?{text(names.GROUP)}]"
HAS_GROUP: Final = f"{text(names.GROUP)} in {{}}.?annotations.orValue({{{{}}}})"
"""Whether a clique or a scaling group has the annotation itself."""
_OF_SCALING_GROUP: Final = f"g, c.name in g.cliqueNames && {HAS_GROUP.format('g')}"
GROUP_OF_CLIQUE: Final = (
    f"({HAS_GROUP.format('c')} ? c.annotations[{text(names.GROUP)}] : variables.groups.exists({_OF_SCALING_GROUP}) "
    f"? variables.groups.filter({_OF_SCALING_GROUP})[0].annotations[{text(names.GROUP)}] : {GROUP_OF_SET}.orValue({text(names.NO_GROUP)}))"
)
"""The group of clique `c`: its own, else that of its scaling group, else that of the set (N26)."""
IS_LABEL: Final = f"v.size() <= {LONGEST_LABEL} && {matches('v', LABEL)}"
"""Whether a value `v` is the name of a group, or `none`."""
IS_IN_GROUP: Final = f"[{GROUP_OF_CLIQUE}].exists(v, v != {text(names.NO_GROUP)} && {IS_LABEL})"
CLIQUES: Final = "object.spec.template.?cliques.orValue([])"
SCALING_GROUPS: Final = "object.spec.template.?podCliqueScalingGroups.orValue([])"
USES_GROUPS: Final = (
    f"({GROUP_OF_SET}.hasValue() || {CLIQUES}.exists(c, {HAS_GROUP.format('c')}) || {SCALING_GROUPS}.exists(g, {HAS_GROUP.format('g')}))"
)
"""Whether the annotation for groups is anywhere on the set."""

UNSTATED: Final = (
    "a pod that claims a second channel by the claim template of one of the set's own ComputeDomains (N23)",
    "a named ComputeDomain with the name of a group's ComputeDomain of the same set (N26)",
    "what a set's objects record: a stored set may have been changed before the policies were installed",
)


def rules(*, auto: bool) -> Iterator[PolicyRule]:
    """The rules for the annotations that request domains. `auto` says whether automatic domains are enabled."""
    yield from map(on_create, _creation_rules(auto=auto))
    yield from _update_rules()


def enrolment() -> Enrolment:
    """New sets with GPUs get the annotation for automatic domains (R6, R7)."""
    conditions = (
        PolicyRule(f"!({text(names.AUTO)} in object.metadata.?annotations.orValue({{}}))", "the set does not say whether it takes part"),
        PolicyRule(f"!{USES_GROUPS}", "the set does not use groups"),
        PolicyRule(f"{CLIQUES}.exists(c, {requests_gpus('c')})", "a container requests GPUs"),
    )
    return Enrolment("auto-mnnvl", conditions, {names.AUTO: names.ENABLED})


def requests_gpus(clique: str) -> str:
    """CEL: whether a container of a clique has a request or a limit of GPUs that is not zero (T10)."""
    containers = f"({clique}.spec.podSpec.?containers.orValue([]) + {clique}.spec.podSpec.?initContainers.orValue([]))"
    amount = f"r[{text(names.GPU)}]"
    is_zero = f"isQuantity(string({amount})) && quantity(string({amount})).compareTo(quantity('0')) == 0"
    resources = "[k.?resources.?limits.orValue({}), k.?resources.?requests.orValue({})]"
    return f"{containers}.exists(k, {resources}.exists(r, {text(names.GPU)} in r && !({is_zero})))"


def _creation_rules(*, auto: bool) -> Iterator[PolicyRule]:
    """R15, R38, R49, N14, N18, N26."""
    yield rule(f"!({MODE}.orValue({text(names.DISABLED)}) in [{text(names.ENABLED)}, {text(names.DISABLED)}])", AUTO_FIELD, names.MODES)
    if not auto:
        yield rule(f"{MODE}.orValue('') == {text(names.ENABLED)}", AUTO_FIELD, names.OFF)
    yield from _group_rules(auto=auto)
    field, has_name = f"annotations[{names.NAMED}]", f"{NAME}.hasValue()"
    if auto:
        yield for_each_clique(f"{has_name} && {MODE}.orValue('') != {text(names.DISABLED)} && !{USES_GROUPS}", field, names.OPT_OUT)
    yield for_each_clique(f"{has_name} && {IS_IN_GROUP}", field, general(groups.NAME_IN_GROUP))
    is_invalid = no_subdomain(f"{NAME}.orValue('').replace({text(INDEX)}, '0').replace({text(GROUP_INDEX)}, '0')")
    yield for_each_clique(f"{has_name} && {NAME}.orValue('') == ''", field, names.NO_DOMAIN_NAME)
    yield for_each_clique(f"{NAME}.orValue('') != '' && {is_invalid}", field, names.INVALID_DOMAIN_NAME)
    is_alone = "!variables.groups.exists(g, c.name in g.cliqueNames)"
    yield for_each_clique(f"{NAME}.orValue('').contains({text(GROUP_INDEX)}) && !{is_invalid} && {is_alone}", field, names.NO_SCALING_GROUP)
    # Without an annotation the set is enrolled later, if automatic domains are enabled.
    default = names.ENABLED if auto else names.DISABLED
    is_enabled = f"{MODE}.orValue({USES_GROUPS} ? {text(names.DISABLED)} : {text(default)}) == {text(names.ENABLED)}"
    joins = f"({has_name} || (({is_enabled} || {IS_IN_GROUP}) && {requests_gpus('c')}))"
    taken = f"c.spec.podSpec.?resourceClaims.orValue([]).exists(r, r.name == {text(names.CLAIM)})"
    yield for_each_clique(f"{joins} && {taken}", "spec.podSpec.resourceClaims[].name", names.CLAIM_NAME_TAKEN)


def _group_rules(*, auto: bool) -> Iterator[PolicyRule]:
    """The values of groups, and groups that contradict the mode."""
    field, faults = f"annotations.{names.GROUP}", {"v == ''": groups.EMPTY, f"v != '' && !({IS_LABEL})": general(groups.NO_LABEL)}
    if not auto:
        faults[f"v != {text(names.NO_GROUP)} && {IS_LABEL}"] = groups.OFF
    for bad, reason in faults.items():
        is_bad = f"{HAS_GROUP} && [{{}}.annotations[{text(names.GROUP)}]].exists(v, {bad})"
        yield rule(is_bad.format(*["object.metadata"] * 2), f"metadata.{field}", reason)
        yield for_each_clique(is_bad.format("c", "c"), field, reason)
        yield for_each_group(is_bad.format("g", "g"), field, reason)
    yield rule(f"{MODE}.orValue('') == {text(names.ENABLED)} && {USES_GROUPS}", AUTO_FIELD, groups.ENABLED_AND_GROUP)
    others = (
        f"{GROUP_OF_SET}.orValue({text(names.NO_GROUP)}) != {text(names.NO_GROUP)}",
        f"{CLIQUES}.exists(c, {HAS_GROUP.format('c')} && c.annotations[{text(names.GROUP)}] != {text(names.NO_GROUP)})",
        f"{SCALING_GROUPS}.exists(g, {HAS_GROUP.format('g')} && g.annotations[{text(names.GROUP)}] != {text(names.NO_GROUP)})",
    )
    yield rule(f"{MODE}.orValue('') == {text(names.DISABLED)} && ({' || '.join(others)})", AUTO_FIELD, general(groups.DISABLED_AND_GROUP))


def _update_rules() -> Iterator[PolicyRule]:
    """R16 to R18, N13, N26."""
    yield from immutable_rules(names.AUTO)
    yield from immutable_rules_for_cliques(names.NAMED)
    yield from immutable_rules(names.GROUP, after=AFTER_CREATION)
    yield from immutable_rules_for_cliques(Child(names.GROUP), after=AFTER_CREATION)
    yield from immutable_rules_for_groups(Child(names.GROUP), after=AFTER_CREATION)
