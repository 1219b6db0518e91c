"""`engine manifests rbac`: the account that the engine runs as, and the roles that allow it what it needs and nothing else."""

from collections.abc import Iterator
from typing import Any, Final

from engine.blueprint import Blueprint
from enginectl.actions.crds import VERSION, yaml_stream
from enginectl.base import terminal
from enginectl.base.errors import UsageError
from enginectl.base.exit_codes import Exit
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring
from resources.base import kinds
from resources.install.endpoint_permissions import Endpoints, endpoint_permissions
from resources.install.permissions import LeasePlace, Permission, permissions
from resources.install.roles import Account, account_objects, reader_role
from resources.install.use import Use
from resources.registry import BLUEPRINTS
from resources.schema.formats import label_faults, subdomain_faults

MUTATING: Final = ("podcliqueset-defaulting-webhook",)
VALIDATING: Final = ("podcliqueset-validating-webhook", "clustertopology-validating-webhook")
AUTHORIZER: Final = "authorizer-webhook"
"""The names of the webhook configurations, which are those of Grove."""


def print_rbac(wiring: Wiring, account: Account, use: Use, *, graphs: bool, as_json: bool) -> Exit:
    """Write the objects to stdout, as one JSON document or as a YAML stream. Raises `UsageError` for names that cannot be used."""
    if label_faults(account.namespace):
        raise UsageError(f"--namespace {account.namespace}: not a valid name")
    if subdomain_faults(account.name):
        raise UsageError(f"--service-account {account.name}: not a valid name")
    objects = list(rbac_objects(wiring, account, use, graphs=graphs))
    if as_json:
        terminal.print_json({"version": VERSION, "objects": objects})
    else:
        terminal.print_text(yaml_stream(objects))
    return Exit.DONE


def rbac_objects(wiring: Wiring, account: Account, use: Use, *, graphs: bool = True) -> Iterator[dict[str, Any]]:
    """The ServiceAccount with its roles and bindings, and the role of readers; with `Use.READ` the latter only."""
    if use is not Use.READ:
        yield from account_objects(account, account_permissions(wiring, account, use, graphs=graphs))
    yield reader_role(permissions(_blueprints(graphs), wiring.configuration, use=Use.READ))


def account_permissions(wiring: Wiring, account: Account, use: Use, *, graphs: bool = True) -> tuple[Permission, ...]:
    """Everything that the account needs under this configuration."""
    needed = permissions(_blueprints(graphs), wiring.configuration, lease_place(wiring), use)
    return (*needed, *(endpoint_permissions(endpoints_of(wiring, account)) if use is Use.RUN else ()))


def lease_place(wiring: Wiring) -> LeasePlace | None:
    """Where the configuration has the Lease; None if it disables leader election."""
    election = wiring.settings.leader_election
    return LeasePlace(election.resource_namespace or DEFAULT_NAMESPACE, (election.resource_name,)) if election.enabled else None


def endpoints_of(wiring: Wiring, account: Account) -> Endpoints:
    """What `engine run` serves under this configuration in the namespace of that account."""
    webhooks = wiring.settings.server.webhooks
    own_certificate = webhooks.port != 0 and webhooks.cert_provision_mode == "auto"
    return Endpoints(
        account.namespace,
        certificate=webhooks.secret_name if own_certificate else "",
        mutating=MUTATING,
        validating=(*VALIDATING, *((AUTHORIZER,) if wiring.settings.authorizer.enabled else ())),
        checks_callers=webhooks.port != 0,
    )


def _blueprints(graphs: bool) -> tuple[Blueprint, ...]:
    return tuple(blueprint for blueprint in BLUEPRINTS if graphs or blueprint.kind != kinds.DYNAMO_GRAPH)
