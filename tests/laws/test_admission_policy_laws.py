"""The law of admission policies: CEL and Python deny the same requests, for the same fields and the same reasons."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import pytest
from hypothesis import given

from engine.ids import Kind
from grove_sandbox.types.structural import defaulted, root_shape
from providers.fabrics.nvidia import channel_rules, fabric, groups
from resources.admission import (
    annotation_rules,
    annotations,
    computable_rules,
    create_rules,
    dependency_rules,
    metadata_rules,
    size_rules,
    topology_rules,
    update_rules,
)
from resources.admission.admit import UNPROTECTED
from resources.admission.create_rules import INVALID_VARIABLE
from resources.admission.defaults import defaulted as with_defaults
from resources.admission.metadata_rules import INVALID_ANNOTATION_KEY, INVALID_LABEL, INVALID_LABEL_KEY
from resources.admission.request import Act, Decision
from resources.base.kinds import PODCLIQUESET, TOPOLOGY_BINDING
from resources.install.admission_policies import policies, unstated_rules
from resources.schema.crds import schema
from resources.schema.parse import parse
from resources.schema.podcliqueset import PodCliqueSet
from resources.schema.topology import ClusterTopologyBinding
from tests.laws.admission_cases import CONFIGURATIONS, Body, Case, bindings, each_value, edits, new_sets
from tests.laws.cases import cases
from tests.laws.issue_statements import record_issues, statements_with_issues
from tests.laws.policy_server import PolicyServer
from tests.resources.admission import test_binding_rules
from tests.resources.admission.requests import RACKS, created, put, updated

SHAPES: Final = {
    kind: root_shape(schema(model)) for kind, model in ((PODCLIQUESET, PodCliqueSet), (TOPOLOGY_BINDING, ClusterTopologyBinding))
}
INDEX: Final = re.compile(r"\[[0-9]+\]")
SUMMARISED: Final[Mapping[str, str]] = {
    INVALID_LABEL_KEY: ": ",
    INVALID_LABEL: r"[.\[]",
    INVALID_ANNOTATION_KEY: ": ",
    INVALID_VARIABLE: ": ",
}
"""The reasons of CEL that stand for several of Python -> what follows the field there."""
NO_RULE: Final[Mapping[str, str]] = {
    r"metadata\.(?!annotations\.)": "",
    r"spec\.template\.podCliqueScalingGroups\[\]\.cliqueNames\[\]: combined resource name length": "",
    r".*: the ComputeDomain of the group would have an invalid name": "",
    r"spec\.template\.cliques: clique must not have circular dependencies": "circular dependencies in startsAfter",
    r".*: its \w+ would have the name of that of": "two objects of a set that would have one name",
    r".*annotations: may not be more than \d+ bytes": "the total size of the annotations of a clique or a scaling group",
    r'.*topologyName: ClusterTopologyBinding "\w+" not found': "whether the ClusterTopologyBinding of a topology constraint exists",
    r".*: topology domain '\w+' does not exist in cluster topology": "whether the ClusterTopologyBinding of a topology constraint exists",
    r".* topology constraint domain '\w+' is narrower than": "whether the ClusterTopologyBinding of a topology constraint exists",
    "spec: the PodCliqueSets of the namespace, and graphs": "the size of a spec in bytes (limits.set.bytes), the limits of namespaces",
    r".*\.resourceClaimTemplateName: is the claim template of a ComputeDomain": "a pod that claims a second channel by the claim template",
    r".*: a ComputeDomain of this name belongs to a group": "a named ComputeDomain with the name of a group's ComputeDomain",
}
"""Faults of Python that no policy states -> how the sentence begins that tells users so; empty: the rules of the API server itself, or
another fault of the same object, refuse it."""
MODULES: Final = (
    annotation_rules,
    annotations,
    computable_rules,
    create_rules,
    dependency_rules,
    metadata_rules,
    size_rules,
    topology_rules,
    update_rules,
    channel_rules,
    fabric,
    groups,
)
"""Where Python's rules for sets are."""
RACKED: Final = test_binding_rules.SETUP
FROM_STORED: Final = frozenset(rule.message for rule in update_rules.policy_rules("default-scheduler"))
FROM_NAMES: Final = frozenset(rule.message for rule in topology_rules.policy_rules(CONFIGURATIONS[-1]))
"""The rules that compare a version with the stored one, and those about names of topologies, which are the last ones."""


@cache
def policy(setup: int) -> PolicyServer:
    """The policy for sets in a configuration."""
    return PolicyServer(policies(CONFIGURATIONS[setup], UNPROTECTED, mutating=False), PODCLIQUESET)


