"""Settings: the operator configuration file, with the keys that Grove's chart writes. Unknown keys are reported, never rejected."""

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


def seconds(text: str) -> float:
    """A duration such as `1m30s` in seconds. Raises `ValueError` if it is not a duration."""
    return duration.nanoseconds(text) / 1e9


Count = Annotated[int, AfterValidator(_not_negative)]
Port = Annotated[int, Field(ge=0, le=65535)]
Workers = Annotated[int, Field(gt=0)]


class Section(Wire):
    """A section of the file. Unknown keys are kept, so that they can be reported."""

    model_config = ConfigDict(extra="allow")


def _else(default: int) -> AfterValidator:
    """Zero means the default."""
    return AfterValidator(lambda value: value or default)


class Connection(Section):
    """The client-side rate limits of requests to the API server."""

    qps: Annotated[float, _else(100)] = 100
    burst: Annotated[Count, _else(120)] = 120
    content_type: str = ""
    accept_content_types: str = ""


class LeaderElection(Section):
    """The lease that every writer holds, unless `enabled: false` is written in the file."""

    enabled: bool = False
    """The default of Grove's file. Leaving it out does not disable the lease: see `is_disabled`."""
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
        for field, value, bound, message in steps:
            if seconds(value) <= seconds(bound):
                raise broken(message, "FieldValueInvalid", (field,), value=value)
        return self

    @property
    def is_disabled(self) -> bool:
        """Whether the file says `enabled: false`, so that nothing prevents a second writer."""
        return "enabled" in self.model_fields_set and not self.enabled


class Webhooks(Section):
    """The admission webhooks and their certificate."""

    bind_address: str = ""
    port: Port = 2750
    server_cert_dir: str = "/etc/grove-operator/webhook-certs"
    secret_name: str = "grove-webhook-server-cert"
    cert_provision_mode: Literal["auto", "manual"] = "auto"


class HealthProbes(Section):
    """The endpoint of the liveness and readiness probes."""

    bind_address: str = ""
    port: Port = 2751


class Metrics(Section):
    """The endpoint of the metrics."""

    bind_address: str = ""
    port: Port = 2752


class Server(Section):
    """The endpoints of the operator."""

    webhooks: Webhooks = Webhooks()
    health_probes: HealthProbes = HealthProbes()
    metrics: Metrics = Metrics()


class Debugging(Section):
    """The profiling endpoint."""

    enable_profiling: bool | None = None
    pprof_bind_host: str = "127.0.0.1"
    pprof_bind_port: Port = 2753


class TenWorkers(Section):
    """The concurrency for one kind; 10 by default."""

    concurrent_syncs: Workers = 10


class FiveWorkers(Section):
    """The concurrency for one kind; 5 by default."""

    concurrent_syncs: Workers = 5


class Controllers(Section):
    """The concurrency for each kind."""

    pod_clique_set: TenWorkers = TenWorkers()
    pod_clique: TenWorkers = TenWorkers()
    pod_clique_scaling_group: FiveWorkers = FiveWorkers()
    pod_gang: FiveWorkers = FiveWorkers()


class Authorizer(Section):
    """Who may change managed objects."""

    enabled: bool = False
    exempt_service_account_user_names: Seq[str] = ()


class Switch(Section):
    """A feature that is on or off."""

    enabled: bool = False


class Network(Section):
    """Network features of all workloads."""

    auto_mnnvl_enabled: bool = Field(default=False, alias="autoMNNVLEnabled")
    domain_drain_timeout: Duration = "5m0s"
    """How long the deletion of a fabric domain waits for terminating pods and claims that use it."""


class Profile(Section):
    """A scheduler back end; its `config` is passed to it unchanged."""

    name: Literal["default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler"]
    config: Opaque = {}


class InitContainer(Section):
    """The init container in which a pod waits for the cliques that it starts after."""

    image: str = ""
    """Empty: the image of this release. An image without tag or digest gets the tag of this release."""


class Schedulers(Section):
    """The enabled scheduler back ends."""

    profiles: Seq[Profile] = (Profile(name="default-scheduler"),)
    default_profile_name: str = "default-scheduler"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the enabled back ends; `default-scheduler` is always one of them."""
        return tuple(dict.fromkeys((*(profile.name for profile in self.profiles), "default-scheduler")))

    @model_validator(mode="after")
    def _valid(self) -> Self:
        names = [profile.name for profile in self.profiles]
        for index, name in enumerate(names):
            if name in names[:index]:
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
    """The settings of a parsed configuration file, and the paths of its unknown keys, e.g. `authorizer.x`.

    Raises `Rejected` with one issue for each invalid field.
    """
    try:
        settings = Settings.model_validate(config)
    except ValidationError as error:
        raise rejection(error) from None
    return settings, tuple(map(spelled, unknown_keys(settings)))


def unknown_keys(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all keys that the sections do not define."""
    if isinstance(value, tuple):
        for index, entry in enumerate(value):
            yield from unknown_keys(entry, (*path, index))
    elif isinstance(value, Section):
        yield from ((*path, key) for key in value.model_extra or ())
        for name, field in type(value).model_fields.items():
            yield from unknown_keys(getattr(value, name), (*path, field.alias or name))
