//! Quotas, pools and who uses what, over HTTP.

use crate::{Server, WS, ask, job_body};
use domain::{JobEvent, Role};
use reqwest::Method;
use serde_json::{Value, json};

fn sized(cpus: u32) -> Value {
    let mut body = job_body();
    body["properties"]["resources"] = json!({"instanceCount": cpus});
    body
}

#[tokio::test]
async fn a_quota_is_set_by_owners_shown_with_what_is_in_use_and_taken_away() {
    let server = Server::start().await;
    let made = json!({"name": "tom", "role": Role::Owner, "workspace": "default"});
    let made = server.post("/admin/v1/principals", made).await.expect(201);
    let tom = server.with_token(made["token"].as_str().unwrap());
    let path = format!("{WS}/quotas");
    let put = |body: Value| ask(&tom, Method::PUT, &path, Some(body));
    let (code, message) = put(json!({"cpus": 4})).await.refused(403);
    assert!(code == "AuthorizationFailed" && message.contains("owner of the server"), "{message}");
    let set =
        put(json!({"user": "*", "cpus": "2500m", "memory": "8Gi", "jobs": 3, "target": "local"})).await.expect(200);
    assert_eq!(set["limits"], json!({"cpus": 2.5, "memoryBytes": 8_u64 << 30, "gpus": null, "jobs": 3}));
    assert_eq!(server.put("quotas", json!({"cpus": 4})).await.status, 200);
    for (bad, expect) in [
        (json!({"cpus": "lots"}), "`cpus` is not an amount"),
        (json!({"memory": true}), "`memory` is not an amount"),
        (json!({"cpu": 2}), "cpu"),
        (json!({"jobs": -1}), "-1"),
    ] {
        let (_, message) = server.put("quotas", bad).await.refused(400);
        assert!(message.contains(expect), "{message}");
    }
    let listed = server.get("quotas").await.expect(200);
    let all: Vec<&str> = listed["value"].as_array().unwrap().iter().map(|one| one["user"].as_str().unwrap()).collect();
    assert_eq!(all, ["", "*"]);
    put(json!({"user": "*", "target": "local"})).await.expect(200);
    put(json!({"user": "*", "target": "local"})).await.refused(404);
    let audit = server.get("audit").await.expect(200);
    assert!(audit.to_string().contains("quota_put"), "{audit}");
}

#[tokio::test]
async fn a_team_is_people_who_are_there_and_its_quota_counts_all_of_them() {
    let server = Server::start().await;
    for (name, role) in [("ana", Role::Contributor), ("bob", Role::Owner), ("rea", Role::Reader)] {
        let made = json!({"name": name, "role": role, "workspace": "default"});
        server.post("/admin/v1/principals", made).await.expect(201);
    }
    let (_, message) = server
        .post("/admin/v1/principals", json!({"name": "@vision", "role": "reader", "workspace": "default"}))
        .await
        .refused(400);
    assert!(message.contains("how a team is written"), "{message}");
    for (people, expect) in [
        (json!(["ana", "eve"]), "nobody called `eve` has a role in workspace `default`; there are: "),
        (json!(["rea"]), "nobody called `rea`"),
        (json!([]), "would be empty"),
    ] {
        let (_, message) = server.put("teams/vision", json!({"people": people})).await.refused(400);
        assert!(message.contains(expect), "{message}");
        assert!(!message.contains("there are") || (message.contains("`ana`, `bob`")), "{message}");
    }
    server.put("teams/-x", json!({"people": ["ana"]})).await.refused(400);
    let (_, message) = server.put("quotas", json!({"team": "vision", "jobs": 1})).await.refused(404);
    assert!(message.contains("there is no team `vision`"), "{message}");
    let made = server.put("teams/vision", json!({"people": ["bob", "ana"]})).await.expect(200);
    assert_eq!(made, json!({"name": "vision", "people": ["ana", "bob"]}));
    let (_, message) = server.put("quotas", json!({"team": "speech", "jobs": 1})).await.refused(404);
    assert!(message.contains("(there are: vision)"), "{message}");
    server.put("quotas", json!({"team": "vision", "user": "ana", "jobs": 1})).await.refused(400);
    let set = server.put("quotas", json!({"team": "vision", "cpus": 2, "jobs": 1})).await.expect(200);
    assert_eq!((&set["user"], &set["team"]), (&json!("@vision"), &json!("vision")));

    // The quota counts the team's people, and nobody else.
    let made = json!({"name": "ana", "role": "contributor", "workspace": "default"});
    let made = server.post("/admin/v1/principals", made).await.expect(201);
    let ana = server.with_token(made["token"].as_str().unwrap());
    let jobs = |name: &str| format!("{WS}/jobs/{name}");
    let (_, message) = ask(&ana, Method::PUT, &jobs("large"), Some(sized(4))).await.refused(400);
    assert!(message.contains("and the quota of team `vision` in workspace `default` is 2 CPUs"), "{message}");
    server.put("jobs/mine", sized(4)).await.expect(201);
    for name in ["a", "b"] {
        ask(&ana, Method::PUT, &jobs(name), Some(job_body())).await.expect(201);
    }
    server.place("a").await;
    let why = server.get("jobs/b/why").await.expect(200);
    let quota = why["quotas"][0].as_str().unwrap();
    assert!(quota.starts_with("the quota of team `vision` in workspace `default`: "), "{quota}");
    assert!(quota.contains("1 of 1 job in use (`ana` 1)"), "{quota}");

    // Only owners say who is in a team; one with a quota stays.
    let (code, _) =
        ask(&ana, Method::PUT, &format!("{WS}/teams/vision"), Some(json!({"people": ["ana"]}))).await.refused(403);
    assert_eq!(code, "AuthorizationFailed");
    ask(&ana, Method::GET, &format!("{WS}/teams"), None).await.expect(200);
    let (_, message) = server.delete("teams/vision").await.refused(409);
    assert!(message.contains("--team vision --clear"), "{message}");
    server.put("quotas", json!({"team": "vision"})).await.expect(200);
    server.delete("teams/vision").await.expect(200);
    server.delete("teams/vision").await.refused(404);
    assert_eq!(server.get("teams").await.expect(200)["value"], json!([]));
}

