{{- /* Computed from the tables of kinds by `make chart`. Do not edit. */}}

{{/* What `engine run` needs in the whole cluster. */}}
{{- define "grove-engine.runRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $gangs := include "grove-engine.gangs" . }}
{{- $graphs := include "grove-engine.graphs" . }}
{{- $webhooks := eq (include "grove-engine.admission" .) "webhooks" }}
{{- $certificate := include "grove-engine.makesCertificate" . }}
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods, secrets, serviceaccounts, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list]
- apiGroups: ["autoscaling"]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames: [grove-operator-leader-election]
  verbs: [get]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings]
  verbs: [get, list, watch]
- apiGroups: ["grove.io"]
  resources: [podcliques, podcliquescalinggroups]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podgangmaps]
  verbs: [get, list, watch, delete]
- apiGroups: ["grove.io"]
  resources: [podcliquesets]
  verbs: [get, list, watch, patch]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings/status, podcliques/status, podcliquescalinggroups/status, podcliquesets/status]
  verbs: [patch]
- apiGroups: ["grove.io"]
  resources: [podcliques/finalizers, podcliquescalinggroups/finalizers, podcliquesets/finalizers]
  verbs: [update]
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [rolebindings, roles]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaims]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaimtemplates]
  verbs: [list, watch]
- apiGroups: ["resource.nvidia.com"]
  resources: [computedomains]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs/status]
  verbs: [patch]
{{- if $certificate }}
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [podcliqueset-defaulting-webhook]
  verbs: [get, patch]
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingwebhookconfigurations]
  resourceNames: [authorizer-webhook, clustertopology-validating-webhook, podcliqueset-validating-webhook]
  verbs: [get, patch]
{{- end }}
{{- if $gangs }}
- apiGroups: ["scheduling.k8s.io"]
  resources: [compositepodgroups, podgroups, workloads]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if $graphs }}
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, delete]
- apiGroups: ["apps"]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podcliquesets]
  verbs: [create, delete]
- apiGroups: ["grove.io"]
  resources: [podcliques/scale, podcliquescalinggroups/scale]
  verbs: [patch]
- apiGroups: ["leaderworkerset.x-k8s.io"]
  resources: [leaderworkersets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["networking.k8s.io"]
  resources: [ingresses]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeploymentscalingadapters]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments]
  verbs: [get, list, watch, patch]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments/status, dynamographdeploymentscalingadapters/status]
  verbs: [patch]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments/finalizers]
  verbs: [update]
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [list, watch]
{{- end }}
{{- if $kai }}
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings/finalizers]
  verbs: [update]
- apiGroups: ["kai.scheduler"]
  resources: [topologies]
  verbs: [get, list, watch, create, delete]
{{- end }}
{{- if $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs: [list, watch]
{{- end }}
{{- if $webhooks }}
- apiGroups: ["authentication.k8s.io"]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: ["authorization.k8s.io"]
  resources: [subjectaccessreviews]
  verbs: [create]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaimtemplates]
  verbs: [get]
{{- end }}
{{- if and $certificate $graphs }}
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [dynamographdeployment-defaulting-webhook]
  verbs: [get, patch]
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingwebhookconfigurations]
  resourceNames: [dynamographdeployment-validating-webhook]
  verbs: [get, patch]
