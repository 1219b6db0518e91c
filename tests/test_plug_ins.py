"""Plug-ins: vendors are named where their plug-ins are, and what a plug-in may leave out has a default in its port."""

import re
from collections.abc import Iterator

from tests.test_layout import PRODUCT, Source

# Names of vendors and of their products, and the places of the product that may name them: plug-ins, the wire models and kinds of the API
# itself, DynamoGraphDeployments (NVIDIA's own kind, whose pods KAI or Volcano schedule), and the names of profiles in the configuration.
VENDOR = re.compile(r"nvidia|volcano|compute_?domain|(?<![a-z])(?:kai|lpx)(?![a-z])", re.IGNORECASE)
PLACES = (
    "providers/fabrics/nvidia/",
    "providers/schedulers/",
    "providers/registry.py",
    "resources/base/kinds.py",
    "resources/base/labels.py",
    "resources/base/names.py",
    "resources/schema/",
    "resources/settings.py",
    "resources/ports/configuration.py",
    "resources/dynamo/",
    "resources/admission/graph_",
    "resources/admission/annotation_rules.py",
    "resources/blueprints/desired_graph.py",
    "resources/blueprints/dynamo_graph.py",
    "resources/install/operator_configuration.py",
    "resources/install/preflight.py",
    "cmd/enginectl/commands/why.py",
)
ELSEWHERE = ("sandbox/",)
"""A project of its own, which simulates a vendor's driver."""


def vendors_named(source: Source) -> Iterator[str]:
    """Each line of the product that names a vendor in another place."""
    if source.layer and not source.path.startswith((*PLACES, *ELSEWHERE)):
        for line, text in enumerate(source.text.splitlines(), 1):
            if named := VENDOR.search(text):
                yield f"{source.path}:{line}: {named[0]}"


def probes(source: Source) -> Iterator[str]:
    """Each import of `runtime_checkable` where plug-ins have their ports: such a check is slow, and takes a typing error for absence."""
    if source.path.startswith(("resources/", "providers/fabrics/", "providers/schedulers/")):
        yield from (f"{source.path}:{line}" for line, name in source.imports if name.endswith(".runtime_checkable"))


def test_vendors_are_named_where_their_plug_ins_are() -> None:
    assert [named for source in PRODUCT for named in vendors_named(source)] == []
    assert [place for place in PLACES if not any(source.path.startswith(place) and VENDOR.search(source.text) for source in PRODUCT)] == []


def test_ports_have_defaults_instead_of_capabilities_that_are_probed() -> None:
    assert [probed for source in PRODUCT for probed in probes(source)] == []


def test_violations_are_found() -> None:
    assert list(vendors_named(Source("resources/domains/reach.py", "KIND = 'ComputeDomain'")))
    assert list(vendors_named(Source("engine/planner.py", "from resources.base.kinds import KAI_QUEUE")))
    assert not list(vendors_named(Source("engine/planner.py", "kaiser = alpx")))
    assert list(probes(Source("resources/ports/fabric.py", "from typing import Protocol, runtime_checkable")))