#[tokio::test]
async fn quotas_of_workspaces_are_set_as_in_the_cloud_each_with_a_status_of_its_own() {
    let server = Server::start().await;
    let location =
        |what: &str| format!("/subscriptions/s/providers/Microsoft.MachineLearningServices/locations/local/{what}");
    let nodes = json!({"minNodeCount": 2, "maxNodeCount": 4});
    let crew = json!({"location": "local", "properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_D2_v2", "scaleSettings": nodes}}});
    server.put("computes/crew", crew).await.expect(201);
    let id = |name: &str| format!("{WS}/quotas/{name}");
    let one = |name: &str, limit: i64| json!({"id": id(name), "type": "Microsoft.MachineLearningServices/workspaces/quotas", "limit": limit, "unit": "Count"});
    let nowhere = one("cores", 1)["id"].as_str().unwrap().replace("workspaces/default", "workspaces/nowhere");
    let asked = json!({"location": "local", "value": [
        one("cores", 8), one("gpus", 2), one("crew.jobs", 3), one("crew.cores", 1), one("lab.cores", 8),
        one("Standard_DSv2_Family_Cluster_Dedicated_vCPUs", 8), one("cores", -2), {"id": nowhere, "limit": 1},
    ]});
    let answer = server.post(&location("updateQuotas"), asked).await.expect(200);
    let statuses: Vec<&str> =
        answer["value"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
    let refused = ["InvalidQuotaBelowClusterMinimum", "Failure", "InvalidVMFamilyName", "Failure", "Failure"];
    assert_eq!(statuses, [&["Success"; 3][..], &refused].concat(), "{answer}");
    assert_eq!(answer["value"][0]["limit"], 8);
    assert!(answer["value"][4]["message"].as_str().unwrap().contains("(there are: crew, local)"), "{answer}");
    let own = server.get("quotas").await.expect(200);
    assert_eq!(own["value"][0]["limits"], json!({"cpus": 8.0, "memoryBytes": null, "gpus": 2, "jobs": null}));
    assert_eq!((&own["value"][1]["target"], &own["value"][1]["limits"]["jobs"]), (&json!("crew"), &json!(3)));

    let listed = server.get(&location("quotas")).await.expect(200);
    let there = |name: &str| {
        listed["value"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["id"].as_str().unwrap().ends_with(&format!("/workspaces/default/quotas/{name}")))
    };
    assert!(there("cores") && there("gpus") && there("crew.jobs") && !there("jobs"), "{listed}");
    let back = json!({"value": [one("gpus", -1), one("cores", -1), one("crew.jobs", -1)]});
    server.post(&location("UpdateQuotas"), back).await.expect(200);
    assert_eq!(server.get("quotas").await.expect(200)["value"], json!([]));

    // An owner of a workspace is none of the server, and sees the quotas of theirs alone.
    let made = json!({"name": "tom", "role": Role::Owner, "workspace": "default"});
    let made = server.post("/admin/v1/principals", made).await.expect(201);
    let tom = server.with_token(made["token"].as_str().unwrap());
    let asked = json!({"value": [one("cores", 8)]});
    ask(&tom, Method::POST, &location("updateQuotas"), Some(asked)).await.refused(403);
    ask(&tom, Method::GET, &location("quotas"), None).await.expect(200);
}

