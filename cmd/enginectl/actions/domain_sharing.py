"""Domain sharing: notes in a preview about fabric domains that join several replicas or sets."""

from engine.ids import ResourceId
from engine.runtime.passes import Pass
from enginectl.actions.node_capacity import requesting_sets
from enginectl.actions.notes import with_notes
from resources.domains.requests import scaled_groups
from resources.domains.sharing import sharing_notes
from resources.ports.configuration import Configuration


def with_sharing_notes(result: Pass, configuration: Configuration) -> Pass:
    """The pass, with a note in the plan of each set for each name of a domain that several replicas or sets have (N28)."""
    sets, groups = requesting_sets(result, configuration), scaled_groups(result.world.roots)
    notes: dict[ResourceId, tuple[str, ...]] = {}
    for fabric in configuration.fabrics:
        for root, listed in sharing_notes(fabric, sets, groups).items():
            notes[root] = (*notes.get(root, ()), *listed)
    return with_notes(result, notes)
