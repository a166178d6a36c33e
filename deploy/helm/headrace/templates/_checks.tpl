{{- /* What belongs together in the values, beyond what values.schema.json can say. */ -}}

{{- define "headrace.checks" -}}
{{- $v := .Values -}}
{{- $hasSecret := or $v.secret.value $v.secret.existing.name -}}
{{- $hasDatabase := or $v.postgresql.url $v.postgresql.existing.name -}}
{{- $hasValkey := or $v.valkey.url $v.valkey.existing.name -}}
{{- if not $v.image.repository }}
{{- fail "image.repository: is missing. Name where the cluster pulls the image from, such as registry.example.com/headrace." }}
{{- end }}
{{- if not $v.publicUrl }}
{{- fail "publicUrl: is missing. Give the address that clients use, without /v1, such as https://ai.example.com." }}
{{- end }}
{{- if and (gt (int $v.replicas) 1) (not (and $hasDatabase $hasValkey)) }}
{{- fail (printf "replicas: is %d, and several replicas share PostgreSQL and Valkey. Give postgresql and valkey, or 1 replica." (int $v.replicas)) }}
{{- end }}
{{- if and $hasValkey (not $hasDatabase) }}
{{- fail "postgresql: is missing; valkey is given. Give postgresql as well, or leave valkey out: one replica counts in memory." }}
{{- end }}
{{- if and $hasDatabase (not $hasSecret) }}
{{- fail "secret: is missing; the records in PostgreSQL need it. Make one with `openssl rand -hex 32`, and keep a copy elsewhere." }}
{{- end }}
{{- if and $v.metrics.podMonitor.enabled (not (or $v.metrics.token $v.metrics.existing.name)) }}
{{- fail "metrics.podMonitor: needs metrics.token or metrics.existing: without a token Prometheus is refused." }}
{{- end }}
{{- $lameDuck := $v.stop.lameDuckSeconds }}
{{- if kindIs "invalid" $lameDuck }}{{ $lameDuck = ternary 5 0 (not (empty $hasDatabase)) }}{{ end }}
{{- $least := add 36 $lameDuck }}
{{- if lt (int $v.stop.graceSeconds) (int $least) }}
{{- fail (printf "stop.graceSeconds: is %d, and a stop takes up to %d s. Give %d or more." (int $v.stop.graceSeconds) (int $least) (int $least)) }}
{{- end }}
{{- end }}
