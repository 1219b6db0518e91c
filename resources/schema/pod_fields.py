"""Pod fields: the form and the range that an API server asks of single fields of pod specs, by type and field.

Types, words and most required fields are in the recorded types; what several fields must satisfy together is in the other tables.
"""

from collections.abc import Mapping
from typing import Final

from resources.schema.formats import (
    bundle_faults,
    header_faults,
    ip_faults,
    key_faults,
    label_faults,
    port_name_faults,
    qualified_faults,
    relaxed_variable_faults,
    search_faults,
    signer_faults,
    subdomain_faults,
    sysctl_faults,
    value_faults,
)
from resources.schema.issues import Issue, Path
from resources.schema.pod_checks import (
    Check,
    all_of,
    at_least,
    at_most,
    between,
    descending,
    each,
    form,
    invalid,
    keys,
    local,
    no_steps_back,
    one_of,
    unique,
    values,
)

LARGEST: Final = 2**31 - 1
PORT: Final = between(1, 65535)
OPTIONAL_PORT: Final = between(0, 65535, "must be between 1 and 65535, inclusive")
LONGEST_DRIVER: Final = 63
MODE: Final = between(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")
ID: Final = between(0, LARGEST)
"""The id of a user or group."""
WEIGHT: Final = between(1, 100, "must be in the range 1-100")
PARTITION: Final = between(0, 255, "must be between 1 and 255, inclusive")
LABEL: Final = form(label_faults)
SUBDOMAIN: Final = form(subdomain_faults)
SET_SUBDOMAIN: Final = form(subdomain_faults, may_be_empty=False)
QUALIFIED: Final = form(qualified_faults, may_be_empty=False)
LABELS: Final = all_of(keys(qualified_faults), values(form(value_faults)))
KEY: Final = form(key_faults)
NOT_NEGATIVE: Final = at_least(0)
POSITIVE: Final = at_least(1, "must be greater than zero")
ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
MOST_NAMESERVERS: Final = 3
MOST_SEARCHES: Final = 32
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "Container": ("image",),
    "ExecAction": ("command",),
    "PodDNSConfigOption": ("name",),
    "ConfigMapEnvSource": ("name",),
    "SecretEnvSource": ("name",),
    "ConfigMapVolumeSource": ("name",),
    "SecretVolumeSource": ("secretName",),
    "ConfigMapProjection": ("name",),
    "SecretProjection": ("name",),
    "EphemeralVolumeSource": ("volumeClaimTemplate",),
    "ImageVolumeSource": ("reference",),
    "PersistentVolumeClaimSpec": ("accessModes",),
    "ContainerRestartRule": ("exitCodes",),
    "ScaleIOVolumeSource": ("volumeName",),
    "StorageOSVolumeSource": ("volumeName",),
    "ConfigMapKeySelector": ("name",),
    "SecretKeySelector": ("name",),
}
"""Type -> fields that OpenAPI calls optional, and without which an API server refuses the pod."""
MAY_BE_EMPTY: Final = frozenset({("HTTPHeader", "value"), ("Sysctl", "value")})
"""Required texts that may be empty."""


def port_or_name(value: object, path: Path) -> tuple[Issue, ...]:
    """What is wrong with the number or the name of a port."""
    if isinstance(value, str):
        return tuple(invalid(path, value, message) for message in port_name_faults(value))
    return tuple(PORT(value, path))


def driver_faults(name: str) -> list[str]:
    """What is wrong with the name of a CSI driver."""
    return subdomain_faults(name.lower()) if len(name) <= LONGEST_DRIVER else [f"must be no more than {LONGEST_DRIVER} characters"]


