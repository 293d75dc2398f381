//! The Helm chart: the same objects, with the chart's expressions where installations differ.
//!
//! Everything that is not an expression comes from the functions that `install` uses, so the two cannot drift apart. An
//! expression that stands for a map or a list gives it as JSON on one line, which is YAML at any depth.

use super::{
    Sheet, TOKEN_SECRET, authority, dashboard, definition, deployment, disruption_budget, roles,
    router::{self, Router},
    service, service_monitor, token,
};
use crate::settings::keys::{KEYS, Kind};
use domain::spec::yaml::to_yaml;
use serde_json::{Map, Value, json};

/// Written by hand: expressions with a name.
const HELPERS: &str = include_str!("chart/_helpers.tpl");
const NOTES: &str = include_str!("chart/NOTES.txt");
const VALUES: &str = include_str!("chart/values.yaml");

/// Every file of the chart: path in its folder, and text.
pub fn files(version: &str) -> Vec<(String, String)> {
    let about = json!({
        "apiVersion": "v2",
        "name": "peregrine-extension",
        "description": "Makes a Kubernetes cluster a compute target of Peregrine",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
    });
    let files = [
        ("Chart.yaml", to_yaml(&about)),
        ("values.yaml", VALUES.replace("VERSION", version)),
        ("values.schema.json", serde_json::to_string_pretty(&schema()).expect("text keys") + "\n"),
        ("crds/instancetypes.yaml", definition_file()),
        ("templates/_helpers.tpl", HELPERS.to_owned()),
        ("templates/NOTES.txt", NOTES.to_owned()),
        ("templates/extension.yaml", template()),
    ];
    files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect()
}

/// The definition of instance types as a file of its own.
pub fn definition_file() -> String {
    to_yaml(&definition())
}

fn template() -> String {
    let sheet = sheet();
    let when = |condition: &str, objects: &[Value]| {
        format!("{{{{- if {condition} }}}}\n{}{{{{- end }}}}\n", documents(objects))
    };
    let each = format!(
        "{{{{- range $namespace := include \"peregrine.jobNamespaces\" . | fromJsonArray }}}}\n{}{{{{- end }}}}\n",
        // Within a range, the chart's own values are found under `$`.
        documents(&[roles::jobs_in(&sheet, &json!("{{ $namespace }}"))]).replace("{{ .Release", "{{ $.Release")
    );
    [
        "{{- include \"peregrine.check\" . }}\n".to_owned(),
        documents(&roles::cluster(&sheet)),
        when("eq (include \"peregrine.jobNamespaces\" .) \"[]\"", &[roles::jobs_everywhere(&sheet)]),
        each,
        when(".Values.server.authority", &[authority(&sheet)]),
        when("not .Values.server.existingSecret", &[token(&sheet)]),
        when("gt (include \"peregrine.replicas\" . | int) 1", &[disruption_budget(&sheet)]),
        when(&set("serviceMonitor"), &[service(&sheet), service_monitor(&sheet)]),
        when(
            &format!("and ({}) ({})", set("serviceMonitor"), set("enableInference")),
            &[router::admin_service(&sheet), router::service_monitor(&sheet)],
        ),
        when(&set("grafanaDashboard"), &[dashboard::config_map(&sheet)]),
        when(&set("enableInference"), &router::objects(&sheet)),
        when("gt (include \"peregrine.routers\" . | int) 1", &[router::disruption_budget(&sheet)]),
        documents(&[deployment(&sheet)]),
    ]
    .concat()
}

