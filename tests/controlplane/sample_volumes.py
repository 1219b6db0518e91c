"""A sample pod with volumes of every kind."""

from typing import Any, Final

Spec = dict[str, Any]

IMAGE: Final = "registry.test/model:1"
SELECTOR: Final[Spec] = {
    "matchLabels": {"app": "model"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "DoesNotExist"},
    ],
}
ITEMS: Final = [{"key": "a", "path": "dir/a", "mode": 256}]
VOLUMES: Final[Spec] = {
    "serviceAccountName": "model",
    "volumes": [
        {"name": "config", "configMap": {"name": "settings", "optional": True, "defaultMode": 256, "items": ITEMS}},
        {"name": "secret", "secret": {"secretName": "token", "optional": True, "defaultMode": 256, "items": ITEMS}},
        {
            "name": "downward",
            "downwardAPI": {
                "defaultMode": 256,
                "items": [
                    {"path": "labels", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}, "mode": 256},
                    {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}},
                ],
            },
        },
        {
            "name": "projected",
            "projected": {
                "defaultMode": 256,
                "sources": [
                    {"secret": {"name": "token", "optional": True, "items": [{"key": "a", "path": "secret/a", "mode": 256}]}},
                    {"configMap": {"name": "settings", "optional": True, "items": [{"key": "a", "path": "config/a"}]}},
                    {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                    {"serviceAccountToken": {"audience": "vault", "expirationSeconds": 7200, "path": "token"}},
                    {"clusterTrustBundle": {"name": "example.com:signer:roots", "optional": True, "path": "roots.pem"}},
                    {"clusterTrustBundle": {"signerName": "example.com/signer", "labelSelector": SELECTOR, "path": "signer.pem"}},
                ],
            },
        },
        {"name": "scratch", "emptyDir": {"medium": "", "sizeLimit": "1Gi"}},
        {"name": "host", "hostPath": {"path": "/data", "type": "Directory"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "weights", "readOnly": True}},
        {
            "name": "ephemeral",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
                        "storageClassName": "fast",
                        "volumeMode": "Block",
                        "selector": SELECTOR,
                        "volumeAttributesClassName": "gold",
                    },
                }
            },
        },
        {
            "name": "restored",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadOnlyMany"],
                        "resources": {"requests": {"storage": "1Gi"}},
                        "volumeName": "weights",
                        "dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "before"},
                        "dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "before"},
                    }
                }
            },
        },
        {"name": "image", "image": {"reference": "registry.test/weights:1", "pullPolicy": "Always"}},
        {"name": "newest", "image": {"reference": "registry.test/weights:latest", "pullPolicy": "Never"}},
        {
            "name": "csi",
            "csi": {
                "driver": "csi.example.com",
                "fsType": "ext4",
                "readOnly": True,
                "volumeAttributes": {"a": "b"},
                "nodePublishSecretRef": {"name": "token"},
            },
        },
        {"name": "nfs", "nfs": {"server": "10.0.0.1", "path": "/export", "readOnly": True}},
        {
            "name": "iscsi",
            "iscsi": {
                "targetPortal": "10.0.0.1:3260",
                "iqn": "iqn.2001-04.com.example:storage",
                "lun": 1,
                "iscsiInterface": "eth",
                "fsType": "ext4",
                "readOnly": True,
                "portals": ["10.0.0.2:3260"],
                "chapAuthDiscovery": True,
                "chapAuthSession": True,
                "secretRef": {"name": "token"},
                "initiatorName": "iqn.2001-04.com.example:client",
            },
        },
        {"name": "fc", "fc": {"targetWWNs": ["500a0982991b8dc5"], "lun": 2, "fsType": "ext4", "readOnly": True}},
        {"name": "wwids", "fc": {"wwids": ["3600508b400105e210000900000490000"]}},
        {
            "name": "rbd",
            "rbd": {
                "monitors": ["10.0.0.1"],
                "image": "i",
                "pool": "p",
                "user": "u",
                "keyring": "/etc/k",
                "fsType": "ext4",
                "readOnly": True,
                "secretRef": {"name": "token"},
            },
        },
        {
            "name": "cephfs",
            "cephfs": {
                "monitors": ["10.0.0.1"],
                "path": "/a",
                "user": "u",
                "secretFile": "/etc/s",
                "secretRef": {"name": "token"},
                "readOnly": True,
            },
        },
        {
            "name": "flex",
            "flexVolume": {"driver": "e/d", "fsType": "ext4", "readOnly": True, "options": {"a": "b"}, "secretRef": {"name": "s"}},
        },
        {"name": "gce", "gcePersistentDisk": {"pdName": "disk", "fsType": "ext4", "partition": 1, "readOnly": True}},
        {"name": "aws", "awsElasticBlockStore": {"volumeID": "vol-1", "fsType": "ext4", "partition": 1, "readOnly": True}},
        {
            "name": "azure",
            "azureDisk": {
                "diskName": "d",
                "diskURI": "/subscriptions/a/disk",
                "cachingMode": "None",
                "fsType": "ext4",
                "readOnly": True,
                "kind": "Managed",
            },
        },
        {
            "name": "azureblob",
            "azureDisk": {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/c/d.vhd", "kind": "Dedicated"},
        },
        {"name": "azurefile", "azureFile": {"secretName": "s", "shareName": "f", "readOnly": True}},
        {"name": "cinder", "cinder": {"volumeID": "v", "fsType": "ext4", "readOnly": True, "secretRef": {"name": "s"}}},
        {"name": "glusterfs", "glusterfs": {"endpoints": "e", "path": "p", "readOnly": True}},
        {
            "name": "quobyte",
            "quobyte": {"registry": "10.0.0.1:7861", "volume": "v", "readOnly": True, "user": "u", "group": "g", "tenant": "t"},
        },
        {"name": "vsphere", "vsphereVolume": {"volumePath": "[d] v", "fsType": "ext4", "storagePolicyName": "p", "storagePolicyID": "i"}},
        {"name": "photon", "photonPersistentDisk": {"pdID": "p", "fsType": "ext4"}},
        {"name": "portworx", "portworxVolume": {"volumeID": "v", "fsType": "ext4", "readOnly": True}},
        {
            "name": "scaleio",
            "scaleIO": {
                "gateway": "https://10.0.0.1",
                "system": "s",
                "secretRef": {"name": "s"},
                "sslEnabled": True,
                "protectionDomain": "d",
                "storagePool": "p",
                "storageMode": "ThickProvisioned",
                "volumeName": "v",
                "fsType": "ext4",
                "readOnly": True,
            },
        },
        {
            "name": "storageos",
            "storageos": {"volumeName": "v", "volumeNamespace": "n", "fsType": "ext4", "readOnly": True, "secretRef": {"name": "s"}},
        },
        {"name": "flocker", "flocker": {"datasetName": "d"}},
        {"name": "flockerid", "flocker": {"datasetUUID": "u"}},
        {"name": "git", "gitRepo": {"repository": "https://example.com/r.git", "revision": "main", "directory": "r"}},
    ],
    "initContainers": [{"name": "format", "image": IMAGE, "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}],
    "containers": [
        {
            "name": "main",
            "image": IMAGE,
            "volumeMounts": [
                {"name": "config", "mountPath": "/config", "readOnly": True, "subPath": "a", "mountPropagation": "HostToContainer"},
                {"name": "secret", "mountPath": "/secret", "readOnly": True, "recursiveReadOnly": "IfPossible"},
                {"name": "scratch", "mountPath": "/scratch", "subPathExpr": "$(POD)", "mountPropagation": "None"},
            ],
            "volumeDevices": [{"name": "ephemeral", "devicePath": "/dev/xvda"}],
            "env": [
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "MODEL", "valueFrom": {"fileKeyRef": {"volumeName": "scratch", "path": "env", "key": "MODEL", "optional": True}}},
            ],
        }
    ],
}
"""Volumes of every kind, mounts, devices."""