FIELDS: Final[Mapping[str, Mapping[str, Check]]] = {
    "PodSpec": {
        "activeDeadlineSeconds": between(1, LARGEST),
        "hostname": LABEL,
        "subdomain": LABEL,
        "hostnameOverride": SET_SUBDOMAIN,
        "serviceAccountName": SUBDOMAIN,
        "priorityClassName": SUBDOMAIN,
        "runtimeClassName": SET_SUBDOMAIN,
        "nodeName": SUBDOMAIN,
        "nodeSelector": LABELS,
        "preemptionPolicy": one_of("Never", "PreemptLowerPriority"),
        "schedulingGates": unique("name", at_entry=True),
        "volumes": unique("name"),
        "resourceClaims": unique("name"),
    },
    "PodSchedulingGate": {"name": QUALIFIED},
    "PodReadinessGate": {"conditionType": QUALIFIED},
    "PodResourceClaim": {"name": LABEL, "resourceClaimName": SET_SUBDOMAIN, "resourceClaimTemplateName": SET_SUBDOMAIN},
    "PodOS": {"name": one_of("linux", "windows")},
    "PodDNSConfig": {
        "nameservers": all_of(at_most(MOST_NAMESERVERS, "nameservers"), each(form(ip_faults, may_be_empty=False))),
        "searches": all_of(at_most(MOST_SEARCHES, "search paths"), each(form(search_faults, may_be_empty=False))),
    },
    "HostAlias": {"ip": form(ip_faults, may_be_empty=False), "hostnames": each(SET_SUBDOMAIN)},
    "Container": {
        "name": LABEL,
        "ports": unique("name"),
        "volumeMounts": unique("mountPath", "must be unique"),
        "volumeDevices": all_of(unique("name", "must be unique"), unique("devicePath", "must be unique")),
        "resizePolicy": unique("resourceName", at_entry=True),
        "restartPolicy": one_of("Always", "Never", "OnFailure"),
    },
    "ContainerPort": {
        "containerPort": PORT,
        "hostPort": OPTIONAL_PORT,
        "name": form(port_name_faults),
    },
    "ContainerResizePolicy": {"resourceName": one_of("cpu", "memory"), "restartPolicy": one_of("NotRequired", "RestartContainer")},
    "ContainerRestartRule": {"action": one_of("Restart", "RestartAllContainers")},
    "ContainerRestartRuleOnExitCodes": {"operator": one_of("In", "NotIn"), "values": at_most(255, "exit codes")},
    "EnvVar": {"name": form(relaxed_variable_faults)},
    "EnvFromSource": {"prefix": form(relaxed_variable_faults)},
    "ConfigMapEnvSource": {"name": SUBDOMAIN},
    "SecretEnvSource": {"name": SUBDOMAIN},
    "ConfigMapKeySelector": {"name": SET_SUBDOMAIN, "key": KEY},
    "SecretKeySelector": {"name": SET_SUBDOMAIN, "key": KEY},
    "FileKeySelector": {"key": form(relaxed_variable_faults), "volumeName": LABEL, "path": form(no_steps_back)},
    "HTTPGetAction": {"port": port_or_name},
    "TCPSocketAction": {"port": port_or_name},
    "GRPCAction": {"port": PORT},
    "HTTPHeader": {"name": form(header_faults, may_be_empty=False)},
    "Probe": {
        "initialDelaySeconds": NOT_NEGATIVE,
        "timeoutSeconds": NOT_NEGATIVE,
        "periodSeconds": NOT_NEGATIVE,
        "successThreshold": NOT_NEGATIVE,
        "failureThreshold": NOT_NEGATIVE,
        "terminationGracePeriodSeconds": at_least(1, "must be greater than 0"),
    },
    "VolumeMount": {
        "subPath": form(descending),
        "subPathExpr": form(descending),
        "mountPropagation": one_of("Bidirectional", "HostToContainer", "None"),
        "recursiveReadOnly": one_of("Disabled", "Enabled", "IfPossible"),
    },
    "VolumeDevice": {"devicePath": form(no_steps_back)},
    "Volume": {"name": LABEL},
    "ConfigMapVolumeSource": {"defaultMode": MODE},
    "SecretVolumeSource": {"defaultMode": MODE},
    "DownwardAPIVolumeSource": {"defaultMode": MODE},
    "ProjectedVolumeSource": {"defaultMode": MODE},
    "KeyToPath": {"mode": MODE, "path": form(local)},
    "DownwardAPIVolumeFile": {"mode": MODE, "path": form(local)},
    "ServiceAccountTokenProjection": {
        "path": form(local),
        "expirationSeconds": all_of(
            at_least(600, "may not specify a duration less than 10 minutes"),
            between(-(2**63), 2**32, "may not specify a duration larger than 2^32 seconds"),
        ),
    },
    "ClusterTrustBundleProjection": {
        "name": form(bundle_faults, may_be_empty=False),
        "signerName": form(signer_faults, may_be_empty=False),
        "path": form(local),
    },
    "PodCertificateProjection": {
        "signerName": form(signer_faults),
        "keyType": one_of("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", ""),
        "maxExpirationSeconds": between(3600, 91 * 24 * 3600),
        "userAnnotations": keys(lambda key: qualified_faults(key.lower())),
        "credentialBundlePath": form(local),
        "keyPath": form(local),
        "certificateChainPath": form(local),
    },
    "HostPathVolumeSource": {"path": form(no_steps_back)},
    "CSIVolumeSource": {"driver": form(driver_faults)},
    "AWSElasticBlockStoreVolumeSource": {"partition": PARTITION},
    "GCEPersistentDiskVolumeSource": {"partition": PARTITION},
    "AzureDiskVolumeSource": {"cachingMode": one_of("None", "ReadOnly", "ReadWrite"), "kind": one_of("Dedicated", "Managed", "Shared")},
    "ISCSIVolumeSource": {"lun": between(0, 255)},
    "GitRepoVolumeSource": {"directory": form(descending)},
    "StorageOSVolumeSource": {"volumeName": LABEL, "volumeNamespace": LABEL},
    "NFSVolumeSource": {"path": form(lambda path: [] if path.startswith("/") else ["must be an absolute path"])},
    "PersistentVolumeClaimSpec": {
        "accessModes": each(one_of(*ACCESS_MODES)),
        "storageClassName": SUBDOMAIN,
        "volumeAttributesClassName": SUBDOMAIN,
        "volumeMode": one_of("Block", "Filesystem"),
    },
    "TypedLocalObjectReference": {"apiGroup": SUBDOMAIN},
    "TypedObjectReference": {"apiGroup": SUBDOMAIN, "namespace": LABEL},
    "ObjectMeta": {"labels": LABELS, "annotations": keys(lambda key: qualified_faults(key.lower()))},
    "LabelSelector": {"matchLabels": LABELS},
    "LabelSelectorRequirement": {
        "key": QUALIFIED,
        "operator": one_of("In", "NotIn", "Exists", "DoesNotExist"),
        "values": each(form(value_faults)),
    },
    "PodAffinityTerm": {
        "topologyKey": QUALIFIED,
        "namespaces": each(form(label_faults, may_be_empty=False)),
        "matchLabelKeys": each(QUALIFIED),
        "mismatchLabelKeys": each(QUALIFIED),
    },
    "WeightedPodAffinityTerm": {"weight": WEIGHT},
    "PreferredSchedulingTerm": {"weight": WEIGHT},
    "TopologySpreadConstraint": {
        "maxSkew": POSITIVE,
        "minDomains": POSITIVE,
        "matchLabelKeys": each(QUALIFIED),
        "nodeAffinityPolicy": one_of("Honor", "Ignore"),
        "nodeTaintsPolicy": one_of("Honor", "Ignore"),
    },
    "Toleration": {"key": form(qualified_faults)},
    "ResourceClaim": {"request": LABEL},
    "PodSecurityContext": {
        "runAsUser": ID,
        "runAsGroup": ID,
        "fsGroup": ID,
        "supplementalGroups": each(ID),
        "fsGroupChangePolicy": one_of("Always", "OnRootMismatch"),
        "supplementalGroupsPolicy": one_of("Merge", "Strict"),
        "seLinuxChangePolicy": one_of("MountOption", "Recursive"),
        "sysctls": unique("name"),
    },
    "SecurityContext": {"runAsUser": ID, "runAsGroup": ID, "procMount": one_of("Default", "Unmasked")},
    "Sysctl": {"name": form(sysctl_faults)},
    "WindowsSecurityContextOptions": {"gmsaCredentialSpecName": SET_SUBDOMAIN},
}
"""Type -> field -> its check. Fields that are absent are not checked."""
