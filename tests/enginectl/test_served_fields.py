"""The cluster is asked which fields it serves only if a manifest has one that we do not know; no answer is no error."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from engine.errors import ClusterError, Forbidden, Unreachable
from engine.runtime.clock import SystemClock
from enginectl.base.options import FieldValidation, Options
from enginectl.input.admission import admit_against
from enginectl.wiring.cluster import EMPTY, LIVE
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import Selection
from providers.snapshot import Snapshot
from resources.settings import Settings
from tests.enginectl.test_mutations import roots_in
from tests.enginectl.test_pod_specs import SET
from tests.resources.admission.mutations import SETUPS
from tests.resources.schema.test_field_names import document

pytestmark = pytest.mark.anyio

KNOWN, UNKNOWN = "tty: true", "quantumTunnel: 1"
NEWER = document(Container={"quantumTunnel": {"type": "integer"}})


@dataclass(frozen=True)
class Publishing(Snapshot):
    """An empty cluster that publishes its types, or fails to."""

    answer: Mapping[str, Any] | ClusterError = field(default_factory=dict, kw_only=True)
    asked: list[str] = field(default_factory=list, kw_only=True)

    async def openapi(self, version: str) -> Mapping[str, Any]:
        """The answer, counted."""
        self.asked.append(version)
        if isinstance(self.answer, ClusterError):
            raise self.answer
        return self.answer


async def accepted(provider: Publishing, said: str, validation: FieldValidation = FieldValidation.STRICT, against: str = LIVE) -> bool:
    """Whether a manifest with this in its container is accepted."""
    wiring = Wiring(Options(), Settings(), SETUPS[0], SystemClock(), validation)
    admitted = await admit_against(wiring, roots_in(yaml.load(SET.replace("SAID", said), yaml.CSafeLoader)), provider, against, Selection())
    return not admitted.rejected


@pytest.mark.parametrize(
    ("answer", "is_accepted"),
    [(document(), False), (NEWER, True), ({}, True), (Forbidden("no"), True), (Unreachable("gone"), True), ({"components": 7}, True)],
    ids=["not served", "served", "no types", "forbidden", "unreachable", "not a document"],
)
async def test_what_the_cluster_serves_decides_and_else_the_nearest_name(
    answer: Mapping[str, Any] | ClusterError, is_accepted: bool
) -> None:
    provider = Publishing(answer=answer)

    assert await accepted(provider, UNKNOWN) == is_accepted
    assert provider.asked == ["api/v1"]


async def test_a_manifest_without_unknown_fields_costs_no_request() -> None:
    provider = Publishing(answer=NEWER)

    assert await accepted(provider, KNOWN)
    assert await accepted(provider, UNKNOWN, FieldValidation.IGNORE)
    assert await accepted(provider, UNKNOWN, against=EMPTY)
    assert provider.asked == []
