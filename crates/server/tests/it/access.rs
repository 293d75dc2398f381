//! Who may call what: the whole route table, tried as everyone.

use crate::{
    Answer, Server, WS, ask, job_body,
    meta::{filled, method},
    send, without_token,
};
use api::{
    Client,
    routes::{self, Access},
};
use domain::Role;
use reqwest::Method;
use serde_json::{Value, json};

/// Registers someone with a role; a client in their name, and what the server said.
pub(crate) async fn someone(server: &Server, name: &str, role: Role, workspace: Option<&str>) -> (Client, Value) {
    let body = json!({"name": name, "role": role, "workspace": workspace});
    let made = server.post("/admin/v1/principals", body).await.expect(201);
    (server.with_token(made["token"].as_str().unwrap()), made)
}

fn needed(access: Access) -> Option<Role> {
    match access {
        Access::Reader => Some(Role::Reader),
        Access::Contributor => Some(Role::Contributor),
        Access::Owner => Some(Role::Owner),
        _ => None,
    }
}

fn refusal(answer: &Answer, id: &str) -> String {
    // Blobs and MLflow's calls answer in dialects of their own.
    match id.split_once('_').map(|(kind, _)| kind) {
        Some("blob") => answer.header("x-ms-error-code").to_owned(),
        Some("mlflow") => match answer.expect(answer.status)["error_code"].as_str() {
            Some("UNAUTHENTICATED") => "AuthenticationFailed".to_owned(),
            other => other.unwrap_or_default().to_owned(),
        },
        _ => answer.refused(answer.status).0,
    }
}

#[tokio::test]
async fn every_route_refuses_the_anonymous_and_the_unknown() {
    let server = Server::start().await;
    let stranger = server.with_token("nonsense");
    for route in routes::all().filter(|route| route.access != Access::Open) {
        let request = || server.user.request(method(route.method), &filled(route.path)).json(&json!({}));
        let anonymous = send(without_token(request())).await;
        assert_eq!(anonymous.status, 401, "{}: {}", route.id, anonymous.text());
        let unknown = ask(&stranger, method(route.method), &filled(route.path), Some(json!({}))).await;
        assert_eq!(unknown.status, 401, "{}: {}", route.id, unknown.text());
        if route.method != "HEAD" {
            assert_eq!(refusal(&unknown, route.id), "AuthenticationFailed", "{}", route.id);
        }
    }
}

#[tokio::test]
async fn every_route_refuses_a_role_that_is_too_low_and_takes_one_that_is_not() {
    let server = Server::start().await;
    let other = WS.replace("default", "team");
    server.put(&other, json!({})).await;
    let (outsider, _) = someone(&server, "outsider", Role::Owner, Some("team")).await;
    let mut tried = 0;
    for role in Role::ALL {
        let (client, _) = someone(&server, role.as_str(), role, Some("default")).await;
        for route in routes::all() {
            let (Some(needed), true) = (needed(route.access), route.path.contains("{workspace}")) else { continue };
            // These would end the test's own ground.
            if matches!(route.id, "workspace_delete") && role >= needed {
                continue;
            }
            tried += 1;
            let at = filled(route.path);
            let answer = ask(&client, method(route.method), &at, Some(json!({}))).await;
            assert!(answer.status < 500 || matches!(answer.status, 501 | 503), "{}: {}", route.id, answer.text());
            assert_eq!(
                answer.status == 403,
                role < needed,
                "{} as {role}: {} {}",
                route.id,
                answer.status,
                answer.text()
            );
            let outside = ask(&outsider, method(route.method), &at, Some(json!({}))).await;
            assert_eq!(outside.status, 403, "{} from another workspace: {}", route.id, outside.text());
        }
    }
    assert!(tried > 60, "only {tried} routes were tried");
}

#[tokio::test]
async fn whoever_may_not_get_something_may_not_ask_for_its_head() {
    let server = Server::start().await;
    server.put(&WS.replace("default", "team"), json!({})).await;
    let (outsider, _) = someone(&server, "outsider", Role::Owner, Some("team")).await;
    let mut tried = 0;
    for route in routes::all().filter(|route| route.method == "GET" && needed(route.access).is_some()) {
        let answer = ask(&outsider, Method::HEAD, &filled(route.path), None).await;
        assert_eq!(answer.status, 403, "{}", route.id);
        tried += 1;
    }
    assert!(tried > 40, "only {tried} routes were tried");
    assert_eq!(ask(&server.user, Method::HEAD, "/healthz", None).await.status, 200);
}

