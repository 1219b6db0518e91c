"""Preflight: what must and should be so before workloads are looked after; what fabrics want is theirs to say."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.ids import Kind
from resources.base import kinds
from resources.install.permissions import Permission
from resources.ports.checks import Check, Level, Outcome, judged, unknown
from resources.ports.fabric import Fabric
from resources.ports.inspection import InspectingFabric, Installation

Rights = Mapping[Permission, tuple[str, ...] | str]
"""Permission -> the verbs of it that we may not, or why nobody can tell."""

HOSTS: Final = (("-gke-", "GKE"), ("-eks-", "EKS"), ("+k3s", "K3s"), ("+rke2", "RKE2"), ("+sandbox", "our sandbox"))
"""What the version of a server tells of who runs it."""
INSTALL: Final = "engine manifests crds | kubectl apply --server-side -f -"


def demands(fabrics: Iterable[Fabric]) -> Iterator[tuple[Kind, str]]:
    """What must be served before anything is started, and what is said where it is not."""
    for fabric in fabrics:
        if isinstance(fabric, InspectingFabric):
            yield from fabric.demands().items()


def checks(site: Installation, rights: Rights, fabrics: Iterable[Fabric]) -> Iterator[Check]:
    """Every check, ours first."""
    yield _server(site)
    yield from _ours(site)
    yield from _rights(rights)
    for fabric in fabrics:
        if isinstance(fabric, InspectingFabric):
            yield from fabric.checks(site)


def failed(found: Iterable[Check]) -> bool:
    """Whether nothing can work as it is configured."""
    return any(check.level is Level.HARD and check.outcome is Outcome.BAD for check in found)


def _server(site: Installation) -> Check:
    told = site.offer.version.get("gitVersion")
    if not isinstance(told, str) or not told:
        return unknown(Level.INFO, "server version", site.offer.fault or "the server does not say")
    host = next((name for mark, name in HOSTS if mark in told), "")
    return Check(Level.INFO, "server version", Outcome.GOOD, f"{told} ({host})" if host else told)


def _ours(site: Installation) -> Iterator[Check]:
    for kind in kinds.OURS:
        what = f"CRD {kind.plural}.{kind.group}"
        # An installation may be older than bindings: workloads run all the same.
        level = Level.WARNING if kind == kinds.TOPOLOGY_BINDING else Level.HARD
        if doubt := site.offer.doubt(kind):
            yield unknown(level, what, doubt)
        else:
            fault = "" if site.offer.serves(kind) else f"{kind.version} is not served"
            yield judged(level, what, fault, f"{kind.version} is served", INSTALL)


def _rights(rights: Rights) -> Iterator[Check]:
    """What we may not do, kind by kind; what we may is told in one line."""
    for permission, found in sorted(rights.items(), key=lambda item: (item[0].kind.group, item[0].resource)):
        what = f"permissions on {_resource(permission)}"
        if isinstance(found, str):
            yield unknown(Level.WARNING, what, found)
        elif found:
            yield Check(Level.WARNING, what, Outcome.BAD, f"may not {', '.join(found)}", "a role that allows it")
    granted = [permission for permission, found in rights.items() if found == ()]
    if granted:
        count = sum(len(permission.verbs) for permission in granted)
        yield Check(Level.INFO, "permissions", Outcome.GOOD, f"{count} verbs on {len(granted)} resources are allowed")


def _resource(permission: Permission) -> str:
    group = permission.kind.group
    return f"{permission.resource}.{group}" if group else permission.resource
