"""Lookups: what may not be read is not known, and is reported once."""

from typing import Any

import pytest

from engine.errors import Forbidden
from engine.memo import Memo
from engine.observed import live
from engine.runtime.lookups import MAX_AGE_MISSING, Lookups
from engine.runtime.provider import Observation
from tests.engine.runtime.bundle import BUNDLE, Bundles
from tests.engine.runtime.fakes import LEAF, FakeProvider

pytestmark = pytest.mark.anyio

NEEDED = LEAF.id("default", "needed")


def bundle() -> dict[str, Any]:
    """A bundle that names a leaf."""
    metadata = {"name": "all", "namespace": "default", "uid": "uid", "resourceVersion": "1"}
    return {"apiVersion": BUNDLE.api_version, "kind": BUNDLE.name, "metadata": metadata, "spec": {"needs": "needed", "roots": {}}}


async def test_what_may_not_be_read_is_reported_once_and_again_after_it_could_be_read() -> None:
    provider, lookups = FakeProvider(), Lookups()
    lookups.want((Bundles(),), Observation([live(bundle())], ()), (), None, Memo())
    refusal = Forbidden('cannot get resource "leaves"')
    reported = []
    for at, error in enumerate([refusal, refusal, None, refusal]):
        provider.get_errors = {NEEDED: error} if error is not None else {}
        await lookups.refresh(provider, at * 2 * MAX_AGE_MISSING)
        reported.append(lookups.new_refusals())

    assert reported == [{NEEDED: refusal}, {}, {}, {NEEDED: refusal}]
