"""Settings: the operator configuration file, with the fields of Grove's. Unknown fields are reported, never rejected."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from engine import duration
from engine.shards import MAX_SHARDS
from resources.base.fields import mapping, mappings
from resources.ports.configuration import NAMESPACE_LIMITS, SET_LIMITS, SSH_SECRET, GangMode
from resources.schema.formats import label_faults
from resources.schema.issues import Issue, Rejected, duplicates, rejection
from resources.schema.unknown_fields import UnknownField, unknown_fields
from resources.schema.wire import Duration, Opaque, Seq, Wire, broken

API_VERSION: Final = "operator.config.grove.io/v1alpha1"
KIND: Final = "OperatorConfiguration"
SHORTER: Final[Mapping[str, tuple[str, str]]] = {
    "renew_deadline": ("retry_period", "RenewDeadline must be greater than RetryPeriod"),
    "lease_duration": ("renew_deadline", "LeaseDuration must be greater than RenewDeadline"),
}
"""A duration of the leader election -> the one that it must be greater than, and the message if it is not."""
LOCK: Final = "leases"
"""The only kind of lock."""
GANG_SCHEDULING: Final = "gangScheduling"
"""The only option of a back end: of `default-scheduler`. Grove defines it as true or false, without an effect."""
GANG_MODES: Final[Mapping[Any, GangMode]] = {True: GangMode.AUTO, False: GangMode.OFF, **{mode.value: mode for mode in GangMode}}
"""The values of that option."""
GANG_VALUES: Final = [*(mode.value for mode in GangMode), True, False]
"""The same for a schema: YAML 1.1, by which Helm reads values, takes an unquoted `Off` for false."""
ONE_OF_THE_MODES: Final = "must be Auto, Require or Off (or true: Auto, false: Off)"


def _not_negative(value: int) -> int:
    if value < 0:
        raise broken("must be non-negative", "FieldValueInvalid", value=value)
    return value


def seconds(text: str) -> float:
    """A duration such as `1m30s` in seconds. Raises `ValueError` if it is not a duration."""
    return duration.nanoseconds(text) / 1e9


Count = Annotated[int, AfterValidator(_not_negative)]
Port = Annotated[int, Field(ge=0, le=65535)]
Limit = Annotated[int, Field(gt=0, le=2**53)]
Workers = Annotated[int, Field(gt=0)]


def _no_negative_duration(text: str) -> str:
    if seconds(text) < 0:
        raise broken("must be non-negative", "FieldValueInvalid", value=text)
    return text


class Section(Wire):
    """A section of the file. Unknown fields are ignored; `read` reports them.

    Sections with all defaults are constructed without validation, which would build their models at every start.
    """

    model_config = ConfigDict(extra="ignore")


def _namespace_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once, in their order."""
    for index, name in enumerate(names):
        if label_faults(name):
            raise broken("must be the name of a namespace", "FieldValueInvalid", (index,), value=name)
    return tuple(dict.fromkeys(names))


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
    """The lease that every writer holds. With `enabled: false` there is none, and the other fields are not checked."""

    enabled: bool = True
    """Grove's default is false. Here, two writers at once must be an explicit choice."""
    # The order of these three matters: each is compared with the one before it.
    retry_period: Duration = "2s"
    renew_deadline: Duration = "10s"
    lease_duration: Duration = "15s"
    resource_lock: str = LOCK
    resource_name: str = "grove-operator-leader-election"
    resource_namespace: str = ""
    shards: Annotated[int, Field(ge=1, le=MAX_SHARDS)] = 1

    @model_validator(mode="before")
    @classmethod
    def _with_default_durations(cls, value: Any) -> Any:
        """The section with the durations that it leaves out: they are compared too, and reported under their names in the file."""
        if not isinstance(value, Mapping):
            return value
        defaults = {field.alias: field.default for name, field in cls.model_fields.items() if name in SHORTER}
        return defaults | {key: entry for key, entry in value.items() if entry is not None}

    @field_validator("retry_period", "renew_deadline", "lease_duration")
    @classmethod
    def _in_order(cls, value: str, info: ValidationInfo) -> str:
        shorter, message = SHORTER.get(info.field_name or "", ("", ""))
        if _enabled(info) and seconds(value) <= 0:
            raise broken("must be greater than zero", "FieldValueInvalid", value=value)
        if _enabled(info) and shorter in info.data and seconds(value) <= seconds(info.data[shorter]):
            raise broken(message, "FieldValueInvalid", value=value)
        return value

    @field_validator("resource_lock", "resource_name")
    @classmethod
    def _present(cls, value: str, info: ValidationInfo) -> str:
        if _enabled(info) and not value:
            raise broken("", "FieldValueRequired")
        if _enabled(info) and info.field_name == "resource_lock" and value != LOCK:
            raise broken(f'supported values: "{LOCK}"', "FieldValueNotSupported", value=value)
        return value