#[tokio::test]
async fn an_owner_of_one_workspace_learns_nothing_of_roles_elsewhere() {
    let server = Server::start().await;
    server.put(&WS.replace("default", "team"), json!({})).await;
    let (owner, _) = someone(&server, "owner", Role::Owner, Some("default")).await;
    let (_, made) = someone(&server, "ana", Role::Owner, Some("team")).await;
    let id = made["clientId"].as_str().unwrap();
    let give =
        async |id: &str| ask(&owner, Method::PUT, &format!("{WS}/roles/{id}"), Some(json!({"role": "reader"}))).await;
    assert_eq!(give(id).await.expect(200)["roles"], json!({"default": "reader"}));
    let (_, message) = give("nobody").await.refused(404);
    assert!(!message.contains(id), "{message}");
}

#[tokio::test]
async fn roles_do_not_outlive_their_workspace() {
    let server = Server::start().await;
    let team = WS.replace("default", "team");
    server.put(&team, json!({})).await;
    let (owner, _) = someone(&server, "former", Role::Owner, Some("team")).await;
    ask(&owner, Method::GET, &team, None).await.expect(200);
    server.delete(&team).await;
    server.put(&team, json!({})).await;
    ask(&owner, Method::GET, &team, None).await.refused(403);
}

#[tokio::test]
async fn the_audit_of_a_workspace_knows_it_by_every_spelling() {
    let server = Server::start().await;
    let shouted = WS.replace("default", "DEFAULT");
    let data = json!({"properties": {"dataUri": "azureml://datastores/x/paths/y", "dataType": "uri_file"}});
    server.put(&format!("{shouted}/data/hid/versions/1"), data).await.expect(201);
    server.post("/admin/v1/keys/rotate", json!({})).await.expect(200);
    assert_eq!(server.get("audit").await.expect(200)["value"][0]["operation"], "asset_put");
    assert_eq!(server.get("/admin/v1/audit").await.expect(200)["value"][0]["operation"], "keys_rotate");
}

#[tokio::test]
async fn only_owners_of_the_whole_server_manage_it() {
    let server = Server::start().await;
    let (owner, _) = someone(&server, "one workspace", Role::Owner, Some("default")).await;
    let (operator, _) = someone(&server, "operator", Role::Owner, None).await;
    for path in ["/admin/v1/principals", "/admin/v1/audit"] {
        assert_eq!(ask(&owner, Method::GET, path, None).await.refused(403).0, "AuthorizationFailed");
        ask(&operator, Method::GET, path, None).await.expect(200);
    }
    let body = json!({"name": "friend", "role": "owner"});
    ask(&owner, Method::POST, "/admin/v1/principals", Some(body)).await.refused(403);
}

#[tokio::test]
async fn agents_and_users_keep_to_their_own_routes() {
    let server = Server::start().await;
    for route in routes::all().filter(|route| route.method != "HEAD") {
        let agents = route.access == Access::Agent;
        let wrong = if agents { &server.user } else { &server.agent };
        if route.access == Access::Open {
            continue;
        }
        let answer = ask(wrong, method(route.method), &filled(route.path), Some(json!({}))).await;
        assert!(matches!(answer.status, 401 | 403), "{}: {} {}", route.id, answer.status, answer.text());
    }
}

#[tokio::test]
async fn a_role_can_be_given_and_taken_away_at_once() {
    let server = Server::start().await;
    let (client, made) = someone(&server, "ana", Role::Reader, Some("default")).await;
    let id = made["clientId"].as_str().unwrap();
    let submit = async |name: &str| ask(&client, Method::PUT, &format!("{WS}/jobs/{name}"), Some(job_body())).await;
    let (_, message) = submit("first").await.refused(403);
    assert!(message.contains("`ana` is not contributor of `default`"), "{message}");
    server.put(&format!("roles/{id}"), json!({"role": "contributor"})).await.expect(200);
    let job = submit("second").await.expect(201);
    assert_eq!(job["systemData"]["createdBy"], "ana");
    server.delete(&format!("roles/{id}")).await.expect(200);
    submit("third").await.refused(403);
    server.delete(&format!("/admin/v1/principals/{id}")).await.expect(200);
    submit("fourth").await.refused(401);
}