#[tokio::test]
async fn a_job_larger_than_its_quota_is_refused_and_one_that_waits_says_who_has_what() {
    let server = Server::start().await;
    server.put("quotas", json!({"jobs": 1, "cpus": 2})).await.expect(200);
    let (_, message) = server.put("jobs/large", sized(4)).await.refused(400);
    assert!(message.contains("and the quota of workspace `default` is 2 CPUs"), "{message}");
    server.submit("a").await;
    server.submit("b").await;
    server.place("a").await;
    let why = server.get("jobs/b/why").await.expect(200);
    let quota = why["quotas"][0].as_str().unwrap();
    assert!(quota.contains("1 of 1 job in use (`"), "{quota}");
    let usage = server.get("usage").await.expect(200);
    assert_eq!((&usage["value"][0]["jobs"], usage["value"].as_array().unwrap().len()), (&json!(1), 1), "{usage}");
    assert_eq!(usage["workspaces"], Value::Null);
}

#[tokio::test]
async fn the_use_of_all_workspaces_is_told_at_once_of_those_the_caller_may_see() {
    let server = Server::start().await;
    let other = WS.replace("default", "other");
    server.put(&other, json!({})).await.expect(200);
    server.submit("a").await;
    server.place("a").await;
    let sums = |usage: &Value| -> Vec<(String, Value)> {
        let all = usage["workspaces"].as_array().unwrap().iter();
        all.map(|one| (one["workspace"].as_str().unwrap().to_owned(), one["jobs"].clone())).collect()
    };
    let usage = server.get("usage?workspaces=true").await.expect(200);
    assert_eq!(usage["value"].as_array().unwrap().len(), 1, "{usage}");
    assert_eq!(sums(&usage), [("default".into(), json!(1)), ("other".into(), json!(0))]);
    let elsewhere = server.get(&format!("{other}/usage?workspaces=true")).await.expect(200);
    assert_eq!((&elsewhere["value"], sums(&elsewhere)), (&json!([]), sums(&usage)));
    let made = json!({"name": "tom", "role": Role::Reader, "workspace": "other"});
    let made = server.post("/admin/v1/principals", made).await.expect(201);
    let tom = server.with_token(made["token"].as_str().unwrap());
    let told = ask(&tom, Method::GET, &format!("{other}/usage?workspaces=true"), None).await.expect(200);
    assert_eq!(sums(&told), [("other".into(), json!(0))], "nobody learns of a workspace they may not see");
}

#[tokio::test]
async fn a_job_that_makes_way_is_queued_and_says_for_whom() {
    let server = Server::start().await;
    server.submit("a").await;
    server.place("a").await;
    let now = server::clock::now();
    let made = server.store.write(move |tx| {
        let mut job = tx.job("default", "a")?.unwrap().job;
        job.apply(JobEvent::Started, now).unwrap();
        tx.put_job(&job, None, now)?;
        tx.preempt_job(job.seq, "makes way for `b`, which has a higher priority", now)
    });
    assert!(made.await.unwrap());
    let why = server.get("jobs/a/why").await.expect(200);
    assert_eq!(why["status"], "Queued");
    assert!(why["summary"].as_str().unwrap().contains("makes way for `b`"), "{why}");
}

#[tokio::test]
async fn a_pool_names_targets_that_are_there_and_no_pools() {
    let server = Server::start().await;
    let pool = |targets: Value, most: Value| json!({"location": "local", "properties": {"computeType": "Pool", "properties": {"targets": targets, "maxData": most}}});
    server.put("computes/anywhere", pool(json!(["local"]), json!("10GiB"))).await.expect(201);
    let shown = server.get("computes/anywhere").await.expect(200);
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    for (name, targets, most, expect) in [
        ("pp", json!(["nowhere"]), Value::Null, "there is no compute target `nowhere`"),
        ("pp", json!(["local", "anywhere"]), Value::Null, "`anywhere` in `targets` of pool `pp` is a pool itself"),
        ("pp", json!(["pp"]), Value::Null, "is a pool itself"),
        ("pp", json!([]), Value::Null, "no targets"),
        ("pp", json!(["local", "local"]), Value::Null, "named twice"),
        ("pp", json!(["local"]), json!("much"), "is not an amount"),
    ] {
        let answer = server.put(&format!("computes/{name}"), pool(targets, most)).await;
        assert!(answer.status >= 400 && answer.status < 500, "{}", answer.text());
        assert!(answer.text().contains(expect), "{expect}: {}", answer.text());
    }
    let mut job = job_body();
    job["properties"]["computeId"] = json!("azureml:anywhere");
    server.put("jobs/pooled", job).await.expect(201);
    let why = server.get("jobs/pooled/why").await.expect(200);
    assert_eq!((&why["pool"], &why["target"]), (&json!("anywhere"), &json!("anywhere")));
    let chosen = server.store.read(|tx| {
        let row = tx.job("default", "pooled")?.unwrap();
        Ok((row.cluster, tx.choices(row.job.seq)?))
    });
    let (cluster, choices) = chosen.await.unwrap();
    assert_eq!(cluster, store::POOLED);
    assert_eq!(choices.iter().map(|one| one.target.as_str()).collect::<Vec<_>>(), ["local"]);
}
