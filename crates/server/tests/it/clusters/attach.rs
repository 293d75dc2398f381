//! Attaching, what is refused at submit, detaching.

use super::*;

#[tokio::test]
async fn attaching_ends_with_the_list_of_what_was_found() {
    let server = Server::start().await;
    let operator = Operator::registered(&server).await;
    operator.report(ClusterReport { facts: Some(facts()), ..ClusterReport::default() }).await;
    let made = server.put("computes/lab", target("", "ml")).await;
    assert_eq!(made.expect(201)["properties"]["provisioningState"], "Creating", "the only cluster there is was meant");
    let operation = async || server.get(made.header("azure-asyncoperation")).await.expect(200);
    assert_eq!(operation().await["status"], "InProgress");
    let asked = operator.poll(&[]).await;
    let (id, wanted) = (asked.checks[0].id.clone(), &asked.checks[0].target);
    assert_eq!((wanted.namespace.as_str(), wanted.workspace.as_str()), ("ml", "default"));
    let missing =
        Finding { check: "namespace".into(), passed: false, detail: "there is no namespace `ml`; create it".into() };
    operator.check(&id, vec![missing, passed("image")]).await;
    let failed = operation().await;
    assert_eq!(failed["status"], "Failed");
    assert!(failed["error"]["message"].as_str().unwrap().contains("no namespace `ml`"), "{failed}");
    let shown = server.get("computes/lab").await.expect(200);
    let properties = &shown["properties"];
    assert_eq!(properties["provisioningState"], "Failed");
    assert_eq!(properties["provisioningErrors"][0]["error"]["code"], "namespace");
    let names: Vec<&str> = properties["properties"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["check"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["extension", "clock", "namespace", "image"]);
    let (_, message) = server.put("jobs/early", on_lab(json!({}))).await.refused(400);
    assert!(message.contains("no namespace `ml`"), "{message}");
    // Someone creates the namespace and attaches again.
    server.put("computes/lab", target("", "ml")).await.expect(200);
    let again = operator.poll(&[]).await.checks.remove(0).id;
    assert_ne!(again, id);
    operator.check(&id, vec![Finding { passed: false, ..passed("old") }]).await;
    operator.check(&again, vec![passed("namespace")]).await;
    assert_eq!(server.get("computes/lab").await.expect(200)["properties"]["provisioningState"], "Succeeded");
    assert_eq!(operator.poll(&[AttemptId::of(99, 0)]).await.targets[0].compute, "lab");
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_said_at_once() {
    let server = Server::start().await;
    let why = async |name: &str| {
        let made = server.put("computes/k8s", target(name, "ml")).await;
        assert!(made.status < 300, "{}", made.text());
        assert_eq!(server.get(made.header("azure-asyncoperation")).await.expect(200)["status"], "Failed");
        let shown = server.get("computes/k8s").await.expect(200);
        assert_eq!(shown["properties"]["provisioningState"], "Failed");
        shown["properties"]["provisioningErrors"][0]["error"]["message"].as_str().unwrap().to_owned()
    };
    assert!(why("").await.contains("registered: none"));
    ask(&server.user, Method::PUT, "/clusters/lab", Some(json!({}))).await.expect(201);
    assert!(why("/x/edge1").await.contains("extension install --cluster-name edge1"));
    server.put("computes/k8s", target("/x/lab", "ml")).await.expect(200);
    let (_, message) = ask(&server.user, Method::DELETE, "/clusters/lab", None).await.refused(409);
    assert!(message.contains("`k8s` of workspace `default`"), "{message}");
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_yet_is_waited_for_with_the_reason_shown() {
    let server = Server::start().await;
    let made = ask(&server.user, Method::PUT, "/clusters/lab", Some(json!({}))).await.expect(201);
    let operator = Operator { server: &server, client: server.with_token(made["token"].as_str().unwrap()) };
    let attached = server.put("computes/lab", target("", "ml")).await;
    let first = attached.expect(201)["properties"].clone();
    assert_eq!(first["provisioningState"], "Creating");
    let why = &first["properties"]["checks"][0];
    assert_eq!((&why["check"], &why["passed"]), (&json!("extension"), &json!(false)));
    assert!(why["detail"].as_str().unwrap().contains("never heard of"), "{why}");
    let asked = operator.poll(&[]).await.checks.remove(0).id;
    operator.check(&asked, vec![passed("namespace")]).await;
    let last = server.get("computes/lab").await.expect(200)["properties"].clone();
    assert_eq!(last["provisioningState"], "Succeeded", "{last}");
    assert_eq!(last["properties"]["checks"][0]["passed"], true, "{last}");
    assert_eq!(server.get(attached.header("azure-asyncoperation")).await.expect(200)["status"], "Succeeded");
}

#[tokio::test]
async fn a_target_is_shown_with_what_its_cluster_has_and_kept_without() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let shown = server.get("computes/lab").await.expect(200);
    let inner = &shown["properties"]["properties"];
    assert_eq!(inner["instanceTypes"]["gpu"]["resources"]["limits"]["nvidia.com/gpu"], 1);
    assert_eq!((&inner["instanceTypes"]["gpu"]["fitsNow"], &inner["cluster"]), (&json!(3), &json!("lab")));
    assert_eq!(
        (&inner["nodes"][0]["name"], &inner["defaultInstanceType"]),
        (&json!("n1"), &json!("defaultinstancetype"))
    );
    let nodes = server.post("computes/lab/listNodes", json!({})).await.expect(200);
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 2);
    // What was shown comes back and is not taken for what the client wants.
    server.put("computes/lab", shown.clone()).await.expect(200);
    let kept = server.store.read(|tx| tx.compute("default", "lab")).await.unwrap().unwrap().body;
    assert!(!kept.contains("instanceTypes") && !kept.contains("fitsNow") && kept.contains("\"ml\""), "{kept}");
    let asked = operator.poll(&[]).await.checks.remove(0);
    assert!(!asked.target.settings.contains_key("cluster"), "{:?}", asked.target.settings);
}

#[tokio::test]
async fn what_the_cluster_could_never_hold_or_reach_is_refused_at_submit() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    for (more, expect) in [
        (json!({"resources": {"instanceType": "tiny"}}), "offered: defaultinstancetype, gpu, huge"),
        (json!({"resources": {"instanceType": "huge"}}), "`n2`, has 4 CPUs, 16 GiB memory, 1 GPU"),
        (json!({"resources": {"instanceType": "gpu", "instanceCount": 3}}), "hold 2 of them"),
        (
            json!({"inputs": {"x": {"jobInputType": "uri_folder", "uri": "file:///etc"}}, "command": "ls ${{inputs.x}}"}),
            "pods on `lab` do not see",
        ),
    ] {
        let (_, message) = server.put("jobs/bad", on_lab(more)).await.refused(400);
        assert!(message.contains(expect), "{message}");
    }
    // What the cluster itself has counted goes before what its nodes have in all.
    let mut counted = facts();
    counted.instance_types[0].fits_empty = Some(1);
    (counted.instance_types[1].fits_empty, counted.instance_types[1].fits_ever) = (Some(0), false);
    operator.report(ClusterReport { facts: Some(counted), ..ClusterReport::default() }).await;
    for (kind, expect) in [("defaultinstancetype", "hold 1 of them"), ("gpu", "a share of memory is held back")] {
        let more = json!({"resources": {"instanceType": kind, "instanceCount": 2}});
        let (_, message) = server.put("jobs/bad", on_lab(more)).await.refused(400);
        assert!(message.contains(expect), "{message}");
    }
    let grows = ClusterFacts { grows: true, ..facts() };
    operator.report(ClusterReport { facts: Some(grows), ..ClusterReport::default() }).await;
    server.put("jobs/big", on_lab(json!({"resources": {"instanceType": "huge"}}))).await.expect(201);
}

