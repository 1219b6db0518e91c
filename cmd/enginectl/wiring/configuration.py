"""Configuration: the options of the command line and the operator configuration, combined."""

import os
import re
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.runtime.clock import Clock, SystemClock
from engine.runtime.logs import Format, Log, logger
from engine.runtime.provider import Client
from enginectl.base import terminal
from enginectl.base.exit_codes import UsageError
from enginectl.base.options import FieldValidation, Options
from providers.kubernetes.kubeconfig import SERVICE_ACCOUNT, Source, cluster_access
from providers.registry import SCHEDULERS, fabrics
from providers.schedulers.kube import KUBE, kube_scheduler
from resources import settings
from resources.admission.managed_rules import Protection
from resources.children.table import CHILDREN
from resources.ports.configuration import (
    GRAPH_SCHEDULER,
    WAITER_IMAGE,
    Configuration,
    DynamoSettings,
    SizeLimits,
    WorkloadLimits,
    pinned,
)
from resources.ports.scheduler import Scheduler
from resources.settings import Settings

NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
WAITER_VARIABLE = "GROVE_INIT_CONTAINER_IMAGE"
DEFAULT_NAMESPACE = "default"
"""The namespace of a manifest that names none when there is no cluster."""
ACCOUNT_VARIABLE: Final = "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME"
NAMESPACE_VARIABLE: Final = "POD_NAMESPACE"
"""The variable with the namespace of the pod, where it has no mounted ServiceAccount."""


class Wiring(Struct, frozen=True):
    """What every command works with: options, operator configuration, clock."""

    options: Options
    settings: settings.Settings
    """The operator's configuration file."""
    configuration: Configuration
    """What blueprints depend on, derived from the settings."""
    clock: Clock
    validation: FieldValidation = FieldValidation.STRICT
    """What is wrong with the pods of a manifest that only the creation of the pods shows."""
    client: Client | None = None
    """The connection to the cluster that the command uses; None: it makes one when it needs it."""

    @property
    def source(self) -> Source:
        """Kubeconfig and context of the cluster."""
        return Source(str(self.options.kubeconfig or ""), self.options.context)

    @property
    def log_format(self) -> Format | None:
        """The format of log lines that is chosen; None: text. That of the configuration file is not for a terminal."""
        if self.options.log_format:
            return self.options.log_format.value
        return self.settings.log_format if "log_format" in self.settings.model_fields_set and not sys.stderr.isatty() else None

    @property
    def log(self) -> Log:
        """The logger, writing to stderr. The option `--log-format` has precedence over the configuration file."""
        verbose = self.options.verbose or self.settings.log_level == "debug"
        return logger(sys.stderr, format=self.log_format, verbose=verbose, colour=terminal.has_colour(sys.stderr))


def wire(
    options: Options, *, allow_replace: bool = False, take_over: bool = False, validation: FieldValidation = FieldValidation.STRICT
) -> Wiring:
    """The wiring for these options. `allow_replace`: see `DynamoSettings`; `take_over`: see `Configuration`.

    Raises `UsageError`, and `InputError` if the configuration file cannot be used.
    """
    if options.namespace and options.all_namespaces:
        raise UsageError("--namespace and --all-namespaces exclude each other")
    if options.namespace and not NAMESPACE.fullmatch(options.namespace):
        raise UsageError(f"--namespace {options.namespace}: not a valid name: lowercase letters, digits and - only, at most 63")
    chosen = read_settings(options.config) if options.config else settings.Settings.model_construct()
    configuration = configuration_of(chosen)
    if allow_replace:
        configuration = replace(configuration, dynamo=replace(configuration.dynamo, allow_replace=True))
    if take_over:
        configuration = replace(configuration, take_over=True)
    wiring = Wiring(options, chosen, configuration, SystemClock(), validation)
    if wiring.log_format == "json":
        terminal.use_json_lines()
    return wiring


def read_settings(path: Path) -> settings.Settings:
    """The operator configuration in a file. Warnings go to stderr. Raises `UsageError` with every error of the file."""
    from enginectl.wiring.configuration_file import read_configuration_file

    file = read_configuration_file(path)
    for warning in file.warnings:
        terminal.warning(str(warning))
    if file.settings is None:
        raise UsageError("\n".join(map(str, file.errors)))
    return file.settings


