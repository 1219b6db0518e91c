"""Policy rules: the admission rules for ComputeDomains that an API server can evaluate itself, as CEL."""

from collections.abc import Iterator
from typing import Final

from providers.fabrics.nvidia import groups
from providers.fabrics.nvidia.names import (
    AUTO,
    CLAIM,
    CLAIM_NAME_TAKEN,
    DISABLED,
    ENABLED,
    GPU,
    GROUP,
    INVALID_DOMAIN_NAME,
    MODES,
    NAMED,
    NO_DOMAIN_NAME,
    NO_GROUP,
    NO_SCALING_GROUP,
    OFF,
    OPT_OUT,
)
from resources.admission.annotations import AFTER_CREATION, immutable_rules, immutable_rules_for_cliques, immutable_rules_for_groups
from resources.admission.cel import for_each_clique, for_each_group, general, matches, no_subdomain, on_create, rule, text
from resources.ports.fabric import GROUP_INDEX, INDEX, Enrolment, PolicyRule
from resources.schema.formats import LABEL, LONGEST_LABEL
from resources.schema.issues import Child

MODE: Final = f"variables.annotations[?{text(AUTO)}]"
NAME: Final = f"c.?annotations[?{text(NAMED)}]"
AUTO_FIELD: Final = f"metadata.annotations.{AUTO}"

GROUP_OF_SET: Final = f"object.metadata.?annotations[?{text(GROUP)}]"
HAS_GROUP: Final = f"{text(GROUP)} in {{}}.?annotations.orValue({{{{}}}})"
"""Whether a clique or a scaling group has the annotation itself."""
_OF_SCALING_GROUP: Final = f"g, c.name in g.cliqueNames && {HAS_GROUP.format('g')}"
GROUP_OF_CLIQUE: Final = (
    f"({HAS_GROUP.format('c')} ? c.annotations[{text(GROUP)}] : variables.groups.exists({_OF_SCALING_GROUP}) "
    f"? variables.groups.filter({_OF_SCALING_GROUP})[0].annotations[{text(GROUP)}] : {GROUP_OF_SET}.orValue({text(NO_GROUP)}))"
)
"""The group of clique `c`: its own, else that of its scaling group, else that of the set (N26)."""
IS_LABEL: Final = f"v.size() <= {LONGEST_LABEL} && {matches('v', LABEL)}"
"""Whether a value `v` is the name of a group, or `none`."""
IS_IN_GROUP: Final = f"[{GROUP_OF_CLIQUE}].exists(v, v != {text(NO_GROUP)} && {IS_LABEL})"
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
        PolicyRule(f"!({text(AUTO)} in object.metadata.?annotations.orValue({{}}))", "the set does not say whether it takes part"),
        PolicyRule(f"!{USES_GROUPS}", "the set does not use groups"),
        PolicyRule(f"{CLIQUES}.exists(c, {requests_gpus('c')})", "a container requests GPUs"),
    )
    return Enrolment("auto-mnnvl", conditions, {AUTO: ENABLED})


def requests_gpus(clique: str) -> str:
    """CEL: whether a container of a clique has a request or a limit of GPUs that is not zero (T10)."""
    containers = f"({clique}.spec.podSpec.?containers.orValue([]) + {clique}.spec.podSpec.?initContainers.orValue([]))"
    amount = f"r[{text(GPU)}]"
    is_zero = f"isQuantity(string({amount})) && quantity(string({amount})).compareTo(quantity('0')) == 0"
    resources = "[k.?resources.?limits.orValue({}), k.?resources.?requests.orValue({})]"
    return f"{containers}.exists(k, {resources}.exists(r, {text(GPU)} in r && !({is_zero})))"


