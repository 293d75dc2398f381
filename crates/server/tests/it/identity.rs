//! What clients ask before they have a token, and the tokens they get.

use crate::{Answer, Server, WS, ask, send, without_token};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use reqwest::Method;
use serde_json::{Value, json};

async fn principal(server: &Server) -> (String, String) {
    let made = server.post("/admin/v1/principals", json!({"name": "ana", "role": "contributor"})).await.expect(201);
    let word = |key: &str| made[key].as_str().unwrap().to_owned();
    (word("clientId"), word("clientSecret"))
}

async fn grant(server: &Server, id: &str, secret: &str, scope: &str) -> Answer {
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", id),
        ("client_secret", secret),
        ("scope", scope),
        ("client_info", "1"),
    ];
    let body = form.iter().map(|(k, v)| format!("{k}={}", v.replace(':', "%3A").replace('/', "%2F")));
    let request = server.user.request(Method::POST, "/adfs/oauth2/v2.0/token");
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    send(without_token(request.body(body.collect::<Vec<_>>().join("&")))).await
}

fn claims(token: &str) -> Value {
    serde_json::from_slice(&BASE64.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_client_finds_this_cloud_and_its_services_without_a_token() {
    let server = Server::start().await;
    let get = async |path: &str| send(without_token(server.user.request(Method::GET, path))).await.expect(200);
    let cloud = get("/metadata/endpoints?api-version=2019-05-01").await;
    let url = server.user.url();
    assert_eq!(cloud[0]["resourceManager"], format!("{url}/"));
    assert_eq!(cloud[0]["name"], "Peregrine");
    assert_eq!(get("/discovery").await["api"], url);
    for at in ["/adfs/.well-known/openid-configuration", "/any/v2.0/.well-known/openid-configuration"] {
        let endpoint = get(at).await["token_endpoint"].as_str().unwrap().to_owned();
        assert!(endpoint.starts_with(url) && endpoint.ends_with("/oauth2/v2.0/token"), "{endpoint}");
    }
}

#[tokio::test]
async fn a_secret_gets_a_token_for_each_audience_of_this_server_and_for_no_other() {
    let server = Server::start().await;
    let (id, secret) = principal(&server).await;
    let url = server.user.url().to_owned();
    for audience in
        [url.as_str(), "https://ml.azure.local", "https://management.azure.com", "https://storage.azure.com"]
    {
        let body = grant(&server, &id, &secret, &format!("{audience}/.default")).await.expect(200);
        let token = body["access_token"].as_str().unwrap();
        assert_eq!(claims(token)["aud"], audience);
        assert_eq!(claims(token)["sub"], id.as_str());
        let answer = ask(&server.with_token(token), Method::GET, WS, None).await;
        assert_eq!(answer.status, if audience.contains("storage") { 401 } else { 200 }, "{audience}");
    }
    let elsewhere = grant(&server, &id, &secret, "https://graph.example/.default").await.expect(400);
    assert_eq!(elsewhere["error"], "invalid_scope");
    let wrong = grant(&server, &id, "wrong", &format!("{url}/.default")).await.expect(401);
    assert_eq!(wrong["error"], "invalid_client");
    assert_eq!(grant(&server, "", "", "").await.expect(401)["error"], "invalid_client");
}

#[tokio::test]
async fn a_token_ends_when_its_principal_does_and_when_it_is_touched() {
    let server = Server::start().await;
    let (id, secret) = principal(&server).await;
    let scope = format!("{}/.default", server.user.url());
    let body = grant(&server, &id, &secret, &scope).await.expect(200);
    let token = body["access_token"].as_str().unwrap().to_owned();
    ask(&server.with_token(&token), Method::GET, WS, None).await.expect(200);
    let (head, signature) = token.rsplit_once('.').unwrap();
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    for forged in [format!("{head}.{flipped}{}", &signature[1..]), format!("{head}."), head.to_owned()] {
        ask(&server.with_token(&forged), Method::GET, WS, None).await.refused(401);
    }
    server.post("/admin/v1/keys/rotate", json!({})).await.expect(200);
    ask(&server.with_token(&token), Method::GET, WS, None).await.expect(200);
    server.delete(&format!("/admin/v1/principals/{id}")).await.expect(200);
    ask(&server.with_token(&token), Method::GET, WS, None).await.refused(401);
    grant(&server, &id, &secret, &scope).await.expect(401);
}

#[tokio::test]
async fn a_running_job_gets_an_identity_of_its_own_workspace_while_it_runs() {
    let server = Server::start().await;
    server.submit("train").await;
    let secret = {
        server.place("train").await;
        let poll = json!({"facts": crate::agents::facts("boot"), "holds": [], "stopping": []});
        let offered = ask(&server.agent, Method::POST, "/agent/v1/poll", Some(poll)).await.expect(200);
        let assignment = offered["assignments"][0].clone();
        assignment["server_variables"]["IDENTITY_HEADER"].as_str().unwrap().to_owned()
    };
    let ask_for = async |secret: &str, resource: &str| {
        let path = format!("/msi/token?api-version=2019-08-01&resource={resource}");
        send(without_token(server.user.request(Method::GET, &path)).header("X-IDENTITY-HEADER", secret)).await
    };
    let url = server.user.url();
    let token = ask_for(&secret, url).await.expect(200)["access_token"].as_str().unwrap().to_owned();
    assert_eq!(claims(&token)["sub"], "job:default/train");
    let inside = server.with_token(&token);
    ask(&inside, Method::GET, &format!("{WS}/jobs"), None).await.expect(200);
    ask(&inside, Method::GET, &WS.replace("default", "team"), None).await.refused(403);
    ask(&inside, Method::DELETE, WS, None).await.refused(403);
    ask_for("wrong", url).await.refused(401);
    ask_for(&secret, "https://elsewhere").await.refused(400);
}
