{{/* Values that have no effect here, a line for each that is given. Computed by `make chart`. */}}
{{- define "grove-engine.notices" -}}
{{- if eq .Values.mode "cronjob" }}
{{- if ne (toJson .Values.replicaCount) `2` }}
replicaCount: a CronJob runs one pod at a time
{{- end }}
{{- if ne (toJson .Values.topologySpreadConstraints) `[]` }}
topologySpreadConstraints: a CronJob runs one pod at a time
{{- end }}
{{- if ne (toJson .Values.podDisruptionBudget) `{"enabled":true,"maxUnavailable":1}` }}
podDisruptionBudget: a CronJob runs one pod at a time
{{- end }}
{{- end }}
{{- if eq .Values.mode "cronjob" }}
{{- if ne (toJson .Values.ui) `false` }}
ui: a CronJob has no server
{{- end }}
{{- if ne (toJson .Values.service) `{"annotations":{},"labels":{},"type":"ClusterIP"}` }}
service: a CronJob has no server
{{- end }}
{{- if ne (toJson .Values.config.server) `{"healthProbes":{"port":9444},"metrics":{"port":9445},"webhooks":{"certProvisionMode":"auto","port":9443,"secretName":"grove-webhook-server-cert","serverCertDir":"/etc/grove-operator/webhook-certs"}}` }}
config.server: a CronJob has no server
{{- end }}
{{- if ne (toJson .Values.networkPolicy) `{"enabled":false,"metricsFrom":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"monitoring"}}}]}` }}
networkPolicy: a CronJob has no server
{{- end }}
{{- end }}
{{- if eq .Values.mode "cronjob" }}
{{- if ne (toJson .Values.metrics.serviceMonitor) `{"enabled":false,"interval":"30s","labels":{}}` }}
metrics.serviceMonitor: a CronJob has no metrics
{{- end }}
{{- if ne (toJson .Values.serviceMonitor) `null` }}
serviceMonitor: a CronJob has no metrics
{{- end }}
{{- if ne (toJson .Values.metrics.prometheusRule) `{"enabled":false,"labels":{}}` }}
metrics.prometheusRule: a CronJob has no metrics
{{- end }}
{{- if ne (toJson .Values.dashboards) `{"enabled":false,"labels":{"grafana_dashboard":"1"}}` }}
dashboards: a CronJob has no metrics
{{- end }}
{{- end }}
{{- if eq .Values.mode "deployment" }}
{{- if ne (toJson .Values.cronJob) `{"schedule":"*/5 * * * *","timeout":"4m"}` }}
cronJob: mode is deployment
{{- end }}
{{- end }}
{{- if ne (include "grove-engine.admission" .) "webhooks" }}
{{- if ne (toJson .Values.webhooks) `{"authorizerWebhook":{"annotations":{},"labels":{}},"caBundle":"","clusterTopologyValidationWebhook":{"annotations":{},"labels":{}},"dynamoGraphDeploymentDefaultingWebhook":{"annotations":{},"labels":{}},"dynamoGraphDeploymentValidationWebhook":{"annotations":{},"labels":{}},"podCliqueSetDefaultingWebhook":{"annotations":{},"labels":{}},"podCliqueSetValidationWebhook":{"annotations":{},"labels":{}}}` }}
webhooks: webhooks are installed only with admission: webhooks
{{- end }}
{{- if ne (toJson .Values.webhookServerSecret) `{"enabled":true,"labels":{}}` }}
webhookServerSecret: webhooks are installed only with admission: webhooks
{{- end }}
{{- end }}
{{- if ne (include "grove-engine.admission" .) "policies" }}
{{- if ne (toJson .Values.mutatingPolicies) `false` }}
mutatingPolicies: policies are installed only with admission: policies
{{- end }}
{{- end }}
{{- if and (eq .Values.mode "deployment") (ne (include "grove-engine.admission" .) "webhooks") }}
{{- if ne (toJson .Values.config.server.webhooks) `{"certProvisionMode":"auto","port":9443,"secretName":"grove-webhook-server-cert","serverCertDir":"/etc/grove-operator/webhook-certs"}` }}
config.server.webhooks: webhooks are served only with admission: webhooks
{{- end }}
{{- end }}
{{- if include "grove-engine.isGrovesImage" . }}
image.repository, image.tag: {{ .Values.image.repository }} is Grove's operator, so {{ include "grove-engine.image" . }} runs
{{- end }}
{{- with include "grove-engine.grovesInitImage" . }}
deployment.env: {{ . }} is Grove's init container, so pods start with that of this release
{{- end }}
{{- if hasKey (default dict .Values.clusterRole) "name" }}
clusterRole.name: names of objects are fixed, because two engines in one cluster would disturb each other
{{- end }}
{{- if hasKey (default dict .Values.clusterRoleBinding) "name" }}
clusterRoleBinding.name: names of objects are fixed, because two engines in one cluster would disturb each other
{{- end }}
{{- if hasKey .Values "crdInstaller" }}
crdInstaller: the engine has no right to change definitions; they are applied by hand, as said below
{{- end }}
{{- if hasKey (default dict .Values.leaseRole) "name" }}
leaseRole.name: names of objects are fixed, because two engines in one cluster would disturb each other
{{- end }}
{{- if hasKey (default dict .Values.leaseRoleBinding) "name" }}
leaseRoleBinding.name: names of objects are fixed, because two engines in one cluster would disturb each other
{{- end }}
{{- if hasKey (default dict .Values.metrics.serviceMonitor) "name" }}
metrics.serviceMonitor.name: names of objects are fixed, because two engines in one cluster would disturb each other
{{- end }}
{{- if hasKey (default dict .Values.service) "name" }}
service.name: names of objects are fixed, because two engines in one cluster would disturb each other
{{- end }}
{{- if hasKey (default dict .Values.service) "port" }}
service.port: the Service has the ports of config.server
{{- end }}
{{- if hasKey (default dict .Values.serviceAccount) "automount" }}
serviceAccount.automount: the token is always a projected one
{{- end }}
{{- if hasKey (default dict .Values.serviceAccount) "name" }}
serviceAccount.name: names of objects are fixed, because two engines in one cluster would disturb each other
{{- end }}
{{- if hasKey (default dict .Values.serviceMonitor) "name" }}
serviceMonitor.name: names of objects are fixed, because two engines in one cluster would disturb each other
{{- end }}
{{- end }}
