"""What Argo CD and Flux conclude from an object, with the checks of `deploy/gitops`."""

from functools import cache
from typing import Any, Final

import yaml
from cel_expr_python import cel
from lupa import LuaRuntime, lua_type

from tests.test_layout import ROOT

FOLDER: Final = ROOT / "deploy" / "gitops"
PARTS: Final = ("metadata", "spec", "status")
"""What an expression of Flux reads of an object."""


def argo_cd(body: dict[str, Any]) -> str:
    """The health that Argo CD gives the object."""
    answer = _run(_text(f"{body['kind'].lower()}.lua"), body)
    assert answer["message"]
    return str(answer["status"])


def actions(body: dict[str, Any]) -> list[str]:
    """The actions that Argo CD offers for the object."""
    return sorted(dict(_run(_actions_of(body["kind"])["discovery.lua"], body)))


def acted(body: dict[str, Any], action: str, **parameters: str) -> dict[str, Any]:
    """The object after that action of Argo CD with these parameters. Raises `LuaError` if the action refuses them."""
    (definition,) = [each for each in _actions_of(body["kind"])["definitions"] if each["name"] == action]
    result: dict[str, Any] = _plain(_run(definition["action.lua"], body, parameters))
    return result


@cache
def _text(name: str) -> str:
    return (FOLDER / name).read_text()


@cache
def _actions_of(kind: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.load(_text(f"{kind.lower()}-actions.yaml"), yaml.CSafeLoader)
    return read


def _run(script: str, body: dict[str, Any], parameters: dict[str, str] | None = None) -> Any:
    lua = LuaRuntime()
    lua.globals()["obj"] = lua.table_from(body, recursive=True)
    lua.globals()["actionParams"] = lua.table_from(parameters or {})
    return lua.execute(script)


def _plain(value: Any) -> Any:
    """A value of Lua as one of JSON: a table with the keys 1, 2, … as a list."""
    if lua_type(value) != "table":
        return value
    entries = {key: _plain(entry) for key, entry in value.items()}
    return [entries[key] for key in sorted(entries)] if entries and all(isinstance(key, int) for key in entries) else entries


def flux(body: dict[str, Any]) -> str:
    """The first expression of Flux that is true, in the order in which it asks; `inProgress` if none is.

    What refers to a field that is not there is an error, and not true: only a status that was never written may be missing.
    """
    data = {part: body[part] for part in PARTS if part in body}
    results = {name: check.eval(data=data) for name, check in _flux_checks(body["kind"]).items()}
    assert "status" not in body or all(result.type() != cel.Type.ERROR for result in results.values())
    return next((name for name, result in results.items() if result.type() != cel.Type.ERROR and result.value() is True), "inProgress")


@cache
def _flux_checks(kind: str) -> dict[str, Any]:
    read = yaml.load((FOLDER / "flux.yaml").read_text(), yaml.CSafeLoader)["healthCheckExprs"]
    (checks,) = [each for each in read if each["kind"] == kind]
    environment = cel.NewEnv(variables=dict.fromkeys(PARTS, cel.Type.DYN))
    return {name: environment.compile(checks[name]) for name in ("inProgress", "failed", "current") if name in checks}
