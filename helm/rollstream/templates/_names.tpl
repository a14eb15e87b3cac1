{{/* Name of the cell: the release's, at most 40 characters so that suffixes fit. */}}
{{- define "rollstream.cell" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels of an object of one component: (dict "root" . "component" "actor"). */}}
{{- define "rollstream.labels" -}}
{{ include "rollstream.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* Labels that find the pods of one component. */}}
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

{{/* Key of the password inside that Secret. */}}
{{- define "rollstream.redisSecretKey" -}}
{{- .Values.redis.existingSecret | empty | ternary "redis-password" .Values.redis.existingSecretKey -}}
{{- end -}}

{{- define "rollstream.authSecret" -}}
{{- .Values.auth.existingSecret | default (printf "%s-auth" (include "rollstream.cell" .)) -}}
{{- end -}}

{{/* What a Secret of the chart holds under a key: the value that is set, else what the cluster has already, else 32 new characters.
     (dict "root" . "secret" "cell-auth" "key" "operator-token" "value" "") */}}
{{- define "rollstream.secretValue" -}}
{{- $old := lookup "v1" "Secret" .root.Release.Namespace .secret | default dict -}}
{{- if .value -}}
{{ .value | b64enc }}
{{- else if hasKey ($old.data | default dict) .key -}}
{{ index $old.data .key }}
{{- else -}}
{{ randAlphaNum 32 | b64enc }}
{{- end -}}
{{- end -}}

{{/* API versions: the newest that the cluster has. Offline, Helm takes all versions for present, so the release counts too. */}}
{{- define "rollstream.hpaVersion" -}}
{{- and (.Capabilities.APIVersions.Has "autoscaling/v2") (semverCompare ">=1.23-0" .Capabilities.KubeVersion.Version) | ternary "autoscaling/v2" "autoscaling/v2beta2" -}}
{{- end -}}
{{- define "rollstream.pdbVersion" -}}
{{- and (.Capabilities.APIVersions.Has "policy/v1") (semverCompare ">=1.21-0" .Capabilities.KubeVersion.Version) | ternary "policy/v1" "policy/v1beta1" -}}
{{- end -}}
