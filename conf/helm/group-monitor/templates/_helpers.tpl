{{- /* Whether a PodMonitor is applied: said, or found out from what the cluster knows; empty is no. */ -}}
{{- define "group-monitor.podMonitor" -}}
{{- $said := toString .Values.podMonitor.enabled -}}
{{- if or (eq $said "true") (and (eq $said "auto") (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/PodMonitor")) -}}
yes
{{- end -}}
{{- end -}}
