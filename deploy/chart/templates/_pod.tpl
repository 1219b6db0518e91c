{{/* The fields of the pod that the Deployment and the CronJob share. */}}
{{- define "grove-engine.pod" -}}
serviceAccountName: {{ include "grove-engine.name" . }}
automountServiceAccountToken: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .Values.priorityClass.enabled }}
priorityClassName: {{ .Values.priorityClass.name }}
{{- end }}
{{- end }}

{{/* The fields of the container that they share. */}}
{{- define "grove-engine.container" -}}
name: engine
image: {{ include "grove-engine.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - name: GROVE_OPERATOR_SERVICE_ACCOUNT_NAME
    value: {{ include "grove-engine.name" . }}
  {{- $names := list }}
  {{- $additional := include "grove-engine.env" . | fromJsonArray }}
  {{- range $additional }}{{ $names = append $names .name }}{{ end }}
  {{- /* The variable would replace the image of the configuration. */}}
  {{- if not (or (has "GROVE_INIT_CONTAINER_IMAGE" $names) (dig "initContainer" "image" "" .Values.config)) }}
  - name: GROVE_INIT_CONTAINER_IMAGE
    value: {{ include "grove-engine.initImage" . | quote }}
  {{- end }}
  {{- with $additional }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  - name: configuration
    mountPath: /etc/grove-operator/config
    readOnly: true
  - name: account
    mountPath: /var/run/secrets/kubernetes.io/serviceaccount
    readOnly: true
  - name: tmp
    mountPath: /tmp
{{- end }}

{{/* The volumes that they share: the configuration, a token that is replaced before it expires, and memory for files. */}}
{{- define "grove-engine.volumes" -}}
- name: configuration
  configMap:
    name: {{ include "grove-engine.name" . }}
- name: account
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 43200
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                apiVersion: v1
                fieldPath: metadata.namespace
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 16Mi
{{- end }}
