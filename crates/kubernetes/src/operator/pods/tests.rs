//! What pods of an attempt look like, setting by setting.

use super::*;
use domain::{
    AttemptId, Resources,
    cluster::{ClusterTarget, ReplicaPod},
};

fn launch(parts: u32) -> Launch {
    Launch {
        target: ClusterTarget {
            resource_group: "rg".into(),
            workspace: "team-a".into(),
            compute: "lab".into(),
            namespace: "ml".into(),
            ..ClusterTarget::default()
        },
        display_name: "Calm lion".into(),
        parts,
        instance_type: "gpu".into(),
        image: "docker.example/train:1".into(),
        shm_bytes: Some(2 << 30),
        deadline_seconds: Some(3600),
        server: "https://peregrine.example".into(),
        authority: "PEM".into(),
        labels: BTreeMap::from([("team".into(), "red one".into()), ("peregrine.dev/attempt".into(), "x".into())]),
        ..Launch::fixture(AttemptId::of(513, 0))
    }
}

fn options() -> Options {
    Options {
        image: "ours:1".into(),
        node_selector: BTreeMap::from([("pool".into(), "ml".into())]),
        restricted: false,
        ids_are_given: false,
        proxy: BTreeMap::from([("HTTPS_PROXY".into(), "http://ann:pass@proxy:3128".into())]),
    }
}

fn shape() -> InstanceTypeSpec {
    let plain = [("cpu", "4"), ("memory", "16Gi"), ("nvidia.com/gpu", "1")];
    let mut spec = InstanceTypeSpec::of(&plain[..2], &plain);
    spec.node_selector = Some(BTreeMap::from([("gpu".into(), "a100".into()), ("pool".into(), "other".into())]));
    spec.tolerations =
        Some(vec![Toleration { key: Some("gpu".into()), operator: Some("Exists".into()), ..Toleration::default() }]);
    spec.priority_class_name = Some("batch".into());
    spec
}

fn pods(launch: &Launch, gang: Gang) -> Vec<Pod> {
    let claim = Claim { name: "data".into(), path: "/data".into() };
    match objects(launch, &shape(), &[claim], &options(), gang, "k3").body {
        Body::Pods(pods) => pods,
        Body::Job(job) => {
            let template = &job.data["spec"]["tasks"][0]["template"];
            vec![serde_json::from_value(template.clone()).unwrap()]
        }
    }
}

#[test]
fn a_gang_without_volcano_is_one_gated_pod_a_part() {
    let pods = pods(&launch(3), Gang::Gates);
    let names: Vec<_> = pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
    assert_eq!(names, ["att-513-0-0", "att-513-0-1", "att-513-0-2"]);
    for (part, pod) in pods.iter().enumerate() {
        let labels = pod.metadata.labels.clone().unwrap();
        assert_eq!(labels["peregrine.dev/attempt"], "att_513_0", "nobody else sets a label of ours");
        assert_eq!(labels["peregrine.dev/part"], part.to_string());
        assert_eq!(labels["team"], "red-one");
        assert_eq!(pod.spec.as_ref().unwrap().scheduling_gates.as_ref().unwrap()[0].name, labels::GATE);
    }
}

#[test]
fn a_gang_with_volcano_is_one_job_whose_pods_are_never_made_again() {
    let Body::Job(job) = objects(&launch(4), &shape(), &[], &options(), Gang::Volcano, "k3").body else { panic!() };
    let spec = &job.data["spec"];
    assert_eq!(job.metadata.name.as_deref(), Some("att-513-0"));
    assert_eq!((&spec["minAvailable"], &spec["tasks"][0]["replicas"]), (&json!(4), &json!(4)));
    assert_eq!(spec["policies"], json!([{"event": "PodEvicted", "action": "TerminateJob"}]));
    assert_eq!(spec["tasks"][0]["template"]["spec"]["restartPolicy"], "Never");
    assert_eq!(spec["priorityClassName"], "batch");
}

