"""A fabric whose requests for domains, a part of planning, take as long as a test likes: it computes until a file is there."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from engine.ids import Kind
from engine.observed import Live
from engine.resource import Body
from resources.ports.fabric import DomainRequest, Fabric, SpecifiedClique
from resources.settings import Settings

PROJECT: Final = """[project]
name = "long-planning"
version = "0"
entry-points."engine.fabrics".long = "tests.enginectl.serving.long_planning:configured"
"""
BEGUN, END = "PLANNING_BEGUN", "PLANNING_MAY_END"
"""The variables that name the files: the one that it makes, and the one that it waits for."""
SLOW: Final = "slow"
"""The set for which it takes so long."""


class LongPlanning(Fabric):
    """The fabric; no set gets a domain of it."""

    name = "long"
    kind = Kind("long.example.com", "v1", "Path", "paths")
    finalizer = "long.example.com/path"

    def domain_requests(
        self, root: str, annotations: Mapping[str, str], cliques: Mapping[str, SpecifiedClique]
    ) -> tuple[DomainRequest, ...]:
        """None, after a long computation."""
        if root == SLOW:
            Path(os.environ[BEGUN]).touch()
            while not Path(os.environ[END]).exists():
                sum(range(1000))
        return ()

    def template_name(self, domain: Live | None, name: str) -> str:
        """Some name."""
        return name

    def template_blocker(self, domain: Live, template: Live) -> str:
        """Nothing speaks against a template."""
        return ""

    def domain_uid(self, claim: Live) -> str:
        """No claim is of a domain."""
        return ""

    def decorate_pod(self, spec: Body, template: str) -> dict[str, Any]:
        """The pod as it is."""
        return dict(spec)


def configured(settings: Settings) -> Fabric:
    """The fabric."""
    return LongPlanning()
