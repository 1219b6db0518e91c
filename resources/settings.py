"""Settings: the operator configuration file, under the keys that existing charts write. Unknown keys are told, never refused."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from engine import duration
from resources.schema.issues import Path, spelled
from resources.schema.rejection import rejection
from resources.schema.wire import Duration, Opaque, Seq, Wire, broken

API_VERSION: Final = "operator.config.grove.io/v1alpha1"
KIND: Final = "OperatorConfiguration"


def _not_negative(value: int) -> int:
    if value < 0:
        raise broken("must be non-negative", "FieldValueInvalid", value=value)
    return value


def seconds(span: str) -> float:
    """A span of time in seconds. Raises `ValueError`."""
    return duration.nanoseconds(span) / 1e9


Count = Annotated[int, AfterValidator(_not_negative)]
Port = Annotated[int, Field(ge=0, le=65535)]
Workers = Annotated[int, Field(gt=0)]


class Section(Wire):
    """A part of the file."""

    model_config = ConfigDict(extra="allow")


def _else(default: int) -> AfterValidator:
    """Zero stands for the default."""
    return AfterValidator(lambda value: value or default)


class Connection(Section):
    """How hard the API server may be asked."""

    qps: Annotated[float, _else(100)] = 100
    burst: Annotated[Count, _else(120)] = 120
    content_type: str = ""
    accept_content_types: str = ""


class LeaderElection(Section):
    """The lease that whoever writes must hold. It is held whether `enabled` or not: two writers are never right."""

    enabled: bool = False
    lease_duration: Duration = "15s"
    renew_deadline: Duration = "10s"
    retry_period: Duration = "2s"
    resource_lock: Literal["leases"] = "leases"
    resource_name: str = Field(default="grove-operator-leader-election", min_length=1)
    resource_namespace: str = ""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        steps = (
            ("leaseDuration", self.lease_duration, self.renew_deadline, "LeaseDuration must be greater than RenewDeadline"),
            ("renewDeadline", self.renew_deadline, self.retry_period, "RenewDeadline must be greater than RetryPeriod"),
            ("retryPeriod", self.retry_period, "0", "must be greater than zero"),
        )
        for field, span, least, message in steps:
            if seconds(span) <= seconds(least):
                raise broken(message, "FieldValueInvalid", (field,), value=span)
        return self


class Webhooks(Section):
    """The admission webhooks and their certificate."""

    bind_address: str = ""
    port: Port = 2750
    server_cert_dir: str = "/etc/grove-operator/webhook-certs"
    secret_name: str = "grove-webhook-server-cert"
    cert_provision_mode: Literal["auto", "manual"] = "auto"


class HealthProbes(Section):
    """Where liveness and readiness are told."""

    bind_address: str = ""
    port: Port = 2751


class Metrics(Section):
    """Where metrics are told."""

    bind_address: str = ""
    port: Port = 2752


class Server(Section):
    """What is served."""

    webhooks: Webhooks = Webhooks()
    health_probes: HealthProbes = HealthProbes()
    metrics: Metrics = Metrics()


class Debugging(Section):
    """Profiling."""

    enable_profiling: bool | None = None
    pprof_bind_host: str = "127.0.0.1"
    pprof_bind_port: Port = 2753


class Ten(Section):
    """How much is done at a time for one kind."""

    concurrent_syncs: Workers = 10


class Five(Section):
    """How much is done at a time for one kind of which there are fewer."""

    concurrent_syncs: Workers = 5


class Controllers(Section):
    """How much is done at a time."""

    pod_clique_set: Ten = Ten()
    pod_clique: Ten = Ten()
    pod_clique_scaling_group: Five = Five()
    pod_gang: Five = Five()


class Authorizer(Section):
    """Who may touch managed objects."""

    enabled: bool = False
    exempt_service_account_user_names: Seq[str] = ()


class Switch(Section):
    """A feature that is on or off."""

    enabled: bool = False


class Network(Section):
    """What holds for the network of all workloads."""

    auto_mnnvl_enabled: bool = Field(default=False, alias="autoMNNVLEnabled")
    domain_drain_timeout: Duration = "5m0s"
    """For how long what uses a fabric domain may take to go before the domain goes without waiting any longer."""


class Profile(Section):
    """A scheduler back end; what its `config` means is its own business."""

    name: Literal["default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler"]
    config: Opaque = {}


class InitContainer(Section):
    """The container in which pods wait for those that they start after."""

    image: str = ""
    """Empty: the one of this release. Without a tag or digest, this release's tag is meant."""


class Schedulers(Section):
    """The scheduler back ends that workloads may name."""

    profiles: Seq[Profile] = (Profile(name="default-scheduler"),)
    default_profile_name: str = "default-scheduler"

    @property
    def names(self) -> tuple[str, ...]:
        """The enabled back ends; the one that every cluster has is always among them."""
        return tuple(dict.fromkeys((*(profile.name for profile in self.profiles), "default-scheduler")))

    @model_validator(mode="after")
    def _sound(self) -> Self:
        listed = [profile.name for profile in self.profiles]
        for index, name in enumerate(listed):
            if name in listed[:index]:
                raise broken("", "FieldValueDuplicate", ("profiles", index, "name"), value=name)
        if self.default_profile_name not in self.names:
            message = "default profile must be one of the configured profiles"
            raise broken(message, "FieldValueInvalid", ("defaultProfileName",), value=self.default_profile_name)
        return self


class Settings(Section):
    """The whole file."""

    api_version: Literal["operator.config.grove.io/v1alpha1"] = API_VERSION
    kind: Literal["OperatorConfiguration"] = KIND
    runtime_client_connection: Connection = Connection()
    leader_election: LeaderElection = LeaderElection()
    server: Server = Server()
    debugging: Debugging = Debugging()
    controllers: Controllers = Controllers()
    log_level: Literal["debug", "info", "error"] = "info"
    log_format: Literal["json", "text"] = "json"
    authorizer: Authorizer = Authorizer()
    topology_aware_scheduling: Switch = Switch()
    network: Network = Network()
    scheduler: Schedulers = Schedulers()
    init_container: InitContainer = InitContainer()


def read(config: Any) -> tuple[Settings, tuple[str, ...]]:
    """The settings in a configuration, and the paths in it that nobody knows. Raises `Rejected` with all that is wrong with it."""
    try:
        settings = Settings.model_validate(config)
    except ValidationError as error:
        raise rejection(error) from None
    return settings, tuple(map(spelled, unknown(settings)))


def unknown(value: Any, path: Path = ()) -> Iterator[Path]:
    """The way to every key that no section has."""
    if isinstance(value, tuple):
        for index, entry in enumerate(value):
            yield from unknown(entry, (*path, index))
    elif isinstance(value, Section):
        yield from ((*path, key) for key in value.model_extra or ())
        for name, field in type(value).model_fields.items():
            yield from unknown(getattr(value, name), (*path, field.alias or name))
