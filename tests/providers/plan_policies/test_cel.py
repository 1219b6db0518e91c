"""Expressions in CEL: what is found before they are evaluated, and what they cannot do to the process."""

from collections.abc import Iterator

import pytest

from providers.plan_policies.cel import CelExpressions, check, message_of
from providers.plan_policies.process import ENDED, NOT_EVALUATED, ChildExpressions, expressions_of_child
from resources.plan_policies.data_types import DATA_TYPES
from resources.plan_policies.expressions import Answer, Fault, RuleSubject
from resources.schema.plan_policy import RuleScope
from tests.resources.plan_policies.data import blank, operation

BOOL = "BOOL"


def subject(**fields: object) -> RuleSubject:
    """A set with these fields."""
    return RuleSubject(RuleScope.SET, blank("Set", **fields), {"most": 3, "names": ["a"]}, "2026-01-01T00:00:00Z")


def answer(expression: str, **fields: object) -> Answer:
    """The answer of an expression about a set, in this process."""
    (found,) = CelExpressions().evaluate(subject(**fields), [expression])
    return found


@pytest.fixture
def child() -> Iterator[ChildExpressions]:
    """A process that evaluates expressions."""
    with expressions_of_child() as expressions:
        yield expressions


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("plan.sumary.deletes == 0", Fault("undefined field 'sumary' not found in struct 'Plan'", 1, 5)),
        ("plan.operations.all(o,\n  o.verbs == 'x')", Fault("undefined field 'verbs' not found in struct 'Operation'", 2, 4)),
        ("plan.summary.deletes == 'none'", Fault("found no matching overload for '_==_' applied to '(int, string)'", 1, 22)),
        ("set.name == ''", Fault("undeclared reference to 'set.name'", 1, 4)),
        ("plna.complete", Fault("undeclared reference to 'plna.complete'", 1, 5)),
        ("plan.sets.size()", Fault("its value is of type int, and must be of type bool")),
        ("plan.sets.sze() == 1", Fault("undeclared reference to 'sze'", 1, 14)),
    ],
)
def test_what_is_wrong_is_found_with_its_place(expression: str, fault: Fault) -> None:
    assert check(RuleScope.PLAN, expression, BOOL) == fault


def test_bad_syntax_is_found_with_its_place() -> None:
    fault = check(RuleScope.PLAN, "plan.end ==\n  'settled' &&", BOOL)

    assert fault is not None and (fault.line, fault.column) == (2, 15)
    assert fault.message.startswith("Syntax error: ")


@pytest.mark.parametrize("expression", ["(" * 5_000, "-" * 19_999, "true\0", "'\ud800' == ''", "\n\n\x1b[31m", '"' * 3])
def test_whatever_is_written_there_is_an_answer(expression: str) -> None:
    fault = check(RuleScope.PLAN, expression, BOOL)

    assert fault is None or (fault.message and fault.line >= 1 and fault.column >= 1)


@pytest.mark.parametrize("type", DATA_TYPES)
def test_every_field_can_be_used(type: str) -> None:
    message = message_of(type, blank(type))

    assert {field.name for field in message.DESCRIPTOR.fields} == DATA_TYPES[type].fields.keys()


def test_fields_and_parameters_have_their_values() -> None:
    operations = [operation("delete", name="a", annotations={"example.com/x": "1"}, stage=2)]

    assert answer(
        "set.operations[0].annotations['example.com/x'] == '1' && set.operations[0].stage < params.most", operations=operations
    ).value
    assert answer("set.name in params.names && set.namespace == ''", name="a").value


def test_texts_may_be_anything() -> None:
    assert answer("set.name.startsWith('\\u001b[31m')", name="\x1b[31m\0\ud800").value is True


def test_an_error_is_an_answer_and_does_not_stay() -> None:
    answers = CelExpressions().evaluate(
        subject(), ["params.missing == 1", "set.images[0] == ''", "1 / 0 == 1", "now.getHours('X/Y') == 1", "params.most", "true"]
    )

    assert [each.fault for each in answers] == [
        'Key not found in map : "missing"',
        "Index error: index=0 size=0",
        "divide by zero",
        "the time zone is not known on this system",
        "its value is neither true nor false, and no text",
        "",
    ]


def test_an_expression_looks_at_ten_thousand_items_and_no_more() -> None:
    names = [str(number) for number in range(101)]

    assert answer("set.images.all(a, set.images.all(b, true))", images=names[:99]).value is True
    assert answer("set.images.all(a, set.images.all(b, true))", images=names).fault.startswith("it looks at more than 10000 items")


def test_a_process_of_its_own_gives_the_same_answers(child: ChildExpressions) -> None:
    about, expressions = subject(name="\ud800", images=["a"]), ["set.name == '?'", "set.images[1] == ''", "'text'", "params.most == 3"]

    assert child.evaluate(about, expressions) == CelExpressions().evaluate(about, expressions)
    assert child.evaluate(about, ["true"]) == [Answer(True)]


def test_an_expression_that_takes_too_long_is_ended_and_the_others_have_their_answers(child: ChildExpressions) -> None:
    child.patience = 4.0
    operations = [operation(name=str(number)) for number in range(9_000)]

    answers = child.evaluate(subject(operations=operations), ["set.operations.all(o, o in set.operations)", "true"])

    assert answers == [Answer(fault="its evaluation takes longer than 4 seconds"), Answer(True)]


def test_an_expression_that_takes_too_much_memory_ends_only_its_process(child: ChildExpressions) -> None:
    child.memory = 1 << 29
    long = {name: "+".join([name] * 25) for name in "abcd"}
    greedy = f"['{'x' * 500}'].all(a, [{long['a']}].all(b, [{long['b']}].all(c, [{long['c']}].all(d, size({long['d']}) > 0))))"

    answers = child.evaluate(subject(), [greedy, "true"])

    assert answers == [Answer(fault=ENDED), Answer(True)]


def test_a_process_that_somebody_ends_is_replaced_a_few_times(child: ChildExpressions) -> None:
    for _ in range(3):
        assert child.evaluate(subject(), ["true"]) == [Answer(True)]
        assert child._process is not None
        child._process.kill()
        child._process.wait()

        assert child.evaluate(subject(), ["true"]) == [Answer(fault=ENDED)]

    assert child.evaluate(subject(), ["true", "true"]) == [Answer(fault=NOT_EVALUATED)] * 2
