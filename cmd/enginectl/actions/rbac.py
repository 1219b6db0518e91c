"""`engine manifests rbac`: the account that the engine runs as, and the roles that allow it what it needs and nothing else."""

from collections.abc import Iterator
from typing import Any

from engine.blueprint import Blueprint
from enginectl.actions.crds import VERSION, yaml_stream
from enginectl.base import terminal
from enginectl.base.errors import UsageError
from enginectl.base.exit_codes import Exit
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring
from enginectl.wiring.protection import protection
from resources.admission.look_ups import look_ups
from resources.base import kinds
from resources.install.endpoint_permissions import ServedEndpoints, endpoint_permissions
from resources.install.permissions import LeasePlace, Permission, permissions
from resources.install.roles import Account, account_objects, reader_role
from resources.install.use import Use
from resources.install.webhooks import WEBHOOKS
from resources.registry import BLUEPRINTS
from resources.schema.formats import label_faults, subdomain_faults


def print_rbac(wiring: Wiring, account: Account, use: Use, *, shards: int, graphs: bool, as_json: bool) -> Exit:
    """Write the objects to stdout, as one JSON document or as a YAML stream. Raises `UsageError` for names that cannot be used."""
    if label_faults(account.namespace):
        raise UsageError(f"--namespace {account.namespace}: not a valid name")
    if subdomain_faults(account.name):
        raise UsageError(f"--service-account {account.name}: not a valid name")
    objects = list(rbac_objects(wiring, account, use, shards=shards, graphs=graphs))
    if as_json:
        terminal.print_json({"version": VERSION, "objects": objects})
    else:
        terminal.print_text(yaml_stream(objects))
    return Exit.DONE


def rbac_objects(wiring: Wiring, account: Account, use: Use, *, shards: int = 1, graphs: bool = True) -> Iterator[dict[str, Any]]:
    """The ServiceAccount with its roles and bindings, and the role of readers; with `Use.READ` the latter only."""
    if use is not Use.READ:
        yield from account_objects(account, account_permissions(wiring, account, use, shards=shards, graphs=graphs))
    yield reader_role(permissions(_blueprints(graphs), wiring.configuration, lease_place(wiring, shards), Use.READ))


def account_permissions(wiring: Wiring, account: Account, use: Use, *, shards: int = 1, graphs: bool = True) -> tuple[Permission, ...]:
    """Everything that the account needs under this configuration."""
    needed = permissions(_blueprints(graphs), wiring.configuration, lease_place(wiring, shards), use)
    return (*needed, *(endpoint_permissions(endpoints_of(wiring, account)) if use is Use.RUN else ()))


def lease_place(wiring: Wiring, shards: int = 1) -> LeasePlace | None:
    """Where the configuration has the Lease; None if it disables leader election."""
    election = wiring.settings.leader_election
    return LeasePlace(election.resource_namespace or DEFAULT_NAMESPACE, election.resource_name, shards) if election.enabled else None


def endpoints_of(wiring: Wiring, account: Account) -> ServedEndpoints:
    """What `engine run` serves under this configuration in the namespace of that account."""
    server = wiring.settings.server.webhooks
    if server.port == 0:
        return ServedEndpoints(account.namespace)
    return ServedEndpoints(
        account.namespace,
        certificate=server.secret_name if server.cert_provision_mode == "auto" else "",
        # It looks for all of them, for any may be installed later.
        mutating=tuple(webhook.configuration for webhook in WEBHOOKS if webhook.mutates),
        validating=tuple(webhook.configuration for webhook in WEBHOOKS if not webhook.mutates),
        look_ups=tuple(look_up.kind for look_up in look_ups(wiring.configuration, protection(wiring.settings))),
        checks_callers=True,
    )


def _blueprints(graphs: bool) -> tuple[Blueprint, ...]:
    return tuple(blueprint for blueprint in BLUEPRINTS if graphs or blueprint.kind != kinds.DYNAMO_GRAPH)
