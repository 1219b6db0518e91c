"""JSONPath as printer columns use it: the dialect of kubectl, read by the `jsonpath` library."""

import re
from functools import lru_cache

import jsonpath
from jsonpath import CompoundJSONPath, JSONPath

Path = JSONPath | CompoundJSONPath

# A bracket as it stands, or the name of a child, in which kubectl escapes dots where the library wants quotes.
_PART = re.compile(r"\[[^\]]*\]|\.(?P<name>(?:\\.|[^.\[\]\\])+)")


@lru_cache(maxsize=1024)
def parse(text: str) -> Path:
    """The compiled path, written with or without braces around it. Raises `ValueError` for anything else."""
    path = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if path and path[0] not in ".[":
        raise ValueError(f"not a JSONPath: {text!r} begins with neither a dot nor a bracket")
    try:
        return jsonpath.compile("$" + _PART.sub(_quoted, path))
    except jsonpath.JSONPathError as error:
        raise ValueError(f"not a JSONPath: {text!r}") from error


def _quoted(part: re.Match[str]) -> str:
    name = part["name"]
    if name is None or name == "*" or re.fullmatch(r"\w+", name):
        return part[0]
    unescaped = re.sub(r"\\(.)", r"\1", name)
    return f"['{unescaped}']"
