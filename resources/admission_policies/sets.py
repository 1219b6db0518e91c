"""Sets: the rules for one version of a PodCliqueSet, as CEL. They say the same as `create_rules`, `computable_rules`, `dependency_rules`,
`sharing_rules` and `topology_rules` in `resources.admission`, as far as the object alone shows it.

An API server evaluates them before the engine has filled in defaults, so they apply the defaults themselves.
"""

from collections.abc import Iterator
from typing import Final

from resources.admission.create_rules import MAX_COMBINED_NAME
from resources.admission_policies.rules import QUALIFIED, for_each_clique, for_each_group, matches, no_subdomain, on_create, repeated, text
from resources.base.labels import DOMAIN_PLACEMENT, ON_COMPLETION, RELEASE_DOMAINS
from resources.model.domain import DomainPlacement
from resources.model.template import EXPLICIT
from resources.model.topology import unavailable_because
from resources.ports.configuration import Configuration
from resources.ports.fabric import PolicyRule, PolicyVariable

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
    PolicyVariable("nameLength", "object.metadata.?name.orValue('').size()"),
    PolicyVariable("explicit", f"variables.template.?cliqueStartupType.orValue('') == {text(EXPLICIT)}"),
    PolicyVariable("ownTemplates", "variables.template.?resourceClaimTemplates.orValue([])"),
    PolicyVariable("topology", "variables.template.?topologyConstraint.?topologyName.orValue('')"),
)
"""The variables that rules may use. Those that begin with `old` are of the stored version; on create they are of the new one."""

REPLICAS: Final = "(c.spec.?replicas.orValue(0) == 0 ? 1 : c.spec.replicas)"
"""The pods of clique `c`: 0 counts as absent, and the default is 1."""
MINIMUM: Final = f"c.spec.?minAvailable.orValue({REPLICAS})"
CONTAINERS: Final = "(c.spec.podSpec.?containers.orValue([]) + c.spec.podSpec.?initContainers.orValue([]))"
SCALING: Final = "c.spec.autoScalingConfig"
LEAST: Final = f"{SCALING}.?minReplicas.orValue({REPLICAS})"
GROUP_LEAST: Final = "g.scaleConfig.?minReplicas.orValue(g.replicas)"

PACK_DOMAIN: Final = "packDomain is deprecated and cannot be used on new workloads; use pack.required"
BINDING_VARIABLES: Final = (
    PolicyVariable("levels", "object.spec.?levels.orValue([])"),
    PolicyVariable("bindings", "object.spec.?schedulerTopologyBindings.orValue([])"),
)


def set_rules(configuration: Configuration) -> Iterator[PolicyRule]:
    """The rules for new and changed PodCliqueSets, in the order in which they are reported."""
    yield PolicyRule("object.spec.?replicas.orValue(0) >= 0", "spec.replicas: must be greater than or equal to 0")
    yield PolicyRule("variables.cliques.size() > 0", "spec.template.cliques: at least one PodClique must be defined")
    yield from _names()
    yield from _metadata()
    yield from _replicas()
    yield from _autoscaling()
    yield from _pod_specs()
    yield from _dependencies()
    yield from _lengths()
    yield from _sharing()
    yield from _schedulers(configuration)
    yield from _topology(configuration)
    yield from _annotations()
    delay = "variables.template.terminationDelay"
    yield PolicyRule(
        f"!has({delay}) || {delay} == '' || duration({delay}) > duration('0s')",
        "spec.template.terminationDelay: terminationDelay must be greater than 0",
    )


