"""What Argo CD and Flux conclude from an object, with the checks of `deploy/gitops`."""

from typing import Any, Final

import yaml
from cel_expr_python import cel
from lupa import LuaRuntime

from tests.test_layout import ROOT

FOLDER: Final = ROOT / "deploy" / "gitops"


def argo_cd(body: dict[str, Any]) -> str:
    """The health that Argo CD gives the object."""
    lua = LuaRuntime()
    lua.globals()["obj"] = lua.table_from(body, recursive=True)
    answer = lua.execute((FOLDER / f"{body['kind'].lower()}.lua").read_text())
    assert answer["message"]
    return str(answer["status"])


def flux(body: dict[str, Any]) -> str:
    """The first expression of Flux that is true, in the order in which it asks; `inProgress` if none is."""
    (checks,) = [each for each in yaml.safe_load((FOLDER / "flux.yaml").read_text())["healthCheckExprs"] if each["kind"] == body["kind"]]
    variables = {name: body[name] for name in ("metadata", "spec", "status")}
    environment = cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN))
    asked = [name for name in ("inProgress", "failed", "current") if name in checks]
    results = {name: environment.compile(checks[name]).eval(data=variables) for name in asked}
    assert all(result.type() != cel.Type.ERROR for result in results.values())
    return next((name for name, result in results.items() if result.value() is True), "inProgress")
