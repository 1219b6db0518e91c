"""The admission chain: asked before every write, in order, and obeyed."""

from collections.abc import Mapping
from typing import Any

import pytest

from grove_sandbox.api.core import Operation
from grove_sandbox.api.request import Request
from grove_sandbox.types import status
from grove_sandbox.types.status import StatusError
from sandbox.tests.in_memory import CONFIG, about, config, fresh

Body = Mapping[str, Any]


def labels(operation: Operation, request: Request, new: Body | None, old: Body | None) -> tuple[Body | None, tuple[str, ...]]:
    """Labels every new config map, and says so."""
    if operation != "CREATE" or new is None or request.served.kind != CONFIG:
        return None, ()
    return {**new, "metadata": {**new["metadata"], "labels": {"seen": "true"}}}, ("labelled",)


def keeps(operation: Operation, request: Request, new: Body | None, old: Body | None) -> tuple[Body | None, tuple[str, ...]]:
    """Lets nobody delete."""
    if operation == "DELETE":
        raise status.forbidden(request.served.kind, request.name, "it is dear to us")
    return None, ()


def test_what_admission_adds_is_stored_and_told() -> None:
    api = fresh(admission=(labels,))

    made = api.create(about(api, CONFIG), config("a"))

    assert made.warnings == ("labelled",)
    assert api.get(about(api, CONFIG, "a")).body["metadata"]["labels"] == {"seen": "true"}


def test_what_admission_refuses_does_not_happen() -> None:
    api = fresh(admission=(labels, keeps))
    api.create(about(api, CONFIG), config("a"))

    with pytest.raises(StatusError, match='configmaps "a" is forbidden: it is dear to us'):
        api.delete(about(api, CONFIG, "a"))

    assert "deletionTimestamp" not in api.get(about(api, CONFIG, "a")).body["metadata"]
