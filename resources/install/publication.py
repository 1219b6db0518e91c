"""Publication: the object by which an installation tells every user of the cluster what it plans with, and where its Leases are.

A ConfigMap with a fixed name in `kube-public`, as `cluster-info` is one: everybody who is authenticated may read it by its name. So it has
nothing secret, and nothing that changes no plan.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from engine.version import VERSION
from resources.base.fields import mapping
from resources.ports.configuration import WAITER_IMAGE, pinned
from resources.schema.formats import label_faults, subdomain_faults
from resources.settings import LeaderElection, Settings
from resources.settings_fields import ENTRY, OPTIONS, generic, is_published, leaves

DEFAULT_NAMESPACE = "default"
"""The namespace of the Leases where the configuration names none."""
NAME: Final = "grove-engine"
NAMESPACE: Final = "kube-public"
"""Every API server makes this namespace when it starts."""
CALLED: Final = f"ConfigMap {NAMESPACE}/{NAME}"
"""The object in messages."""
FILE, PUBLISHED_BY, RUNS_IN, LEASES, WITHHELD = "config.yaml", "version", "namespace", "leases", "withheld"
"""The keys of the ConfigMap."""
ADDRESSES: Final = ("natsAddress", "etcdAddress", "modelExpressURL", "prometheusEndpoint")
"""The fields of `dynamo` that may contain credentials."""
CREDENTIAL_SIGNS: Final = "@?"
"""An address with credentials has one of these characters: `user:password@host`, `host?token=...`."""


class LeasePlace(Struct, frozen=True):
    """Where the Leases of the leader election are. As text: `namespace/name` of the first one."""

    namespace: str = DEFAULT_NAMESPACE
    name: str = "grove-operator-leader-election"
    shards: int = 1
    """Into how many shards the namespaces are divided."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the Leases of the shards."""
        return (self.name, *(f"{self.name}-shard-{shard}" for shard in range(1, self.shards)))


GROVE_OPERATOR = LeasePlace("grove-system")
"""The Lease that Grove's own operator holds while it runs."""


def place_of(election: LeaderElection, shards: int = 1) -> LeasePlace | None:
    """Where a configuration has the Leases, with the larger number of shards; None if it disables leader election."""
    if not election.enabled:
        return None
    return LeasePlace(election.resource_namespace or DEFAULT_NAMESPACE, election.resource_name, max(shards, election.shards))


def place_faults(place: LeasePlace) -> Iterator[str]:
    """What is wrong with the names of a place: they become part of the paths of requests."""
    yield from (f"leaderElection.resourceNamespace: {fault}" for fault in label_faults(place.namespace))
    yield from (f"leaderElection.resourceName: {fault}" for fault in subdomain_faults(place.name))


class InstallationRecord(Struct, frozen=True):
    """What an installation publishes."""

    configuration: Mapping[str, Any]
    """The fields of its configuration that plans and writers depend on (`settings_fields.PUBLISHED`), defaults included."""
    leases: tuple[str, ...] = ()
    """`namespace/name` of its Lease, with shards of all of them; none without leader election. The configuration says the same."""
    withheld: tuple[str, ...] = ()
    """The fields that are not published because their values may contain credentials."""
    namespace: str = ""
    """The namespace in which it runs; empty if that is not known."""
    version: str = VERSION
    """The release of the engine that published it."""


def published(settings: Settings, image: str, namespace: str, *, shards: int = 1, withheld: Collection[str] = ()) -> InstallationRecord:
    """What an installation with this configuration publishes.

    `image`: that of the init container, which may come from elsewhere. `namespace`: where it runs. `shards`: their number, if it is larger
    than that of the configuration. `withheld`: fields that are left out besides those that may contain credentials.
    """
    place = place_of(settings.leader_election, shards)
    document = _published_part(settings.model_dump(mode="json", by_alias=True))
    document["initContainer"] = {"image": pinned(image)}
    election = settings.leader_election
    document["leaderElection"] |= {
        "resourceNamespace": election.resource_namespace or DEFAULT_NAMESPACE,
        "shards": max(shards, election.shards),
    }
    dynamo = document["dynamo"]
    hidden = [key for key in ADDRESSES if f"dynamo.{key}" in withheld or any(sign in dynamo[key] for sign in CREDENTIAL_SIGNS)]
    document["dynamo"] = {key: value for key, value in dynamo.items() if key not in hidden}
    leases = tuple(f"{place.namespace}/{name}" for name in place.names) if place is not None else ()
    return InstallationRecord(document, leases, tuple(f"dynamo.{key}" for key in hidden), namespace)


def _published_part(value: Any, field: str = "") -> Any:
    """The part of a configuration that is published; `field` is the path of the value."""
    if isinstance(value, Mapping):
        paths = {key: f"{field}.{key}".removeprefix(".") for key in value}
        parts = {key: _published_part(entry, paths[key]) for key, entry in value.items() if is_published(paths[key])}
        return {key: part for key, part in parts.items() if part != {} or paths[key] != OPTIONS}
    if isinstance(value, list):
        return [_published_part(entry, f"{field}{ENTRY}") for entry in value]
    return value


def contents(publication: InstallationRecord, text: str) -> dict[str, str]:
    """The data of the ConfigMap. `text`: the configuration as YAML."""
    known = {
        PUBLISHED_BY: publication.version,
        RUNS_IN: publication.namespace,
        LEASES: "\n".join(publication.leases),
        WITHHELD: "\n".join(publication.withheld),
    }
    return {FILE: text} | {key: value for key, value in known.items() if value}


def publication_in(body: Mapping[str, Any], settings: Settings) -> InstallationRecord:
    """The publication in a ConfigMap. `settings`: those of its configuration, which the caller has parsed."""
    image, withheld = settings.init_container.image or WAITER_IMAGE, frozenset(value_of(body, WITHHELD).split())
    record = published(settings, image, value_of(body, RUNS_IN), withheld=withheld)
    return InstallationRecord(record.configuration, record.leases, record.withheld, record.namespace, value_of(body, PUBLISHED_BY))


def differences(ours: InstallationRecord, theirs: InstallationRecord) -> tuple[str, ...]:
    """The paths of the fields whose values differ, sorted, with `[]` for each index; those that are withheld count as fields."""
    before, after = dict(leaves(ours.configuration)), dict(leaves(theirs.configuration))
    fields = {generic(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return tuple(sorted(fields | (set(ours.withheld) ^ set(theirs.withheld))))


def value_of(body: Mapping[str, Any], key: str) -> str:
    """A value of the ConfigMap, without space around it; empty if it has none."""
    value = mapping(body.get("data")).get(key)
    return value.strip() if isinstance(value, str) else ""
