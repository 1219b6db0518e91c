"""Admitting: what admission makes of the roots in a user's files, before anything is computed from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.ids import ResourceId
from engine.paths import overlay
from engine.plan import Plan
from engine.report.printable import printable
from engine.resource import Body
from engine.runtime.passes import Pass
from engine.runtime.provider import Provider
from engine.world import imagined
from enginectl import output
from enginectl.around import UNKNOWN, references_in
from enginectl.manifest_files import Manifest, Wanted, identity, refuse
from enginectl.wiring import ROOTS, Where, Wiring
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.ports.references import KnownReferences
from resources.schema import pod_spec_rules
from resources.schema.parse import unknown

KINDS = {(kind.group, kind.name): kind for kind in ROOTS}


@dataclass(frozen=True, slots=True, eq=False)
class Admitted:
    """The roots that a server would take, new ones with what it fills in; and of the others, every fault with its place."""

    wanted: Wanted
    rejected: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)

    def require_all(self) -> None:
        """Raise `InputError` with every fault, if there is one."""
        refuse([fault for faults in self.rejected.values() for fault in faults])

    def answered(self, look: Pass) -> Pass:
        """The look with what is rejected in it: of such a root nothing is planned, for nothing would come of it."""
        plans = {plan.root: plan for plan in look.planned.plans} | {
            root: Plan(root, problems=faults) for root, faults in self.rejected.items()
        }
        return replace(look, planned=replace(look.planned, plans=tuple(plans[root] for root in sorted(plans))))


async def admitted(wired: Wiring, wanted: Wanted, provider: Provider, against: str, where: Where) -> Admitted:
    """What admission makes of the roots beside what is there: those that are there would be changed, the others made."""
    if not wanted.roots:
        return Admitted(wanted)
    return admitted_beside(wired, wanted, await references_in(wired, provider, against, where))


def admitted_beside(wired: Wiring, wanted: Wanted, around: KnownReferences = UNKNOWN) -> Admitted:
    """The same, beside references that are known; warnings are told on stderr, each with its place.

    What the files ask for is there as well by then: a set may refer to a binding that lies beside it.
    """
    beside = KnownReferences({**around.objects, **{one.id: one for one in map(imagined, wanted.roots)}}, around.kinds)
    taken: list[tuple[Body, Manifest]] = []
    rejected: dict[ResourceId, tuple[str, ...]] = {}
    for root, manifest in zip(wanted.roots, wanted.manifests, strict=True):
        request = request_for(root, around)
        decision = admit(request, wired.setup, beside)
        places = {pod_spec_rules.warning(issue): manifest.place(*issue.path) for issue in unknown(KINDS[identity(manifest)], root)}
        for warning in decision.warnings:
            output.tell(f"warning: {places.get(warning) or manifest.place()}: {printable(warning)}")
        if decision.issues:
            rejected[request.id] = tuple(f"{manifest.place(*issue.path)}: {issue}" for issue in decision.issues)
        else:
            made = decision.body if request.act is Act.CREATE and decision.body is not None else root
            taken.append((made, manifest))
    roots, manifests = tuple(root for root, _ in taken), tuple(manifest for _, manifest in taken)
    return Admitted(replace(wanted, roots=roots, manifests=manifests), rejected)


def request_for(root: Body, around: KnownReferences) -> Request:
    """What applying the manifest would ask for: what it does not say of labels and annotations stays as it is."""
    group, _, _ = root["apiVersion"].rpartition("/")
    id = KINDS[group, root["kind"]].id(root["metadata"].get("namespace", ""), root["metadata"]["name"])
    live = around.find(id)
    if live is None:
        return Request(Act.CREATE, id, root)
    return Request(Act.UPDATE, id, {**root, "metadata": overlay(live.body["metadata"], root["metadata"])}, live.body)
