//! From install to uninstall on a real cluster, and each way in which it does not work.

use super::{alone, serve};
use crate::{
    cluster::Cluster,
    harness::{Home, Said},
};
use std::{fs, sync::MutexGuard};

const LABEL: &str = "app.kubernetes.io/part-of=peregrine";
/// Everything that could carry our label.
const KINDS: &str = "all,secrets,configmaps,leases,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,poddisruptionbudgets,customresourcedefinitions,namespaces";

#[test]
fn what_cannot_work_is_refused_before_anything_is_made() {
    let Some(cluster) = Cluster::lease() else { return };
    let home = Home::new();
    let _alone = clean(&home, &cluster);
    let url = serve(&home, &cluster);
    let config = fs::read_to_string(cluster.fact("KUBECONFIG")).unwrap();
    let with = |name: &str, text: String| home.file(name, &text).display().to_string();
    let address = cluster.fact("CLUSTER_SERVER").to_owned();
    let nowhere = with("nowhere.yml", config.replace(&address, "https://127.0.0.1:1"));
    let plain = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nclusters: [{{name: c, cluster: {{server: '{address}', insecure-skip-tls-verify: true}}}}]\nusers: [{{name: u, user: {{token: TOKEN}}}}]\n"
    );
    let expired = with("expired.yml", plain.replace("TOKEN", "gone"));
    cluster.ok(&["create", "serviceaccount", "nobody"]);
    let nobody = with("nobody.yml", plain.replace("TOKEN", &cluster.ok(&["create", "token", "nobody"])));
    let good = cluster.fact("KUBECONFIG");
    let cases: [(&[&str], i32, &[&str]); 8] = [
        (&["--kubeconfig", "none.yml"], 2, &["no kubeconfig can be used", "--kubeconfig"]),
        (&["--kubeconfig", good, "--context", "other"], 2, &["no kubeconfig can be used", "other"]),
        (&["--kubeconfig", &nowhere], 4, &["does not answer", "kubectl version"]),
        (&["--kubeconfig", &expired], 3, &["does not accept these credentials", "expired"]),
        (&["--kubeconfig", &nobody], 3, &["deployments"]),
        (&["--kubeconfig", good, "--namespace", "Not_One"], 2, &["is not a namespace"]),
        (&["--kubeconfig", good, "--config", "nodeSelector.there=none"], 2, &["E40002", "label nodes"]),
        (
            &["--kubeconfig", good, "--config", "enableInference=True", "operatorReplicas=9"],
            2,
            &["`inferenceRouterServiceType`: is needed", "the router has no certificate", "`9` will not do"],
        ),
    ];
    for (more, code, words) in cases {
        install(&home, &[&["--server", &url, "--config", "enableTraining=True"], more].concat()).must(code, words);
    }
    assert_eq!(left(&cluster), "");
    assert!(home.run(&["extension", "status", "--kubeconfig", good]).err.contains("is not installed"));
}

#[test]
fn an_installation_that_does_not_become_ready_is_taken_back() {
    let Some(cluster) = Cluster::lease() else { return };
    let home = Home::new();
    let _alone = clean(&home, &cluster);
    let url = serve(&home, &cluster);
    let said = install(
        &home,
        &[
            "--kubeconfig",
            cluster.fact("KUBECONFIG"),
            "--server",
            &url,
            "--image",
            "peregrine.test/NONE:1",
            "--timeout",
            "8",
            "--config",
            "enableTraining=True",
        ],
    );
    said.must(4, &["the cluster is as it was before", "did not become ready within 8 s", "peregrine.test/NONE:1"]);
    assert_eq!(left(&cluster), "");
    assert_eq!(
        home.json(&[
            "extension",
            "manifests",
            "--cluster-name",
            "lab",
            "--server",
            &url,
            "--config",
            "enableTraining=True"
        ])["kind"],
        "List"
    );
}

