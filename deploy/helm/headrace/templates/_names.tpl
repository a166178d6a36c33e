{{- /* Names, labels, and where secrets are found, for all templates. */ -}}

{{- define "headrace.name" -}}
{{- if contains "headrace" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-headrace" (.Release.Name | trunc 31 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- /* By these pods are found: they never change. */ -}}
{{- define "headrace.selector" -}}
app.kubernetes.io/name: headrace
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "headrace.labels" -}}
{{ include "headrace.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "headrace.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The four secrets as JSON: of each the variable, where it is, and the value if the chart has to keep it. */ -}}
{{- define "headrace.secrets" -}}
{{- $v := .Values -}}
{{- $own := include "headrace.name" . -}}
{{- $found := list -}}
{{- range list
  (dict "variable" "HEADRACE_SECRET" "value" $v.secret.value "existing" $v.secret.existing)
  (dict "variable" "HEADRACE_DATABASE_URL" "value" $v.postgresql.url "existing" $v.postgresql.existing)
  (dict "variable" "HEADRACE_REDIS_URL" "value" $v.valkey.url "existing" $v.valkey.existing)
  (dict "variable" "HEADRACE_METRICS_TOKEN" "value" $v.metrics.token "existing" $v.metrics.existing) }}
  {{- if .existing.name }}
    {{- $found = append $found (dict "variable" .variable "name" .existing.name "key" .existing.key) }}
  {{- else if .value }}
    {{- $found = append $found (dict "variable" .variable "name" $own "key" .variable "value" .value) }}
  {{- end }}
{{- end }}
{{- dict "all" $found | toJson }}
{{- end }}