def _names() -> Iterator[PolicyRule]:
    yield for_each_clique("c.name == ''", "name", "field cannot be empty")
    bad = f"c.name != '' && {no_subdomain('c.name')}"
    yield for_each_clique(bad, "name", "invalid PodCliqueTemplateSpec name, must be a valid DNS subdomain")
    yield for_each_clique("variables.cliques.filter(o, o.name == c.name).size() > 1", "name", "the name occurs more than once")
    same_role = "variables.cliques.filter(o, o.spec.?roleName.orValue('') == c.spec.?roleName.orValue('')).size() > 1"
    is_kept = "(request.operation == 'UPDATE' && !has(c.spec.roleName))"
    yield for_each_clique(f"!{is_kept} && {same_role}", "spec.roleName", "roleName must be set, and be different for each clique")
    reason = "invalid PodCliqueScalingGroupConfig name, must be a valid DNS subdomain"
    yield for_each_group(no_subdomain("g.name"), "name", reason)
    yield for_each_group("variables.groups.filter(o, o.name == g.name).size() > 1", "name", "the name occurs more than once")
    yield for_each_group("g.cliqueNames.size() == 0", "cliqueNames", "at least one PodClique must be named")
    unknown = "g.cliqueNames.exists(n, !variables.cliques.exists(c, c.name == n))"
    yield for_each_group(unknown, "cliqueNames", "unidentified PodClique names found")
    twice = "g.cliqueNames.filter(m, m == n).size() > 1 || variables.groups.filter(o, n in o.cliqueNames).size() > 1"
    yield for_each_group(f"g.cliqueNames.exists(n, {twice})", "cliqueNames", "a PodClique is named more than once")


def _metadata() -> Iterator[PolicyRule]:
    """Labels and annotations of cliques and groups; the API server itself checks those of the set."""
    key = f"k.indexOf('/') > 253 || !{matches('k', QUALIFIED)}"
    yield for_each_clique(f"c.?labels.orValue({{}}).exists(k, {key})", "labels", "a key is no valid label key")
    value = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
    values = f"c.?labels.orValue({{}}).exists(k, c.labels[k].size() > 63 || !{matches('c.labels[k]', value)})"
    yield for_each_clique(values, "labels", "a value is no valid label value")
    lower = f"k.indexOf('/') > 253 || !{matches('k.lowerAscii()', QUALIFIED)}"
    reason = "a key is no valid annotation key"
    yield for_each_clique(f"c.?annotations.orValue({{}}).exists(k, {lower})", "annotations", reason)
    yield for_each_group(f"g.?annotations.orValue({{}}).exists(k, {lower})", "annotations", reason)


def _replicas() -> Iterator[PolicyRule]:
    positive, too_large = "must be greater than 0", "minAvailable must not be greater than replicas"
    yield for_each_clique(f"{REPLICAS} <= 0", "spec.replicas", positive)
    yield for_each_clique(f"{MINIMUM} <= 0", "spec.minAvailable", positive)
    yield for_each_clique(f"{MINIMUM} > {REPLICAS}", "spec.minAvailable", too_large)
    yield for_each_group("g.replicas <= 0", "replicas", positive)
    yield for_each_group("g.minAvailable <= 0", "minAvailable", positive)
    yield for_each_group("g.minAvailable > g.replicas", "minAvailable", too_large)


def _autoscaling() -> Iterator[PolicyRule]:
    scaled = f"has({SCALING})"
    path = "spec.autoScalingConfig"
    reason = "must be greater than or equal to podCliqueSpec.minAvailable"
    yield for_each_clique(f"{scaled} && {LEAST} < {MINIMUM}", f"{path}.minReplicas", reason)
    reason = "must be greater than or equal to podCliqueSpec.minReplicas"
    yield for_each_clique(f"{scaled} && {SCALING}.maxReplicas < {LEAST}", f"{path}.maxReplicas", reason)
    reason = "must be greater than or equal to replicas"
    yield for_each_clique(f"{scaled} && {SCALING}.maxReplicas < {REPLICAS}", f"{path}.maxReplicas", reason)
    reason = "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group"
    yield for_each_clique(f"{scaled} && variables.groups.exists(g, c.name in g.cliqueNames)", path, reason)
    scaled = "has(g.scaleConfig)"
    reason = "scaleConfig.minReplicas must be greater than or equal to minAvailable"
    yield for_each_group(f"{scaled} && {GROUP_LEAST} < g.minAvailable", "scaleConfig.minReplicas", reason)
    reason = "scaleConfig.maxReplicas must be greater than or equal to scaleConfig.minReplicas"
    yield for_each_group(f"{scaled} && g.scaleConfig.maxReplicas < {GROUP_LEAST}", "scaleConfig.maxReplicas", reason)
    reason = "scaleConfig.maxReplicas must be greater than or equal to replicas"
    yield for_each_group(f"{scaled} && g.scaleConfig.maxReplicas < g.replicas", "scaleConfig.maxReplicas", reason)


