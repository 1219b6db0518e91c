"""Status: the status of a graph in either version. Fields that both have alike, and unknown ones, stay."""

from typing import Any

from resources.base.fields import mapping


def beta_status(status: Any) -> dict[str, Any]:
    """A status of v1alpha1 as one of v1beta1."""
    fields = {field: value for field, value in mapping(status).items() if field != "services"}
    services = mapping(status).get("services")
    return fields if services is None else {**fields, "components": {name: beta_entry(entry) for name, entry in mapping(services).items()}}


def alpha_status(status: Any) -> dict[str, Any]:
    """A status of v1beta1 as one of v1alpha1."""
    fields = {field: value for field, value in mapping(status).items() if field != "components"}
    entries = mapping(status).get("components")
    return fields if entries is None else {**fields, "services": {name: alpha_entry(entry) for name, entry in mapping(entries).items()}}


def beta_entry(entry: Any) -> dict[str, Any]:
    """The status of a service as that of a component."""
    fields = {field: value for field, value in mapping(entry).items() if field != "componentName"}
    name = mapping(entry).get("componentName")
    return {**({"componentNames": [name]} if name else {}), **fields}


def alpha_entry(entry: Any) -> dict[str, Any]:
    """The status of a component as that of a service: it has the first of the names, and all of them if there are several."""
    names = mapping(entry).get("componentNames")
    first = names[0] if isinstance(names, list | tuple) and names else None
    rest = ("componentNames",) if first is not None and len(names or ()) == 1 else ()
    return {**({"componentName": first} if first else {}), **{k: value for k, value in mapping(entry).items() if k not in rest}}
