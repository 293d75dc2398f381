//! `…/schedules`: kept as they were sent, checked, and starting what they say when they say.

use crate::Server;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_schedule_comes_back_as_it_was_sent_and_says_when_it_is_due() {
    let server = Server::start().await;
    let made = server.put("schedules/nightly", schedule(cron("0 2 * * *"))).await;
    let view = made.expect(201);
    assert_eq!(made.header("retry-after"), "1");
    assert_eq!(server.get(made.header("azure-asyncoperation")).await.expect(200)["status"], "Succeeded");
    let properties = &view["properties"];
    assert_eq!((&properties["provisioningState"], &properties["isEnabled"]), (&json!("Succeeded"), &json!(true)));
    assert!(properties["properties"]["peregrine.state"].as_str().unwrap().contains("starts next at 2"));
    assert_eq!(properties["peregrine"]["next"].as_array().unwrap().len(), 5);
    assert_eq!(properties["unheardOf"], json!({"a": [1]}));
    assert_eq!(properties["action"], schedule(cron("0 2 * * *"))["properties"]["action"]);
    assert_eq!(server.get("schedules/nightly").await.expect(200), view);
    // Switching it off sends everything back.
    let mut off = view.clone();
    off["properties"]["isEnabled"] = json!(false);
    let off = server.put("schedules/nightly", off).await.expect(200);
    assert_eq!(off["properties"]["isEnabled"], false);
    assert_eq!(off["properties"]["properties"]["peregrine.state"], "off");
    assert_eq!(off["properties"]["peregrine"]["next"], json!([]));
    let gone = server.delete("schedules/nightly").await;
    assert_eq!(gone.status, 202);
    assert_eq!(server.get(gone.header("location")).await.status, 204);
    server.get("schedules/nightly").await.refused(404);
}