#[test]
fn installed_checked_upgraded_and_removed_without_a_trace() {
    let Some(cluster) = Cluster::lease() else { return };
    let home = Home::new();
    let _alone = clean(&home, &cluster);
    let url = serve(&home, &cluster);
    let reach = ["--kubeconfig", cluster.fact("KUBECONFIG")];
    let image = cluster.fact("PEREGRINE_IMAGE");
    let more =
        [&reach[..], &["--server", &url, "--image", image, "--config", "enableTraining=True", "installPromOp=True"]]
            .concat();
    let said = install(&home, &more);
    said.must(0, &["installed; next: `peregrine compute attach"]);
    home.until("the server to have heard of the cluster", || {
        let heard = home.json(&[&["extension", "status"], &reach[..]].concat())["heard"].as_str().unwrap().to_owned();
        heard.ends_with("s ago")
    });
    let checks = home.json(&[&["extension", "health-check"], &reach[..]].concat());
    let failed: Vec<_> = checks.as_array().unwrap().iter().filter(|check| check["state"] == "failed").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let reports = cluster.ok(&["get", "configmap", "arcml-healthcheck", "-n", "peregrine", "-o", "jsonpath={.data}"]);
    assert!(reports.contains("reports-pre-install") && reports.contains("reports-test"), "{reports}");
    may_do_no_more_than_it_should(&cluster);
    cluster.until("memory to be held back on the real node", || {
        let pods = [
            "get",
            "pods",
            "-n",
            "peregrine",
            "-l",
            "peregrine.dev/reservation",
            "--field-selector",
            "spec.nodeName=real",
            "-o",
            "jsonpath={.items[*].status.phase}",
        ];
        cluster.ok(&pods) == "Running"
    });
    // Twice is as good as once; plain settings are merged, and what is switched off goes.
    install(&home, &more).must(0, &[]);
    home.ok(&[&["extension", "upgrade"], &reach[..], &["--config", "operatorReplicas=2", "memoryReservation=False"]]
        .concat());
    let status = home.json(&[&["extension", "status"], &reach[..]].concat());
    assert_eq!(
        (status["ready"].as_str(), &status["settings"]["enableTraining"]),
        (Some("2/2"), &"True".into()),
        "{status:#}"
    );
    cluster.until("no memory to be held back", || {
        cluster.ok(&["get", "pods", "-n", "peregrine", "-l", "peregrine.dev/reservation", "-o", "name"]).is_empty()
    });
    home.run(&[&["extension", "uninstall"], &reach[..]].concat()).must(2, &["was not confirmed", "--yes"]);
    let said = home.run(&[&["extension", "uninstall", "--yes"], &reach[..]].concat());
    said.must(
        0,
        &[
            "removed Deployment peregrine/peregrine-operator",
            "nothing of the extension and of its jobs is left",
            "forgot the cluster `lab`",
        ],
    );
    assert_eq!(left(&cluster), "");
    home.run(&[&["extension", "uninstall", "--yes"], &reach[..]].concat())
        .must(0, &["nothing of the extension is in the cluster"]);
}

/// What the operator's account may and may not do, as the cluster itself says.
fn may_do_no_more_than_it_should(cluster: &Cluster) {
    let account = "--as=system:serviceaccount:peregrine:peregrine-operator";
    for (question, expect) in [
        ("create pods -n default", true),
        ("create secrets -n default", true),
        ("get secrets -n default", false),
        ("list secrets -n peregrine", false),
        ("create pods --subresource=exec -n default", false),
        ("create deployments -n default", false),
        ("create clusterrolebindings", false),
        ("delete nodes", false),
        ("update leases -n peregrine", true),
        ("update leases -n kube-system", false),
    ] {
        let words: Vec<&str> = question.split(' ').collect();
        let answer = cluster.kubectl(&[&["auth", "can-i", account], words.as_slice()].concat());
        assert_eq!(answer.status.success(), expect, "{question}");
    }
}

fn install(home: &Home, more: &[&str]) -> Said {
    home.run(&[&["extension", "install", "--cluster-name", "lab"], more].concat())
}

/// The cluster to oneself, without what other tests have left.
fn clean(home: &Home, cluster: &Cluster) -> MutexGuard<'static, ()> {
    let held = alone();
    home.run(&["extension", "uninstall", "--yes", "--kubeconfig", cluster.fact("KUBECONFIG")]).must(0, &[]);
    held
}

/// Names of everything that carries our label.
fn left(cluster: &Cluster) -> String {
    cluster.ok(&["get", KINDS, "--all-namespaces", "-l", LABEL, "-o", "name", "--ignore-not-found"])
}