- apiGroups: ["apiextensions.k8s.io"]
  resources: [customresourcedefinitions]
  resourceNames: [dynamographdeployments.nvidia.com]
  verbs: [get, patch]
{{- end }}
{{- if and $volcano $webhooks }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs: [get]
{{- end }}
{{- if or $graphs $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if or $kai (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if or (and $graphs $kai) (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [get]
{{- end }}
{{- if or $gangs $kai $volcano (and $graphs $unlisted) }}
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs/finalizers]
  verbs: [update]
{{- end }}
{{- end }}

{{/* What `engine run` needs in each namespace, if only some are managed. */}}
{{- define "grove-engine.runNamespaceRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $gangs := include "grove-engine.gangs" . }}
{{- $graphs := include "grove-engine.graphs" . }}
{{- $webhooks := eq (include "grove-engine.admission" .) "webhooks" }}
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods, secrets, serviceaccounts, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list]
- apiGroups: ["autoscaling"]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podcliques, podcliquescalinggroups]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podgangmaps]
  verbs: [get, list, watch, delete]
- apiGroups: ["grove.io"]
  resources: [podcliquesets]
  verbs: [get, list, watch, patch]
- apiGroups: ["grove.io"]
  resources: [podcliques/status, podcliquescalinggroups/status, podcliquesets/status]
  verbs: [patch]
- apiGroups: ["grove.io"]
  resources: [podcliques/finalizers, podcliquescalinggroups/finalizers, podcliquesets/finalizers]
  verbs: [update]
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [rolebindings, roles]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaims]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaimtemplates]
  verbs: [list, watch]
- apiGroups: ["resource.nvidia.com"]
  resources: [computedomains]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs/status]
  verbs: [patch]
{{- if $gangs }}
- apiGroups: ["scheduling.k8s.io"]
  resources: [compositepodgroups, podgroups, workloads]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if $graphs }}
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, delete]
- apiGroups: ["apps"]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podcliquesets]
  verbs: [create, delete]
- apiGroups: ["grove.io"]
  resources: [podcliques/scale, podcliquescalinggroups/scale]
  verbs: [patch]
- apiGroups: ["leaderworkerset.x-k8s.io"]
  resources: [leaderworkersets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["networking.k8s.io"]
  resources: [ingresses]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeploymentscalingadapters]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments]
  verbs: [get, list, watch, patch]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments/status, dynamographdeploymentscalingadapters/status]
  verbs: [patch]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments/finalizers]
  verbs: [update]
{{- end }}
{{- if $webhooks }}
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaimtemplates]
  verbs: [get]
{{- end }}
{{- if or $graphs $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if or $kai (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if or $gangs $kai $volcano (and $graphs $unlisted) }}
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs/finalizers]
  verbs: [update]
{{- end }}
{{- end }}

{{/* What `engine run` needs in the whole cluster, if only some namespaces are managed. */}}
{{- define "grove-engine.runClusterRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $graphs := include "grove-engine.graphs" . }}
{{- $webhooks := eq (include "grove-engine.admission" .) "webhooks" }}
{{- $certificate := include "grove-engine.makesCertificate" . }}
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames: [grove-operator-leader-election]
  verbs: [get]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings]
  verbs: [get, list, watch]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings/status]
  verbs: [patch]
{{- if $certificate }}
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [podcliqueset-defaulting-webhook]
  verbs: [get, patch]
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingwebhookconfigurations]
  resourceNames: [authorizer-webhook, clustertopology-validating-webhook, podcliqueset-validating-webhook]
  verbs: [get, patch]
{{- end }}
{{- if $graphs }}
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [list, watch]
{{- end }}
{{- if $kai }}
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings/finalizers]
  verbs: [update]
- apiGroups: ["kai.scheduler"]
  resources: [topologies]
  verbs: [get, list, watch, create, delete]
{{- end }}
{{- if $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs: [list, watch]
{{- end }}
{{- if $webhooks }}
- apiGroups: ["authentication.k8s.io"]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: ["authorization.k8s.io"]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- if and $certificate $graphs }}
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [dynamographdeployment-defaulting-webhook]
  verbs: [get, patch]
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingwebhookconfigurations]
  resourceNames: [dynamographdeployment-validating-webhook]
  verbs: [get, patch]