def with_settings(wiring: Wiring, chosen: settings.Settings) -> Wiring:
    """The wiring with another operator configuration. What the command line allows stays allowed."""
    configuration = configuration_of(chosen)
    dynamo = replace(configuration.dynamo, allow_replace=wiring.configuration.dynamo.allow_replace)
    allowed = replace(configuration, dynamo=dynamo, take_over=wiring.configuration.take_over)
    return replace(wiring, settings=chosen, configuration=allowed)


def configuration_of(chosen: settings.Settings) -> Configuration:
    """What blueprints depend on. A configured scheduler without a back end here is left out."""
    of_graphs = "" if chosen.scheduler.profiles or not chosen.dynamo.enabled else GRAPH_SCHEDULER
    return Configuration(
        {**schedulers_of(chosen), **({of_graphs: SCHEDULERS[of_graphs]} if of_graphs else {})},
        chosen.scheduler.default_profile_name,
        waiter_image(chosen.init_container.image),
        topology=chosen.topology_aware_scheduling.enabled,
        fabrics=fabrics(chosen),
        drain_timeout=timedelta(seconds=settings.seconds(chosen.network.domain_drain_timeout)),
        dynamo=dynamo_settings(chosen.dynamo),
        namespaces=tuple(chosen.namespaces),
        limits=WorkloadLimits(_limits_of(chosen.limits.set), _limits_of(chosen.limits.namespace)),
        graph_scheduler_where_served=of_graphs,
    )


def _limits_of(chosen: settings.OfSet | settings.OfNamespace) -> SizeLimits:
    return SizeLimits(chosen.replicas, chosen.pods, chosen.cliques, chosen.bytes)


def dynamo_settings(chosen: settings.Dynamo) -> DynamoSettings:
    """The choices for DynamoGraphDeployments."""
    return DynamoSettings(
        enabled=chosen.enabled,
        ssh_secret=chosen.mpi_run.secret_name,
        create_ssh_secret=chosen.mpi_run.create_ssh_secret,
        termination_delay=chosen.termination_delay,
        nats_address=chosen.nats_address,
        etcd_address=chosen.etcd_address,
        model_express_url=chosen.model_express_url,
        prometheus_endpoint=chosen.prometheus_endpoint,
        ingress_class=chosen.ingress.controller_class_name,
        ingress_host_suffix=chosen.ingress.host_suffix,
    )


def schedulers_of(chosen: settings.Settings) -> Mapping[str, Scheduler]:
    """The configured schedulers for which there is a back end, by name."""
    gangs = chosen.scheduler.gang_mode
    return {name: kube_scheduler(gangs) if name == KUBE else SCHEDULERS[name] for name in chosen.scheduler.names if name in SCHEDULERS}


def waiter_image(configured: str) -> str:
    """The image of the init container: from the environment, else from the configuration, else that of this release."""
    return pinned(os.environ.get(WAITER_VARIABLE, "").strip() or configured or WAITER_IMAGE)


def default_namespace(wiring: Wiring) -> str:
    """The namespace of the kubeconfig's context, or of the pod that we run in. Raises `InputError` when there is no cluster."""
    return cluster_access(wiring.source).namespace


def protection(settings: Settings, configuration: Configuration) -> Protection:
    """Which managed objects are protected, and which users are exempt.

    The engine's own service account is exempt if its name (from the environment) and its namespace (from the pod) are known.
    """
    account, namespace = os.environ.get(ACCOUNT_VARIABLE, "").strip(), pod_namespace()
    operator = f"system:serviceaccount:{namespace}:{account}" if account and namespace else ""
    authorizer = settings.authorizer
    protected = CHILDREN.protected(configuration) if authorizer.enabled else {}
    return Protection(protected, operator, frozenset(authorizer.exempt_service_account_user_names))


def pod_namespace() -> str:
    """The namespace of the pod that this process runs in; empty outside a pod."""
    if named := os.environ.get(NAMESPACE_VARIABLE, "").strip():
        return named
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
