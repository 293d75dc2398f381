//! `…/computes`: this machine is there from the start; other kinds are kept as records that say they cannot run work.

use crate::{Server, access::someone, ask};
use domain::{
    JobEvent, Resources, Role, Timestamp,
    cluster::{ClusterFacts, ClusterInstanceType, ClusterNode},
    machine::Standing,
    report::NodeFacts,
};
use reqwest::Method;
use serde_json::{Value, json};
use store::{MachineRow, TargetRow, TargetState};

#[tokio::test]
async fn this_machine_is_a_target_and_stays_one() {
    let server = Server::start().await;
    let all = server.get("computes").await.expect(200);
    assert_eq!(all["value"].as_array().unwrap().len(), 1);
    let local = server.get("computes/local").await.expect(200);
    assert_eq!(local["properties"]["computeType"], "Local");
    assert_eq!(local["properties"]["provisioningState"], "Creating", "no agent has been heard of");
    server.delete("computes/local").await.refused(409);
    server.put("computes/local", aml(0, 1)).await.refused(409);
    server.patch("computes/local", json!({})).await.refused(409);
    for verb in ["start", "stop", "restart"] {
        let (_, message) = server.post(&format!("computes/local/{verb}"), json!({})).await.refused(409);
        assert!(message.contains("machine this server runs on"), "{message}");
    }
    let (_, message) = server.get("computes/gpu").await.refused(404);
    assert!(message.contains("local"), "{message}");
}

#[tokio::test]
async fn another_name_for_this_machine_runs_work_and_a_kind_without_a_driver_does_not() {
    let server = Server::start().await;
    server.put("computes/here", json!({"properties": {"computeType": "local"}})).await.expect(201);
    let instance = json!({"computeType": "ComputeInstance", "properties": {"vmSize": "Standard_DS3_v2"}});
    server.put("computes/cluster", json!({"properties": instance})).await.expect(201);
    let mut job = crate::job_body();
    job["properties"]["computeId"] = json!("azureml:here");
    server.put("jobs/there", job.clone()).await.expect(201);
    job["properties"]["computeId"] = json!("azureml:cluster");
    let (_, message) = server.put("jobs/far", job.clone()).await.refused(400);
    assert!(message.contains("`ComputeInstance`") && message.contains("cannot run work yet"), "{message}");
    assert!(message.contains("local"), "{message}");
    job["properties"]["computeId"] = json!("azureml:nowhere");
    let (_, message) = server.put("jobs/far", job).await.refused(400);
    assert!(message.contains("local, cluster, here"), "{message}");
}

#[tokio::test]
async fn every_kind_of_target_is_kept_and_none_but_this_machine_claims_to_work() {
    let server = Server::start().await;
    for (name, kind, inner, attached) in [
        ("ci", "ComputeInstance", json!({"vmSize": "Standard_DS3_v2", "idleTimeBeforeShutdown": "PT30M"}), false),
        ("aks", "AKS", json!({}), true),
        ("spark", "SynapseSpark", Value::Null, true),
        ("bricks", "Databricks", json!({}), true),
        ("hd", "HDInsight", json!({}), true),
        ("factory", "DataFactory", Value::Null, true),
    ] {
        let body = json!({"location": "here", "fresh": 1, "properties": {
            "computeType": kind, "resourceId": "/r", "properties": inner, "unheardOf": [1],
        }});
        let made = server.put(&format!("computes/{name}"), body).await;
        let view = made.expect(201);
        assert_eq!(made.header("retry-after"), "1");
        let operation = server.get(made.header("azure-asyncoperation")).await.expect(200);
        assert_eq!(operation["status"], "Succeeded");
        assert_eq!(view, server.get(&format!("computes/{name}")).await.expect(200));
        let properties = &view["properties"];
        assert_eq!(properties["provisioningState"], "Unknown", "{kind}");
        let why = properties["provisioningErrors"][0]["error"]["message"].as_str().unwrap();
        assert!(why.contains("cannot run work yet") && why.contains(kind), "{why}");
        assert_eq!(properties["isAttachedCompute"], attached, "{kind}");
        assert!(properties["properties"].is_object() && properties["createdOn"].is_string(), "{properties}");
        assert_eq!((&properties["unheardOf"], &view["fresh"]), (&json!([1]), &json!(1)), "unknown fields come back");
    }
    server.put("computes/aml", aml(0, 2)).await.expect(201);
    let aml = &server.get("computes/aml").await.expect(200)["properties"]["properties"];
    assert_eq!((&aml["allocationState"], &aml["nodeStateCounts"]["idleNodeCount"]), (&json!("Steady"), &json!(0)));
    let kinds = server.get("computes?computeType=aks").await.expect(200);
    assert_eq!(kinds["value"].as_array().unwrap().len(), 1);
    assert!(server.post("computes/aml/listNodes", json!({})).await.expect(200)["nodes"].as_array().unwrap().is_empty());
    let (_, message) = server.post("computes/ci/start", json!({})).await.refused(409);
    assert!(message.contains("`ComputeInstance`") && message.contains("`local`"), "{message}");
}