def _pod_specs() -> Iterator[PolicyRule]:
    path = "spec.podSpec"
    empty = "c.spec.podSpec.?containers.orValue([]).size() == 0"
    yield for_each_clique(empty, f"{path}.containers", "at least one container must be defined")
    names = f"{matches('v.name', '^[-._a-zA-Z][-._a-zA-Z0-9]*$')} && v.name != '.' && !v.name.startsWith('..')"
    invalid = f"{CONTAINERS}.exists(k, k.?env.orValue([]).exists(v, !({names})))"
    yield for_each_clique(invalid, path, "the name of an environment variable is not valid")
    twice = f"{CONTAINERS}.exists(k, has(k.env) && {repeated('k.env.map(v, v.name)')})"
    yield for_each_clique(twice, path, "an environment variable occurs more than once in a container")
    yield on_create(
        for_each_clique("has(c.spec.podSpec.topologySpreadConstraints)", f"{path}.topologySpreadConstraints", "must not be set")
    )
    yield on_create(for_each_clique("c.spec.podSpec.?nodeName.orValue('') != ''", f"{path}.nodeName", "must not be set"))


def _dependencies() -> Iterator[PolicyRule]:
    """`startsAfter`, with explicit start order."""
    path, after = "spec.startsAfter", "c.spec.?startsAfter.orValue([])"
    is_bad = f"variables.explicit && {after}.exists(n, {{}})"
    yield for_each_clique(is_bad.format("n == ''"), path, "clique dependency must not be empty")
    yield for_each_clique(is_bad.format("n != '' && n == c.name"), path, "clique dependency cannot refer to itself")
    twice = f"n != '' && {after}.filter(m, m == n).size() > 1"
    yield for_each_clique(is_bad.format(twice), path, "a clique dependency occurs more than once")
    unknown = "n != '' && !variables.cliques.exists(o, o.name == n)"
    yield for_each_clique(is_bad.format(unknown), path, "unknown clique names found, all clique dependencies must be defined as cliques")


def _lengths() -> Iterator[PolicyRule]:
    reason = f"the combined resource name exceeds the limit of {MAX_COMBINED_NAME} characters that pod names need; shorten the names of"
    alone = "!variables.groups.exists(g, c.name in g.cliqueNames)"
    too_long = f"variables.nameLength + c.name.size() > {MAX_COMBINED_NAME}"
    yield for_each_clique(f"{alone} && {too_long}", "name", f"{reason} the PodCliqueSet or of the PodClique")
    too_long = f"g.cliqueNames.exists(n, variables.nameLength + g.name.size() + n.size() > {MAX_COMBINED_NAME})"
    yield for_each_group(too_long, "name", f"{reason} the PodCliqueSet, the PodCliqueScalingGroup or the PodClique")


