{{- /* Computed from the fields of the configuration by `make chart`. Do not edit. */}}

{{/* The fields that an installation publishes, with their defaults. */}}
{{- define "grove-engine.publishedDefaults" -}}
{
  "dynamo": {
    "enabled": true,
    "etcdAddress": "",
    "ingress": {
      "controllerClassName": "",
      "hostSuffix": "local"
    },
    "modelExpressURL": "",
    "mpiRun": {
      "createSshSecret": false,
      "secretName": "mpirun-ssh-key-{component}"
    },
    "natsAddress": "",
    "prometheusEndpoint": "",
    "terminationDelay": "15m"
  },
  "initContainer": {
    "image": "grove-initc:0.1.0"
  },
  "leaderElection": {
    "enabled": true,
    "leaseDuration": "15s",
    "renewDeadline": "10s",
    "resourceName": "grove-operator-leader-election",
    "resourceNamespace": "default",
    "retryPeriod": "2s",
    "shards": 1
  },
  "limits": {
    "namespace": {
      "bytes": 32000000,
      "cliques": 10000,
      "pods": 100000,
      "replicas": 10000
    },
    "set": {
      "bytes": 1500000,
      "cliques": 10000,
      "pods": 100000,
      "replicas": 10000
    }
  },
  "namespaces": [],
  "network": {
    "autoMNNVLEnabled": false,
    "domainDrainTimeout": "5m0s"
  },
  "scheduler": {
    "defaultProfileName": "default-scheduler",
    "gangScheduling": "Auto",
    "profiles": []
  },
  "topologyAwareScheduling": {
    "enabled": false
  }
}
{{- end }}