#[test]
fn a_jobs_priority_chooses_the_class_that_its_target_names_for_it() {
    let mut launch = launch(1);
    let class = |launch: &Launch| pods(launch, Gang::Gates)[0].spec.clone().unwrap().priority_class_name.unwrap();
    launch.target.settings.insert("priority_class".into(), "usual".into());
    for level in ["low", "high"] {
        launch.target.settings.insert(format!("priority_class_{level}"), level.into());
    }
    // As jobs have it: 1 is low, 2 is medium, 3 is high.
    for (priority, expect) in [(1, "low"), (2, "usual"), (3, "high")] {
        launch.priority = priority;
        assert_eq!(class(&launch), expect);
    }
}

#[test]
fn the_way_out_stands_in_the_secret_and_not_in_the_pod() {
    for gang in [Gang::Gates, Gang::Volcano] {
        let text = serde_json::to_string(&pods(&launch(1), gang)).unwrap();
        assert!(!text.contains("ann:pass"), "{text}");
        let wanted =
            r#"{"name":"HTTPS_PROXY","valueFrom":{"secretKeyRef":{"key":"HTTPS_PROXY","name":"att-513-0-k3"}}}"#;
        assert!(text.contains(wanted), "{text}");
    }
    let secret = objects(&launch(1), &shape(), &[], &options(), Gang::Gates, "k3").secret;
    assert_eq!(secret.string_data.unwrap()["HTTPS_PROXY"], "http://ann:pass@proxy:3128");
}

