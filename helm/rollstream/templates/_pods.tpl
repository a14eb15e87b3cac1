{{/* What all pods of the cell have in common. */}}

{{/* Head of a pod's spec: (dict "root" . "account" "worker" "token" false "grace" 30 "user" 10001).
     Service links are off: Kubernetes would set ROLLSTREAM_..._PORT variables for the Services of a release called rollstream. */}}
{{- define "rollstream.pod" -}}
serviceAccountName: {{ include "rollstream.cell" .root }}-{{ .account }}
automountServiceAccountToken: {{ .token }}
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .grace }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user }}
  runAsGroup: {{ .user }}
  fsGroup: {{ .user }}
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Head of a container: (dict "root" . "image" .Values.image.core). */}}
{{- define "rollstream.container" -}}
image: {{ include "rollstream.image" . | quote }}
imagePullPolicy: {{ .image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* Environment of every service. */}}
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
  value: {{ .Values.control.logLevel | quote }}
- name: ROLLSTREAM_ENVIRONMENT_MODULES
  value: {{ .Values.actor.environmentModules | quote }}
- name: ROLLSTREAM_REDIS_URL
  value: {{ .Values.redis.enabled | ternary (printf "redis://%s-redis:6379/0" (include "rollstream.cell" .)) .Values.redis.externalUrl | quote }}
{{- if or .Values.redis.enabled .Values.redis.existingSecret }}
- name: ROLLSTREAM_REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "rollstream.redisSecret" . }}, key: {{ include "rollstream.redisSecretKey" . }}}}
{{- end }}
{{- if .Values.redis.caSecret }}
- name: ROLLSTREAM_REDIS_CA_FILE
  value: /redis-ca/ca.crt
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
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

{{/* Alive: its loops turn. Ready: it can do its job now. A service may take two minutes to find Redis and start. */}}
{{- define "rollstream.probes" -}}
ports:
  - {name: http, containerPort: 8080, protocol: TCP}
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 3
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{/* The volume of a StatefulSet: its claim template or an emptyDir. (dict "name" "runs" "persistence" .Values.learner.persistence) */}}
{{- define "rollstream.claim" -}}
- metadata: {name: {{ .name }}}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .persistence.storageClass }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources: {requests: {storage: {{ .persistence.size }}}}
{{- end -}}

{{/* What happens to claims at uninstall, where the cluster knows that field: (dict "root" . "persistence" ...). */}}
{{- define "rollstream.claimRetention" -}}
{{- if and .persistence.enabled (semverCompare ">=1.27-0" .root.Capabilities.KubeVersion.Version) }}
persistentVolumeClaimRetentionPolicy: {whenDeleted: {{ .persistence.whenDeleted }}, whenScaled: Retain}
{{- end }}
{{- end -}}
