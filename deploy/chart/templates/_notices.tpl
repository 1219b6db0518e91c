{{/* Values of Grove's chart that have no effect here, a line for each that is given. Computed by `make chart`. */}}
{{- define "grove-engine.notices" -}}
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