def _sharing() -> Iterator[PolicyRule]:
    path = "spec.template.resourceClaimTemplates"
    own = "variables.ownTemplates"
    yield PolicyRule(f"!{own}.exists(t, t.name == '')", f"{path}[].name: template name is required")
    yield PolicyRule(f"!{own}.exists(t, {own}.filter(o, o.name == t.name).size() > 1)", f"{path}[].name: a name occurs more than once")
    requests = "t.?templateSpec.?spec.?devices.?requests.orValue([]).size() == 0"
    yield PolicyRule(
        f"!{own}.exists(t, {requests})", f"{path}[].templateSpec.spec.devices.requests: at least one device request is required"
    )
    yield from (PolicyRule(f"!({bad})", f"spec.template.{field}: {reason}") for bad, field, reason in _shares("variables.template"))
    yield from (for_each_group(*share) for share in _shares("g"))
    yield from (for_each_clique(*share) for share in _shares("c"))
    shares = "variables.template.?resourceSharing.orValue([])"
    names = "s.filter.?childCliqueNames.orValue([]).size() + s.filter.?childScalingGroupNames.orValue([]).size()"
    field = "resourceSharing[].filter"
    yield PolicyRule(
        f"!{shares}.exists(s, has(s.filter) && {names} == 0)",
        f"spec.template.{field}: filter must specify at least one childCliqueNames or childScalingGroupNames entry",
    )
    unknown = (
        "s.filter.?childCliqueNames.orValue([]).exists(n, !variables.cliques.exists(c, c.name == n)) || "
        "s.filter.?childScalingGroupNames.orValue([]).exists(n, !variables.groups.exists(g, g.name == n))"
    )
    yield PolicyRule(f"!{shares}.exists(s, has(s.filter) && ({unknown}))", f"spec.template.{field}: a name is not found in this set")
    shares = "g.?resourceSharing.orValue([])"
    names = "s.filter.?childCliqueNames.orValue([])"
    empty = f"{shares}.exists(s, has(s.filter) && {names}.size() == 0)"
    yield for_each_group(empty, field, "filter must specify at least one childCliqueNames entry")
    unknown = f"{shares}.exists(s, has(s.filter) && {names}.exists(n, !(n in g.cliqueNames)))"
    yield for_each_group(unknown, field, "a name is no PodClique of this group")


def _shares(holder: str) -> Iterator[tuple[str, str, str]]:
    """For the `resourceSharing` of the set, a group or a clique: what is wrong as CEL, the field, the reason."""
    shares, field = f"{holder}.?resourceSharing.orValue([])", "resourceSharing[]"
    yield f"{shares}.exists(s, s.name == '')", f"{field}.name", "reference name is required"
    yield f"{shares}.exists(s, s.name != '' && {shares}.filter(o, o.name == s.name).size() > 1)", f"{field}.name", "a name occurs twice"
    internal = "variables.ownTemplates.exists(t, t.name == s.name)"
    reason = "namespace must be empty when name matches an internal resourceClaimTemplate"
    yield f"{shares}.exists(s, s.?namespace.orValue('') != '' && {internal})", f"{field}.namespace", reason


def _schedulers(configuration: Configuration) -> Iterator[PolicyRule]:
    """All pods of a set have the same scheduler, which is enabled."""
    default = text(configuration.default_scheduler)
    named = "o.spec.podSpec.?schedulerName.orValue('')"
    schedulers = f"variables.cliques.map(o, {named} == '' ? {default} : {named})"
    first = f"({named.replace('o.', 'variables.cliques[0].', 1)})"
    same = f"variables.cliques.size() == 0 || {schedulers}.all(s, s == ({first} == '' ? {default} : {first}))"
    path = "spec.template.cliques[].spec.podSpec.schedulerName"
    yield PolicyRule(same, f"{path}: the schedulerName for all pods have to be the same")
    enabled = ", ".join(map(text, sorted(configuration.schedulers)))
    bad = f"c.spec.podSpec.?schedulerName.orValue('') != '' && !(c.spec.podSpec.schedulerName in [{enabled}])"
    reason = "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration"
    yield for_each_clique(bad, "spec.podSpec.schedulerName", reason)


