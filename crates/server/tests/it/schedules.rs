//! `…/schedules`: kept as they were sent, checked, and honest about not starting anything yet.

use crate::Server;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_schedule_comes_back_as_it_was_sent_and_does_not_claim_to_work() {
    let server = Server::start().await;
    let made = server.put("schedules/nightly", schedule(cron("0 2 * * *"))).await;
    let view = made.expect(201);
    assert_eq!(made.header("retry-after"), "1");
    assert_eq!(server.get(made.header("azure-asyncoperation")).await.expect(200)["status"], "Succeeded");
    let properties = &view["properties"];
    assert_eq!((&properties["provisioningState"], &properties["isEnabled"]), (&json!("Unknown"), &json!(true)));
    assert!(properties["properties"]["peregrine.state"].as_str().unwrap().contains("do not start jobs yet"));
    assert_eq!(properties["unheardOf"], json!({"a": [1]}));
    assert_eq!(properties["action"], schedule(cron("0 2 * * *"))["properties"]["action"]);
    assert_eq!(server.get("schedules/nightly").await.expect(200), view);
    // Switching it off sends everything back.
    let mut off = view.clone();
    off["properties"]["isEnabled"] = json!(false);
    assert_eq!(server.put("schedules/nightly", off).await.expect(200)["properties"]["isEnabled"], false);
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
        (cron("* * *"), job(pipeline()), "five are needed"),
        (cron("61 * * * *"), job(pipeline()), "minute"),
        (json!({"triggerType": "Moon"}), job(pipeline()), "`Recurrence`"),
        (json!({"triggerType": "Recurrence", "frequency": "Era", "interval": 1}), job(pipeline()), "`Month`"),
        (json!({"triggerType": "Recurrence", "frequency": "day", "interval": 0}), job(pipeline()), "interval"),
        (
            json!({"triggerType": "Recurrence", "frequency": "day", "interval": 1, "schedule": {"hours": [25]}}),
            job(pipeline()),
            "hours",
        ),
        (Value::Null, job(pipeline()), "trigger"),
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

fn cron(expression: &str) -> Value {
    json!({"triggerType": "Cron", "expression": expression, "timeZone": "UTC"})
}

fn pipeline() -> Value {
    json!({"jobType": "Pipeline", "jobs": {}, "settings": {"default_compute": "azureml:local"}})
}

fn schedule(trigger: Value) -> Value {
    json!({"properties": {
        "trigger": trigger, "action": {"actionType": "CreateJob", "jobDefinition": pipeline()}, "unheardOf": {"a": [1]},
    }})
}

fn names(page: &Value) -> Vec<String> {
    page["value"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}
