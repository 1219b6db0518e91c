"""Policy rules: the admission rules for ComputeDomains that an API server can evaluate itself, as CEL."""

from collections.abc import Iterator
from typing import Final

from providers.fabrics.nvidia import groups
from providers.fabrics.nvidia.groups import CONTRADICTORY
from providers.fabrics.nvidia.names import (
    AUTO,
    CLAIM,
    CLAIM_NAME_TAKEN,
    DISABLED,
    ENABLED,
    GPU,
    GROUP,
    NAMED,
    NO_GROUP,
    NO_SCALING_GROUP,
    OFF,
    OPT_OUT,
)
from resources.admission_policies.rules import for_each_clique, for_each_group, matches, no_subdomain, on_create, on_update, text
from resources.ports.fabric import GROUP_INDEX, INDEX, Enrolment, PolicyRule
from resources.schema.formats import LABEL, LONGEST_LABEL

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
    yield from map(on_update, _update_rules())


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
    yield PolicyRule(
        f"{MODE}.orValue({text(DISABLED)}) in [{text(ENABLED)}, {text(DISABLED)}]", f'{AUTO_FIELD}: must be "{ENABLED}" or "{DISABLED}"'
    )
    if not auto:
        yield PolicyRule(f"{MODE}.orValue('') != {text(ENABLED)}", f"{AUTO_FIELD}: {OFF}")
    yield from _group_rules(auto=auto)
    field = f"annotations[{NAMED}]"
    if auto:
        bad = f"{NAME}.hasValue() && {MODE}.orValue('') != {text(DISABLED)} && !{USES_GROUPS}"
        yield for_each_clique(bad, field, OPT_OUT)
    in_group = f"{NAME}.hasValue() && {GROUP_OF_CLIQUE} != {text(NO_GROUP)}"
    yield for_each_clique(in_group, field, f"{CONTRADICTORY}the clique is in a group of {GROUP}, and a node has one channel")
    name = f"{NAME}.orValue('').replace({text(INDEX)}, '0').replace({text(GROUP_INDEX)}, '0')"
    reason = "the name of a ComputeDomain must be a DNS-1123 subdomain of at most 253 characters"
    yield for_each_clique(f"{NAME}.hasValue() && {no_subdomain(name)}", field, reason)
    is_alone = "!variables.groups.exists(g, c.name in g.cliqueNames)"
    yield for_each_clique(f"{NAME}.orValue('').contains({text(GROUP_INDEX)}) && {is_alone}", field, NO_SCALING_GROUP)
    # Without an annotation the set is enrolled later, if automatic domains are enabled.
    default = ENABLED if auto else DISABLED
    is_enabled = f"{MODE}.orValue({USES_GROUPS} ? {text(DISABLED)} : {text(default)}) == {text(ENABLED)}"
    joins = f"({NAME}.hasValue() || (({is_enabled} || {GROUP_OF_CLIQUE} != {text(NO_GROUP)}) && {requests_gpus('c')}))"
    taken = f"c.spec.podSpec.?resourceClaims.orValue([]).exists(r, r.name == {text(CLAIM)})"
    yield for_each_clique(f"{joins} && {taken}", "spec.podSpec.resourceClaims[].name", CLAIM_NAME_TAKEN)


def _group_rules(*, auto: bool) -> Iterator[PolicyRule]:
    """The values of groups, and groups that contradict the mode."""
    is_label = f"v.size() <= {LONGEST_LABEL} && {matches('v', f'^{LABEL}$')}"
    is_valid = is_label if auto else f"v == {text(NO_GROUP)}"
    reason = "mnnvl-group value must be a DNS-1123 label" if auto else groups.OFF
    own = f"[{{}}.annotations[{text(GROUP)}]].exists(v, !({is_valid}))"
    field = f"annotations.{GROUP}"
    yield PolicyRule(f"!{GROUP_OF_SET}.hasValue() || !{own.format('object.metadata')}", f"metadata.{field}: {reason}")
    yield for_each_clique(f"{HAS_GROUP.format('c')} && {own.format('c')}", field, reason)
    yield for_each_group(f"{HAS_GROUP.format('g')} && {own.format('g')}", field, reason)
    reason = f"{CONTRADICTORY}{AUTO} and {GROUP}; remove one of the two annotations"
    yield PolicyRule(f"{MODE}.orValue('') != {text(ENABLED)} || !{USES_GROUPS}", f"{AUTO_FIELD}: {reason}")
    others = (
        f"{GROUP_OF_SET}.orValue({text(NO_GROUP)}) != {text(NO_GROUP)}",
        f"{CLIQUES}.exists(c, {HAS_GROUP.format('c')} && c.annotations[{text(GROUP)}] != {text(NO_GROUP)})",
        f"{SCALING_GROUPS}.exists(g, {HAS_GROUP.format('g')} && g.annotations[{text(GROUP)}] != {text(NO_GROUP)})",
    )
    yield PolicyRule(f"{MODE}.orValue('') != {text(DISABLED)} || !({' || '.join(others)})", f"{AUTO_FIELD}: {reason}")


def _update_rules() -> Iterator[PolicyRule]:
    """R16 to R18, N13, N26."""
    reason = "cannot be added, changed or removed after creation"
    for key in (AUTO, GROUP):
        same = f"variables.oldAnnotations[?{text(key)}] == variables.annotations[?{text(key)}]"
        yield PolicyRule(same, f"metadata.annotations.{key}: annotation {key} {reason}")
    changed = "{0}.exists(o, o.name == {1}.name && o.?annotations[?{2}] != {1}.?annotations[?{2}])"
    for key in (NAMED, GROUP):
        of_clique = changed.format("variables.oldCliques", "c", text(key))
        yield for_each_clique(of_clique, f"annotations[{key}]", f"annotation {key} {reason}")
    of_group = changed.format("variables.oldGroups", "g", text(GROUP))
    yield for_each_group(of_group, f"annotations[{GROUP}]", f"annotation {GROUP} {reason}")