#[tokio::test]
async fn a_target_with_jobs_is_not_detached_unless_they_are_canceled_with_it() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("busy", json!({})).await;
    one.poll(0, "a", false).await;
    one.report(0, vec![What::Started { pid: 1 }]).await;
    server.put("jobs/waiting", on_lab(json!({}))).await.expect(201);
    let (_, message) = server.delete("computes/lab?underlyingResourceAction=Detach").await.refused(409);
    assert!(message.contains("2 jobs") && message.contains("`busy`") && message.contains("--force"), "{message}");
    let (_, message) = server.put("computes/lab", target("", "elsewhere")).await.refused(409);
    assert!(message.contains("`busy`"), "{message}");
    assert_eq!(server.get("computes/lab").await.expect(200)["properties"]["properties"]["namespace"], "ml");
    let held = one.asking(0, "a", true);
    let stops = async {
        let told: PollAnswer = one.pod.post("/agent/v1/poll", &held).await.unwrap();
        assert_eq!(told.stop, [one.attempt().clone()]);
        one.report(0, vec![over(Outcome::Canceled { reason: "asked".into() })]).await;
    };
    let removes = async {
        stops.await;
        let left = std::slice::from_ref(one.attempt());
        assert_eq!(operator.poll(left).await.remove, left);
        // With nothing more to do, this is answered long after the target is gone.
        operator.poll(&[]).await
    };
    let gone = tokio::select! {
        gone = server.delete("computes/lab?underlyingResourceAction=Detach&force=true") => gone,
        answer = removes => panic!("the target is not detached: {answer:?}"),
    };
    assert_eq!(gone.expect(202), json!({"canceled": ["busy", "waiting"], "podsGone": true}));
    server.get("computes/lab").await.refused(404);
    for job in ["busy", "waiting"] {
        assert_eq!(server.get(&format!("jobs/{job}")).await.expect(200)["properties"]["status"], "Canceled");
    }
    assert_eq!(operator.poll(std::slice::from_ref(one.attempt())).await.remove, [one.attempt().clone()]);
}