def _enabled(info: ValidationInfo) -> bool:
    """Whether the section is enabled, as far as its fields are valid."""
    return bool(info.data.get("enabled", True))


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

    webhooks: Webhooks = Webhooks.model_construct()
    health_probes: HealthProbes = HealthProbes.model_construct()
    metrics: Metrics = Metrics.model_construct()


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

    pod_clique_set: TenWorkers = TenWorkers.model_construct()
    pod_clique: TenWorkers = TenWorkers.model_construct()
    pod_clique_scaling_group: FiveWorkers = FiveWorkers.model_construct()
    pod_gang: FiveWorkers = FiveWorkers.model_construct()


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
    domain_drain_timeout: Annotated[Duration, AfterValidator(_no_negative_duration)] = "5m0s"
    """How long the deletion of a fabric domain waits for terminating pods and claims that use it."""


def _gang_mode(option: Any) -> GangMode | None:
    """The mode that an option names; None if it names none."""
    return GANG_MODES.get(option) if isinstance(option, bool | str) else None


def _a_gang_mode(value: Any) -> GangMode:
    """The mode that a value names. Raises a validation error if it names none."""
    if (mode := _gang_mode(value)) is None:
        raise broken(ONE_OF_THE_MODES, "FieldValueInvalid", value=value)
    return mode


class Profile(Section):
    """A scheduler back end; its `config` is kept unchanged."""

    name: Literal["default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler"]
    config: Opaque = {}

    @field_validator("config")
    @classmethod
    def _known_options(cls, value: Mapping[str, Any], info: ValidationInfo) -> Mapping[str, Any]:
        option = value.get(GANG_SCHEDULING)
        if info.data.get("name") == "default-scheduler" and option is not None and _gang_mode(option) is None:
            raise broken(ONE_OF_THE_MODES, "FieldValueInvalid", (GANG_SCHEDULING,), value=option)
        return value

    @property
    def gang_mode(self) -> GangMode | None:
        """Whether kube-scheduler is to schedule gangs; None if its options do not say so."""
        return _gang_mode(self.config.get(GANG_SCHEDULING))


class InitContainer(Section):
    """The init container in which a pod waits for the cliques that it starts after."""

    image: str = ""
    """Empty: the image of this release. An image without tag or digest gets the tag of this release."""


DEFAULT_PROFILE: Final = Profile.model_construct(name="default-scheduler")


def _with_default(profiles: tuple[Profile, ...]) -> tuple[Profile, ...]:
    """The profiles, with `default-scheduler` appended if there are some and it is missing."""
    has_default = not profiles or any(profile.name == DEFAULT_PROFILE.name for profile in profiles)
    return profiles if has_default else (*profiles, DEFAULT_PROFILE)


