"""Admission: what the admission rules decide about the roots in a user's manifests, before anything is planned."""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.proposal import proposed_root
from engine.report.printable import printable
from engine.resource import Body
from engine.runtime.provider import Provider
from enginectl.base import terminal
from enginectl.input.manifest_files import Manifest, refuse
from enginectl.input.recorded_sets import KINDS, recorded_sets, request_for
from enginectl.input.references import NO_REFERENCES, list_references
from enginectl.input.roots import Roots
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import Selection
from resources.admission.admit import admit
from resources.admission.graph_defaults import corrected, corrections
from resources.admission.request import Act
from resources.ports.references import KnownReferences
from resources.schema import pod_spec_rules
from resources.schema.parse import unknown_pod_fields

NOTHING_RECORDED: Mapping[ResourceId, Body] = {}


class AdmittedRoots(Struct, frozen=True, eq=False):
    """The roots that admission accepts, new ones with their defaults; and the faults of the others."""

    roots: Roots
    rejected: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Rejected root -> its faults, each with file and line."""

    def require_all(self) -> None:
        """Raise `InputError` with every fault, if a root is rejected."""
        refuse([fault for faults in self.rejected.values() for fault in faults])


async def admit_against(wiring: Wiring, roots: Roots, provider: Provider, against: str, selection: Selection) -> AdmittedRoots:
    """What admission decides about the roots: one that exists is an update, any other a creation."""
    if not roots.bodies:
        return AdmittedRoots(roots)
    references = await list_references(wiring, provider, against, selection)
    return admit_roots(wiring, roots, references, await recorded_sets(wiring, roots, references, provider, selection))


def admit_roots(
    wiring: Wiring, roots: Roots, references: KnownReferences = NO_REFERENCES, recorded: Mapping[ResourceId, Body] = NOTHING_RECORDED
) -> AdmittedRoots:
    """What admission decides about the roots, given the references that are known. Warnings go to stderr with file and line.

    `recorded` has the stored sets that count as their objects record them (N25). The roots themselves count as references too: a set may
    refer to a topology binding in the same files.
    """
    known = KnownReferences({**references.objects, **{live.id: live for live in map(proposed_root, roots.bodies)}}, references.kinds)
    accepted: list[tuple[Body, Manifest]] = []
    rejected: dict[ResourceId, tuple[str, ...]] = {}
    for body, manifest in zip(roots.bodies, roots.manifests, strict=True):
        request = request_for(body, references)
        if request.id in recorded:
            request = replace(request, old=recorded[request.id])
        decision = admit(request, wiring.configuration, known)
        places = {
            pod_spec_rules.warning(issue): manifest.place(*issue.path) for issue in unknown_pod_fields(KINDS[manifest.group_kind], body)
        } | {str(correction): manifest.place(*correction.path) for correction in corrections(body)}
        for warning in decision.warnings:
            terminal.warning(f"{places.get(warning) or manifest.place()}: {printable(warning)}")
        if decision.issues:
            rejected[request.id] = tuple(f"{manifest.place(*issue.path)}: {issue}" for issue in decision.issues)
        else:
            defaulted = decision.body if request.act is Act.CREATE else None
            accepted.append((defaulted if defaulted is not None else corrected(body), manifest))
    bodies, manifests = tuple(body for body, _ in accepted), tuple(manifest for _, manifest in accepted)
    return AdmittedRoots(replace(roots, bodies=bodies, manifests=manifests), rejected)
