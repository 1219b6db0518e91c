"""Preflight: the checks of an installation before workloads are managed there; fabrics add their own."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from engine.ids import Kind
from resources.base import kinds
from resources.install.permissions import Permission
from resources.ports.checks import Check, CheckResult, Severity, judged, unknown
from resources.ports.fabric import Fabric
from resources.ports.inspection import InspectingFabric, Installation

Rights = Mapping[Permission, tuple[str, ...] | str]
"""Permission -> its verbs that are denied, empty if none; or, as a string, why that is not known."""

PLATFORMS: Final = (("-gke-", "GKE"), ("-eks-", "EKS"), ("+k3s", "K3s"), ("+rke2", "RKE2"), ("+sandbox", "our sandbox"))
"""Part of a server's version -> the platform that it belongs to."""
INSTALL: Final = "engine manifests crds | kubectl apply --server-side -f -"


def required_kinds(fabrics: Iterable[Fabric]) -> Iterator[tuple[Kind, str]]:
    """The kinds that must be served before a command starts, each with the error message if it is not."""
    for fabric in fabrics:
        if isinstance(fabric, InspectingFabric):
            yield from fabric.required_kinds().items()


def checks(installation: Installation, rights: Rights, fabrics: Iterable[Fabric]) -> Iterator[Check]:
    """Every check, those of the engine before those of the fabrics."""
    yield _server_version(installation)
    yield from _own_crds(installation)
    yield from _permissions(rights)
    for fabric in fabrics:
        if isinstance(fabric, InspectingFabric):
            yield from fabric.checks(installation)


def failed(results: Iterable[Check]) -> bool:
    """Whether a hard requirement is not met (`Severity.HARD`). A check that could not be judged does not count."""
    return any(check.level is Severity.HARD and check.outcome is CheckResult.BAD for check in results)


def _server_version(installation: Installation) -> Check:
    version = installation.apis.version.get("gitVersion")
    if not isinstance(version, str) or not version:
        return unknown(Severity.INFO, "server version", installation.apis.error or "the server does not report it")
    platform = next((name for mark, name in PLATFORMS if mark in version), "")
    return Check(Severity.INFO, "server version", CheckResult.GOOD, f"{version} ({platform})" if platform else version)


def _own_crds(installation: Installation) -> Iterator[Check]:
    for kind in kinds.OURS:
        subject = f"CRD {kind.plural}.{kind.group}"
        # An older installation has no bindings, and workloads run without them.
        level = Severity.WARNING if kind == kinds.TOPOLOGY_BINDING else Severity.HARD
        if why := installation.apis.why_unknown(kind):
            yield unknown(level, subject, why)
        else:
            fault = "" if installation.apis.serves(kind) else f"{kind.version} is not served"
            yield judged(level, subject, fault, f"{kind.version} is served", INSTALL)


def _permissions(rights: Rights) -> Iterator[Check]:
    """A check for each permission with denied verbs, and one check for all permissions that are granted completely."""
    for permission, denied in sorted(rights.items(), key=lambda item: (item[0].kind.group, item[0].resource)):
        subject = f"permissions on {_resource(permission)}"
        if isinstance(denied, str):
            yield unknown(Severity.WARNING, subject, denied)
        elif denied:
            yield Check(Severity.WARNING, subject, CheckResult.BAD, f"may not {', '.join(denied)}", "grant these verbs with a role")
    granted = [permission for permission, denied in rights.items() if denied == ()]
    if granted:
        count = sum(len(permission.verbs) for permission in granted)
        yield Check(Severity.INFO, "permissions", CheckResult.GOOD, f"{count} verbs on {len(granted)} resources are allowed")


def _resource(permission: Permission) -> str:
    group = permission.kind.group
    return f"{permission.resource}.{group}" if group else permission.resource