class Schedulers(Section):
    """The enabled scheduler back ends. `read` rejects two profiles with one name."""

    profiles: Annotated[Seq[Profile], AfterValidator(_with_default)] = ()
    """Without any, `default-scheduler` is enabled, and the scheduler of graphs where the cluster serves it."""
    default_profile_name: str = DEFAULT_PROFILE.name
    gang_scheduling: Annotated[GangMode, BeforeValidator(_a_gang_mode), WithJsonSchema({"enum": GANG_VALUES})] = GangMode.AUTO
    """Whether kube-scheduler is to schedule gangs, unless its profile says so: a configuration that lists no profiles can say it too."""

    @property
    def gang_mode(self) -> GangMode:
        """Whether kube-scheduler is to schedule gangs."""
        named = next((profile.gang_mode for profile in self.enabled if profile.name == DEFAULT_PROFILE.name), None)
        return named or self.gang_scheduling

    @property
    def enabled(self) -> tuple[Profile, ...]:
        """The profiles of the back ends that are enabled whatever the cluster serves."""
        return self.profiles or (DEFAULT_PROFILE,)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of these back ends; `default-scheduler` is always one of them."""
        return tuple(profile.name for profile in self.enabled)

    @field_validator("default_profile_name")
    @classmethod
    def _is_a_profile(cls, value: str, info: ValidationInfo) -> str:
        names = {DEFAULT_PROFILE.name, *(profile.name for profile in info.data.get("profiles", ()))}
        if "profiles" in info.data and value not in names:
            raise broken("default profile must be one of the configured profiles", "FieldValueInvalid", value=value)
        return value


class MpiRun(Section):
    """The SSH key pairs of TensorRT-LLM services on several nodes."""

    secret_name: str = SSH_SECRET
    """The name of the Secret in the namespace of a graph; `{component}` stands for `<graph>-<service>` in lower case."""
    create_ssh_secret: bool = False
    """Whether the Secret is created if it is missing. Otherwise the pods of the service wait for it."""


class GraphIngress(Section):
    """Ingresses of frontends."""

    controller_class_name: str = ""
    """The class of Ingresses whose service names none; with a class every frontend without Ingress settings has an Ingress."""
    host_suffix: str = "local"
    """What follows the host, after a dot, unless the service has its own suffix."""


class Dynamo(Section):
    """DynamoGraphDeployments."""

    enabled: bool = True
    """Whether graphs are managed. If not, neither they nor the kinds that only they consist of are listed."""
    mpi_run: MpiRun = MpiRun.model_construct()
    termination_delay: Duration = "15m"
    """`terminationDelay` of the PodCliqueSet of a graph; 0s: that of Grove."""
    ingress: GraphIngress = GraphIngress.model_construct()
    nats_address: str = ""
    etcd_address: str = ""
    model_express_url: str = Field(default="", alias="modelExpressURL")
    prometheus_endpoint: str = ""


class OfSet(Section):
    """The most of each measure that one PodCliqueSet may have."""

    replicas: Limit = SET_LIMITS.replicas
    pods: Limit = SET_LIMITS.pods
    cliques: Limit = SET_LIMITS.cliques
    bytes: Limit = SET_LIMITS.bytes


class OfNamespace(Section):
    """The most of each measure that the PodCliqueSets of one namespace may have together."""

    replicas: Limit = NAMESPACE_LIMITS.replicas
    pods: Limit = NAMESPACE_LIMITS.pods
    cliques: Limit = NAMESPACE_LIMITS.cliques
    bytes: Limit = NAMESPACE_LIMITS.bytes


class LimitSettings(Section):
    """How large workloads may be."""

    set: OfSet = OfSet.model_construct()
    namespace: OfNamespace = OfNamespace.model_construct()


class Settings(Section):
    """The whole file."""

    api_version: Literal["operator.config.grove.io/v1alpha1"] = API_VERSION
    kind: Literal["OperatorConfiguration"] = KIND
    runtime_client_connection: Connection = Connection.model_construct()
    leader_election: LeaderElection = LeaderElection.model_construct()
    server: Server = Server.model_construct()
    debugging: Debugging = Debugging.model_construct()
    controllers: Controllers = Controllers.model_construct()
    log_level: Literal["debug", "info", "error"] = "info"
    log_format: Literal["json", "text"] = "json"
    namespaces: Annotated[Seq[str], AfterValidator(_namespace_names)] = ()
    """The only namespaces whose workloads are managed; empty: all of them."""
    authorizer: Authorizer = Authorizer.model_construct()
    topology_aware_scheduling: Switch = Switch.model_construct()
    network: Network = Network.model_construct()
    scheduler: Schedulers = Schedulers.model_construct()
    init_container: InitContainer = InitContainer.model_construct()
    dynamo: Dynamo = Dynamo.model_construct()
    limits: LimitSettings = LimitSettings.model_construct()


def read(config: Any) -> tuple[Settings, tuple[UnknownField, ...]]:
    """The settings of a parsed configuration file, and its unknown fields. Raises `Rejected` with one issue for each invalid field."""
    return valid_settings(config), tuple(unknown_fields(config, Settings))


def valid_settings(config: Any) -> Settings:
    """The settings of a parsed configuration file. Raises `Rejected` with one issue for each invalid field."""
    issues: list[Issue] = list(duplicate_profiles(config))
    try:
        settings = Settings.model_validate(config)
    except ValidationError as error:
        issues = [*rejection(error).issues, *issues]
    if issues:
        raise Rejected(issues)
    return settings


def duplicate_profiles(config: Any) -> Iterator[Issue]:
    """An issue for each profile with the name of an earlier one. Not in the model, so that other issues of the profiles do not hide it."""
    names = [profile.get("name") for profile in mappings(mapping(mapping(config).get("scheduler")).get("profiles"))]
    return duplicates((("scheduler", "profiles", index, "name"), name) for index, name in enumerate(names) if isinstance(name, str))
