"""Permissions on a real control plane: the engine uses everything that its roles allow, and misses every single part of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import anyio
import pytest
from msgspec.structs import replace

from engine.runtime.lease import LEASE as LEASE_KIND
from grove_sandbox.installation.addons import addon_objects
from grove_sandbox.installation.installation import definitions
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from resources.install.modes import Use
from resources.install.permissions import CLUSTER_IDENTITY, Permission, permissions
from resources.install.publication import LeasePlace
from resources.install.roles import Account
from resources.registry import BLUEPRINTS
from tests.controlplane.accounts import LEASE, create, grant
from tests.controlplane.audit import Requests, Right, rights
from tests.controlplane.cluster import SYSTEM, ControlPlane
from tests.controlplane.schedulers.kai import queue
from tests.stories.permission_scenario import CONFIGURATION, PARTS, Part, Scenario, Stopped, blueprints_of
from tests.stories.test_control_plane import connection, define
from tests.takeover import epochs

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

CONCURRENCY = 8
"""How many processes of ours run at a time, each without one right."""

LISTED = (kinds.NODE, kinds.RESOURCE_QUOTA, kinds.LIMIT_RANGE, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS)
OF_PREVIEWS = tuple(Permission(kind, ("list",)) for kind in LISTED)
OF_PLANS = rights((CLUSTER_IDENTITY, *OF_PREVIEWS))
"""What `sync --plan` and every `sync` that shows its plan need besides: they compare the cluster with that of the plan, and look for quotas
and for room on the nodes. They say so if they may not."""


def without(needed: Iterable[Permission], right: Right) -> Iterator[Permission]:
    """The permissions less one verb on one resource."""
    for each in needed:
        verbs = tuple(verb for verb in each.verbs if Right(each.kind.group, each.resource, verb) != right)
        if verbs:
            yield replace(each, verbs=verbs)


def is_indirect(right: Right, use: Use) -> bool:
    """Whether no request needs the right for itself.

    Who creates a Role must hold what it grants: to read pods and their statuses. Who names an owner that must outlast an object must be
    allowed to set the owner's finalizers.
    """
    is_granted = right.resource == "pods/status" or (use is Use.SYNC and right == Right("", "pods", "watch"))
    return is_granted or right.resource.endswith("/finalizers")


def denial_of(right: Right, use: Use) -> str:
    """What the server says to who lacks the right."""
    if right.resource.endswith("/finalizers"):
        return "cannot set blockOwnerDeletion"
    if is_indirect(right, use):
        return "attempting to grant RBAC permissions not currently held"
    return f'cannot {right.verb} resource "{right.resource}"'


async def prepare(plane: ControlPlane, namespace: str) -> None:
    """A namespace, our kinds, those of the add-ons and of a later Grove, and their queues."""
    async with connection(plane, "admin") as admin:
        addons = list(addon_objects(("lws", "volcano", "kai")))
        of_addons = (dict(body) for kind, body in addons if kind == kinds.CRD)
        await define(admin, namespace, *map(dict, definitions()), *of_addons, epochs.definition())
        for kind, body in addons:
            if kind != kinds.CRD:
                await admin.list(kind)
                create(plane, kind, dict(body))
        await admin.list(kinds.KAI_QUEUE)
        create(plane, kinds.KAI_QUEUE, queue("dynamo"))


@pytest.mark.parametrize("use", [Use.RUN, Use.SYNC])
async def test_every_right_is_used_and_no_request_is_denied(enforcing_plane: ControlPlane, use: Use) -> None:
    plane = enforcing_plane
    namespace = f"exact-{use.value}"
    account = Account(SYSTEM, namespace)
    needed = permissions(BLUEPRINTS, CONFIGURATION, LeasePlace(namespace, LEASE), use)
    async with connection(plane, "admin") as admin:
        await prepare(plane, namespace)
        grant(plane, needed, account, account.name)
        for part in PARTS:
            await Scenario(plane, admin, account.name, namespace, part, use).play()
    requests = Requests(plane).read()

    assert requests.denied[account.user] == set()
    assert requests.used[account.user] - rights(needed) == set()
    unused = rights(needed) - requests.used[account.user] - (OF_PLANS if use is Use.SYNC else set())
    assert sorted(str(right) for right in unused if not is_indirect(right, use)) == []


async def test_without_any_single_right_the_engine_fails_and_says_which_one_is_missing(enforcing_plane: ControlPlane) -> None:
    plane = enforcing_plane
    silent: list[str] = []
    requests = Requests(plane)
    at_once, one_by_one = anyio.CapacityLimiter(CONCURRENCY), anyio.CapacityLimiter(1)
    async with connection(plane, "admin") as admin:
        await prepare(plane, "minimal")

        async def play(part: Part, right: Right, name: str, use: Use) -> None:
            # Bindings are in no namespace: two processes would manage the same one.
            async with at_once if kinds.TOPOLOGY_BINDING not in part.roots else one_by_one:
                if fault := await fault_without(right, Missing(plane, admin, requests, part, name, use)):
                    silent.append(f"without {right} ({use.value}, {part.name}): {fault}")

        async with anyio.create_task_group() as tasks:
            for number, (part, right, use) in enumerate(removals()):
                tasks.start_soon(play, part, right, f"without-{number}", use)

    assert silent == []


def removals() -> Iterator[tuple[Part, Right, Use]]:
    """Each right of `engine run`, and what `engine sync` needs besides, with a part of the scenario that needs it."""
    removed: set[Right] = set()
    parts = {part.name: part for part in PARTS}
    for use in (Use.RUN, Use.SYNC):
        for name in ("sets", "graphs", "bindings"):
            needed = rights(permissions(blueprints_of(parts[name]), CONFIGURATION, LeasePlace("", LEASE), use))
            for right in sorted(needed - removed - (OF_PLANS if use is Use.SYNC else set())):
                yield parts["gangs" if is_about_gangs(right) and name == "sets" else name], right, use
            removed |= needed


def is_about_gangs(right: Right) -> bool:
    """Whether only sets with domains, or with schedulers that have objects for gangs, need the right."""
    return right.resource in ("computedomains", "podgroups", "podgangs/finalizers")


@dataclass(frozen=True, slots=True)
class Missing:
    """Where and how the engine runs without one right."""

    plane: ControlPlane
    admin: KubernetesClient
    requests: Requests
    part: Part
    name: str
    """Of the namespace and of the account."""
    use: Use


async def fault_without(right: Right, missing: Missing) -> str:
    """What is wrong if the engine goes on as if nothing were missing, or does not say what is; empty if it does."""
    plane, account = missing.plane, Account(SYSTEM, missing.name)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": missing.name}}
    await missing.admin.create(kinds.NAMESPACE, "", namespace)
    needed = permissions(blueprints_of(missing.part), CONFIGURATION, LeasePlace(missing.name, LEASE), missing.use)
    await anyio.to_thread.run_sync(grant, plane, tuple(without(needed, right)), account, account.name)
    scenario = Scenario(plane, missing.admin, account.name, missing.name, missing.part, missing.use)
    scenario.stays = right == Right(LEASE_KIND.group, LEASE_KIND.plural, "update")  # Renewed some seconds after the rest is done.
    denial = denial_of(right, missing.use)
    scenario.is_over = lambda: bool(missing.requests.read().denied[account.user]) and denial in scenario.log.getvalue()
    try:
        await scenario.play()
    except Stopped:
        return ""
    except TimeoutError as error:
        return f"{sorted(missing.requests.denied[account.user])} are denied, and nothing says {denial}: {error}"
    finally:
        await scenario.leave()
    return "nothing is denied"
