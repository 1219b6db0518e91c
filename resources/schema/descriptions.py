"""Descriptions: the docstrings of the fields of models, read from the source of their modules when a schema is written.

pydantic can read them when a model is defined, but then every command would start by parsing the source of every model.
"""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache


def descriptions(models: Iterable[type]) -> dict[str, str]:
    """Name of a field -> the docstring below it. A later model, derived from an earlier one, declares its fields anew."""
    described: dict[str, str] = {}
    for model in models:
        own = _of_module(model.__module__).get(model.__name__, {})
        described = {name: text for name, text in described.items() if name not in vars(model).get("__annotations__", ())} | own
    return described


@cache
def _of_module(name: str) -> Mapping[str, dict[str, str]]:
    """The docstrings of the fields of each class of a module, by the name of the class."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {node.name: dict(_documented(node.body)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Each annotated name that a docstring follows, with the docstring."""
    for field, below in zip(body, body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
