{{/* One setting in lower case; empty where it is not set. Takes the context and the setting's name. */}}
{{- define "peregrine.setting" -}}
{{- $value := index (first .).Values.settings (last .) -}}
{{- if not (kindIs "invalid" $value) -}}{{ $value | toString | lower }}{{- end -}}
{{- end -}}

{{/* Every setting as text, in JSON: what the operator reads. */}}
{{- define "peregrine.settings" -}}
{{- $all := dict -}}
{{- range $key, $value := .Values.settings -}}{{- $_ := set $all $key ($value | toString) -}}{{- end -}}
{{ $all | toRawJson }}
{{- end -}}

{{/* Stops where settings do not go together, as `peregrine extension install` does. */}}
{{- define "peregrine.check" -}}
{{- $training := eq (include "peregrine.setting" (list . "enableTraining")) "true" -}}
{{- $inference := eq (include "peregrine.setting" (list . "enableInference")) "true" -}}
{{- if not (or $training $inference) -}}
{{- fail "settings: nothing is enabled; set `enableTraining: true`, or `enableInference: true` with its own settings" -}}
{{- end -}}
{{- if $inference -}}
{{- $secret := include "peregrine.setting" (list . "sslSecret") -}}
{{- $plain := eq (include "peregrine.setting" (list . "allowInsecureConnections")) "true" -}}
{{- if not (include "peregrine.setting" (list . "inferenceRouterServiceType")) -}}
{{- fail "settings.inferenceRouterServiceType: is needed with `enableInference`; set `loadBalancer`, `nodePort` or `clusterIP`" -}}
{{- end -}}
{{- if not (or $plain $secret) -}}
{{- fail "settings.sslSecret: the router has no certificate; set `sslSecret` and `sslCname`, or `allowInsecureConnections: true` for plain http. A certificate among protected settings is for `peregrine extension install` alone" -}}
{{- end -}}
{{- if and (not $plain) (not (include "peregrine.setting" (list . "sslCname"))) -}}
{{- fail "settings.sslCname: is needed with a certificate; name the host that callers use" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of nodes, out of settings that begin with `nodeSelector.`, in JSON. */}}
{{- define "peregrine.nodeSelector" -}}
{{- $all := dict -}}
{{- range $key, $value := .Values.settings -}}
{{- if hasPrefix "nodeSelector." $key -}}{{- $_ := set $all (trimPrefix "nodeSelector." $key) ($value | toString) -}}{{- end -}}
{{- end -}}
{{ $all | toRawJson }}
{{- end -}}

{{/* Namespaces in which jobs may run, in JSON; empty for all. */}}
{{- define "peregrine.jobNamespaces" -}}
{{- $all := list -}}
{{- range splitList "," (include "peregrine.setting" (list . "jobNamespaces")) -}}
{{- if trim . -}}{{- $all = append $all (trim .) -}}{{- end -}}
{{- end -}}
{{ $all | toRawJson }}
{{- end -}}

{{/* Secrets with which our own pods pull their image, in JSON. */}}
{{- define "peregrine.pullSecrets" -}}
{{- $all := list -}}
{{- range splitList "," (include "peregrine.setting" (list . "imagePullSecrets")) -}}
{{- if trim . -}}{{- $all = append $all (dict "name" (trim .)) -}}{{- end -}}
{{- end -}}
{{ $all | toRawJson }}
{{- end -}}

{{- define "peregrine.replicas" -}}
{{ include "peregrine.setting" (list . "operatorReplicas") | default "1" }}
{{- end -}}

{{/* How many routers; none where endpoints are not served from here. */}}
{{- define "peregrine.routers" -}}
{{- $one := list (include "peregrine.setting" (list . "inferenceRouterHA")) (include "peregrine.setting" (list . "inferenceLoadBalancerHA")) -}}
{{- if ne (include "peregrine.setting" (list . "enableInference")) "true" -}}0{{- else if has "false" $one -}}1{{- else -}}3{{- end -}}
{{- end -}}

{{/* Not empty where the load balancer is to have an internal address. */}}
{{- define "peregrine.internal" -}}
{{- if or (include "peregrine.setting" (list . "internalLoadBalancerProvider")) (eq (include "peregrine.setting" (list . "privateEndpointILB")) "true") (eq (include "peregrine.setting" (list . "scoringFe.serviceType.internalLoadBalancer")) "true") -}}yes{{- end -}}
{{- end -}}
