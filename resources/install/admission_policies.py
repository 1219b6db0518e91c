"""Admission policies: the ValidatingAdmissionPolicies and their bindings, which state the rules of admission without webhooks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from engine.ids import Kind
from engine.resource import Body
from resources.admission import annotation_rules, computable_rules, create_rules, graph_size_rules, size_rules, topology_rules, update_rules
from resources.admission.cel import VARIABLES, text
from resources.admission.managed_rules import Protection
from resources.admission.request import Act
from resources.base import kinds, labels
from resources.ports.configuration import Configuration
from resources.ports.fabric import Enrolment, PolicyRule, PolicyVariable

GROUP: Final = "admissionregistration.k8s.io"
VALIDATING_VERSION: Final = f"{GROUP}/v1"
"""ValidatingAdmissionPolicy: since Kubernetes 1.30."""
MUTATING_VERSION: Final = f"{GROUP}/v1beta1"
"""MutatingAdmissionPolicy: since Kubernetes 1.34, where the API version is enabled."""
SUFFIX: Final = "engine.grove.io"
"""The end of the names of all policies."""

UNSTATED: Final = (
    "circular dependencies in startsAfter",
    "two objects of a set that would have one name",
    "whether the ClusterTopologyBinding of a topology constraint exists and has its domains, and which domain is wider",
    "the total size of the annotations of a clique or a scaling group",
    "the size of a spec in bytes (limits.set.bytes), the limits of namespaces (limits.namespace)",
    "of a change of `scale`, or of a scaling adapter, what else its set or graph asks for",
    "the rules of scheduler back ends, e.g. whether a queue exists",
    "whether a claim template of another namespace is shared with that of the set",
    "DynamoGraphDeployments, except the pods of one (limits.set.pods): the engine checks them before it writes anything",
    "values that the custom resource definitions do not restrict, e.g. of pod specs: the API server checks them when it creates pods",
    "grove.io/disable-managed-resource-protection on a set: a policy sees one object only",
    "warnings: a policy only admits or denies",
)
"""The admission rules that the policies do not state. The engine applies them when it first plans a set."""


def policies(configuration: Configuration, protection: Protection, *, mutating: bool) -> Iterator[Body]:
    """Each policy, followed by its binding. With `mutating`, also those that change new objects."""
    fabrics = configuration.fabrics
    rules = (*set_rules(configuration), *(rule for fabric in fabrics for rule in fabric.policy_rules()))
    places = configuration.namespaces
    yield from _validating(kinds.PODCLIQUESET, (*VARIABLES, *size_rules.policy_variables()), rules, places)
    binding_rules = tuple(topology_rules.binding_policy_rules(configuration))
    yield from _validating(kinds.TOPOLOGY_BINDING, topology_rules.BINDING_VARIABLES, binding_rules)
    scaled = [_resource_rule(kind, (Act.UPDATE,), "/scale") for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP)]
    yield from _sized("scales", scaled, configuration)
    if configuration.dynamo.enabled:
        # Of a new one the engine may say what runs already.
        adapters = [_resource_rule(kinds.SCALING_ADAPTER, (Act.UPDATE,), part) for part in ("", "/scale")]
        yield from _sized(kinds.SCALING_ADAPTER.plural, adapters, configuration)
        of_graphs = tuple(graph_size_rules.policy_rules(configuration.limits.of_set))
        yield from _validating(kinds.DYNAMO_GRAPH, tuple(graph_size_rules.policy_variables()), of_graphs, places)
    if protection.enabled:
        yield from _protecting(protection, places)
    if mutating:
        for enrolment in filter(None, (fabric.enrolment() for fabric in fabrics)):
            yield from _enrolling(enrolment, places)


def set_rules(configuration: Configuration) -> Iterator[PolicyRule]:
    """The rules for new and changed PodCliqueSets besides those of fabrics."""
    yield from computable_rules.policy_rules(configuration)
    yield from create_rules.policy_rules()
    yield from create_rules.new_set_policy_rules()
    yield from topology_rules.policy_rules(configuration)
    yield from annotation_rules.policy_rules()
    yield from size_rules.policy_rules(configuration.limits.of_set)
    yield from update_rules.policy_rules(configuration.default_scheduler)


def unstated_rules(configuration: Configuration, *, mutating: bool) -> tuple[str, ...]:
    """The admission rules that the policies do not state, each as a sentence or a part of one."""
    defaults = () if mutating else ("defaults: the engine stores them when it first plans a set",)
    return (*UNSTATED, *(rule for fabric in configuration.fabrics for rule in fabric.unstated_rules()), *defaults)


def _validating(
    kind: Kind, variables: Sequence[PolicyVariable], rules: Sequence[PolicyRule], namespaces: Sequence[str] = ()
) -> Iterator[Body]:
    """The policy for one kind of root, in these namespaces (none: in all).

    An object that is being deleted may be changed in any way, so that its finalizers can be removed.
    """
    yield from _judging(kind.plural, [_resource_rule(kind, (Act.CREATE, Act.UPDATE))], variables, rules, namespaces)


def _sized(name: str, resources: Sequence[Body], configuration: Configuration) -> Iterator[Body]:
    """The policy for the replicas of what can be scaled."""
    rules = tuple(size_rules.scale_policy_rules(configuration.limits.of_set))
    yield from _judging(name, resources, tuple(size_rules.scale_policy_variables()), rules, configuration.namespaces)


def _judging(
    name: str, resources: Sequence[Body], variables: Sequence[PolicyVariable], rules: Sequence[PolicyRule], namespaces: Sequence[str]
) -> Iterator[Body]:
    yield from _bound(
        f"{name}.{SUFFIX}",
        {
            "matchConstraints": {"resourceRules": list(resources)},
            "matchConditions": [{"name": "is-kept", "expression": "oldObject == null || !has(oldObject.metadata.deletionTimestamp)"}],
            "variables": [{"name": variable.name, "expression": variable.expression} for variable in variables],
            "validations": [_validation(rule) for rule in rules],
        },
        namespaces,
    )


def _validation(rule: PolicyRule) -> Body:
    expression = {"messageExpression": rule.message_expression} if rule.message_expression else {}
    return {"expression": rule.expression, "message": rule.message, **expression}


def _protecting(protection: Protection, namespaces: Sequence[str]) -> Iterator[Body]:
    """The policy that lets only the engine and exempt users change managed objects."""
    users = ", ".join(text(user) for user in sorted({protection.operator, *protection.exempt} - {""}))
    key = "(oldObject == null ? object : oldObject).metadata.namespace + '/' + request.name"
    what = "(request.operation == 'DELETE' ? 'deletion' : 'creation/updation')"
    rule = PolicyRule(
        f"request.userInfo.username in [{users}]",
        "admission denied, changing a resource that the engine manages is not allowed",
        f"'admission denied, ' + {what} + ' of resource: ' + {key} + ' is not allowed'",
    )
    own = f"o.metadata.?labels[?{text(labels.MANAGED_BY)}].orValue('') == {text(labels.MANAGER)}"
    part = f"o.metadata.?labels[?{text(labels.PART_OF)}].orValue('') != ''"
    yield from _bound(
        f"managed-objects.{SUFFIX}",
        {
            "matchConstraints": {"resourceRules": [_resource_rule(kind, sorted(acts)) for kind, acts in protection.protected.items()]},
            "matchConditions": [
                {"name": "is-managed", "expression": f"[object, oldObject].exists(o, o != null && {own})"},
                {"name": "has-a-set", "expression": f"[oldObject == null ? object : oldObject].exists(o, {part})"},
            ],
            "validations": [_validation(rule)],
        },
        namespaces,
    )


def _enrolling(enrolment: Enrolment, namespaces: Sequence[str]) -> Iterator[Body]:
    """The policy that adds annotations to new sets."""
    entries = ", ".join(f"{text(key)}: {text(value)}" for key, value in enrolment.annotations.items())
    yield from _bound(
        f"{enrolment.name}.{SUFFIX}",
        {
            "matchConstraints": {"resourceRules": [_resource_rule(kinds.PODCLIQUESET, (Act.CREATE,))]},
            "matchConditions": [
                {"name": f"condition-{number}", "expression": condition.expression} for number, condition in enumerate(enrolment.conditions)
            ],
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": f"Object{{metadata: Object.metadata{{annotations: {{{entries}}}}}}}",
                    },
                }
            ],
        },
        namespaces,
        mutating=True,
    )


def _resource_rule(kind: Kind, acts: Sequence[Act], part: str = "") -> Body:
    """These operations on objects of a kind; `part`: on a subresource of theirs, with its slash."""
    resources = [f"{kind.plural}{part}"]
    return {"apiGroups": [kind.group], "apiVersions": ["*"], "operations": [act.value for act in acts], "resources": resources}


def _bound(name: str, spec: Mapping[str, Any], namespaces: Sequence[str] = (), *, mutating: bool = False) -> Iterator[Body]:
    """A policy and the binding that puts it into effect, in these namespaces (none: in all)."""
    version = MUTATING_VERSION if mutating else VALIDATING_VERSION
    kind = "MutatingAdmissionPolicy" if mutating else "ValidatingAdmissionPolicy"
    # No `app.kubernetes.io/managed-by`: that label marks the objects of sets.
    metadata = {"name": name, "labels": {labels.NAME: "grove-engine", labels.PART_OF: "grove", labels.COMPONENT: "admission-policy"}}
    yield {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"failurePolicy": "Fail", **spec}}
    actions = {} if mutating else {"validationActions": ["Deny"]}
    places = {"matchResources": {"namespaceSelector": labels.selector_of_namespaces(namespaces)}} if namespaces else {}
    yield {"apiVersion": version, "kind": f"{kind}Binding", "metadata": metadata, "spec": {"policyName": name, **places, **actions}}
