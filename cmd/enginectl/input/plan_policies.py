"""Plan policies: read from files, checked down to the types in their expressions, before anything else is read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from engine.errors import InputError
from engine.report.printable import clipped, printable
from enginectl.base.exit_codes import UsageError
from enginectl.input.manifest_files import Manifest, faults_by_line, read_manifests, refuse
from resources.schema.issues import ErrorType, Issue, Rejected
from resources.schema.plan_policy import API_VERSION, KIND, PlanPolicy, RuleScope, plan_policy, repeated_names
from resources.schema.unknown_fields import question

BOOL, STRING = "BOOL", "STRING"
"""What the values of expressions must be."""


class Policies(Struct, frozen=True, eq=False):
    """The policies that a user has named, and the rules that are waived."""

    rules: tuple[PlanPolicy, ...] = ()
    waivers: Mapping[str, str] = field(default_factory=dict)
    """Name of a rule -> the reason."""


NO_POLICIES = Policies()


def load_all(paths: Sequence[Path], waivers: Sequence[str], *, remote: bool = False) -> Policies:
    """The policies in the files, and the waivers for their rules. Raises `InputError` and `UsageError`."""
    policies = load_policies(paths, remote=remote)
    return Policies(policies, load_waivers(waivers, policies))


def load_policies(paths: Sequence[Path], *, remote: bool = False) -> tuple[PlanPolicy, ...]:
    """The policies in the files, in their order; none without paths.

    Raises `InputError` with every fault at its file and line, also if there is no policy at all, and `UsageError` for a missing file.
    """
    if not paths:
        return ()
    from enginectl.base.extras import require_policies

    require_policies()
    read = [(manifest, _read(manifest)) for manifest in read_manifests(paths, remote=remote)]
    refuse([fault for _, policy in read if not isinstance(policy, PlanPolicy) for fault in policy])
    loaded = [(manifest, policy) for manifest, policy in read if isinstance(policy, PlanPolicy)]
    if not loaded:
        raise InputError(f"{printable(', '.join(map(str, paths)))}: there is no {KIND} in it")
    _refuse_repeated(loaded)
    refuse([fault for manifest, policy in loaded for fault in faults_by_line(manifest, (*repeated_names(policy), *_faults(policy)))])
    return tuple(policy for _, policy in loaded)


def load_waivers(texts: Sequence[str], policies: Sequence[PlanPolicy]) -> Mapping[str, str]:
    """Name of a rule -> the reason for which it is waived, from `POLICY/RULE=REASON`.

    Raises `UsageError` for a rule that no policy has, a missing reason, and a rule that is waived twice.
    """
    if not texts:
        return {}
    from resources.plan_policies.judge import rule_names

    known, waivers = rule_names(policies), dict[str, str]()
    for text in texts:
        rule, separator, reason = text.partition("=")
        if not separator or not reason.strip():
            raise UsageError(f"--waive {clipped(text, 120)}: must be POLICY/RULE=REASON, with a reason")
        if rule not in known:
            some = f"; there are: {printable(', '.join(sorted(known)[:10]))}" if known else " without --policy"
            raise UsageError(f"--waive: there is no rule {clipped(rule, 120)}{some}")
        if rule in waivers:
            raise UsageError(f"--waive: {rule} is waived twice")
        waivers[rule] = reason.strip()
    return waivers


def _read(manifest: Manifest) -> PlanPolicy | Sequence[str]:
    """The policy in a document, or everything that is wrong with it but for its expressions."""
    _, kind = manifest.group_kind
    if kind != KIND:
        return [f"{manifest.place()}: {clipped(kind, 80)} is no {KIND} of {API_VERSION}{question([kind], [KIND])}"]
    if manifest.body["apiVersion"] != API_VERSION:
        return [f"{manifest.place('apiVersion')}: {KIND} is supported as {API_VERSION} only"]
    try:
        return plan_policy(manifest.body)
    except Rejected as rejected:
        return faults_by_line(manifest, rejected.issues)


def _refuse_repeated(loaded: Iterable[tuple[Manifest, PlanPolicy]]) -> None:
    """Raise `InputError` if two policies have the same name."""
    first: dict[str, Manifest] = {}
    for manifest, policy in loaded:
        name = policy.metadata.name
        if name in first:
            raise InputError(f"{manifest.place('metadata', 'name')}: the policy {name} appears twice, first at {first[name].place()}")
        first[name] = manifest


def _faults(policy: PlanPolicy) -> Iterator[Issue]:
    """An issue for each expression that is not valid."""
    from providers.plan_policies.cel import check  # Needs the extra, as everything of that folder does.

    for path, scope, expression, type in _expressions(policy):
        fault = check(scope, expression, type) if expression else None
        if fault is not None:
            where = f"line {fault.line}, column {fault.column} of the expression: "
            yield Issue(path, ErrorType.MALFORMED, f"{where}{fault.message}")


def _expressions(policy: PlanPolicy) -> Iterator[tuple[tuple[str | int, ...], RuleScope, str, str]]:
    """Each expression with its path, its scope and the type of its value."""
    for index, condition in enumerate(policy.spec.match_conditions):
        yield ("spec", "matchConditions", index, "expression"), RuleScope.SET, condition.expression, BOOL
    for index, rule in enumerate(policy.spec.validations):
        yield ("spec", "validations", index, "expression"), RuleScope(rule.scope), rule.expression, BOOL
        yield ("spec", "validations", index, "messageExpression"), RuleScope(rule.scope), rule.message_expression, STRING