#[tokio::test]
async fn a_role_can_be_given_in_a_registry_that_is_there() {
    let server = Server::start().await;
    let registry = WS.replace("workspaces/default", "registries/shared");
    server.put(&registry, json!({})).await.expect(201);
    let (maker, _) = someone(&server, "maker", Role::Contributor, Some("@shared")).await;
    let (other, made) = someone(&server, "other", Role::Contributor, Some("default")).await;
    let asset = async |client: &Client, name: &str| {
        let body = json!({"properties": {"dataType": "uri_folder", "dataUri": "azureml://x"}});
        ask(client, Method::PUT, &format!("{registry}/data/{name}/versions/1"), Some(body)).await.status
    };
    assert_eq!((asset(&maker, "a").await, asset(&other, "b").await), (201, 403));
    let role = format!("{}/roles/{}", WS.replace("default", "@shared"), made["clientId"].as_str().unwrap());
    ask(&maker, Method::PUT, &role, Some(json!({"role": "contributor"}))).await.refused(403);
    server.put(&role, json!({"role": "contributor"})).await.expect(200);
    assert_eq!(asset(&other, "b").await, 201);
    let here = server.get(&format!("{}/roles", WS.replace("default", "@shared"))).await.expect(200);
    assert_eq!(here["value"].as_array().unwrap().iter().filter(|role| role["workspace"] == "@shared").count(), 2);
    server.delete(&role).await.expect(200);
    assert_eq!(asset(&other, "c").await, 403);
    server.put(&role.replace("@shared", "@none"), json!({"role": "reader"})).await.refused(404);
    let body = json!({"name": "x", "role": "reader", "workspace": "@none"});
    server.post("/admin/v1/principals", body).await.refused(404);
}

#[tokio::test]
async fn lists_of_workspaces_show_those_one_may_see() {
    let server = Server::start().await;
    server.put(&WS.replace("default", "team"), json!({})).await;
    let (client, _) = someone(&server, "ana", Role::Reader, Some("team")).await;
    let all = WS.trim_end_matches("/default");
    let seen = ask(&client, Method::GET, all, None).await.expect(200);
    let names: Vec<&str> = seen["value"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["team"]);
}

#[tokio::test]
async fn the_audit_holds_every_change_and_every_refusal_and_no_secret() {
    let server = Server::start().await;
    let (reader, made) = someone(&server, "ana", Role::Reader, Some("default")).await;
    server.submit("mine").await;
    server.put("jobs/mine", json!({"properties": {"tags": {"a": "b"}}})).await.expect(200);
    server.put("jobs/bad", json!({"properties": {"command": ""}})).await.refused(400);
    server.get("jobs/mine").await.expect(200);
    ask(&reader, Method::POST, &format!("{WS}/jobs/mine/cancel"), Some(json!({}))).await.refused(403);
    let lines = server.get("audit").await.expect(200)["value"].as_array().unwrap().clone();
    let told: Vec<(&str, &str)> = lines
        .iter()
        .rev()
        .map(|line| (line["operation"].as_str().unwrap(), line["result"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("job_put", "done"), ("job_put", "done"), ("job_cancel", "refused")]);
    let id = made["clientId"].as_str().unwrap();
    assert_eq!(lines[0]["caller"], format!("ana ({id})"), "a name is anyone's to choose");
    let whole = server.get("/admin/v1/audit").await.text();
    assert!(whole.contains("principal_create"), "{whole}");
    assert!(!whole.contains(made["clientSecret"].as_str().unwrap()));
    let page = server.get("/admin/v1/audit?$top=1").await.expect(200);
    assert_eq!(page["value"].as_array().unwrap().len(), 1);
    let next = page["nextLink"].as_str().unwrap();
    assert_ne!(server.get(next).await.expect(200)["value"][0]["at"], Value::Null);
}

#[tokio::test]
async fn what_makes_no_sense_about_principals_is_refused() {
    let server = Server::start().await;
    for (body, piece) in [
        (json!({"name": "", "role": "reader"}), "`name`"),
        (json!({"name": "x".repeat(101), "role": "reader"}), "`name`"),
        (json!({"name": "a\u{0}b", "role": "reader"}), "`name`"),
        (json!({"name": "a", "role": "king"}), "one of reader, contributor, owner"),
        (json!({"name": "a", "role": "reader", "expiresInDays": -1}), "expiresInDays"),
        (json!({"name": 7, "role": "reader"}), "JSON"),
    ] {
        let (_, message) = server.post("/admin/v1/principals", body).await.refused(400);
        assert!(message.contains(piece), "{message}");
    }
    let body = json!({"name": "a", "role": "reader", "workspace": "nowhere"});
    server.post("/admin/v1/principals", body).await.refused(404);
    server.delete("/admin/v1/principals/nobody").await.refused(404);
}
