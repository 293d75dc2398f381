//! The objects of the extension: what must be so in every installation.

use super::*;
use crate::settings;
use std::collections::BTreeSet;

fn install(all: &[(&str, &str)]) -> Install {
    let mut plain: Raw = all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    plain.insert("enableTraining".into(), "True".into());
    Install {
        cluster: "lab".into(),
        namespace: "peregrine".into(),
        image: "peregrine:1".into(),
        server: "https://10.0.0.1:7423".into(),
        settings: settings::check(&plain, &Raw::new()).unwrap().settings,
        plain,
        ..Install::default()
    }
}

fn shown(objects: &[Value]) -> Vec<String> {
    let one = |object: &Value| {
        format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
    };
    objects.iter().map(one).collect()
}

fn kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn a_plain_installation_is_ten_objects_and_one_deployment() {
    let expect = [
        "Namespace peregrine",
        "CustomResourceDefinition instancetypes.amlarc.azureml.com",
        "ServiceAccount peregrine-operator",
        "ClusterRole peregrine-operator",
        "ClusterRoleBinding peregrine-operator",
        "ClusterRole peregrine-jobs",
        "Role peregrine-operator",
        "RoleBinding peregrine-operator",
        "ClusterRoleBinding peregrine-jobs",
        "Deployment peregrine-operator",
    ];
    assert_eq!(shown(&objects(&install(&[]))), expect);
}

#[test]
fn settings_add_objects_and_only_those() {
    let mut wanted = install(&[
        ("operatorReplicas", "2"),
        ("serviceMonitor", "True"),
        ("grafanaDashboard", "True"),
        ("jobNamespaces", "team-a, team-b"),
    ]);
    (wanted.token, wanted.authority) = (Some("t".into()), Some("PEM".into()));
    wanted.protected = Some(Raw::from([("sslCertPemFile".into(), "PEM".into())]));
    let all = objects(&wanted);
    let plain: BTreeSet<String> = shown(&objects(&install(&[]))).into_iter().collect();
    let more: BTreeSet<String> = shown(&all).into_iter().collect();
    let added: Vec<_> = more.difference(&plain).map(String::as_str).collect();
    let expect = [
        "ConfigMap peregrine-authority",
        "ConfigMap peregrine-dashboard",
        "PodDisruptionBudget peregrine-operator",
        "RoleBinding peregrine-jobs",
        "Secret peregrine-protected",
        "Secret peregrine-server",
        "Service peregrine-operator",
        "ServiceMonitor peregrine-operator",
    ];
    assert_eq!(added, expect);
    // Where jobs may run only here and there, nothing is allowed everywhere.
    assert_eq!(plain.difference(&more).collect::<Vec<_>>(), ["ClusterRoleBinding peregrine-jobs"]);
    let places: Vec<_> = kind(&all, "RoleBinding").iter().map(|one| one["metadata"]["namespace"].clone()).collect();
    assert_eq!(places, ["peregrine", "team-a", "team-b"]);
    assert_eq!(kind(&all, "Deployment")[0]["spec"]["replicas"], 2);
}

#[test]
fn a_cluster_that_serves_has_a_router_that_may_do_nothing() {
    let plain = [
        ("enableInference", "True"),
        ("inferenceRouterServiceType", "NodePort"),
        ("sslSecret", "tls"),
        ("sslCname", "serve.example.org"),
    ];
    let all = objects(&install(&plain));
    let ours: Vec<_> = shown(&all).into_iter().filter(|name| name.ends_with("peregrine-router")).collect();
    let kinds = ["ServiceAccount", "Service", "Deployment", "PodDisruptionBudget"];
    assert_eq!(ours, kinds.map(|kind| format!("{kind} peregrine-router")));
    let bound = all.iter().filter_map(|object| object["subjects"].as_array()).flatten();
    assert!(bound.clone().count() > 0 && bound.into_iter().all(|subject| subject["name"] == OPERATOR));
    let router = kind(&all, "Deployment")[0];
    let typed: Result<k8s_openapi::api::apps::v1::Deployment, _> = serde_json::from_value(router.clone());
    assert!(typed.is_ok(), "{typed:?}");
    let pod = &router["spec"]["template"]["spec"];
    assert_eq!((&router["spec"]["replicas"], &pod["automountServiceAccountToken"]), (&json!(3), &json!(false)));
    assert_eq!(pod["volumes"][2]["secret"]["secretName"], "tls");
    assert!(pod["containers"][0]["args"].as_array().unwrap().contains(&json!("--tls-cert")));
    let service = kind(&all, "Service")[0];
    assert_eq!((&service["spec"]["type"], &service["spec"]["ports"][0]["port"]), (&json!("NodePort"), &json!(443)));
    let single = [plain[0], plain[1], ("allowInsecureConnections", "True"), ("inferenceRouterHA", "False")];
    let all = objects(&install(&single));
    assert_eq!(kind(&all, "PodDisruptionBudget").len(), 0);
    assert_eq!(kind(&all, "Service")[0]["spec"]["ports"][0]["port"], 80);
}

