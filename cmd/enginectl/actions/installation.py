"""`engine manifests all` and its parts: the objects of an installation in the order in which they can be applied."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from engine.resource import Body
from enginectl.actions.manifests import VERSION, rbac_objects, yaml_stream
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.base.files import read_bytes
from enginectl.base.options import parse_seconds
from enginectl.wiring.configuration import Wiring, configuration_of, protection
from providers.documents import read_documents
from providers.snapshot import as_yaml
from resources.base.fields import mapping
from resources.children.table import CHILDREN
from resources.install.admission_policies import policies
from resources.install.installation import EngineInstallation, metadata
from resources.install.modes import NAMESPACE, AdmissionMode, Mode, Use
from resources.install.network import network_policy, service, service_monitor
from resources.install.operator_configuration import config_map, extent, installed, merged
from resources.install.roles import Account
from resources.install.webhooks import convert_service, webhook_configurations
from resources.install.workloads import cronjob, deployment, disruption_budget, filled_objects
from resources.schema.crds import Conversion, crds
from resources.settings import valid_settings

ADMISSION_BY_MODE: Final = {Mode.DEPLOYMENT: AdmissionMode.WEBHOOKS, Mode.CRONJOB: AdmissionMode.POLICIES}
"""What judges new sets unless something else is chosen: a CronJob has no server."""

Part = Callable[[Wiring, EngineInstallation, bool], Iterator[Body]]
"""The objects of one part of an installation. The last argument says whether MutatingAdmissionPolicies are wanted."""


def installation_of(
    wiring: Wiring,
    mode: Mode,
    admission: AdmissionMode | None,
    chosen: Mapping[str, Any],
    shards: int = 1,
    *,
    graphs: bool = True,
    namespaces: Sequence[str] = (),
) -> EngineInstallation:
    """The installation that the command line asks for. `chosen` has further fields of it; `graphs`, `namespaces`: see `extent`.

    Raises `UsageError`.
    """
    judged_by = admission or ADMISSION_BY_MODE[mode]
    if mode is Mode.CRONJOB and judged_by is AdmissionMode.WEBHOOKS:
        raise UsageError("--mode cronjob and --admission webhooks exclude each other: a CronJob has no server; use policies or none")
    namespace = wiring.options.namespace or NAMESPACE
    document = merged(_configuration_document(wiring), extent(graphs, namespaces))
    configuration = installed(document, namespace, mode, judged_by, shards)
    result = EngineInstallation(namespace=namespace, mode=mode, admission=judged_by, configuration=configuration, **chosen)
    parse_seconds(result.timeout, "--timeout")
    if result.serves_webhooks and not result.port("webhooks"):
        raise UsageError("webhooks need a port, and server.webhooks.port of the configuration is 0; choose --admission policies or none")
    if mode is Mode.DEPLOYMENT and not result.elects and max(result.replicas, result.shards) > 1:
        raise UsageError("several replicas or shards need leader election: leaderElection.enabled is false; use --replicas 1 and one shard")
    return result


def wiring_of(wiring: Wiring, installation: EngineInstallation) -> Wiring:
    """The wiring of a process that runs with the configuration of the installation. Raises `Rejected`."""
    settings = valid_settings(installation.configuration)
    return replace(wiring, settings=settings, configuration=configuration_of(settings))


def _configuration_document(wiring: Wiring) -> Mapping[str, Any]:
    """The configuration file as it is written, without defaults; it is known to be valid."""
    if wiring.options.config is None:
        return {}
    documents = read_documents(read_bytes(wiring.options.config), str(wiring.options.config))
    return mapping(next((document.value for document in documents), {}))


def print_installation(wiring: Wiring, installation: EngineInstallation, parts: Sequence[str], *, mutating: bool, as_json: bool) -> Exit:
    """Write these parts of the installation to stdout, as one JSON document or as a YAML stream."""
    installed_wiring = wiring_of(wiring, installation)
    objects = [dict(body) for part in parts for body in PARTS[part](installed_wiring, installation, mutating)]
    if as_json:
        terminal.print_json({"version": VERSION, "objects": objects})
    else:
        terminal.print_text(yaml_stream(objects))
    return Exit.DONE


def _namespace(wiring: Wiring, installation: EngineInstallation, mutating: bool) -> Iterator[Body]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(installation.namespace)}


def _definitions(wiring: Wiring, installation: EngineInstallation, mutating: bool) -> Iterator[Body]:
    serves_both = installation.serves_webhooks and installation.graphs
    yield from crds(Conversion(convert_service(installation.namespace, installation.port("webhooks"))) if serves_both else None)


def _rbac(wiring: Wiring, installation: EngineInstallation, mutating: bool) -> Iterator[Body]:
    use = Use.RUN if installation.mode is Mode.DEPLOYMENT else Use.SYNC
    account, chosen = Account(installation.namespace), installation
    yield from rbac_objects(wiring, account, use, shards=chosen.shards, image=chosen.waiter_image)


def _configuration(wiring: Wiring, installation: EngineInstallation, mutating: bool) -> Iterator[Body]:
    yield config_map(installation, as_yaml(installation.configuration))


def _workload(wiring: Wiring, installation: EngineInstallation, mutating: bool) -> Iterator[Body]:
    yield from filled_objects(installation)
    if installation.mode is Mode.CRONJOB:
        yield cronjob(installation)
    else:
        yield service(installation)
        yield disruption_budget(installation)
        yield deployment(installation)


def _network(wiring: Wiring, installation: EngineInstallation, mutating: bool) -> Iterator[Body]:
    if installation.mode is Mode.DEPLOYMENT and installation.network_policy:
        yield network_policy(installation)


def _admission(wiring: Wiring, installation: EngineInstallation, mutating: bool) -> Iterator[Body]:
    protected = CHILDREN.protected(wiring.configuration) if installation.protects else {}
    if installation.serves_webhooks:
        yield from webhook_configurations(installation, protected)
    elif installation.admission is AdmissionMode.POLICIES:
        protects = replace(protection(wiring.settings, wiring.configuration), protected=protected, operator=installation.user)
        yield from policies(wiring.configuration, protects, mutating=mutating)


def _monitoring(wiring: Wiring, installation: EngineInstallation, mutating: bool) -> Iterator[Body]:
    if installation.mode is Mode.DEPLOYMENT and installation.service_monitor and installation.port("metrics"):
        yield service_monitor(installation)


PARTS: Final[Mapping[str, Part]] = {
    "namespace": _namespace,
    "crds": _definitions,
    "rbac": _rbac,
    "configuration": _configuration,
    "workload": _workload,
    "network": _network,
    "admission": _admission,
    "monitoring": _monitoring,
}
"""The parts of an installation by name."""
