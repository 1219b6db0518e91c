"""Pod volumes: the rules for volumes, for what each kind of source needs, and for what containers use of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from resources.schema.formats import subdomain_faults
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.pod_amounts import amount_of
from resources.schema.pod_checks import Fields, Rule, entries, fault, forbidden, invalid, missing, part, size, text, unsupported, whole
from resources.schema.pod_containers import VOLUME_FIELDS, Placed, field_of_pod
from resources.schema.unknown_fields import Suggestions

SUGGESTED_IN_POD: Final = 5
"""The largest number of names of one pod for which the most similar one is looked for: a set may have very many pods."""
IQN: Final = re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[-a-zA-Z0-9.]+(:[^,;*&$|\s]+)?")
EUI: Final = re.compile(r"eui\.[0-9a-fA-F]{16}")
NAA: Final = re.compile(r"naa\.[0-9a-fA-F]{32}")
QUALIFIERS: Final[Mapping[str, re.Pattern[str]]] = {"iqn": IQN, "eui": EUI, "naa": NAA}
"""The beginning of an iSCSI name -> its form."""
REGISTRY: Final = "must be a host:port pair or multiple pairs separated by commas"
CERTIFICATE_PATHS: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")
CLAIM_METADATA: Final = frozenset({"labels", "annotations"})
"""The metadata that the claim of an ephemeral volume may have."""
LONGEST_TENANT: Final = 64
LONGEST_PORTAL: Final = 64
RESERVED: Final = (".kubernetes.io", ".k8s.io")
MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def volume(fields: Fields, path: Path) -> Iterator[Issue]:
    """A volume has one source; without one it is an empty directory."""
    sources = [field for field, value in fields.items() if field != "name" and value is not None]
    for field in sources[1:]:
        yield forbidden((*path, field), "may not specify more than 1 volume type")
    portal = f"{text(fields, 'name')}:{text(part(fields, 'iscsi'), 'targetPortal')}"
    if part(fields, "iscsi").get("initiatorName") is not None and len(portal) >= LONGEST_PORTAL:
        message = f"Total length of <volume name>:<iscsi.targetPortal> must be under {LONGEST_PORTAL} characters"
        yield invalid((*path, "name"), text(fields, "name"), f"{message} if iscsi.initiatorName is specified.")


def projection(fields: Fields, path: Path) -> Iterator[Issue]:
    """An entry of a projected volume has one source."""
    if sum(value is not None for value in fields.values()) > 1:
        yield forbidden(path, "may not specify more than 1 volume type per source")


def projected(fields: Fields, path: Path) -> Iterator[Issue]:
    """No two sources of a projected volume write the same file."""
    earlier: set[str] = set()
    for number, source in entries(fields, "sources"):
        for at, file in _files(source):
            if file and file in earlier:
                yield invalid((*path, "sources", number, *at), file, "conflicting duplicate paths")
            earlier.add(file)


def _files(source: Fields) -> Iterator[tuple[Path, str]]:
    """The files that a source of a projected volume writes, besides tokens, which a server does not compare."""
    for kind in ("secret", "configMap", "downwardAPI"):
        yield from (((kind, "items", index, "path"), text(item, "path")) for index, item in entries(part(source, kind), "items"))
    for kind, names in (("clusterTrustBundle", ("path",)), ("podCertificate", CERTIFICATE_PATHS)):
        yield from (((kind, name), text(part(source, kind), name)) for name in names)


def trust_bundle(fields: Fields, path: Path) -> Iterator[Issue]:
    """A bundle is chosen by its name, or by its signer and labels."""
    if fields.get("name") is None and fields.get("signerName") is None:
        yield missing(path, "either name or signerName must be specified")
    elif fields.get("name") is not None and fields.get("signerName") is not None:
        yield invalid(path, dict(fields), "only one of name and signerName may be used")
    elif fields.get("name") is not None and fields.get("labelSelector") is not None:
        yield invalid((*path, "labelSelector"), fields["labelSelector"], "labelSelector must be unset if name is specified")


def certificate(fields: Fields, path: Path) -> Iterator[Issue]:
    """A certificate is written to a file at least, and its annotations have names with a domain."""
    if not any(text(fields, name) for name in CERTIFICATE_PATHS):
        yield missing(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
    for key in part(fields, "userAnnotations"):
        if "/" not in str(key):
            yield invalid((*path, "userAnnotations"), key, 'must be a domain-prefixed key (such as "acme.io/foo")')


def empty_directory(fields: Fields, path: Path) -> Iterator[Issue]:
    """The size limit of an empty directory is not negative."""
    limit = amount_of(fields.get("sizeLimit"))
    if limit is not None and limit < 0:
        yield forbidden((*path, "sizeLimit"), "SizeLimit field must be a valid resource quantity")


def downward_file(fields: Fields, path: Path) -> Iterator[Issue]:
    """A file has the value of a field of the pod, or of a resource of one of its containers."""
    field, resource = fields.get("fieldRef"), fields.get("resourceFieldRef")
    if field is None and resource is None:
        yield missing(path, "one of fieldRef and resourceFieldRef is required")
    elif field is not None and resource is not None:
        yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    yield from field_of_pod(field, (*path, "fieldRef"), VOLUME_FIELDS)
    if isinstance(resource, Mapping) and not text(resource, "containerName"):
        yield missing((*path, "resourceFieldRef", "containerName"))


def secret_name(field: str) -> Rule:
    """The rule that a reference to a Secret in this field has a name."""

    def check(fields: Fields, path: Path) -> Iterator[Issue]:
        reference = fields.get(field)
        if isinstance(reference, Mapping) and not text(reference, "name"):
            yield missing((*path, field, "name"))

    return check


def csi(fields: Fields, path: Path) -> Iterator[Issue]:
    """The Secret of a CSI volume has the name of an object."""
    reference = fields.get("nodePublishSecretRef")
    if isinstance(reference, Mapping):
        at, name = (*path, "nodePublishSecretRef", "name"), text(reference, "name")
        yield from (invalid(at, name, message) for message in subdomain_faults(name)) if name else [missing(at)]


def iscsi(fields: Fields, path: Path) -> Iterator[Issue]:
    """The names of an iSCSI volume have their form, and authentication has its Secret."""
    for field in ("iqn", "initiatorName"):
        name = text(fields, field)
        if not isinstance(fields.get(field), str) or (field == "iqn" and not name):
            continue
        pattern = QUALIFIERS.get(name[:3])
        if pattern is None:
            yield invalid((*path, field), name, "must be valid format starting with iqn, eui, or naa")
        elif not pattern.fullmatch(name):
            yield invalid((*path, field), name, "must be valid format")
    if (fields.get("chapAuthDiscovery") is True or fields.get("chapAuthSession") is True) and fields.get("secretRef") is None:
        yield missing((*path, "secretRef"))


def fibre_channel(fields: Fields, path: Path) -> Iterator[Issue]:
    """A Fibre Channel volume is named by its targets and a unit, or by its identifiers."""
    targets, wwids = size(fields, "targetWWNs"), size(fields, "wwids")
    if not targets and not wwids:
        yield missing((*path, "targetWWNs"), "must specify either targetWWNs or wwids, but not both")
    if targets and wwids:
        yield invalid((*path, "targetWWNs"), fields["targetWWNs"], "targetWWNs and wwids can not be specified simultaneously")
    if targets and fields.get("lun") is None:
        yield missing((*path, "lun"), "lun is required if targetWWNs is specified")
    elif targets and (unit := whole(fields, "lun")) is not None and not 0 <= unit <= 255:
        yield invalid((*path, "lun"), unit, "must be between 0 and 255, inclusive")


def flocker(fields: Fields, path: Path) -> Iterator[Issue]:
    """A Flocker volume is named by its name or by its identifier."""
    name, uuid = text(fields, "datasetName"), text(fields, "datasetUUID")
    if not name and not uuid:
        yield missing(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid((*path, "datasetName"), name, "must not contain '/'")


def quobyte(fields: Fields, path: Path) -> Iterator[Issue]:
    """The registry of a Quobyte volume is a list of addresses with ports."""
    registry = text(fields, "registry")
    if registry and not all(_has_port(address) for address in registry.split(",")):
        yield invalid((*path, "registry"), registry, REGISTRY)
    if len(text(fields, "tenant")) > LONGEST_TENANT:
        yield missing((*path, "tenant"), f"must be a UUID and may not exceed a length of {LONGEST_TENANT} characters")


def _has_port(address: str) -> bool:
    host, colon, _ = address.rpartition(":")
    return bool(colon) and (":" not in host or (host.startswith("[") and host.endswith("]")))


def azure_disk(fields: Fields, path: Path) -> Iterator[Issue]:
    """The address of a disk fits its kind."""
    address, kind = text(fields, "diskURI"), text(fields, "kind") or "Shared"
    if kind == "Managed" and not address.startswith("/subscriptions/"):
        yield unsupported((*path, "diskURI"), address, (MANAGED_DISK,))
    elif kind in ("Shared", "Dedicated") and not address.startswith("https://"):
        yield unsupported((*path, "diskURI"), address, (BLOB_DISK,))


def flex(fields: Fields, path: Path) -> Iterator[Issue]:
    """The options of a Flex volume do not use the names of Kubernetes."""
    for key in part(fields, "options"):
        if f".{str(key).partition('/')[0].lower()}".endswith(RESERVED):
            yield invalid((*path, "options", key), key, "kubernetes.io and k8s.io namespaces are reserved")


def claim_metadata(fields: Fields, path: Path) -> Iterator[Issue]:
    """The claim of an ephemeral volume has labels and annotations only."""
    for field, value in part(fields, "metadata").items():
        if field not in CLAIM_METADATA and value not in (None, "", [], {}) and (value != 0 or field == "deletionGracePeriodSeconds"):
            yield forbidden((*path, "metadata", field), "cannot be set")


def claim_spec(fields: Fields, path: Path) -> Iterator[Issue]:
    """What a claim is made from is said once, and an access mode that excludes others is alone."""
    for field in ("dataSource", "dataSourceRef"):
        source = fields.get(field)
        if isinstance(source, Mapping) and not text(source, "apiGroup") and source.get("kind") != "PersistentVolumeClaim":
            message = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            yield invalid((*path, field), source.get("kind"), message)
    source, reference = fields.get("dataSource"), fields.get("dataSourceRef")
    if isinstance(source, Mapping) and isinstance(reference, Mapping):
        if text(reference, "namespace"):
            yield invalid((*path, "dataSource"), source, "may not be specified when dataSourceRef.namespace is specified")
        elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
            yield invalid((*path, "dataSource"), source, "must match dataSourceRef")
    modes = fields.get("accessModes")
    if isinstance(modes, list | tuple) and "ReadWriteOncePod" in modes and any(mode != "ReadWriteOncePod" for mode in modes):
        yield forbidden((*path, "accessModes"), "may not use ReadWriteOncePod with other access modes")


def uses(spec: Fields, path: Path, containers: Sequence[Placed]) -> Iterator[Issue]:
    """Containers mount volumes that the pod has, use claims as devices, and take variables from empty directories."""
    volumes = {name: volume for _, volume in entries(spec, "volumes") if (name := text(volume, "name"))}
    suggestions = Suggestions(SUGGESTED_IN_POD)
    for placed in containers:
        privileged = part(placed.fields, "securityContext").get("privileged") is True
        for number, mount in entries(placed.fields, "volumeMounts"):
            at = (*placed.path, "volumeMounts", number)
            yield from _known(mount, "name", (*at, "name"), volumes, suggestions)
            if mount.get("mountPropagation") == "Bidirectional" and not privileged:
                message = "Bidirectional mount propagation is available only to privileged containers"
                yield forbidden((*at, "mountPropagation"), message)
        for number, device in entries(placed.fields, "volumeDevices"):
            at = (*placed.path, "volumeDevices", number, "name")
            yield from _known(device, "name", at, volumes, suggestions)
            source = volumes.get(text(device, "name"))
            if source is not None and source.get("persistentVolumeClaim") is None and source.get("ephemeral") is None:
                message = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
                yield invalid(at, device["name"], message)
        for number, variable in entries(placed.fields, "env"):
            if reference := part(variable, "valueFrom", "fileKeyRef"):
                at = (*placed.path, "env", number, "valueFrom", "fileKeyRef", "volumeName")
                yield from _from_file(reference, at, volumes, suggestions)


def _known(holder: Fields, field: str, path: Path, volumes: Mapping[str, Fields], suggestions: Suggestions) -> Iterator[Issue]:
    if (name := text(holder, field)) and name not in volumes:
        yield fault(path, ErrorType.NOT_FOUND, f"the pod has no volume of this name{suggestions.instead([name], volumes)}", name)


def _from_file(reference: Fields, path: Path, volumes: Mapping[str, Fields], suggestions: Suggestions) -> Iterator[Issue]:
    yield from _known(reference, "volumeName", path, volumes, suggestions)
    source = volumes.get(text(reference, "volumeName"))
    if source is not None and any(value is not None for key, value in source.items() if key not in ("name", "emptyDir")):
        yield invalid(path, reference["volumeName"], "referenced volume must be of type emptyDir")