def _topology(configuration: Configuration) -> Iterator[PolicyRule]:
    """Topology constraints of new sets, as far as they do not depend on the binding that they name."""
    path = "topologyConstraint"
    of_set = "has(variables.template.topologyConstraint)"
    if not configuration.topology:
        reason = "topology constraints are not allowed when Topology Aware Scheduling is disabled"
        yield on_create(PolicyRule(f"!{of_set}", f"spec.template.{path}: {reason}"))
        yield on_create(for_each_group("has(g.topologyConstraint)", path, reason))
        yield on_create(for_each_clique("has(c.topologyConstraint)", path, reason))
        return
    yield on_create(
        PolicyRule(f"!{of_set} || !has(variables.template.topologyConstraint.packDomain)", f"spec.template.{path}: {PACK_DOMAIN}")
    )
    yield on_create(for_each_group("has(g.topologyConstraint) && has(g.topologyConstraint.packDomain)", path, PACK_DOMAIN))
    yield on_create(for_each_clique("has(c.topologyConstraint) && has(c.topologyConstraint.packDomain)", path, PACK_DOMAIN))
    missing = "topologyName is required when topologyConstraint is set and cannot be inherited"
    yield on_create(PolicyRule(f"!{of_set} || variables.topology != ''", f"spec.template.{path}.topologyName: {missing}"))
    own = "{}.?topologyConstraint.?topologyName.orValue('')"
    inherited = f"variables.topology == '' && {own}"
    bad = f"has(g.topologyConstraint) && {inherited.format('g')} == ''"
    yield on_create(for_each_group(bad, f"{path}.topologyName", missing))
    from_group = f"variables.groups.exists(g, c.name in g.cliqueNames && {own.format('g')} != '')"
    bad = f"has(c.topologyConstraint) && {inherited.format('c')} == '' && !{from_group}"
    yield on_create(for_each_clique(bad, f"{path}.topologyName", missing))
    names = (
        f"(variables.cliques.map(c, {own.format('c')}) + variables.groups.map(g, {own.format('g')}) + [variables.topology])"
        ".filter(n, n != '')"
    )
    reason = "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current implementation"
    yield on_create(PolicyRule(f"{names}.all(n, {names}.all(m, m == n))", f"spec.template: {reason}"))


def _annotations() -> Iterator[PolicyRule]:
    """The engine's own annotations of sets. A value that is stored already does not prevent updates."""
    for key, values in ((DOMAIN_PLACEMENT, [str(placement) for placement in DomainPlacement]), (RELEASE_DOMAINS, [ON_COMPLETION])):
        new, old = (f"variables.{which}[?{text(key)}]" for which in ("annotations", "oldAnnotations"))
        allowed = " or ".join(f'"{value}"' for value in values)
        is_valid = f"!{new}.hasValue() || {new}.value() in [{', '.join(map(text, values))}]"
        is_stored = f"(request.operation == 'UPDATE' && {new} == {old})"
        yield PolicyRule(f"{is_valid} || {is_stored}", f"metadata.annotations.{key}: must be {allowed}")


def binding_rules(configuration: Configuration) -> Iterator[PolicyRule]:
    """The rules for ClusterTopologyBindings, as in `resources.admission.topology_rules`."""
    for field in ("domain", "key"):
        twice = f"variables.levels.exists(l, variables.levels.filter(o, o.{field} == l.{field}).size() > 1)"
        yield PolicyRule(f"!{twice}", f"spec.levels[].{field}: a value occurs more than once")
    path = "spec.schedulerTopologyBindings[].schedulerName"
    twice = "variables.bindings.exists(b, variables.bindings.filter(o, o.schedulerName == b.schedulerName).size() > 1)"
    yield PolicyRule(f"!{twice}", f"{path}: a scheduler occurs more than once")
    aware = ", ".join(text(name) for name in sorted(configuration.schedulers) if not unavailable_because(name, configuration))
    reason = "the scheduler backend is not enabled, or does not implement topology-aware scheduling"
    yield PolicyRule(f"variables.bindings.all(b, b.schedulerName in [{aware}])", f"{path}: {reason}")