#[tokio::test]
async fn a_schedule_that_makes_no_sense_is_refused_with_every_reason() {
    let server = Server::start().await;
    let job = |job: Value| json!({"actionType": "CreateJob", "jobDefinition": job});
    for (trigger, action, expect) in [
        (cron("* * *"), job(template()), "five are needed"),
        (cron("61 * * * *"), job(template()), "minute"),
        (json!({"triggerType": "Moon"}), job(template()), "`Recurrence`"),
        (json!({"triggerType": "Recurrence", "frequency": "Era", "interval": 1}), job(template()), "`month`"),
        (json!({"triggerType": "Recurrence", "frequency": "day", "interval": 0}), job(template()), "interval"),
        (
            json!({"triggerType": "Recurrence", "frequency": "day", "interval": 1, "schedule": {"hours": [25]}}),
            job(template()),
            "hours",
        ),
        (cron("0 0 31 2 *"), job(template()), "no such day exists"),
        (zoned("Europe/Berlim"), job(template()), "did you mean `Europe/Berlin`?"),
        (json!({"triggerType": "Event", "on": "data"}), job(template()), "name the data"),
        (cron("0 * * * *"), json!({"actionType": "CreateMonitor", "monitorDefinition": {}}), "cannot run here"),
        (
            cron("0 * * * *"),
            json!({"actionType": "UpdateDeployment", "endpointName": "e", "deploymentName": "d"}),
            "new model",
        ),
        (
            json!({"triggerType": "Event", "on": "model", "name": "m"}),
            json!({"actionType": "UpdateDeployment", "endpointName": "e", "deploymentName": "d"}),
            "no deployment `d`",
        ),
        (Value::Null, job(template()), "trigger"),
        (cron("0 * * * *"), json!({"actionType": "Sing"}), "`CreateJob`"),
        (cron("0 * * * *"), job(json!({"jobType": "Dance"})), "`Pipeline`"),
        (cron("0 * * * *"), job(json!({"jobType": "Command", "computeId": "azureml:moon"})), "there are: local"),
        (cron("0 * * * *"), job(json!({"jobType": "Pipeline", "sourceJobId": "/jobs/none"})), "no job `none`"),
        (
            cron("0 * * * *"),
            job(json!({"jobType": "Pipeline", "jobs": {"a": {"componentId": "azureml:train:1"}}})),
            "no component `train:1`",
        ),
    ] {
        let body = json!({"properties": {"trigger": trigger, "action": action}});
        let (_, message) = server.put("schedules/s1", body.clone()).await.refused(400);
        assert!(message.contains(expect), "{body}: {message}");
    }
    let both = json!({"properties": {"trigger": cron("x"), "action": {"actionType": "Sing"}}});
    let refused = server.put("schedules/s1", both).await.expect(400);
    assert_eq!(refused["error"]["details"].as_array().unwrap().len(), 2, "{refused}");
    for (name, body) in [
        ("a%2Fb", schedule(cron("0 * * * *"))),
        ("s1", json!({"properties": 3})),
        ("s1", json!([])),
        ("s1", json!("x")),
    ] {
        server.put(&format!("schedules/{name}"), body).await.refused(400);
    }
    assert!(server.get("schedules").await.expect(200)["value"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn schedules_are_listed_in_pages_by_tag_and_by_archive() {
    let server = Server::start().await;
    for n in 0..5 {
        let mut body = schedule(cron("0 * * * *"));
        body["properties"]["tags"] = json!({"odd": (n % 2).to_string()});
        body["properties"]["isArchived"] = json!(n == 4);
        server.put(&format!("schedules/s{n}"), body).await.expect(201);
    }
    let first = server.get("schedules?$top=3").await.expect(200);
    assert_eq!(names(&first), ["s0", "s1", "s2"]);
    server.put("schedules/s00", schedule(cron("0 * * * *"))).await.expect(201);
    let second = server.get(first["nextLink"].as_str().unwrap()).await.expect(200);
    assert_eq!((names(&second), &second["nextLink"]), (vec!["s3".to_owned()], &Value::Null));
    assert_eq!(names(&server.get("schedules?tags=odd=1").await.expect(200)), ["s1", "s3"]);
    assert_eq!(names(&server.get("schedules?tags=odd%3D0&$top=1").await.expect(200)), ["s0"]);
    assert_eq!(names(&server.get("schedules?listViewType=ArchivedOnly").await.expect(200)), ["s4"]);
    assert_eq!(names(&server.get("schedules?listViewType=All").await.expect(200)).len(), 6);
}

#[tokio::test]
async fn of_two_writers_who_read_the_same_state_one_wins() {
    let server = Server::start().await;
    let mark = server.put("schedules/s1", schedule(cron("0 * * * *"))).await.header("etag").to_owned();
    let write = |minute: u32| {
        let body = schedule(cron(&format!("{minute} * * * *")));
        server.ask_with(Method::PUT, "schedules/s1", ("if-match", &mark), Some(body))
    };
    let (one, two) = tokio::join!(write(1), write(2));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
    let fresh = schedule(cron("0 * * * *"));
    server.ask_with(Method::PUT, "schedules/s1", ("if-none-match", "*"), Some(fresh.clone())).await.refused(412);
    server.ask_with(Method::PUT, "schedules/s2", ("if-match", "*"), Some(fresh)).await.refused(412);
    let half = json!({"properties": {"description": "d"}});
    let patched = server.patch("schedules/s1", half).await.expect(200);
    assert_eq!(patched["properties"]["description"], "d");
    assert!(patched["properties"]["trigger"].is_object());
    server.patch("schedules/none", json!({})).await.refused(404);
}

#[tokio::test]
async fn a_schedule_without_a_start_begins_at_once_and_one_that_changes_does_not_begin_again() {
    let server = Server::start().await;
    let mut body = schedule(cron("0 0 1 1 *"));
    body["properties"]["trigger"].as_object_mut().unwrap().remove("startTime");
    let view = server.put("schedules/now.1", body.clone()).await.expect(201);
    assert!(view["properties"]["peregrine"]["next"].is_array());
    let runs = runs(&server, "now.1", 1).await;
    let name = runs[0]["made"].as_str().unwrap().to_owned();
    assert!(name.starts_with("now-1-2") && name.ends_with('z'), "{name}");
    let job = server.get(&format!("jobs/{name}")).await.expect(200);
    assert_eq!(job["properties"]["properties"]["peregrine.schedule"], "now.1");
    assert_eq!(job["properties"]["inputs"]["v"]["value"], json!(name));
    body["properties"]["description"] = json!("again");
    server.put("schedules/now.1", body).await.expect(200);
    assert_eq!(self::runs(&server, "now.1", 1).await.len(), 1);
}

#[tokio::test]
async fn a_schedule_is_started_by_hand_and_by_what_it_waits_for() {
    let server = Server::start().await;
    server.put("schedules/s1", schedule(cron("0 0 1 1 *"))).await.expect(201);
    let made = server.post("schedules/s1/trigger", json!({"scheduleTime": "2026-05-04T03:02:01+00:00"})).await;
    let made = made.expect(200);
    assert_eq!(
        (&made["submissionId"], &made["scheduleActionType"]),
        (&json!("s1-20260504t030201z"), &json!("CreateJob"))
    );
    let again = server.post("schedules/s1/trigger", json!({"scheduleTime": "2026-05-04T03:02:01+00:00"})).await;
    assert_eq!(again.expect(200)["submissionId"], "s1-20260504t030201z-2");
    server.post("schedules/none/trigger", json!({})).await.refused(404);
    // A job stands for what it was made of, with changes.
    let mut like = schedule(json!({"triggerType": "Event", "on": "data", "name": "iris"}));
    like["properties"]["action"]["jobDefinition"] = json!({
        "jobType": "Pipeline", "sourceJobId": "/x/jobs/s1-20260504t030201z", "experimentName": "",
        "inputs": {"v": {"jobInputType": "literal", "value": "${{trigger.asset}}"}},
    });
    server.put("schedules/s2", like).await.expect(201);
    let (_, why) = server.post("schedules/s2/trigger", json!({})).await.refused(400);
    assert!(why.contains("${{trigger.asset}}"), "{why}");
    let data =
        json!({"properties": {"dataType": "uri_file", "dataUri": "azureml://datastores/workspaceblobstore/paths/x"}});
    server.put("data/iris/versions/1", data).await.expect(201);
    let runs = runs(&server, "s2", 1).await;
    assert_eq!(runs[0]["cause"], "data `iris:1` is new");
    let job = server.get(&format!("jobs/{}", runs[0]["made"].as_str().unwrap())).await.expect(200);
    assert_eq!(job["properties"]["inputs"]["v"]["value"], "azureml:iris:1");
    assert_eq!(
        (&job["properties"]["command"], &job["properties"]["experimentName"]),
        (&json!("echo ${{inputs.v}}"), &json!("e"))
    );
    // What was made when it was off does not count.
    let mut off = server.get("schedules/s2").await.expect(200);
    off["properties"]["isEnabled"] = json!(false);
    server.put("schedules/s2", off).await.expect(200);
    let data =
        json!({"properties": {"dataType": "uri_file", "dataUri": "azureml://datastores/workspaceblobstore/paths/y"}});
    server.put("data/iris/versions/2", data).await.expect(201);
    let made = server.post("schedules/s2/trigger", json!({})).await.expect(200);
    let job = server.get(&format!("jobs/{}", made["submissionId"].as_str().unwrap())).await.expect(200);
    assert_eq!(job["properties"]["inputs"]["v"]["value"], "azureml:iris:2", "by hand it gets the latest");
    assert_eq!(self::runs(&server, "s2", 2).await.len(), 2);
}

#[tokio::test]
async fn a_job_that_cannot_be_started_is_refused_with_the_schedule() {
    let server = Server::start().await;
    let mut body = schedule(cron("0 0 1 1 *"));
    body["properties"]["action"]["jobDefinition"]["inputs"]["d"] =
        json!({"jobInputType": "uri_file", "uri": "azureml:nowhere:1"});
    let (_, why) = server.put("schedules/s1", body).await.refused(400);
    assert!(why.contains("the job of schedule `s1`") || why.contains("nowhere"), "{why}");
}

/// What a schedule has started, once it is so many.
async fn runs(server: &Server, name: &str, count: usize) -> Vec<Value> {
    for _ in 0..1000 {
        let view = server.get(&format!("schedules/{name}")).await.expect(200);
        let runs = view["properties"]["peregrine"]["runs"].as_array().unwrap().clone();
        if runs.len() >= count {
            return runs;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("schedule `{name}` has not started {count} jobs within 20 s");
}

fn cron(expression: &str) -> Value {
    json!({"triggerType": "Cron", "expression": expression, "timeZone": "UTC", "startTime": "2026-01-01T00:00:00"})
}

fn zoned(zone: &str) -> Value {
    json!({"triggerType": "Cron", "expression": "0 8 * * *", "timeZone": zone})
}

/// What a schedule starts: any job will do.
fn template() -> Value {
    json!({"jobType": "Command", "command": "echo ${{inputs.v}}", "computeId": "azureml:local", "experimentName": "e",
        "environmentId": "azureml:AzureML-Minimal@latest",
        "inputs": {"v": {"jobInputType": "literal", "value": "${{name}}"}}})
}

fn schedule(trigger: Value) -> Value {
    json!({"properties": {
        "trigger": trigger, "action": {"actionType": "CreateJob", "jobDefinition": template()}, "unheardOf": {"a": [1]},
    }})
}

fn names(page: &Value) -> Vec<String> {
    page["value"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}