#[tokio::test]
async fn a_target_that_makes_no_sense_is_refused_with_what_would() {
    let server = Server::start().await;
    for (name, body, expect) in [
        ("c1", json!({"properties": {"computeType": "Abacus"}}), "`Kubernetes`"),
        ("c1", json!([]), "JSON object"),
        ("c1", json!({}), "no `properties`"),
        ("c1", aml(3, 1), "at most 1"),
        ("1c", aml(0, 1), "starting with a letter"),
        ("a%2Fb", aml(0, 1), "starting with a letter"),
    ] {
        let (_, message) = server.put(&format!("computes/{name}"), body).await.refused(400);
        assert!(message.contains(expect), "{message}");
    }
    server.put("computes/c1", aml(0, 1)).await.expect(201);
    let k8s = json!({"properties": {"computeType": "Kubernetes"}});
    let (_, message) = server.put("computes/c1", k8s).await.refused(409);
    assert!(message.contains("`AmlCompute`"), "{message}");
}

#[tokio::test]
async fn passwords_and_keys_of_machines_go_in_and_never_come_out() {
    let server = Server::start().await;
    let vm = |secret: Value| {
        json!({"properties": {"computeType": "VirtualMachine", "resourceId": "/r", "properties": {
            "sshPort": 22, "administratorAccount": {"username": "u", "password": secret},
        }}})
    };
    let made = server.put("computes/vm1", vm(json!("hunter22"))).await;
    assert_eq!(made.expect(201)["properties"]["provisioningState"], "Creating");
    let shown = ask(&server.user, Method::GET, "/clusters", None).await;
    assert!(!shown.text().contains("vm1"), "a machine is no cluster: {}", shown.text());
    let patched = server.patch("computes/vm1", json!({"tags": {"a": "b"}})).await;
    assert_eq!(patched.expect(200)["tags"]["a"], "b");
    for answer in [made, patched, server.get("computes/vm1").await, server.get("computes").await] {
        assert!(!answer.text().contains("hunter22"), "{}", answer.text());
        assert!(answer.text().contains("username"), "{}", answer.text());
    }
    let kept = || server.store.read(|tx| tx.compute_secret("default", "vm1"));
    assert!(kept().await.unwrap().values().any(|value| value == "hunter22"), "the secret was not kept");
    server.put("computes/vm1", vm(Value::Null)).await.expect(200);
    assert!(kept().await.unwrap().values().any(|value| value == "hunter22"), "an update took the secret away");
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_is_checked_as_a_whole() {
    let server = Server::start().await;
    server.put("computes/c1", aml(0, 4)).await.expect(201);
    let scale = |least: u32, most: u32| json!({"minNodeCount": least, "maxNodeCount": most});
    let new = json!({"properties": {"properties": {"scaleSettings": scale(1, 8)}}});
    let changed = server.patch("computes/c1", new).await.expect(200);
    let inner = &changed["properties"]["properties"];
    assert_eq!((&inner["scaleSettings"]["maxNodeCount"], &inner["vmSize"]), (&json!(8), &json!("Standard_DS3_v2")));
    let old_form = json!({"properties": {"scaleSettings": scale(2, 9)}});
    let changed = server.patch("computes/c1", old_form).await.expect(200);
    assert_eq!(changed["properties"]["properties"]["scaleSettings"]["maxNodeCount"], 9);
    server.patch("computes/c1", json!({"properties": {"scaleSettings": scale(9, 2)}})).await.refused(400);
    server.patch("computes/none", json!({})).await.refused(404);
}

#[tokio::test]
async fn a_deleted_target_is_gone_and_the_operation_says_so() {
    let server = Server::start().await;
    server.put("computes/c1", json!({"properties": {"computeType": "Databricks"}})).await.expect(201);
    server.delete("computes/c1?underlyingResourceAction=Explode").await.refused(400);
    let gone = server.delete("computes/c1?underlyingResourceAction=Detach").await;
    assert_eq!((gone.status, gone.header("retry-after")), (202, "1"));
    assert_eq!(server.get(gone.header("location")).await.status, 204);
    server.get("computes/c1").await.refused(404);
    server.delete("computes/c1").await.refused(404);
    let unknown = gone.header("location").replace("operationResults/", "operationResults/0");
    server.get(&unknown).await.refused(404);
}

#[tokio::test]
async fn a_cluster_goes_when_its_last_node_has_gone() {
    let server = Server::start().await;
    server.put("computes/c1", aml(0, 1)).await.expect(201);
    let gone = server.delete("computes/c1").await;
    // Nobody looks after its nodes here, so it stays.
    assert_eq!((gone.status, server.get(gone.header("location")).await.status), (202, 202));
    let view = server.get("computes/c1").await.expect(200);
    assert_eq!(view["properties"]["provisioningState"], "Deleting");
    let (_, message) = server.put("computes/c1", aml(0, 2)).await.refused(409);
    assert!(message.contains("is being deleted"), "{message}");
    let mut job = crate::job_body();
    job["properties"]["computeId"] = json!("azureml:c1");
    let (_, message) = server.put("jobs/late", job).await.refused(400);
    assert!(message.contains("is being deleted"), "{message}");
}

#[tokio::test]
async fn a_change_guarded_by_a_mark_loses_to_the_one_before_it() {
    let server = Server::start().await;
    let first = server.put("computes/c1", aml(0, 1)).await;
    let mark = first.header("etag").to_owned();
    assert_eq!(first.expect(201)["etag"], json!(mark));
    let guarded = |header: (&'static str, String), most: u32| {
        let server = &server;
        async move { server.ask_with(Method::PUT, "computes/c1", (header.0, &header.1), Some(aml(0, most))).await }
    };
    guarded(("if-match", mark.clone()), 2).await.expect(200);
    assert_eq!(guarded(("if-match", mark.clone()), 3).await.refused(412).0, "PreconditionFailed");
    guarded(("if-none-match", "*".into()), 3).await.refused(412);
    server.ask_with(Method::DELETE, "computes/c1", ("if-match", &mark), None).await.refused(412);
    let shown = server.get("computes/c1").await;
    assert_eq!(shown.expect(200)["properties"]["properties"]["scaleSettings"]["maxNodeCount"], 2);
    let gone = server.ask_with(Method::DELETE, "computes/c1", ("if-match", shown.header("etag")), None).await;
    assert_eq!(gone.status, 202);
}

#[tokio::test]
async fn pages_of_targets_follow_each_other_and_skip_nothing() {
    let server = Server::start().await;
    for n in 0..7 {
        server.put(&format!("computes/c{n}x"), aml(0, 1)).await.expect(201);
    }
    let mut link = "computes?$top=3".to_owned();
    let mut seen: Vec<String> = Vec::new();
    loop {
        let page = server.get(&link).await.expect(200);
        seen.extend(page["value"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        server.put("computes/a-new-one", aml(0, 1)).await;
        match page["nextLink"].as_str() {
            Some(next) => link = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["local", "c0x", "c1x", "c2x", "c3x", "c4x", "c5x", "c6x"]);
    server.get("computes?$top=many").await.refused(400);
}

#[tokio::test]
async fn a_node_that_was_heard_of_is_shown_with_what_it_has() {
    let server = Server::start().await;
    let capacity = Resources { cpu_milli: 2000, memory_bytes: 4 << 30, gpus: 0 };
    let facts =
        NodeFacts { node: "vm".into(), boot_id: "b".into(), version: "t".into(), capacity, gpu_models: Vec::new() };
    server.store.write(move |tx| tx.see_node(&facts, server::clock::now())).await.unwrap();
    let nodes = server.post("computes/local/listNodes", json!({})).await.expect(200);
    assert_eq!((&nodes["nodes"][0]["nodeId"], &nodes["nodes"][0]["nodeState"]), (&json!("vm"), &json!("idle")));
    let local = server.get("computes/local").await.expect(200);
    assert_eq!(local["properties"]["provisioningState"], "Succeeded");
    let fits =
        |local: &Value| local["properties"]["properties"]["instanceTypes"]["defaultinstancetype"]["fitsNow"].clone();
    assert_eq!(fits(&local), 2);
    server.put("computes/aml", aml(0, 1)).await.expect(201);
    let all = server.get("computes?nodes=true").await.expect(200);
    let listed: Vec<&Value> = all["value"].as_array().unwrap().iter().map(|one| &one["properties"]["nodes"]).collect();
    assert_eq!(listed, [&nodes["nodes"], &json!([])], "one question tells what one for each target would");
    assert_eq!(server.get("computes").await.expect(200)["value"][0]["properties"]["nodes"], Value::Null);
    server.post("computes/gpu/listNodes", json!({})).await.refused(404);
}

#[tokio::test]
async fn sizes_and_use_are_told_for_the_place_the_workspace_is_in() {
    let server = Server::start().await;
    let at = "/subscriptions/s/providers/Microsoft.MachineLearningServices/locations/local";
    let sizes = server.get(&format!("{at}/vmsizes")).await.expect(200);
    let known = sizes["value"].as_array().unwrap();
    let ds3 = known.iter().find(|size| size["name"] == "Standard_DS3_v2").unwrap();
    assert_eq!((&ds3["vCPUs"], &ds3["memoryGB"]), (&json!(4), &json!(14.0)));
    for path in [format!("{at}/usages"), "usages".to_owned()] {
        let used = server.get(&path).await.expect(200);
        assert_eq!(used["value"][2]["currentValue"], 0, "{used}");
    }
}

/// A managed cluster `crew` of one node, which has said so.
async fn crew(server: &Server) {
    server.put("computes/crew", aml(0, 1)).await.expect(201);
    let each = Resources { cpu_milli: 4000, memory_bytes: 14 << 30, gpus: 1 };
    let kind = ClusterInstanceType { requests: each, limits: each, fits_now: 1, fits_ever: true, ..Default::default() };
    let facts = ClusterFacts {
        gangs: "steward".into(),
        grows: true,
        nodes: vec![ClusterNode { name: "n".into(), ready: true, allocatable: each, ..ClusterNode::default() }],
        instance_types: vec![ClusterInstanceType { name: "defaultinstancetype".into(), ..kind }],
        ..ClusterFacts::default()
    };
    let now = server::clock::now();
    let told = server.store.write(move |tx| {
        tx.put_facts("@default/crew", "d", &facts)?;
        tx.see_cluster("@default/crew", 0, now)?;
        let target = tx.target("default", "crew")?.unwrap();
        tx.put_target(&TargetRow { state: TargetState::Succeeded, findings: Vec::new(), ..target })
    });
    told.await.unwrap();
}

#[tokio::test]
async fn use_of_managed_clusters_is_told_to_whoever_may_see_them() {
    let server = Server::start().await;
    crew(&server).await;
    let at = "/subscriptions/s/providers/Microsoft.MachineLearningServices/locations/local/usages";
    let of_crew = |told: &Value| -> Vec<(u64, u64)> {
        let all = told["value"].as_array().unwrap().iter();
        let own = all.filter(|one| one["name"]["value"].as_str().unwrap().contains("of `crew` in workspace `default`"));
        own.map(|one| (one["currentValue"].as_u64().unwrap(), one["limit"].as_u64().unwrap())).collect()
    };
    assert_eq!(of_crew(&server.get(at).await.expect(200)), [(4, 4), (1, 1)]);
    server.put(&crate::WS.replace("default", "other"), json!({})).await;
    let (stranger, _) = someone(&server, "ben", Role::Reader, Some("other")).await;
    assert!(of_crew(&ask(&stranger, Method::GET, at, None).await.expect(200)).is_empty());
}

#[tokio::test]
async fn how_full_a_cluster_was_is_told_minute_by_minute_and_in_short() {
    let server = Server::start().await;
    crew(&server).await;
    let mut body = crate::job_body();
    body["properties"]["computeId"] = json!("azureml:crew");
    server.put("jobs/waits", body).await.expect(201);
    let (minute, now) = (60_000, server::clock::now());
    let heard = server.store.write(move |tx| {
        let mut facts = tx.facts("@default/crew")?;
        // Twice in one minute, then with nothing in use, and once longer ago than it is kept in sight.
        for (ago, free) in [(3 * minute, false), (3 * minute, true), (2 * minute, true), (48 * 60 * minute, true)] {
            facts.nodes[0].free = if free { facts.nodes[0].allocatable } else { Resources::default() };
            tx.put_facts("@default/crew", "d", &facts)?;
            tx.see_cluster("@default/crew", 0, Timestamp(now.0 - ago))?;
        }
        Ok(())
    });
    heard.await.unwrap();
    let told = server.get("computes/crew/usage?hours=1&points=60").await.expect(200);
    let points = told["value"].as_array().unwrap();
    let free: Vec<_> = points.iter().map(|point| point["free"]["cpu_milli"].as_u64().unwrap()).collect();
    assert_eq!(free, [0, 4000, 0], "{told:#}");
    assert_eq!((&points[0]["readyNodes"], &points[0]["waitingJobs"]), (&json!(1), &json!(1)), "{told:#}");
    let short = server.get("computes/crew/usage?hours=168&points=7").await.expect(200);
    let points = short["value"].as_array().unwrap();
    assert_eq!(points.len(), 2, "two days ago, and now: {short:#}");
    assert_eq!(points[1]["free"]["cpu_milli"], 0, "the busiest minute speaks for its stretch");
    for (path, says) in [
        ("computes/crew/usage?hours=169", "`hours=169` is not a whole number from 1 to 168"),
        ("computes/crew/usage?points=some", "`points=some` is not a whole number"),
        ("computes/local/usage", "is not kept"),
    ] {
        let (_, message) = server.get(path).await.refused(400);
        assert!(message.contains(says), "{message}");
    }
    server.get("computes/none/usage").await.refused(404);
}

#[tokio::test]
async fn a_job_that_waits_for_a_managed_cluster_is_told_when_it_may_begin() {
    let server = Server::start().await;
    crew(&server).await;
    let mut body = crate::job_body();
    body["properties"]["computeId"] = json!("azureml:crew");
    body["properties"]["limits"] = json!({"jobLimitsType": "Command", "timeout": "PT1H"});
    for name in ["first", "second"] {
        server.put(&format!("jobs/{name}"), body.clone()).await.expect(201);
        server.place(name).await;
    }
    let began = server.store.write(|tx| {
        let mut job = tx.job("default", "first")?.unwrap().job;
        job.apply(JobEvent::Started, Timestamp(1_000)).unwrap();
        tx.put_job(&job, None, Timestamp(1_000))
    });
    began.await.unwrap();
    let why = server.get("jobs/second/why").await.expect(200);
    let expected = why["expected"].as_str().unwrap_or_default();
    assert!(expected.contains("when the time limit of `first` is over"), "{why:#}");
}

#[tokio::test]
async fn a_cluster_is_deleted_by_force_although_a_node_of_it_does_not_answer() {
    let server = Server::start().await;
    crew(&server).await;
    let mut body = crate::job_body();
    body["properties"]["computeId"] = json!("azureml:crew");
    server.put("jobs/there", body).await.expect(201);
    let attempt = server.place("there").await;
    let long_ago = Timestamp(1_000);
    let row = MachineRow {
        cluster: "@default/crew".into(),
        name: "crew-a".into(),
        standing: Standing::Ready,
        reason: String::new(),
        ordered: Resources::default(),
        facts: Default::default(),
        joined: "k".into(),
        created_at: long_ago,
        since: long_ago,
        seen_at: Some(long_ago),
    };
    let began = server.store.write(move |tx| {
        tx.put_machine(&row)?;
        tx.give_whole("@default/crew", &attempt, "crew-a")?;
        let mut job = tx.job("default", "there")?.unwrap().job;
        job.apply(JobEvent::Started, Timestamp(2_000)).unwrap();
        tx.put_job(&job, None, Timestamp(2_000))
    });
    began.await.unwrap();
    server.delete("computes/crew").await.refused(409);
    let forced = server.delete("computes/crew?force=true").await;
    assert_eq!(forced.status, 202, "{}", forced.text());
    assert_eq!(server.get("jobs/there").await.expect(200)["properties"]["status"], "Canceled");
    assert_eq!(server.get("computes/crew").await.expect(200)["properties"]["provisioningState"], "Deleting");
    let kept = server.store.read(|tx| tx.compute("default", "crew")).await.unwrap().unwrap();
    let kept: Value = serde_json::from_str(&kept.body).unwrap();
    assert_eq!(kept["properties"]["forced"], true, "whoever takes its nodes away waits for none");
}

fn aml(least: u32, most: u32) -> Value {
    json!({"properties": {"computeType": "AmlCompute", "properties": {
        "vmSize": "Standard_DS3_v2", "scaleSettings": {"minNodeCount": least, "maxNodeCount": most},
    }}})
}
