"""The product as the sandbox sees it. No other file of the sandbox imports the product.

What takes long to import, and only commands need, is imported in a function.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from engine import conditions, duration
from engine.errors import AlreadyExists, ClusterError, InputError, NotFound
from engine.ids import Kind, ResourceId
from engine.observed import Live, live
from engine.paths import get, merge_patch, overlay
from engine.quantity import amount
from engine.reason import Verdict, earliest
from engine.report.printable import Line
from engine.resource import Body
from engine.runtime.clock import Clock, SystemClock
from engine.runtime.provider import Client, Listing, PatchType
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.base.options import Options, OutputFormat, options
from enginectl.base.runner import conclude, run, run_cancellable
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring, protection, wire
from enginectl.wiring.scope import scope_of
from providers.fabrics.nvidia import names as nvidia
from providers.informer import Informer
from providers.kubernetes.errors import error_of_status
from resources.admission.admit import admit
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Decision
from resources.admission.request import Request as AdmissionRequest
from resources.admission.review import refusal
from resources.base import kinds
from resources.base.labels import GROUP_PROTECTION
from resources.base.labels import PODCLIQUE as PODCLIQUE_LABEL
from resources.base.labels import PODGANG as PODGANG_LABEL
from resources.placement.cluster_room import CRITICAL
from resources.placement.node_fit import (
    HOST_PORT,
    PODS,
    Amounts,
    PodRequirements,
    allocatable,
    mismatch,
    requests_of,
    requirements_of,
    short_of,
    thousandths,
)
from resources.placement.pod_affinity import NodeFilter, PodAffinity, affinity_of
from resources.ports.configuration import Configuration
from resources.schema.crds import crds
from resources.schema.formats import example, label_faults, qualified_faults, subdomain_faults, value_faults


def publication_of(wiring: Wiring) -> Body:
    """The ConfigMap by which an installation with this configuration tells every command what it plans with."""
    from providers.snapshot import as_yaml
    from resources.install.operator_configuration import publication_object
    from resources.install.publication import published

    publication = published(wiring.settings, wiring.configuration.waiter_image, "")
    return publication_object(publication, as_yaml(publication.configuration))


def server_certificate(names: Sequence[str], now: datetime, life: timedelta) -> tuple[bytes, bytes, bytes]:
    """A new authority, a server certificate for these names that it has signed, and the key of that one; all in PEM."""
    from providers.certificates import making

    authority = making.new_authority(now, life)
    pair = making.new_pair(authority, names, now, life)
    return making.pem_of(authority.certificate), pair.chain, pair.key


@asynccontextmanager
async def connected_as(manager: str, clock: Clock, kubeconfig: Path | None = None, context: str = "") -> AsyncIterator[Client]:
    """A client of the cluster that a kubeconfig names, under a field manager. Raises `InputError` if there is none."""
    from providers.kubernetes.connect import connected
    from providers.kubernetes.kubeconfig import Source

    async with connected(Source(str(kubeconfig or ""), context), clock, field_manager=manager) as client:
        yield client


@asynccontextmanager
async def connected_with(wiring: Wiring) -> AsyncIterator[Client]:
    """The client of a command's cluster."""
    from enginectl.wiring.connection import connect

    async with connect(wiring) as (client, _):
        yield client


async def show_diff(wiring: Wiring, files: Sequence[Path] = ()) -> Exit:
    """Run `engine diff`."""
    from enginectl.actions.diff import diff
    from enginectl.actions.preview import PreviewRequest

    return await diff(wiring, PreviewRequest(_roots(wiring, files)))


async def sync_until_settled(wiring: Wiring, files: Sequence[Path] = (), *, seconds: float = 60.0) -> Exit:
    """Run `engine sync`, and wait until every workload is settled."""
    from anyio import CancelScope

    from enginectl.actions.preview import PreviewRequest
    from enginectl.actions.sync import SyncRequest, sync

    request = SyncRequest(PreviewRequest(_roots(wiring, files)), wiring.clock.monotonic() + seconds)
    return await sync(wiring, CancelScope(), request)


async def show_status(wiring: Wiring, name: str) -> Exit:
    """Run `engine status NAME`."""
    from enginectl.actions import status

    return await status.show_status(wiring, name, OutputFormat.TEXT)


def _roots(wiring: Wiring, files: Sequence[Path]) -> Any:
    from enginectl.input.roots import NO_ROOTS, ManifestSources, load_roots

    return load_roots(wiring, ManifestSources(files)) if files else NO_ROOTS