- apiGroups: ["apiextensions.k8s.io"]
  resources: [customresourcedefinitions]
  resourceNames: [dynamographdeployments.nvidia.com]
  verbs: [get, patch]
{{- end }}
{{- if and $volcano $webhooks }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs: [get]
{{- end }}
{{- if or (and $graphs $kai) (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [get]
{{- end }}
{{- end }}

{{/* What `engine sync` needs in the whole cluster. */}}
{{- define "grove-engine.syncRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $gangs := include "grove-engine.gangs" . }}
{{- $graphs := include "grove-engine.graphs" . }}
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [""]
  resources: [secrets, serviceaccounts, services]
  verbs: [get, list, create, patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [limitranges, nodes, persistentvolumeclaims, resourcequotas]
  verbs: [list]
- apiGroups: ["autoscaling"]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames: [grove-operator-leader-election]
  verbs: [get]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings, podcliquesets]
  verbs: [get, list, create, patch]
- apiGroups: ["grove.io"]
  resources: [podcliques, podcliquescalinggroups]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podgangmaps]
  verbs: [list, delete]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings/status, podcliques/status, podcliquescalinggroups/status, podcliquesets/status]
  verbs: [patch]
- apiGroups: ["grove.io"]
  resources: [podcliques/finalizers, podcliquescalinggroups/finalizers, podcliquesets/finalizers]
  verbs: [update]
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [rolebindings, roles]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaims]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["resource.k8s.io"]
  resources: [deviceclasses, resourceclaimtemplates, resourceslices]
  verbs: [list]
- apiGroups: ["resource.nvidia.com"]
  resources: [computedomains]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs/status]
  verbs: [patch]
{{- if $gangs }}
- apiGroups: ["scheduling.k8s.io"]
  resources: [compositepodgroups, podgroups, workloads]
  verbs: [get, list, create, patch, delete]
{{- end }}
{{- if $graphs }}
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, create, delete]
- apiGroups: ["apps"]
  resources: [deployments]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podcliquesets]
  verbs: [delete]
- apiGroups: ["grove.io"]
  resources: [podcliques/scale, podcliquescalinggroups/scale]
  verbs: [patch]
- apiGroups: ["leaderworkerset.x-k8s.io"]
  resources: [leaderworkersets]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["networking.k8s.io"]
  resources: [ingresses]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments]
  verbs: [get, list, create, patch]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeploymentscalingadapters]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments/status, dynamographdeploymentscalingadapters/status]
  verbs: [patch]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments/finalizers]
  verbs: [update]
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [list]
{{- end }}
{{- if $kai }}
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings/finalizers]
  verbs: [update]
