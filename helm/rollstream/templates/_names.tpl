{{/* Name of the cell, at most 40 characters so that suffixes fit. */}}
{{- define "rollstream.cell" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels of an object of one component: (dict "root" . "component" "actor"). */}}
{{- define "rollstream.labels" -}}
app.kubernetes.io/name: rollstream
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "rollstream.selector" -}}
app.kubernetes.io/name: rollstream
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Full name of an image: (dict "root" . "image" .Values.image.core). */}}
{{- define "rollstream.image" -}}
{{- $registry := .root.Values.global.imageRegistry -}}
{{- $name := .image.repository -}}
{{- if $registry }}{{ $name = printf "%s/%s" (trimSuffix "/" $registry) $name }}{{ end -}}
{{- if .image.digest -}}
{{ printf "%s@%s" $name .image.digest }}
{{- else -}}
{{ printf "%s:%s" $name (.image.tag | default .root.Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- define "rollstream.redisSecret" -}}
{{- .Values.redis.existingSecret | default (printf "%s-redis" (include "rollstream.cell" .)) -}}
{{- end -}}

{{- define "rollstream.authSecret" -}}
{{- .Values.auth.existingSecret | default (printf "%s-auth" (include "rollstream.cell" .)) -}}
{{- end -}}

{{/* Environment that every service has: (dict "root" . "component" "actor"). */}}
{{- define "rollstream.environment" -}}
- name: ROLLSTREAM_MEMBER_ID
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: ROLLSTREAM_HOST
  value: "0.0.0.0"
- name: ROLLSTREAM_PORT
  value: "8080"
- name: ROLLSTREAM_ADVERTISE_URL
  value: "http://$(POD_IP):8080"
- name: ROLLSTREAM_LOG_LEVEL
  value: {{ .root.Values.control.logLevel | quote }}
- name: ROLLSTREAM_REDIS_URL
  value: {{ .root.Values.redis.enabled | ternary (printf "redis://%s-redis:6379/0" (include "rollstream.cell" .root)) .root.Values.redis.externalUrl | quote }}
{{- if or .root.Values.redis.enabled .root.Values.redis.existingSecret }}
- name: ROLLSTREAM_REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "rollstream.redisSecret" .root }}
      key: {{ ternary .root.Values.redis.existingSecretKey "redis-password" (ne .root.Values.redis.existingSecret "") }}
{{- end }}
{{- if .root.Values.redis.caSecret }}
- name: ROLLSTREAM_REDIS_CA_FILE
  value: /redis-ca/ca.crt
{{- end }}
{{- end -}}

{{- define "rollstream.volumeMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.redis.caSecret }}
- {name: redis-ca, mountPath: /redis-ca, readOnly: true}
{{- end }}
{{- end -}}

{{- define "rollstream.volumes" -}}
- {name: tmp, emptyDir: {}}
{{- if .Values.redis.caSecret }}
- {name: redis-ca, secret: {secretName: {{ .Values.redis.caSecret | quote }}}}
{{- end }}
{{- end -}}

{{- define "rollstream.probes" -}}
ports:
  - {name: http, containerPort: 8080}
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  failureThreshold: 60
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 10
  failureThreshold: 6
  timeoutSeconds: 10
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 3
  failureThreshold: 2
  timeoutSeconds: 5
{{- end -}}

{{- define "rollstream.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .user }}
runAsGroup: {{ .user }}
fsGroup: {{ .user }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "rollstream.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "rollstream.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* API versions: the newest that the cluster has. */}}
{{- define "rollstream.hpaVersion" -}}
{{- .Capabilities.APIVersions.Has "autoscaling/v2" | ternary "autoscaling/v2" "autoscaling/v2beta2" -}}
{{- end -}}
{{- define "rollstream.pdbVersion" -}}
{{- .Capabilities.APIVersions.Has "policy/v1" | ternary "policy/v1" "policy/v1beta1" -}}
{{- end -}}
