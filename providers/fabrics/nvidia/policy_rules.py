"""Policy rules: the admission rules for ComputeDomains that an API server can evaluate itself, as CEL."""

from collections.abc import Iterator
from typing import Final

from providers.fabrics.nvidia.messages import CLAIM_NAME_TAKEN, OFF, OPT_OUT
from providers.fabrics.nvidia.names import AUTO, CLAIM, DISABLED, ENABLED, GPU, NAMED
from resources.admission_policies.rules import for_each_clique, no_subdomain, on_create, on_update, text
from resources.ports.admission_policy import Enrolment, PolicyRule
from resources.ports.fabric import INDEX

MODE: Final = f"variables.annotations[?{text(AUTO)}]"
NAME: Final = f"c.?annotations[?{text(NAMED)}]"

UNSTATED: Final = (
    "a pod that claims a second channel by the claim template of one of the set's own ComputeDomains (N23)",
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
        PolicyRule(f"object.spec.template.?cliques.orValue([]).exists(c, {requests_gpus('c')})", "a container requests GPUs"),
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
    """R15, R38, R49, N14, N18."""
    path = f"metadata.annotations.{AUTO}"
    yield PolicyRule(
        f"{MODE}.orValue({text(DISABLED)}) in [{text(ENABLED)}, {text(DISABLED)}]", f'{path}: must be "{ENABLED}" or "{DISABLED}"'
    )
    if not auto:
        yield PolicyRule(f"{MODE}.orValue('') != {text(ENABLED)}", f"{path}: {OFF}")
    field = f"annotations[{NAMED}]"
    if auto:
        yield for_each_clique(f"{NAME}.hasValue() && {MODE}.orValue('') != {text(DISABLED)}", field, OPT_OUT)
    name = f"{NAME}.orValue('').replace({text(INDEX)}, '0')"
    reason = "the name of a ComputeDomain must be a DNS-1123 subdomain of at most 253 characters"
    yield for_each_clique(f"{NAME}.hasValue() && {no_subdomain(name)}", field, reason)
    # Without an annotation the set is enrolled later, if automatic domains are enabled.
    default = ENABLED if auto else DISABLED
    joins = f"({NAME}.hasValue() || ({MODE}.orValue({text(default)}) == {text(ENABLED)} && {requests_gpus('c')}))"
    taken = f"c.spec.podSpec.?resourceClaims.orValue([]).exists(r, r.name == {text(CLAIM)})"
    yield for_each_clique(f"{joins} && {taken}", "spec.podSpec.resourceClaims[].name", CLAIM_NAME_TAKEN)


def _update_rules() -> Iterator[PolicyRule]:
    """R16 to R18, N13."""
    old = f"variables.oldAnnotations[?{text(AUTO)}]"
    path = f"metadata.annotations.{AUTO}"
    yield PolicyRule(f"{old} == {MODE}", f"{path}: annotation {AUTO} cannot be added, changed or removed after PodCliqueSet creation")
    old = f"o.?annotations[?{text(NAMED)}]"
    changed = f"variables.oldCliques.exists(o, o.name == c.name && {old} != {NAME})"
    reason = f"annotation {NAMED} cannot be added, changed or removed after PodCliqueSet creation"
    yield for_each_clique(changed, f"annotations[{NAMED}]", reason)