- apiGroups: ["kai.scheduler"]
  resources: [topologies]
  verbs: [get, list, create, delete]
{{- end }}
{{- if $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs: [list]
{{- end }}
{{- if or $graphs $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [podgroups]
  verbs: [get, list, create, patch, delete]
{{- end }}
{{- if or $kai (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [podgroups]
  verbs: [get, list, create, patch, delete]
{{- end }}
{{- if or (and $graphs $kai) (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [get]
{{- end }}
{{- if or $gangs $kai $volcano (and $graphs $unlisted) }}
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs/finalizers]
  verbs: [update]
{{- end }}
{{- end }}

{{/* What `engine sync` needs in each namespace, if only some are managed. */}}
{{- define "grove-engine.syncNamespaceRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $gangs := include "grove-engine.gangs" . }}
{{- $graphs := include "grove-engine.graphs" . }}
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [secrets, serviceaccounts, services]
  verbs: [get, list, create, patch, delete]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [limitranges, persistentvolumeclaims, resourcequotas]
  verbs: [list]
- apiGroups: ["autoscaling"]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podcliquesets]
  verbs: [get, list, create, patch]
- apiGroups: ["grove.io"]
  resources: [podcliques, podcliquescalinggroups]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podgangmaps]
  verbs: [list, delete]
- apiGroups: ["grove.io"]
  resources: [podcliques/status, podcliquescalinggroups/status, podcliquesets/status]
  verbs: [patch]
- apiGroups: ["grove.io"]
  resources: [podcliques/finalizers, podcliquescalinggroups/finalizers, podcliquesets/finalizers]
  verbs: [update]
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [rolebindings, roles]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaims]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaimtemplates]
  verbs: [list]
- apiGroups: ["resource.nvidia.com"]
  resources: [computedomains]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs/status]
  verbs: [patch]
{{- if $gangs }}
- apiGroups: ["scheduling.k8s.io"]
  resources: [compositepodgroups, podgroups, workloads]
  verbs: [get, list, create, patch, delete]
{{- end }}
{{- if $graphs }}
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, create, delete]
- apiGroups: ["apps"]
  resources: [deployments]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["grove.io"]
  resources: [podcliquesets]
  verbs: [delete]
- apiGroups: ["grove.io"]
  resources: [podcliques/scale, podcliquescalinggroups/scale]
  verbs: [patch]
- apiGroups: ["leaderworkerset.x-k8s.io"]
  resources: [leaderworkersets]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["networking.k8s.io"]
  resources: [ingresses]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments]
  verbs: [get, list, create, patch]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeploymentscalingadapters]
  verbs: [get, list, create, patch, delete]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments/status, dynamographdeploymentscalingadapters/status]
  verbs: [patch]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments/finalizers]
  verbs: [update]
{{- end }}
{{- if or $graphs $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [podgroups]
  verbs: [get, list, create, patch, delete]
{{- end }}
{{- if or $kai (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [podgroups]
  verbs: [get, list, create, patch, delete]
{{- end }}
{{- if or $gangs $kai $volcano (and $graphs $unlisted) }}
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs/finalizers]
  verbs: [update]
{{- end }}
{{- end }}

{{/* What `engine sync` needs in the whole cluster, if only some namespaces are managed. */}}
{{- define "grove-engine.syncClusterRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $graphs := include "grove-engine.graphs" . }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames: [grove-operator-leader-election]
  verbs: [get]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings]
  verbs: [get, list, create, patch]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings/status]
  verbs: [patch]
- apiGroups: ["resource.k8s.io"]
  resources: [deviceclasses, resourceslices]
  verbs: [list]
{{- if $graphs }}
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [list]
{{- end }}
{{- if $kai }}
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings/finalizers]
  verbs: [update]
- apiGroups: ["kai.scheduler"]
  resources: [topologies]
  verbs: [get, list, create, delete]
{{- end }}
{{- if $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs: [list]
{{- end }}
{{- if or (and $graphs $kai) (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [get]
{{- end }}
{{- end }}

{{/* What commands need that write nothing in the whole cluster. */}}
{{- define "grove-engine.readerRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $gangs := include "grove-engine.gangs" . }}
{{- $graphs := include "grove-engine.graphs" . }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [""]
  resources: [pods, serviceaccounts, services]
  verbs: [get, list]
- apiGroups: [""]
  resources: [events, limitranges, nodes, persistentvolumeclaims, resourcequotas]
  verbs: [list]
- apiGroups: ["apiextensions.k8s.io"]
  resources: [customresourcedefinitions]
  verbs: [get]
- apiGroups: ["apps"]
  resources: [daemonsets, deployments]
  verbs: [list]
- apiGroups: ["autoscaling"]
  resources: [horizontalpodautoscalers]
  verbs: [get, list]
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames: [grove-operator-leader-election]
  verbs: [get]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings, podcliques, podcliquescalinggroups, podcliquesets, podgangmaps]
  verbs: [get, list]
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [rolebindings, roles]
  verbs: [get, list]
- apiGroups: ["resource.k8s.io"]
  resources: [deviceclasses, resourceclaims, resourceclaimtemplates]
  verbs: [get, list]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceslices]
  verbs: [list]
- apiGroups: ["resource.nvidia.com"]
  resources: [computedomains]
  verbs: [get, list]
- apiGroups: ["resource.nvidia.com"]
  resources: [computedomaincliques]
  verbs: [list]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs]
  verbs: [get, list]
{{- if $gangs }}
- apiGroups: ["scheduling.k8s.io"]
  resources: [compositepodgroups, podgroups, workloads]
  verbs: [get, list]
{{- end }}
{{- if $graphs }}
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: ["apps"]
  resources: [deployments]
  verbs: [get]
- apiGroups: ["leaderworkerset.x-k8s.io"]
  resources: [leaderworkersets]
  verbs: [get, list]
- apiGroups: ["networking.k8s.io"]
  resources: [ingresses]
  verbs: [get, list]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments, dynamographdeploymentscalingadapters]
  verbs: [get, list]
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [get, list]
{{- end }}
{{- if $kai }}
- apiGroups: ["kai.scheduler"]
  resources: [topologies]
  verbs: [get, list]
{{- end }}
{{- if $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs: [get, list]
{{- end }}
{{- if or $graphs $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [podgroups]
  verbs: [get, list]
{{- end }}
{{- if or $kai (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [podgroups]
  verbs: [get, list]
{{- end }}
{{- end }}

{{/* What commands need that write nothing in each namespace, if only some are managed. */}}
{{- define "grove-engine.readerNamespaceRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $gangs := include "grove-engine.gangs" . }}
{{- $graphs := include "grove-engine.graphs" . }}
- apiGroups: [""]
  resources: [pods, serviceaccounts, services]
  verbs: [get, list]
- apiGroups: [""]
  resources: [events, limitranges, persistentvolumeclaims, resourcequotas]
  verbs: [list]
- apiGroups: ["apps"]
  resources: [daemonsets, deployments]
  verbs: [list]
- apiGroups: ["autoscaling"]
  resources: [horizontalpodautoscalers]
  verbs: [get, list]
- apiGroups: ["grove.io"]
  resources: [podcliques, podcliquescalinggroups, podcliquesets, podgangmaps]
  verbs: [get, list]
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [rolebindings, roles]
  verbs: [get, list]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaims, resourceclaimtemplates]
  verbs: [get, list]
- apiGroups: ["resource.nvidia.com"]
  resources: [computedomains]
  verbs: [get, list]
- apiGroups: ["resource.nvidia.com"]
  resources: [computedomaincliques]
  verbs: [list]
- apiGroups: ["scheduler.grove.io"]
  resources: [podgangs]
  verbs: [get, list]
{{- if $gangs }}
- apiGroups: ["scheduling.k8s.io"]
  resources: [compositepodgroups, podgroups, workloads]
  verbs: [get, list]
{{- end }}
{{- if $graphs }}
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: ["apps"]
  resources: [deployments]
  verbs: [get]
- apiGroups: ["leaderworkerset.x-k8s.io"]
  resources: [leaderworkersets]
  verbs: [get, list]
- apiGroups: ["networking.k8s.io"]
  resources: [ingresses]
  verbs: [get, list]
- apiGroups: ["nvidia.com"]
  resources: [dynamographdeployments, dynamographdeploymentscalingadapters]
  verbs: [get, list]
{{- end }}
{{- if or $graphs $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [podgroups]
  verbs: [get, list]
{{- end }}
{{- if or $kai (and $graphs $unlisted) }}
- apiGroups: ["scheduling.run.ai"]
  resources: [podgroups]
  verbs: [get, list]
{{- end }}
{{- end }}

{{/* What commands need that write nothing in the whole cluster, if only some namespaces are managed. */}}
{{- define "grove-engine.readerClusterRules" -}}
{{- $unlisted := not (include "grove-engine.profiles" . | fromJsonArray) }}
{{- $kai := and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray)) }}
{{- $volcano := has "volcano" (include "grove-engine.schedulers" . | fromJsonArray) }}
{{- $graphs := include "grove-engine.graphs" . }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
- apiGroups: ["apiextensions.k8s.io"]
  resources: [customresourcedefinitions]
  verbs: [get]
- apiGroups: ["apps"]
  resources: [daemonsets, deployments]
  verbs: [list]
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames: [grove-operator-leader-election]
  verbs: [get]
- apiGroups: ["grove.io"]
  resources: [clustertopologybindings]
  verbs: [get, list]
- apiGroups: ["resource.k8s.io"]
  resources: [deviceclasses]
  verbs: [get, list]
- apiGroups: ["resource.k8s.io"]
  resources: [resourceslices]
  verbs: [list]
{{- if $graphs }}
- apiGroups: ["scheduling.run.ai"]
  resources: [queues]
  verbs: [get, list]
{{- end }}
{{- if $kai }}
- apiGroups: ["kai.scheduler"]
  resources: [topologies]
  verbs: [get, list]
{{- end }}
{{- if $volcano }}
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs: [get, list]
{{- end }}
{{- end }}