def _creation_rules(*, auto: bool) -> Iterator[PolicyRule]:
    """R15, R38, R49, N14, N18, N26."""
    yield rule(f"!({MODE}.orValue({text(DISABLED)}) in [{text(ENABLED)}, {text(DISABLED)}])", AUTO_FIELD, MODES)
    if not auto:
        yield rule(f"{MODE}.orValue('') == {text(ENABLED)}", AUTO_FIELD, OFF)
    yield from _group_rules(auto=auto)
    field, has_name = f"annotations[{NAMED}]", f"{NAME}.hasValue()"
    if auto:
        yield for_each_clique(f"{has_name} && {MODE}.orValue('') != {text(DISABLED)} && !{USES_GROUPS}", field, OPT_OUT)
    yield for_each_clique(f"{has_name} && {IS_IN_GROUP}", field, general(groups.NAME_IN_GROUP))
    is_invalid = no_subdomain(f"{NAME}.orValue('').replace({text(INDEX)}, '0').replace({text(GROUP_INDEX)}, '0')")
    yield for_each_clique(f"{has_name} && {NAME}.orValue('') == ''", field, NO_DOMAIN_NAME)
    yield for_each_clique(f"{NAME}.orValue('') != '' && {is_invalid}", field, INVALID_DOMAIN_NAME)
    is_alone = "!variables.groups.exists(g, c.name in g.cliqueNames)"
    yield for_each_clique(f"{NAME}.orValue('').contains({text(GROUP_INDEX)}) && !{is_invalid} && {is_alone}", field, NO_SCALING_GROUP)
    # Without an annotation the set is enrolled later, if automatic domains are enabled.
    default = ENABLED if auto else DISABLED
    is_enabled = f"{MODE}.orValue({USES_GROUPS} ? {text(DISABLED)} : {text(default)}) == {text(ENABLED)}"
    joins = f"({has_name} || (({is_enabled} || {IS_IN_GROUP}) && {requests_gpus('c')}))"
    taken = f"c.spec.podSpec.?resourceClaims.orValue([]).exists(r, r.name == {text(CLAIM)})"
    yield for_each_clique(f"{joins} && {taken}", "spec.podSpec.resourceClaims[].name", CLAIM_NAME_TAKEN)


def _group_rules(*, auto: bool) -> Iterator[PolicyRule]:
    """The values of groups, and groups that contradict the mode."""
    field, faults = f"annotations.{GROUP}", {"v == ''": groups.EMPTY, f"v != '' && !({IS_LABEL})": general(groups.NO_LABEL)}
    if not auto:
        faults[f"v != {text(NO_GROUP)} && {IS_LABEL}"] = groups.OFF
    for bad, reason in faults.items():
        is_bad = f"{HAS_GROUP} && [{{}}.annotations[{text(GROUP)}]].exists(v, {bad})"
        yield rule(is_bad.format(*["object.metadata"] * 2), f"metadata.{field}", reason)
        yield for_each_clique(is_bad.format("c", "c"), field, reason)
        yield for_each_group(is_bad.format("g", "g"), field, reason)
    yield rule(f"{MODE}.orValue('') == {text(ENABLED)} && {USES_GROUPS}", AUTO_FIELD, groups.ENABLED_AND_GROUP)
    others = (
        f"{GROUP_OF_SET}.orValue({text(NO_GROUP)}) != {text(NO_GROUP)}",
        f"{CLIQUES}.exists(c, {HAS_GROUP.format('c')} && c.annotations[{text(GROUP)}] != {text(NO_GROUP)})",
        f"{SCALING_GROUPS}.exists(g, {HAS_GROUP.format('g')} && g.annotations[{text(GROUP)}] != {text(NO_GROUP)})",
    )
    yield rule(f"{MODE}.orValue('') == {text(DISABLED)} && ({' || '.join(others)})", AUTO_FIELD, general(groups.DISABLED_AND_GROUP))


def _update_rules() -> Iterator[PolicyRule]:
    """R16 to R18, N13, N26."""
    yield from immutable_rules(AUTO)
    yield from immutable_rules_for_cliques(NAMED)
    yield from immutable_rules(GROUP, after=AFTER_CREATION)
    yield from immutable_rules_for_cliques(Child(GROUP), after=AFTER_CREATION)
    yield from immutable_rules_for_groups(Child(GROUP), after=AFTER_CREATION)