#[test]
fn routers_are_scraped_where_they_count_and_not_where_callers_come() {
    let settings = [
        ("enableInference", "True"),
        ("serviceMonitor", "True"),
        ("inferenceRouterServiceType", "loadBalancer"),
        ("allowInsecureConnections", "True"),
    ];
    let all = objects(&install(&settings));
    let monitor = kind(&all, "ServiceMonitor").into_iter().find(|one| one["metadata"]["name"] == "peregrine-router");
    let (wanted, port) = (&monitor.unwrap()["spec"]["selector"]["matchLabels"], "metrics");
    assert_eq!(monitor.unwrap()["spec"]["endpoints"][0]["port"], port);
    let matches = |service: &&&Value| {
        let labels = service["metadata"]["labels"].as_object().unwrap();
        wanted.as_object().unwrap().iter().all(|(key, value)| labels.get(key) == Some(value))
    };
    let services = kind(&all, "Service");
    let [scraped] = services.iter().filter(matches).collect::<Vec<_>>()[..] else { panic!("{services:?}") };
    assert_eq!((&scraped["spec"]["ports"][0]["name"], &scraped["spec"]["clusterIP"]), (&json!(port), &json!("None")));
    let pod = &kind(&all, "Deployment")[0]["spec"]["template"];
    assert_eq!(scraped["spec"]["ports"][0]["port"], pod["spec"]["containers"][0]["ports"][1]["containerPort"]);
    let labels = &pod["metadata"]["labels"];
    let selected = scraped["spec"]["selector"].as_object().unwrap();
    assert!(selected.iter().all(|(key, value)| labels.get(key) == Some(value)));
    let without = objects(&install(&[settings[0], settings[2], settings[3]]));
    assert!(kind(&without, "ServiceMonitor").is_empty() && kind(&without, "Service").len() == 1);
}

#[test]
fn every_verb_has_its_reason_and_no_secret_can_be_read() {
    let all = objects(&install(&[]));
    let roles: Vec<_> = kind(&all, "ClusterRole").into_iter().chain(kind(&all, "Role")).collect();
    assert_eq!(roles.len(), 3);
    for role in roles {
        let reasons = role["metadata"]["annotations"].as_object().unwrap();
        let rules = role["rules"].as_array().unwrap();
        assert_eq!(reasons.len(), rules.len(), "{}", role["metadata"]["name"]);
        for rule in rules {
            let words =
                |key: &str| rule[key].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>();
            assert!(!words("verbs").contains(&"*") && !words("resources").contains(&"*"));
            assert!(!words("resources").contains(&"secrets") || words("verbs") == ["create"]);
        }
    }
}

#[test]
fn the_operator_s_pod_is_what_pod_security_restricted_wants() {
    let all = objects(&install(&[("nodeSelector.pool", "system")]));
    let pod = &kind(&all, "Deployment")[0]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!((&pod["securityContext"]["runAsNonRoot"], pod.get("hostNetwork")), (&json!(true), None));
    assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(pod["nodeSelector"], json!({"pool": "system"}));
    assert_eq!(pod["tolerations"].as_array().unwrap().len(), 2);
    let typed: Result<k8s_openapi::api::apps::v1::Deployment, _> =
        serde_json::from_value(kind(&all, "Deployment")[0].clone());
    assert!(typed.is_ok(), "{typed:?}");
}

#[test]
fn the_operator_reads_the_settings_that_were_typed() {
    let wanted = install(&[("nodeAutoscaling", "True")]);
    let all = objects(&wanted);
    let env = kind(&all, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["env"].clone();
    let typed =
        env.as_array().unwrap().iter().find(|one| one["name"] == "PEREGRINE_SETTINGS").unwrap()["value"].clone();
    let read = settings::from_json(&serde_json::from_str(typed.as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(settings::check(&read, &Raw::new()).unwrap().settings, wanted.settings);
}

#[test]
fn the_chart_has_the_same_kinds_of_objects_and_no_quoted_expression() {
    let files = chart::files("1.2.3");
    let text = |path: &str| &files.iter().find(|(name, _)| name == path).unwrap().1;
    let template = text("templates/extension.yaml");
    for kind in
        ["ServiceAccount", "Role", "RoleBinding", "ClusterRoleBinding", "Secret", "Deployment", "ServiceMonitor"]
    {
        assert!(template.contains(&format!("\nkind: {kind}\n")), "{kind}");
    }
    assert!(!template.contains("'{{") && !template.contains("kind: Namespace"));
    assert!(text("values.yaml").contains("image: peregrine:1.2.3"));
    assert!(text("values.schema.json").contains("\"enableTraining\""));
}

#[test]
fn what_settings_no_longer_ask_for_is_named_and_nothing_else() {
    let before = install(&[("serviceMonitor", "True"), ("operatorReplicas", "2")]).plain;
    let gone = obsolete(&before, &install(&[("jobNamespaces", "team-a")]));
    let names = shown(&gone);
    assert!(names.contains(&"ClusterRoleBinding peregrine-jobs".to_owned()), "the right to all namespaces: {names:?}");
    let kinds: Vec<_> = gone.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ClusterRoleBinding", "PodDisruptionBudget", "Service", "ServiceMonitor"]);
    assert_eq!(
        shown(&obsolete(&install(&[("jobNamespaces", "a,b")]).plain, &install(&[("jobNamespaces", "b")]))).len(),
        1
    );
    assert_eq!(obsolete(&install(&[]).plain, &install(&[])), Vec::<Value>::new());
}
