//! The studio's files and the session of a browser: what a cookie opens, for whom, and from where.

use crate::{Answer, Server, WS, send, without_token};
use reqwest::Method;
use serde_json::{Value, json};

/// A header that only the studio's own page sends.
const MARK: (&str, &str) = ("x-peregrine-studio", "1");

/// What a browser keeps of an answer.
fn kept(answer: &Answer) -> String {
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

async fn browse(server: &Server, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = without_token(server.user.request(method, path));
    send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

async fn enter(server: &Server, code: &Value) -> Answer {
    let request = without_token(server.user.request(Method::POST, "/admin/v1/studio/session"));
    send(request.header(MARK.0, MARK.1).json(&json!({"code": code}))).await
}

async fn session_of(server: &Server, token: &str) -> String {
    let client = server.with_token(token);
    let made = crate::ask(&client, Method::POST, "/admin/v1/studio/links", Some(json!({}))).await.expect(201);
    kept(&enter(server, &made["code"]).await)
}

#[tokio::test]
async fn a_link_becomes_a_session_once_and_the_session_can_be_left() {
    let server = Server::start().await;
    let made = server.post("/admin/v1/studio/links", json!({})).await.expect(201);
    assert!(made["url"].as_str().unwrap().ends_with(&format!("/studio/#enter={}", made["code"].as_str().unwrap())));
    let entered = enter(&server, &made["code"]).await;
    entered.expect(201);
    let set = entered.header("set-cookie").to_owned();
    for flag in ["__Host-", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict", "; Max-Age=3600"] {
        assert!(set.contains(flag), "{flag} in {set}");
    }
    enter(&server, &made["code"]).await.refused(401);
    let cookie = kept(&entered);
    let mine = [("cookie", cookie.as_str()), MARK];
    let told = browse(&server, Method::GET, "/admin/v1/studio/session", &mine).await;
    let shown = told.expect(200);
    assert_eq!(shown["workspaces"][0]["role"], "owner");
    assert_eq!(shown["workspaces"][0]["path"], WS);
    assert_eq!(
        shown["address"],
        json!(server.user.url()),
        "where others find the server, whatever the browser calls it"
    );
    assert!(told.header("set-cookie").contains("Max-Age=3600"), "asking renews");
    browse(&server, Method::GET, &format!("{WS}/jobs"), &mine).await.expect(200);
    let left = browse(&server, Method::DELETE, "/admin/v1/studio/session", &mine).await;
    assert_eq!((left.status, left.header("set-cookie").contains("Max-Age=0")), (204, true));
    browse(&server, Method::GET, &format!("{WS}/jobs"), &mine).await.refused(401);
}

#[tokio::test]
async fn a_link_of_someone_else_replaces_a_session_only_when_told_to() {
    let server = Server::start().await;
    let body = json!({"name": "ada", "role": "reader", "workspace": "default"});
    let ada = server.post("/admin/v1/principals", body).await.expect(201);
    let cookie = session_of(&server, ada["token"].as_str().unwrap()).await;
    let enter = async |code: &Value, replace: bool| {
        let request = without_token(server.user.request(Method::POST, "/admin/v1/studio/session"));
        let body = json!({"code": code, "replace": replace});
        send(request.header(MARK.0, MARK.1).header("cookie", &cookie).json(&body)).await
    };
    let other = server.post("/admin/v1/studio/links", json!({})).await.expect(201);
    let (_, message) = enter(&other["code"], false).await.refused(409);
    assert!(message.contains("signed in as `ada`"), "{message}");
    enter(&other["code"], true).await.expect(201);
    let client = server.with_token(ada["token"].as_str().unwrap());
    let own = crate::ask(&client, Method::POST, "/admin/v1/studio/links", Some(json!({}))).await.expect(201);
    enter(&own["code"], false).await.expect(201);
    enter(&json!("nonsense"), false).await.refused(401);
}

#[tokio::test]
async fn a_session_is_believed_from_the_studios_own_page_only() {
    let server = Server::start().await;
    server.submit("here").await;
    let made = server.post("/admin/v1/studio/links", json!({})).await.expect(201);
    let cookie = kept(&enter(&server, &made["code"]).await);
    let (own, cookie) = (server.user.url().to_owned(), ("cookie", cookie.as_str()));
    let cancel = format!("{WS}/jobs/here/cancel");
    for (headers, status) in [
        (vec![cookie], 403),
        (vec![cookie, MARK, ("origin", "https://elsewhere.example")], 403),
        (vec![cookie, MARK, ("sec-fetch-site", "same-site")], 403),
        (vec![cookie, MARK, ("origin", own.as_str()), ("sec-fetch-site", "same-origin")], 200),
    ] {
        let answer = browse(&server, Method::POST, &cancel, &headers).await;
        assert_eq!(answer.status, status, "{headers:?} {}", answer.text());
    }
    let forged = cookie.1.replace("home/", "agent/");
    browse(&server, Method::GET, &cancel, &[("cookie", &forged)]).await.refused(401);
    let unmarked = without_token(server.user.request(Method::POST, "/admin/v1/studio/session"));
    send(unmarked.json(&json!({"code": "x"}))).await.refused(403);
}

#[tokio::test]
async fn a_session_opens_what_its_person_may_until_they_may_no_more() {
    let server = Server::start().await;
    let body = json!({"name": "ada", "role": "reader", "workspace": "default"});
    let ada = server.post("/admin/v1/principals", body).await.expect(201);
    let cookie = session_of(&server, ada["token"].as_str().unwrap()).await;
    let mine = [("cookie", cookie.as_str()), MARK];
    browse(&server, Method::GET, &format!("{WS}/jobs"), &mine).await.expect(200);
    let (_, message) = browse(&server, Method::DELETE, &format!("{WS}/jobs/x"), &mine).await.refused(403);
    assert!(message.contains("is not contributor"), "{message}");
    browse(&server, Method::GET, "/admin/v1/audit", &mine).await.refused(403);
    server.delete(&format!("/admin/v1/principals/{}", ada["clientId"].as_str().unwrap())).await.expect(200);
    browse(&server, Method::GET, &format!("{WS}/jobs"), &mine).await.refused(401);
    let link = crate::ask(&server.agent, Method::POST, "/admin/v1/studio/links", Some(json!({}))).await;
    assert!(matches!(link.status, 401 | 403), "agents have no session: {}", link.text());
}

#[tokio::test]
async fn every_answer_says_how_a_browser_must_treat_it() {
    let server = Server::start().await;
    for (path, policy) in [("/studio/", "script-src 'self'"), ("/healthz", "sandbox"), ("/nowhere", "sandbox")] {
        let answer = browse(&server, Method::GET, path, &[]).await;
        assert!(answer.header("content-security-policy").contains(policy), "{path}");
        assert!(answer.header("content-security-policy").contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
    }
    let page = browse(&server, Method::GET, "/studio/default/jobs", &[]).await;
    match page.status {
        200 => assert!(page.text().contains("<div id=\"root\">")),
        // Built where there is no Node: the page says how to have one.
        _ => assert!(page.text().contains("PEREGRINE_STUDIO=on"), "{}", page.text()),
    }
}
