"""Settings: the operator configuration file, under the keys that existing charts write. Unknown keys are told, never refused."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from engine import duration
from engine.report.printable import clipped
from resources.admission.issues import Fault, Issue, Rejected, shown

API_VERSION: Final = "operator.config.grove.io/v1alpha1"
KIND: Final = "OperatorConfiguration"


def _span(text: str) -> str:
    duration.nanoseconds(text)
    return text


def seconds(span: str) -> float:
    """A span of time in seconds. Raises `ValueError`."""
    return duration.nanoseconds(span) / 1e9


Span = Annotated[str, AfterValidator(_span)]
Port = Annotated[int, Field(ge=0, le=65535)]
Workers = Annotated[int, Field(gt=0)]


class Section(BaseModel):
    """A part of the file."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow", frozen=True, strict=True)


class Connection(Section):
    """How hard the API server may be asked."""

    qps: float = 100
    burst: int = Field(default=120, ge=0)
    content_type: str = ""
    accept_content_types: str = ""


class LeaderElection(Section):
    """The lease that whoever writes must hold. It is held whether `enabled` or not: two writers are never right."""

    enabled: bool = False
    lease_duration: Span = "15s"
    renew_deadline: Span = "10s"
    retry_period: Span = "2s"
    resource_lock: Literal["leases"] = "leases"
    resource_name: str = Field(default="grove-operator-leader-election", min_length=1)
    resource_namespace: str = ""

    @model_validator(mode="after")
    def _in_order(self) -> "LeaderElection":
        if not seconds(self.lease_duration) > seconds(self.renew_deadline) > seconds(self.retry_period) > 0:
            raise ValueError("leaseDuration must be greater than renewDeadline, and that greater than retryPeriod")
        return self


class Endpoint(Section):
    """An address to listen on."""

    bind_address: str = ""
    port: Port = 0


class Webhooks(Endpoint):
    """The admission webhooks and their certificate."""

    server_cert_dir: str = "/etc/grove-operator/webhook-certs"
    secret_name: str = "grove-webhook-server-cert"
    cert_provision_mode: Literal["auto", "manual"] = "auto"


class Server(Section):
    """What is served."""

    webhooks: Webhooks = Webhooks(port=2750)
    health_probes: Endpoint = Endpoint(port=2751)
    metrics: Endpoint = Endpoint(port=2752)


class Debugging(Section):
    """Profiling."""

    enable_profiling: bool | None = None
    pprof_bind_host: str = "127.0.0.1"
    pprof_bind_port: Port = 2753


class Controller(Section):
    """How much is done at a time for one kind."""

    concurrent_syncs: Workers = 10


FIVE: Final = Controller.model_validate({"concurrentSyncs": 5})


class Controllers(Section):
    """How much is done at a time."""

    pod_clique_set: Controller = Controller()
    pod_clique: Controller = Controller()
    pod_clique_scaling_group: Controller = FIVE
    pod_gang: Controller = FIVE


class Authorizer(Section):
    """Who may touch managed objects."""

    enabled: bool = False
    exempt_service_account_user_names: list[str] = []


class Switch(Section):
    """A feature that is on or off."""

    enabled: bool = False


class Network(Section):
    """What holds for the network of all workloads."""

    auto_mnnvl_enabled: bool = Field(default=False, alias="autoMNNVLEnabled")


class Profile(Section):
    """A scheduler back end."""

    name: Literal["default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler"]
    config: dict[str, Any] = {}


class Schedulers(Section):
    """The scheduler back ends that workloads may name."""

    profiles: list[Profile] = [Profile(name="default-scheduler")]
    default_profile_name: str = "default-scheduler"

    @property
    def names(self) -> tuple[str, ...]:
        """The enabled back ends; the one that every cluster has is always among them."""
        return tuple(dict.fromkeys((*(profile.name for profile in self.profiles), "default-scheduler")))

    @model_validator(mode="after")
    def _sound(self) -> "Schedulers":
        listed = [profile.name for profile in self.profiles]
        if len(set(listed)) < len(listed):
            raise ValueError("profiles must have different names")
        if self.default_profile_name not in self.names:
            raise ValueError("default profile must be one of the configured profiles")
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


def read(config: Mapping[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """The settings in a configuration, and the paths in it that nobody knows. Raises `Rejected` with all that is wrong with it."""
    try:
        settings = Settings.model_validate(config)
    except ValidationError as error:
        raise Rejected(
            Issue(tuple(one["loc"]), Fault.MALFORMED, f"{one['msg'].removeprefix('Value error, ')}, got {shown(one['input'])}")
            for one in error.errors(include_url=False)
        ) from None
    return settings, tuple(clipped(path, 200) for path in unknown(settings))


def unknown(section: BaseModel, path: str = "") -> Iterator[str]:
    """The path of every key that no section has."""
    for key in section.model_extra or ():
        yield f"{path}{key}"
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        inner = value if isinstance(value, list) else [value]
        for index, below in enumerate(inner):
            if isinstance(below, BaseModel):
                mark = f"[{index}]" if isinstance(value, list) else ""
                yield from unknown(below, f"{path}{field.alias}{mark}.")