fn sheet() -> Sheet {
    let say = |expression: &str| json!(format!("{{{{ {expression} }}}}"));
    let value = |path: &str| say(&format!(".Values.{path} | quote"));
    Sheet {
        namespace: say(".Release.Namespace"),
        cluster: say("required \"clusterName is required\" .Values.clusterName | quote"),
        image: value("image"),
        server: say("required \"server.url is required\" .Values.server.url | quote"),
        proxy: ["proxy.https", "proxy.http", "proxy.skip"].map(value),
        settings: say("include \"peregrine.settings\" . | quote"),
        node_selector: say("include \"peregrine.nodeSelector\" ."),
        pull_secrets: say("include \"peregrine.pullSecrets\" ."),
        replicas: say("include \"peregrine.replicas\" ."),
        token: say("required \"server.token or server.existingSecret is required\" .Values.server.token | quote"),
        token_secret: say(&format!(".Values.server.existingSecret | default \"{TOKEN_SECRET}\"")),
        authority: value("server.authority"),
        authority_digest: say(".Values.server.authority | sha256sum"),
        router: router_of(),
    }
}

fn router_of() -> Router {
    let say = |expression: &str| json!(format!("{{{{ {expression} }}}}"));
    let plain = set("allowInsecureConnections");
    // Its quotes must not be JSON's.
    let certificate = router::secret(&say("index .Values.settings `sslSecret`"), ["cert.pem", "key.pem"]);
    let types = "get (dict \"nodeport\" \"NodePort\" \"clusterip\" \"ClusterIP\")";
    let asked = "(include \"peregrine.setting\" (list . \"inferenceRouterServiceType\"))";
    Router {
        replicas: say("include \"peregrine.routers\" ."),
        service_type: say(&format!("{types} {asked} | default \"LoadBalancer\"")),
        annotations: either("include \"peregrine.internal\" .", &router::internal(), &json!({})),
        port: either(&plain, &json!(80), &json!(443)),
        arguments: either(&plain, &json!(router::arguments(false)), &json!(router::arguments(true))),
        certificate: either(&plain, &router::no_certificate(), &certificate),
    }
}

/// Whether a setting is on.
fn set(name: &str) -> String {
    format!("eq (include \"peregrine.setting\" (list . \"{name}\")) \"true\"")
}

/// One of two values, as JSON on one line.
fn either(condition: &str, then: &Value, otherwise: &Value) -> Value {
    json!(format!("{{{{ if {condition} }}}}{then}{{{{ else }}}}{otherwise}{{{{ end }}}}"))
}

/// Objects as YAML, expressions bare.
fn documents(objects: &[Value]) -> String {
    let all: Vec<String> = objects.iter().map(|object| format!("---\n{}", to_yaml(object))).collect();
    all.concat().replace("'{{ ", "{{ ").replace(" }}'", " }}")
}

/// What `values.yaml` may say.
fn schema() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let mut settings = Map::new();
    for key in KEYS.iter().filter(|key| key.kind != Kind::Labels && key.kind != Kind::Secret) {
        for name in [key.name].iter().chain(key.aliases) {
            settings.insert((*name).to_owned(), key.schema());
        }
    }
    let closed = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
    let mut settings = closed(Value::Object(settings));
    settings["patternProperties"] = json!({"^nodeSelector\\..+": {"type": ["string", "number", "boolean"]}});
    let mut schema = closed(json!({
        "clusterName": {"type": "string", "minLength": 1, "description": "Name under which the server knows the cluster"},
        "image": {"type": "string", "minLength": 1, "description": "Image of Peregrine"},
        "server": closed(json!({
            "url": {"type": "string", "pattern": "^https?://.+", "description": "Address of the server as pods reach it"},
            "token": text("What `peregrine extension token` prints"),
            "existingSecret": text("A secret with the key `token`, instead of `token`"),
            "authority": text("PEM of the authority that signed the server's certificate; empty where the system's are enough"),
        })),
        "proxy": closed(json!({"https": text("HTTPS_PROXY"), "http": text("HTTP_PROXY"), "skip": text("NO_PROXY")})),
        "settings": settings,
        "global": {"type": "object"},
    }));
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["required"] = json!(["clusterName", "image", "server", "settings"]);
    schema
}
