{{/* Names do not depend on the release: two engines in one cluster would disturb each other. */}}
{{- define "grove-engine.name" -}}grove-engine{{- end }}

{{/* The labels of every object. Additional ones replace none of them: a ServiceMonitor finds the Service by them. Usage: include "grove-engine.labels" (list . "component" .Values.x.labels) */}}
{{- define "grove-engine.labels" -}}
{{- $root := index . 0 -}}
{{- $labels := dict "app.kubernetes.io/name" "grove-engine" "app.kubernetes.io/part-of" "grove" -}}
{{- if index . 1 }}{{ $_ := set $labels "app.kubernetes.io/component" (index . 1) }}{{ end -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/instance" $root.Release.Name -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) -}}
{{- toYaml (merge $labels (default dict (index . 2))) -}}
{{- end }}

{{/* The labels by which the pods of the Deployment are selected. They never change. */}}
{{- define "grove-engine.selector" -}}
app.kubernetes.io/name: grove-engine
app.kubernetes.io/part-of: grove
app.kubernetes.io/component: controller
{{- end }}

{{/* What judges new sets: webhooks, policies or none. */}}
{{- define "grove-engine.admission" -}}
{{- $chosen := .Values.admission | default (eq .Values.mode "cronjob" | ternary "policies" "webhooks") -}}
{{- if and (eq .Values.mode "cronjob") (eq $chosen "webhooks") }}{{ fail "mode: cronjob and admission: webhooks exclude each other: a CronJob has no server; use policies or none" }}{{ end -}}
{{- if and (eq $chosen "webhooks") (not (dig "server" "webhooks" "port" 0 .Values.config)) }}{{ fail "admission: webhooks needs a port in config.server.webhooks.port" }}{{ end -}}
{{- $chosen -}}
{{- end }}

{{/* The operator configuration as it is installed. */}}
{{- define "grove-engine.configuration" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "operator.config.grove.io/v1alpha1" -}}
{{- $_ := set $config "kind" "OperatorConfiguration" -}}
{{- $election := default dict $config.leaderElection -}}
{{- $_ := set $election "resourceNamespace" ($election.resourceNamespace | default .Release.Namespace) -}}
{{- if gt (int .Values.shards) 1 }}{{ $_ := set $election "shards" .Values.shards }}{{ end -}}
{{- $_ := set $config "leaderElection" $election -}}
{{- if not .Values.graphs }}{{ $_ := set $config "dynamo" (set (default dict $config.dynamo) "enabled" false) }}{{ end -}}
{{- with .Values.namespaces }}{{ $_ := set $config "namespaces" . }}{{ end -}}
{{- if ne (toString .Values.scheduler.gangs) "Auto" }}{{ $_ := set $config "scheduler" (include "grove-engine.schedulerWithGangs" . | fromYaml) }}{{ end -}}
{{- $server := default dict $config.server -}}
{{- $probes := default dict $server.healthProbes -}}
{{- if and (hasKey $probes "enable") (not $probes.enable) }}{{ $_ := set $probes "port" 0 }}{{ end -}}
{{- $_ := unset $probes "enable" -}}
{{- if ne (include "grove-engine.admission" .) "webhooks" -}}
{{- $_ := set $config "server" (mergeOverwrite $server (dict "webhooks" (dict "port" 0))) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* What is published of it, and the fields that are left out because they may contain credentials. */}}
{{- define "grove-engine.publication" -}}
{{- $config := include "grove-engine.configuration" . | fromYaml -}}
{{- $public := include "grove-engine.publishedDefaults" . | fromJson -}}
{{- $_ := set $public "namespaces" (include "grove-engine.namespaces" . | fromJsonArray) -}}
{{- range $section, $fields := omit $public "namespaces" }}{{ $_ := mergeOverwrite $fields (default dict (index $config $section)) }}{{ end -}}
{{- $_ := unset $public.leaderElection "resourceLock" -}}
{{- $profiles := list -}}
{{- $names := list -}}
{{- range $public.scheduler.profiles -}}
{{- $names = append $names .name -}}
{{- $profile := pick . "name" -}}
{{- if hasKey (default dict .config) "gangScheduling" }}{{ $_ := set $profile "config" (pick .config "gangScheduling") }}{{ end -}}
{{- $profiles = append $profiles $profile -}}
{{- end -}}
{{- if and $names (not (has "default-scheduler" $names)) }}{{ $profiles = append $profiles (dict "name" "default-scheduler") }}{{ end -}}
{{- $_ := set $public.scheduler "profiles" $profiles -}}
{{- $image := dig "initContainer" "image" "" .Values.config | default (include "grove-engine.initImage" .) -}}
{{- range include "grove-engine.env" . | fromJsonArray }}{{ if eq .name "GROVE_INIT_CONTAINER_IMAGE" }}{{ $image = .value }}{{ end }}{{ end -}}
{{- $_ := set $public.initContainer "image" $image -}}
{{- $withheld := list -}}
{{- range $key := list "natsAddress" "etcdAddress" "modelExpressURL" "prometheusEndpoint" -}}
{{- if regexMatch "[@?]" (index $public.dynamo $key | default "") }}{{ $withheld = append $withheld (printf "dynamo.%s" $key) }}{{ $_ := unset $public.dynamo $key }}{{ end -}}
{{- end -}}
{{- dict "configuration" $public "withheld" $withheld | toYaml -}}
{{- end }}

{{/* Not empty if the image is that of Grove's operator, as in a values file of its chart. It would start, and be a second writer with other
rules: it is never run. */}}
{{- define "grove-engine.isGrovesImage" -}}
{{- if regexMatch "(^|/)grove-operator([:@].*)?$" .Values.image.repository }}true{{ end -}}
{{- end }}

{{/* An image by its tag, or by a digest, which either value may have. Usage: include "grove-engine.reference" (list repository tag) */}}
{{- define "grove-engine.reference" -}}
{{- $repository := index . 0 -}}
{{- $tag := toString (index . 1) -}}
{{- if contains "@" $repository }}{{ $repository }}{{ else if hasPrefix "sha256:" $tag }}{{ printf "%s@%s" $repository $tag }}{{ else }}{{ printf "%s:%s" $repository $tag }}{{ end -}}
{{- end }}

{{/* The image of the engine. In place of Grove's operator, that of this release, with the registry that it was pushed to. */}}
{{- define "grove-engine.image" -}}
{{- if include "grove-engine.isGrovesImage" . -}}
{{- range index .Chart.Annotations "artifacthub.io/images" | fromYamlArray }}{{ if eq .name "grove-engine" }}{{ .image }}{{ end }}{{ end -}}
{{- else -}}
{{- include "grove-engine.reference" (list .Values.image.repository (.Values.image.tag | default .Chart.AppVersion)) -}}
{{- end -}}
{{- end }}

{{/* The image of Grove's init container that the environment names, as in a values file of its chart; empty if it names none, or another
one. It is Grove's if it is in a repository of its makers, beside Grove's operator, or has neither registry nor tag, as in that file. */}}
{{- define "grove-engine.grovesInitImage" -}}
{{- $root := . -}}
{{- range .Values.deployment.env -}}
{{- $image := toString (default "" .value) -}}
{{- if and (eq .name "GROVE_INIT_CONTAINER_IMAGE") (regexMatch "(^|/)grove-initc([:@].*)?$" $image) -}}
{{- if or (eq $image "grove-initc") (include "grove-engine.isGrovesImage" $root) (regexMatch "(^|/)(ai-dynamo|nvidia)/" $image) }}{{ $image }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The additional environment of the engine, as a JSON list, without Grove's init container: pods start with that of this release. */}}
{{- define "grove-engine.env" -}}
{{- $isGroves := include "grove-engine.grovesInitImage" . -}}
{{- $kept := list -}}
{{- range .Values.deployment.env -}}
{{- if not (and $isGroves (eq .name "GROVE_INIT_CONTAINER_IMAGE")) }}{{ $kept = append $kept . }}{{ end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end }}

{{/* The image of the init container of workloads. */}}
{{- define "grove-engine.initImage" -}}
{{- include "grove-engine.reference" (list .Values.initImage.repository (.Values.initImage.tag | default .Chart.AppVersion)) -}}
{{- end }}

{{/* A port of the configuration. Usage: include "grove-engine.port" (list . "metrics") */}}
{{- define "grove-engine.port" -}}
{{- $config := include "grove-engine.configuration" (index . 0) | fromYaml -}}
{{- dig "server" (index . 1) "port" 0 $config | int -}}
{{- end }}

{{/* Not empty if the engine makes the certificate of its webhooks itself. */}}
{{- define "grove-engine.makesCertificate" -}}
{{- if and (eq (include "grove-engine.admission" .) "webhooks") (ne (dig "server" "webhooks" "certProvisionMode" "auto" .Values.config) "manual") }}true{{ end -}}
{{- end }}

{{/* Not empty if the certificate of the webhooks is provided, in a Secret. */}}
{{- define "grove-engine.mountsCertificate" -}}
{{- if and (eq (include "grove-engine.admission" .) "webhooks") (not (include "grove-engine.makesCertificate" .)) }}true{{ end -}}
{{- end }}

{{/* Not empty if only the engine and exempt users may change managed objects. */}}
{{- define "grove-engine.protects" -}}
{{- if dig "authorizer" "enabled" false .Values.config }}true{{ end -}}
{{- end }}

{{/* Not empty if DynamoGraphDeployments are managed. */}}
{{- define "grove-engine.graphs" -}}
{{- if and .Values.graphs (dig "dynamo" "enabled" true .Values.config) }}true{{ end -}}
{{- end }}

{{/* The only namespaces whose workloads are managed, as a JSON list; empty: all. */}}
{{- define "grove-engine.namespaces" -}}
{{- .Values.namespaces | default .Values.config.namespaces | default list | uniq | toJson -}}
{{- end }}

{{/* The profiles of schedulers that the configuration lists, as a JSON list. */}}
{{- define "grove-engine.profiles" -}}
{{- dig "scheduler" "profiles" list (include "grove-engine.configuration" . | fromYaml) | default list | toJson -}}
{{- end }}

{{/* The names of the enabled scheduler back ends, sorted, as a JSON list. Without profiles, new graphs have KAI where it is served. */}}
{{- define "grove-engine.schedulers" -}}
{{- $names := list "default-scheduler" -}}
{{- $profiles := include "grove-engine.profiles" . | fromJsonArray -}}
{{- range $profiles }}{{ $names = append $names .name }}{{ end -}}
{{- if and (not $profiles) (include "grove-engine.graphs" .) }}{{ $names = append $names "kai-scheduler" }}{{ end -}}
{{- $names | uniq | sortAlpha | toJson -}}
{{- end }}

{{/* The section `scheduler` of the configuration with the value `scheduler.gangs`, unless the configuration says it itself. Where it lists
no profiles, none is added: new graphs have KAI only then. */}}
{{- define "grove-engine.schedulerWithGangs" -}}
{{- $scheduler := deepCopy (default dict .Values.config.scheduler) -}}
{{- if not (hasKey $scheduler "gangScheduling") }}{{ $_ := set $scheduler "gangScheduling" .Values.scheduler.gangs }}{{ end -}}
{{- toYaml $scheduler -}}
{{- end }}

{{/* Whether kube-scheduler schedules gangs where it can: true, or empty. */}}
{{- define "grove-engine.gangs" -}}
{{- $mode := dig "scheduler" "gangScheduling" .Values.scheduler.gangs .Values.config | toString -}}
{{- range dig "scheduler" "profiles" list .Values.config -}}
{{- $config := default dict .config -}}
{{- if and (eq .name "default-scheduler") (not (kindIs "invalid" (get $config "gangScheduling"))) (hasKey $config "gangScheduling") -}}
{{- $mode = toString $config.gangScheduling -}}
{{- end -}}
{{- end -}}
{{- if not (has $mode (list "Off" "false")) }}true{{ end -}}
{{- end }}

{{/* A digest of what a running engine does not take over when the configuration changes. */}}
{{- define "grove-engine.restartDigest" -}}
{{- $config := include "grove-engine.configuration" . | fromYaml -}}
{{- $sections := dict "leaderElection" (index $config "leaderElection") "server" (index $config "server") -}}
{{- if not (include "grove-engine.graphs" .) }}{{ $_ := set $sections "dynamo" (dict "enabled" false) }}{{ end -}}
{{- with $config.namespaces }}{{ $_ := set $sections "namespaces" . }}{{ end -}}
{{- $sections | toJson | sha256sum -}}
{{- end }}

{{/* The names of the Leases, as a JSON list: one for each shard, the first of which is the one of a single writer. */}}
{{- define "grove-engine.leases" -}}
{{- $election := (include "grove-engine.configuration" . | fromYaml).leaderElection -}}
{{- $names := list $election.resourceName -}}
{{- range untilStep 1 (int ($election.shards | default 1)) 1 }}{{ $names = append $names (printf "%s-shard-%d" $election.resourceName .) }}{{ end -}}
{{- toJson $names -}}
{{- end }}

{{/* The users who may change managed objects, as CEL strings within single quotes of YAML. */}}
{{- define "grove-engine.trustedUsers" -}}
{{- $users := list (printf "system:serviceaccount:%s:%s" .Release.Namespace (include "grove-engine.name" .)) -}}
{{- range dig "authorizer" "exemptServiceAccountUserNames" list .Values.config }}{{ $users = append $users . }}{{ end -}}
{{- $quoted := list -}}
{{- range $users | uniq | sortAlpha }}{{ $quoted = append $quoted (toJson . | replace "'" "''") }}{{ end -}}
{{- join ", " $quoted -}}
{{- end }}