def as_sent(body: Body, kind: Kind = PODCLIQUESET) -> Body:
    """The object as webhooks and policies get it: with the defaults of the definition of its kind, which allows it."""
    sent: Body = defaulted(body, SHAPES[kind])
    parse(kind, with_defaults(sent) if kind is PODCLIQUESET else sent)
    return sent


def as_named(body: Body) -> Body:
    """The object with the name that the API server generates before it evaluates policies."""
    metadata = body["metadata"]
    return body if "name" in metadata else put(body, {"metadata.name": f"{metadata.get('generateName', '')[:58]}abcde"})


def faults_of(decision: Decision) -> list[str]:
    """The faults that Python finds, each as `<field>: <reason>`, with `[]` in place of indices."""
    return [f"{INDEX.sub('[]', issue.field)}: {issue.message or issue.type.value}" for issue in decision.issues]


def stated(faults: Iterable[str]) -> list[str]:
    """Those that a policy has to find."""
    return [fault for fault in faults if not any(re.match(each, fault, re.DOTALL) for each in NO_RULE)]


@cache
def pattern(rule: str) -> re.Pattern[str]:
    """Matches the faults that a rule of a policy is about."""
    field, _, reason = rule.partition(": ")
    if reason in SUMMARISED:
        return re.compile(re.escape(field) + SUMMARISED[reason])
    return re.compile(re.escape(rule).replace("…", ".*"), re.DOTALL)


def is_about(rules: Iterable[str], fault: str) -> bool:
    """Whether any of these rules is about a fault."""
    return any(pattern(rule).match(fault) for rule in rules)


def later_rules(faults: Iterable[str], *, is_update: bool) -> frozenset[str]:
    """The rules that Python does not apply to an edit any more, because it has other faults."""
    if not is_update:
        return frozenset()
    if not all(is_about(FROM_STORED | FROM_NAMES, fault) for fault in faults):
        return FROM_STORED | FROM_NAMES
    return FROM_NAMES if any(is_about(FROM_STORED, fault) for fault in faults) else frozenset()


def disagreements(case: Case, denying: set[str] | None = None) -> list[str]:
    """The faults that only Python finds, and the rules of the policy that alone deny. `denying`: gets the rules that deny."""
    new, old = as_sent(case.new), as_sent(case.old) if case.old else None
    configuration = CONFIGURATIONS[case.setup]
    faults = faults_of(updated(old, new, configuration, RACKS) if old else created(new, configuration, RACKS))
    rules = {denial.rule for denial in policy(case.setup).denials(Act.UPDATE if old else Act.CREATE, as_named(new), old)}
    if denying is not None:
        denying |= rules
    later = later_rules(faults, is_update=old is not None)
    only_python = [fault for fault in stated(faults) if not is_about(rules, fault)]
    only_policy = [rule for rule in rules - later if not any(pattern(rule).match(fault) for fault in faults)]
    return [*(f"only Python: {fault}" for fault in only_python), *(f"only the policy: {rule}" for rule in only_policy)]


@cases(50)
@given(case=new_sets())
def test_policies_and_python_deny_the_same_new_sets(case: Case) -> None:
    assert disagreements(case) == []


@cases(50)
@given(case=edits())
def test_policies_and_python_deny_the_same_edits(case: Case) -> None:
    assert disagreements(case) == []


def test_each_value_of_each_field_is_judged_alike_and_every_rule_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    denying: set[str] = set()
    reached = record_issues(monkeypatch, MODULES)
    assert_bindings_are_judged_alike()

    assert [(case, found) for case in each_value() if (found := disagreements(case, denying))] == []
    assert {rule for setup in range(len(CONFIGURATIONS)) for rule in policy(setup).rules} - denying == set()
    assert sorted(statements_with_issues(MODULES) - reached) == []


def assert_bindings_are_judged_alike() -> None:
    """Bindings are denied for the same reasons, and each rule for bindings denies one."""
    server = PolicyServer(policies(RACKED, UNPROTECTED, mutating=False), TOPOLOGY_BINDING)
    sent = [as_sent(body, TOPOLOGY_BINDING) for body in bindings()]
    denied = [{denial.rule for denial in server.denials(Act.CREATE, body)} for body in sent]

    assert denied == [set(stated(faults_of(created(body, RACKED, kind=TOPOLOGY_BINDING)))) for body in sent]
    assert set().union(*denied) == set(server.rules)


def test_users_are_told_what_policies_do_not_state() -> None:
    sentences = unstated_rules(CONFIGURATIONS[-1], mutating=False)

    assert [start for start in NO_RULE.values() if not any(sentence.startswith(start) for sentence in sentences)] == []
