"""PolicyServer: evaluates ValidatingAdmissionPolicies as an API server does, with the CEL library of the extra `policies`.

The library has optional values. The functions that Kubernetes adds to CEL are defined here, as far as the policies call them: its own
extension for strings cannot be loaded beside `indexOf` of lists.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional
from msgspec import Struct

from engine.ids import Kind
from engine.quantity import amount
from engine.resource import Body
from resources.admission.request import Act

POLICY = "ValidatingAdmissionPolicy"


class Denial(Struct, frozen=True):
    """A validation that denies a request."""

    rule: str
    """Its message: field and reason."""
    text: str
    """The same with the names of what is wrong."""


class PolicyServer:
    """The policy for one kind. It judges objects as an API server would store them: with the defaults of the definition of their kind."""

    def __init__(self, policies: Iterable[Body], kind: Kind, subresource: str = "") -> None:
        self.resource = kind.plural
        asked = f"{kind.plural}/{subresource}" if subresource else kind.plural
        (self.spec,) = [body["spec"] for body in policies if "variables" in body["spec"] and asked in _resources(body["spec"])]

    @property
    def rules(self) -> list[str]:
        """The messages of the validations."""
        return [validation["message"] for validation in self.spec["validations"]]

    def denials(self, act: Act, new: Body, old: Body | None = None) -> tuple[Denial, ...]:
        """The validations that deny a request. Raises `AssertionError` if an expression cannot be evaluated."""
        request = {"operation": act.value, "resource": {"resource": self.resource}}
        data: dict[str, Any] = {"request": request, "object": new, "oldObject": old, "variables": {}}
        if not all(_value(condition["expression"], _activation(data)) for condition in self.spec["matchConditions"]):
            return ()
        for variable in self.spec["variables"]:
            data["variables"] = {**data["variables"], variable["name"]: _value(variable["expression"], _activation(data))}
        activation = _activation(data)
        denying = (each for each in self.spec["validations"] if _value(each["expression"], activation) is False)
        return tuple(Denial(each["message"], _text(each, activation)) for each in denying)


def _resources(spec: Body) -> set[str]:
    return {resource for rule in spec["matchConstraints"]["resourceRules"] for resource in rule["resources"]}


def _text(validation: Body, activation: Any) -> str:
    expression = validation.get("messageExpression")
    return str(_value(expression, activation) if expression else validation["message"])


def _activation(data: Body) -> Any:
    return _environment().Activation(data)


def _value(expression: str, activation: Any) -> Any:
    result = _compiled(expression).eval(activation)
    assert result.type() != cel.Type.ERROR, (result.value(), expression)
    return result.plain_value()


@cache
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)


@cache
def _environment() -> Any:
    types = cel.Type
    variables = {name: types.DYN for name in ("request", "object", "oldObject")} | {"variables": types.Map(types.STRING, types.DYN)}
    return cel.NewEnv(variables=variables, extensions=[ExtOptional()], functions=_functions())


def _functions() -> Sequence[Any]:
    types = cel.Type
    text, number, flag, quantity = types.STRING, types.INT, types.BOOL, types.DOUBLE
    texts = types.List(text)

    def member(name: str, *overloads: tuple[Sequence[Any], Any, Callable[..., Any]]) -> Any:
        declared = [
            cel.Overload(f"{name}_{number}", result, list(parameters), is_member=True, impl=function)
            for number, (parameters, result, function) in enumerate(overloads)
        ]
        return cel.FunctionDecl(name, declared)

    return [
        member("indexOf", ([text, text], number, str.find), ([texts, text], number, _first)),
        member("lastIndexOf", ([texts, text], number, _last)),
        member("join", ([texts, text], text, lambda parts, separator: separator.join(parts))),
        member("sum", ([types.List(types.DYN)], quantity, lambda values: float(sum(values)))),
        member("max", ([types.List(types.DYN)], quantity, max)),
        member("replace", ([text, text, text], text, str.replace)),
        member("lowerAscii", ([text], text, str.lower)),
        member("compareTo", ([quantity, quantity], number, lambda a, b: (a > b) - (a < b))),
        cel.FunctionDecl("isQuantity", [cel.Overload("is_quantity", flag, [text], impl=lambda value: amount(value) is not None)]),
        cel.FunctionDecl("quantity", [cel.Overload("quantity", quantity, [text], impl=lambda value: float(amount(value) or 0))]),
    ]


def _first(items: Sequence[Any], item: Any) -> int:
    return items.index(item) if item in items else -1


def _last(items: Sequence[Any], item: Any) -> int:
    return len(items) - 1 - items[::-1].index(item) if item in items else -1