#[test]
fn a_pod_goes_only_where_extension_and_type_both_allow() {
    let spec = pods(&launch(1), Gang::Volcano)[0].spec.clone().unwrap();
    let selector = spec.node_selector.unwrap();
    assert_eq!((selector["gpu"].as_str(), selector["pool"].as_str()), ("a100", "ml"));
    let tolerated: Vec<_> =
        spec.tolerations.unwrap().into_iter().map(|t| (t.key.unwrap(), t.value.unwrap_or_default())).collect();
    let expect = [
        ("ml.azure.com/amlarc", "true"),
        ("ml.azure.com/amlarc-workload", "true"),
        ("ml.azure.com/resource-group", "rg"),
        ("ml.azure.com/workspace", "team-a"),
        ("ml.azure.com/compute", "lab"),
        ("gpu", ""),
    ];
    assert_eq!(tolerated, expect.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn the_container_is_the_users_image_with_our_agent_in_front() {
    let spec = pods(&launch(1), Gang::Gates)[0].spec.clone().unwrap();
    let container = &spec.containers[0];
    assert_eq!(container.image.as_deref(), Some("docker.example/train:1"));
    assert_eq!(container.command, Some(vec!["/peregrine-bin/peregrine".into(), "agent".into(), "pod".into()]));
    assert_eq!(spec.init_containers.unwrap()[0].image.as_deref(), Some("ours:1"));
    let mounts: Vec<_> = container.volume_mounts.iter().flatten().map(|mount| mount.mount_path.as_str()).collect();
    assert_eq!(mounts, ["/peregrine-bin", "/peregrine-keys", "/peregrine-home", "/dev/shm", "/data"]);
    let limits = container.resources.clone().unwrap().limits.unwrap();
    assert_eq!(limits["nvidia.com/gpu"].0, "1");
    assert_eq!(spec.active_deadline_seconds, Some(3600));
    assert_eq!(spec.automount_service_account_token, Some(false));
}

#[test]
fn a_replica_shows_its_port_its_probe_and_whose_it_is() {
    for (path, asked) in [(Some("/live"), "httpGet"), (None, "tcpSocket")] {
        let readiness =
            Probe { path: path.map(str::to_owned), period_ms: 1500, initial_delay_ms: 0, ..Probe::default() };
        let (endpoint, deployment) = ("iris".to_owned(), "blue".to_owned());
        let (requests, limits) = (Resources::default(), Resources::default());
        let replica = ReplicaPod { endpoint, deployment, port: 5001, readiness, requests, limits };
        let pod = pods(&Launch { replica: Some(replica), ..launch(1) }, Gang::Volcano)[0].clone();
        let labels = pod.metadata.labels.unwrap();
        assert_eq!((labels[labels::ENDPOINT].as_str(), labels[labels::DEPLOYMENT].as_str()), ("iris", "blue"));
        let container = json!(pod.spec.unwrap().containers[0]);
        assert_eq!(
            (&container["name"], &container["ports"][0]["containerPort"]),
            (&json!("inference-server"), &json!(5001))
        );
        let probe = &container["readinessProbe"];
        assert_eq!((&probe["periodSeconds"], &probe[asked]["port"]), (&json!(2), &json!(5001)));
    }
}

#[test]
fn the_token_is_in_the_secret_alone() {
    for gang in [Gang::Volcano, Gang::Gates, Gang::Kueue] {
        let made = objects(&launch(2), &shape(), &[], &options(), gang, "k3");
        let body = match &made.body {
            Body::Job(job) => serde_json::to_string(job).unwrap(),
            Body::Pods(pods) => serde_json::to_string(pods).unwrap(),
        };
        assert!(!body.contains("hush") && body.contains("att-513-0-k3"));
        assert_eq!(made.secret.metadata.name.as_deref(), Some("att-513-0-k3"));
        assert_eq!(made.secret.string_data.unwrap()["token"], "hush");
    }
}

#[test]
fn a_target_may_ask_for_restricted_pods_accounts_and_queues() {
    let mut launch = launch(2);
    let all = [
        ("pod_security", "restricted"),
        ("service_account", "trainer"),
        ("image_pull_secrets", "a, b"),
        ("queue", "gpu"),
    ];
    launch.target.settings = all.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let pod = pods(&launch, Gang::Kueue)[1].clone();
    let labels = pod.metadata.labels.unwrap();
    assert_eq!(
        (labels["kueue.x-k8s.io/queue-name"].as_str(), labels["kueue.x-k8s.io/pod-group-name"].as_str()),
        ("gpu", "att-513-0")
    );
    let spec = pod.spec.unwrap();
    assert_eq!(spec.scheduling_gates, None, "Kueue puts a gate of its own");
    assert_eq!(spec.service_account_name.as_deref(), Some("trainer"));
    assert_eq!(spec.image_pull_secrets.unwrap().len(), 2);
    let security = spec.containers[0].security_context.clone().unwrap();
    assert_eq!(
        (security.allow_privilege_escalation, security.capabilities.unwrap().drop),
        (Some(false), Some(vec!["ALL".into()]))
    );
    assert_eq!(spec.security_context.unwrap().run_as_non_root, Some(true));
}

#[test]
fn a_target_is_no_laxer_than_the_extension_and_ids_may_be_the_cluster_s() {
    let security = |options: Options, settings: &[(&str, &str)]| {
        let mut launch = launch(1);
        launch.target.settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let Body::Pods(pods) = objects(&launch, &shape(), &[], &options, Gang::Gates, "k").body else { panic!() };
        let given = pods[0].spec.clone().unwrap().security_context.unwrap();
        (given.run_as_non_root, given.run_as_user, given.fs_group)
    };
    let strict = || Options { restricted: true, ..options() };
    assert_eq!(security(options(), &[("pod_security", "baseline")]), (None, None, None));
    assert_eq!(security(options(), &[("pod_security", "Restricted")]), (Some(true), Some(1000), Some(1000)));
    assert_eq!(security(strict(), &[("pod_security", "baseline")]), (Some(true), Some(1000), Some(1000)));
    let given = || Options { ids_are_given: true, ..strict() };
    assert_eq!(security(given(), &[]), (Some(true), None, None));
    assert_eq!(security(given(), &[("run_as_user", "1234")]), (Some(true), Some(1234), Some(1234)));
}
