//! The Helm chart, rendered by Helm itself, beside what `extension manifests` prints.

use super::ours;
use crate::{harness::Home, skip::skip};
use domain::spec::yaml;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Command, Output},
};

const VERSION: &str = "3.22.0";

#[test]
fn the_chart_makes_the_objects_that_manifests_prints() {
    let Some(helm) = helm() else { return };
    let home = Home::new();
    home.file("ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    home.file("token", "t0ken\n");
    let cases: [&[(&str, &str)]; 6] = [
        &[],
        &[("operatorReplicas", "2"), ("nodeSelector.pool", "ml"), ("nodeSelector.kubernetes.io/os", "linux")],
        &[
            ("serviceMonitor", "True"),
            ("grafanaDashboard", "true"),
            ("jobNamespaces", "team-a, team-b"),
            ("imagePullSecrets", "one, two"),
        ],
        &[("amloperator.custom_ip_interface", "it's \"odd\": <a> & {b}"), ("gangScheduler", "Gates")],
        &[
            ("enableInference", "True"),
            ("serviceMonitor", "True"),
            ("inferenceRouterServiceType", "loadBalancer"),
            ("internalLoadBalancerProvider", "azure"),
            ("sslSecret", "serve-tls"),
            ("sslCname", "serve.example.org"),
        ],
        &[
            ("enableInference", "true"),
            ("inferenceRouterServiceType", "nodePort"),
            ("allowInsecureConnections", "True"),
            ("inferenceLoadBalancerHA", "False"),
        ],
    ];
    for settings in cases {
        let settings: Vec<_> = [("enableTraining", "True")].into_iter().chain(settings.iter().copied()).collect();
        let ours = printed(&home, &settings);
        let theirs = rendered(&home, &helm, &settings);
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{settings:?}");
        for (name, object) in &ours {
            assert_eq!(object, &theirs[name], "{name} with {settings:?}");
        }
    }
}

#[test]
fn the_chart_refuses_values_that_make_no_sense() {
    let Some(helm) = helm() else { return };
    let home = Home::new();
    for (more, expect) in [
        ("settings:\n  enableTrainig: 'True'\n", "enableTrainig"),
        ("settings:\n  enableTraining: 'yes'\n", "enableTraining"),
        ("settings:\n  inferenceRouterServiceType: ingress\n", "inferenceRouterServiceType"),
        ("settings:\n  operatorReplicas: 3\n", "operatorReplicas"),
        ("nodeSelector: {a: b}\n", "nodeSelector"),
        ("clusterName: ''\n", "clusterName"),
    ] {
        refused(&home, &helm, &format!("image: i\n{more}"), expect);
    }
}

#[test]
fn the_chart_refuses_settings_that_do_not_go_together_as_the_command_does() {
    let Some(helm) = helm() else { return };
    let home = Home::new();
    let served = [("enableInference", "True"), ("inferenceRouterServiceType", "nodePort")];
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("enableTraining", "False")], "nothing is enabled"),
        (&[("enableInference", "True"), ("allowInsecureConnections", "True")], "inferenceRouterServiceType"),
        (&served, "the router has no certificate"),
        (&[served[0], served[1], ("sslSecret", "tls")], "sslCname"),
    ];
    for (settings, expect) in cases {
        let all: BTreeMap<_, _> = settings.iter().copied().collect();
        let server = json!({"url": "https://10.0.0.5:7423", "token": "t"});
        let values = json!({"clusterName": "lab", "image": "i", "server": server, "settings": all});
        refused(&home, &helm, &values.to_string(), expect);
        let pairs = settings.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
        let mut args = vec!["extension", "manifests", "--cluster-name", "lab", "--server", "https://10.0.0.5:7423"];
        args.extend(["--image", "i", "--config"]);
        args.extend(pairs.iter().map(String::as_str));
        home.run(&args).must(2, &[expect]);
    }
}

fn refused(home: &Home, helm: &PathBuf, values: &str, expect: &str) {
    let said = template(home, helm, values);
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && words.contains(expect), "{values}: {words}");
}

type Objects = BTreeMap<String, Value>;

/// What the command prints, but for what Helm does by other means: the namespace and the definition.
fn printed(home: &Home, settings: &[(&str, &str)]) -> Objects {
    let pairs: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut args = vec!["extension", "manifests", "--cluster-name", "lab", "--server", "https://10.0.0.5:7423"];
    args.extend(["--image", "registry.example/peregrine:1", "--token-file", "token", "--server-authority", "ca.pem"]);
    args.extend(["--proxy-https", "http://proxy:3128", "--proxy-skip-range", "10.0.0.0/8,.svc", "--config"]);
    args.extend(pairs.iter().map(String::as_str));
    let all = home.json(&args)["items"].as_array().unwrap().clone();
    let apart = |object: &Value| ["Namespace", "CustomResourceDefinition"].contains(&object["kind"].as_str().unwrap());
    all.into_iter().filter(|object| !apart(object)).map(named).collect()
}

fn rendered(home: &Home, helm: &PathBuf, settings: &[(&str, &str)]) -> Objects {
    let settings: BTreeMap<_, _> = settings.iter().copied().collect();
    let values = json!({
        "clusterName": "lab",
        "image": "registry.example/peregrine:1",
        "server": {
            "url": "https://10.0.0.5:7423", "token": "t0ken",
            "authority": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        },
        "proxy": {"https": "http://proxy:3128", "skip": "10.0.0.0/8,.svc"},
        "settings": settings,
    });
    let said = template(home, helm, &values.to_string());
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let documents =
        text.split("---\n").filter(|part| part.lines().any(|line| !line.starts_with('#') && !line.is_empty()));
    documents.map(|part| named(yaml::parse("rendered", part).unwrap().to_json())).collect()
}

fn template(home: &Home, helm: &PathBuf, values: &str) -> Output {
    let file = home.file("values.yaml", values);
    let mut command = Command::new(helm);
    command.args(["template", "peregrine"]).arg(ours("deploy/chart/peregrine-extension"));
    command.args(["--namespace", "peregrine", "--kube-version", "1.36.0", "--values"]).arg(file).output().unwrap()
}

fn named(object: Value) -> (String, Value) {
    let metadata = &object["metadata"];
    (format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]), object)
}

/// Helm, built from its module where it is not kept here yet.
fn helm() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("HOME")?).join(format!(".cache/peregrine/tools/helm-{VERSION}"));
    let helm = folder.join("helm");
    if helm.is_file() {
        return Some(helm);
    }
    let module = format!("helm.sh/helm/v3/cmd/helm@v{VERSION}");
    let built = Command::new("go")
        .args(["install", "-trimpath", &module])
        .env("GOBIN", &folder)
        .env("CGO_ENABLED", "0")
        .output();
    if built.is_ok_and(|built| built.status.success()) {
        return Some(helm);
    }
    skip(&format!("helm {VERSION} (it is not kept here and cannot be built with go)"));
    None
}
