"""`engine manifests`: definitions, policies, and the account and roles that the engine needs."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from engine.errors import InputError
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.wiring.configuration import Wiring, protection, with_settings
from providers.snapshot import as_yaml
from resources.admission.look_ups import look_ups
from resources.admission.managed_rules import Protection
from resources.install.admission_policies import policies, unstated_rules
from resources.install.installation import EngineInstallation
from resources.install.modes import Use
from resources.install.operator_configuration import DEFAULTS, extent, merged, publication_object
from resources.install.permissions import Permission, ServedEndpoints, endpoint_permissions, installation_permissions, permissions
from resources.install.publication import place_of, published
from resources.install.roles import Account, account_objects, public_objects, reader_roles, writer_roles
from resources.install.webhooks import GRAPH_DEFINITION, convert_service, could_be_installed
from resources.ports.configuration import WAITER_IMAGE
from resources.registry import managed_blueprints
from resources.schema.crds import Conversion, crds
from resources.schema.formats import label_faults, subdomain_faults
from resources.settings import valid_settings


def print_rbac(wiring: Wiring, account: Account, use: Use, *, shards: int, as_json: bool) -> Exit:
    """Write the objects to stdout, as one JSON document or as a YAML stream. Raises `UsageError` for names that cannot be used."""
    if label_faults(account.namespace):
        raise UsageError(f"--namespace {account.namespace}: not a valid name")
    if subdomain_faults(account.name):
        raise UsageError(f"--service-account {account.name}: not a valid name")
    objects = list(rbac_objects(with_lease_in(wiring, account.namespace), account, use, shards=shards))
    if as_json:
        terminal.print_json({"version": VERSION, "objects": objects})
    else:
        terminal.print_text(yaml_stream(objects))
    return Exit.DONE


def narrowed(wiring: Wiring, *, graphs: bool, namespaces: Sequence[str]) -> Wiring:
    """The wiring of an installation that manages no more than this (`operator_configuration.extent`). Raises `Rejected`."""
    document = wiring.settings.model_dump(mode="json", by_alias=True)
    return with_settings(wiring, valid_settings(merged(document, extent(graphs, namespaces))))


def with_lease_in(wiring: Wiring, namespace: str) -> Wiring:
    """The wiring of an installation in that namespace: the Lease is there, too, unless the configuration names another one."""
    election = wiring.settings.leader_election
    place = election.model_copy(update={"resource_namespace": election.resource_namespace or namespace})
    return replace(wiring, settings=wiring.settings.model_copy(update={"leader_election": place}))


def rbac_objects(wiring: Wiring, account: Account, use: Use, *, shards: int = 1, image: str = WAITER_IMAGE) -> Iterator[dict[str, Any]]:
    """The ServiceAccount with its roles and bindings, those of readers and of people who sync, and what the installation publishes.

    With `Use.READ` the role of readers only. `image`: that of the init container, unless the configuration names one.
    """
    namespaces = wiring.configuration.namespaces
    if use is not Use.READ:
        yield from account_objects(account, account_permissions(wiring, account, use, shards=shards), namespaces)
    yield from reader_roles(_needed(wiring, Use.READ, shards), namespaces)
    if use is not Use.READ:
        yield from writer_roles(_needed(wiring, Use.SYNC, shards), namespaces)
        yield from public_objects()
        publication = published(wiring.settings, wiring.settings.init_container.image or image, account.namespace, shards=shards)
        yield publication_object(publication, as_yaml(publication.configuration))


def account_permissions(wiring: Wiring, account: Account, use: Use, *, shards: int = 1) -> tuple[Permission, ...]:
    """Everything that the account needs under this configuration, as if it managed all namespaces (`permissions.confined`)."""
    needed = _needed(wiring, use, shards)
    return (*needed, *(endpoint_permissions(endpoints_of(wiring, account)) if use is Use.RUN else ()))


def _needed(wiring: Wiring, use: Use, shards: int) -> tuple[Permission, ...]:
    """Everything that a use needs, whatever is served."""
    place, configuration = place_of(wiring.settings.leader_election, shards), wiring.configuration
    return (*permissions(managed_blueprints(configuration), configuration, place, use), *installation_permissions(use))


def endpoints_of(wiring: Wiring, account: Account) -> ServedEndpoints:
    """What `engine run` serves under this configuration in the namespace of that account."""
    server = wiring.settings.server.webhooks
    if server.port == 0:
        return ServedEndpoints(account.namespace)
    has_graphs = wiring.configuration.dynamo.enabled
    webhooks = could_be_installed(graphs=has_graphs)
    return ServedEndpoints(
        account.namespace,
        certificate=server.secret_name if server.cert_provision_mode == "auto" else "",
        # All of them: any may be installed later.
        mutating=tuple(webhook.configuration for webhook in webhooks if webhook.mutates),
        validating=tuple(webhook.configuration for webhook in webhooks if not webhook.mutates),
        definitions=(GRAPH_DEFINITION,) if has_graphs else (),
        look_ups=tuple(look_up.kind for look_up in look_ups(wiring.configuration)),
        checks_callers=True,
    )


VERSION = 1
"""Version of the JSON document; increased when a field is removed or changes its meaning."""


def print_crds(converter: str, storage: str, *, as_json: bool) -> Exit:
    """Write the definitions to stdout, as one JSON document or as a YAML stream.

    `converter`: the namespace of the engine that converts graphs between their versions; empty: they have one. `storage`: the version in
    which graphs are stored then.
    """
    definitions = crds(_conversion(converter, storage) if converter else None)
    if as_json:
        terminal.print_json({"version": VERSION, "objects": list(definitions)})
    else:
        terminal.print_text(yaml_stream(definitions))
    return Exit.DONE


def _conversion(namespace: str, storage: str) -> Conversion:
    installation = EngineInstallation(namespace=namespace, configuration=DEFAULTS)
    return Conversion(convert_service(namespace, installation.port("webhooks")), storage)


def write_crds(folder: Path) -> Exit:
    """Write each definition to a file named as controller-gen names it, e.g. `grove.io_podcliques.yaml`. Raises `InputError`."""
    for definition in crds():
        file = folder / f"{definition['spec']['group']}_{definition['spec']['names']['plural']}.yaml"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml_stream([definition]), encoding="ascii")
        except OSError as error:
            raise InputError(f"{file}: {(error.strerror or 'cannot be written').lower()}") from None
    return Exit.DONE


def yaml_stream(objects: Iterable[dict[str, Any]]) -> str:
    """The objects as a stream of YAML documents."""
    return "".join(f"---\n{as_yaml(body)}" for body in objects)


def print_policies(wiring: Wiring, service_account: str, *, mutating: bool, as_json: bool) -> Exit:
    """Write the policies to stdout, as one JSON document or as a YAML stream that begins with what they do not state.

    Raises `UsageError` if managed objects are protected and the engine's own account is not known.
    """
    objects = [dict(body) for body in policies(wiring.configuration, _protection(wiring, service_account), mutating=mutating)]
    unstated = unstated_rules(wiring.configuration, mutating=mutating)
    if as_json:
        terminal.print_json({"version": VERSION, "objects": objects, "notStated": list(unstated)})
    else:
        comments = ["# Not stated by these policies, because CEL cannot express it:", *(f"# - {rule}" for rule in unstated)]
        terminal.print_text("\n".join(comments) + "\n" + yaml_stream(objects))
    return Exit.DONE


def _protection(wiring: Wiring, service_account: str) -> Protection:
    protected = protection(wiring.settings, wiring.configuration)
    if service_account:
        namespace, _, name = service_account.partition("/")
        if label_faults(namespace) or subdomain_faults(name):
            raise UsageError(f"--service-account {service_account}: must be NAMESPACE/NAME")
        protected = replace(protected, operator=f"system:serviceaccount:{namespace}:{name}")
    if protected.enabled and not protected.operator:
        raise UsageError("authorizer.enabled is true: name the engine's own service account with --service-account NAMESPACE/NAME")
    return protected
