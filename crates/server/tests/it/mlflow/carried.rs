//! What imported things keep of where they come from, and who may say it.

use super::*;

const BORN: i64 = 1_600_000_000_000;

fn run(id: &str) -> Value {
    json!({"experiment_id": "0", "run_name": "old", "peregrine": {"id": id}})
}

#[tokio::test]
async fn an_owner_brings_ids_numbers_stages_and_ages_along() {
    let server = Server::start().await;
    let made = server.tell("runs/create", run("0123abcd")).await.expect(200);
    assert_eq!(made["run"]["info"]["run_id"], "0123abcd");
    let old = json!({"name": "aged", "peregrine": {"created_at": BORN}});
    server.tell("experiments/create", old.clone()).await.expect(200);
    let shown = server.question("experiments/get-by-name", json!({"experiment_name": "aged"})).await.expect(200);
    assert_eq!(shown["experiment"]["creation_time"], BORN);
    let made = server.tell("registered-models/create", old).await.expect(200);
    assert_eq!(made["registered_model"]["creation_timestamp"], BORN);
    let version = |carried: Value| json!({"name": "aged", "source": "mlflow-artifacts:/0/0123abcd/artifacts/m", "run_id": "0123abcd", "peregrine": carried});
    let carried = json!({"version": 7, "stage": "Staging", "created_at": BORN});
    let made =
        server.tell("model-versions/create", version(carried.clone())).await.expect(200)["model_version"].clone();
    assert_eq!(
        (&made["version"], &made["current_stage"], &made["creation_timestamp"]),
        (&json!("7"), &json!("Staging"), &json!(BORN))
    );
    let next = server.tell("model-versions/create", version(Value::Null)).await.expect(200);
    assert_eq!(next["model_version"]["version"], "8", "numbers go on after those that were brought");
    let model = json!({"experiment_id": "0", "name": "m", "peregrine": {"id": "m-0123", "created_at": BORN}});
    let made = server.tell("logged-models", model.clone()).await.expect(200);
    assert_eq!(made["model"]["info"]["model_id"], "m-0123");
    assert_eq!(made["model"]["info"]["creation_timestamp_ms"], BORN);
    for (call, taken) in
        [("runs/create", run("0123abcd")), ("model-versions/create", version(carried)), ("logged-models", model)]
    {
        assert_eq!(server.tell(call, taken).await.code(400), "RESOURCE_ALREADY_EXISTS", "{call}");
    }
}

#[tokio::test]
async fn nobody_else_writes_the_past_and_nothing_unsound_is_taken() {
    let server = Server::start().await;
    let made = server.post("/admin/v1/principals", json!({"name": "ana", "role": "contributor"})).await.expect(201);
    let word = |key: &str| made[key].as_str().unwrap().to_owned();
    let ana = server.user.with_token(format!("pgn.{}.{}", word("clientId"), word("clientSecret")));
    let told = call(&ana, Method::POST, "runs/create", run("0123abcd")).await;
    assert_eq!(told.code(403), "PERMISSION_DENIED");
    call(&ana, Method::POST, "runs/create", json!({"experiment_id": "0"})).await.expect(200);
    for bad in [
        json!("0123abcd"),
        json!({"id": "../x"}),
        json!({"id": 5}),
        json!({"unknown": 1}),
        json!({"version": 0}),
        json!({"stage": "nowhere"}),
    ] {
        let args = json!({"name": "m", "source": "s3://b/m", "experiment_id": "0", "peregrine": bad});
        let call = if bad.get("stage").is_some() { "model-versions/create" } else { "runs/create" };
        assert_eq!(server.tell(call, args).await.code(400), "INVALID_PARAMETER_VALUE", "{bad}");
    }
}