#[tokio::test]
async fn a_target_on_a_cluster_that_is_gone_for_good_can_be_detached() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("busy", json!({})).await;
    one.poll(0, "a", false).await;
    one.report(0, vec![What::Started { pid: 1 }]).await;
    let name = server.store.read(|tx| tx.target("default", "lab")).await.unwrap().unwrap().cluster;
    let long_ago = domain::Timestamp(server::clock::now().0 - 3_600_000);
    server.store.write(move |tx| tx.see_cluster(&name, 0, long_ago)).await.unwrap();
    let gone = server.delete("computes/lab?underlyingResourceAction=Detach&force=true").await;
    assert_eq!(gone.status, 202, "{}", gone.text());
    server.get("computes/lab").await.refused(404);
    let job = server.get("jobs/busy").await.expect(200);
    assert_eq!(job["properties"]["status"], "Canceled", "{job}");
    // One that comes back all the same is told to remove it.
    assert_eq!(operator.poll(std::slice::from_ref(one.attempt())).await.remove, [one.attempt().clone()]);
}

#[tokio::test]
async fn a_target_attached_again_while_jobs_run_keeps_them() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("running", json!({})).await;
    one.poll(0, "a", false).await;
    one.report(0, vec![What::Started { pid: 1 }]).await;
    server.put("computes/lab", target("", "ml")).await.expect(200);
    let left = std::slice::from_ref(one.attempt());
    let asked = operator.poll(left).await;
    assert!(asked.remove.is_empty() && asked.stop.is_empty() && asked.launch.is_empty(), "{asked:?}");
    operator.check(&asked.checks[0].id, vec![passed("namespace")]).await;
    assert_eq!(one.status().await, "Running");
    one.report(0, vec![over(Outcome::Completed)]).await;
    assert_eq!(one.status().await, "Completed");
    assert_eq!(operator.poll(left).await.remove, left);
}

#[tokio::test]
async fn a_namespace_belongs_to_one_workspace_unless_someone_owns_both() {
    let server = Server::start().await;
    let _operator = Operator::attached(&server).await;
    server.put(&crate::WS.replace("default", "team"), json!({})).await;
    let there = |name: &str| format!("{}/computes/{name}", crate::WS.replace("default", "team"));
    let (member, _) = crate::access::someone(&server, "member", domain::Role::Owner, Some("team")).await;
    let body = target("/x/lab", "ml");
    let (_, message) = ask(&member, Method::PUT, &there("mine"), Some(body.clone())).await.refused(403);
    assert!(message.contains("`ml`") && message.contains("another workspace"), "{message}");
    assert!(!message.contains("default"), "whose it is, is not theirs to know: {message}");
    let moves = target("/x/lab", "other");
    assert!(ask(&member, Method::PUT, &there("mine"), Some(moves)).await.status < 300, "another namespace is free");
    ask(&member, Method::PUT, &there("mine"), Some(body.clone())).await.refused(403);
    // The administrator owns both, and may share it.
    assert!(ask(&server.user, Method::PUT, &there("shared"), Some(body.clone())).await.status < 300);
    assert!(ask(&member, Method::PUT, &there("shared"), Some(body)).await.status < 300, "what is shared stays so");
}
