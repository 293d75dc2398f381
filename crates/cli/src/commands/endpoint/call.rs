//! Calling an online endpoint: where it answers, what opens it, and what an answer means for whoever called.

use super::{super::record::Place, ONLINE, scoring_uri};
use crate::{
    commands::{Context, Session, record, settle},
    failure::{Doing, Done, Exit, Failure},
};
use api::{Client, Connection, arm::tree::word};
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// The header that asks one deployment, past the traffic's shares.
pub(in crate::commands) const DEPLOYMENT: &str = "azureml-model-deployment";
const MODEL_STATUS: &str = "ms-azureml-model-error-statuscode";
/// Of an answer that is an error, no more than this is repeated.
const SHOWN_BYTES: usize = 2_000;

/// What is sent to a model.
pub(in crate::commands) struct Payload {
    bytes: Vec<u8>,
    kind: &'static str,
}

impl Payload {
    /// A file as it is, or an empty JSON object.
    pub(in crate::commands) fn of(file: Option<&Path>) -> Done<Payload> {
        let Some(file) = file else { return Ok(Payload { bytes: b"{}".to_vec(), kind: "application/json" }) };
        let read = fs::read(file).map_err(|error| Failure::file(format!("cannot read `{}`", file.display()), &error));
        let bytes = read?;
        let json = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
        Ok(Payload { bytes, kind: if json { "application/json" } else { "application/octet-stream" } })
    }
}

/// The way to an endpoint's models.
pub(in crate::commands) struct Door {
    client: Client,
    uri: String,
    authorization: HeaderValue,
}

impl Door {
    /// Asks for the endpoint's address and for what opens it.
    pub(in crate::commands) async fn of(session: &Session<'_>, at: &Place) -> Done<Door> {
        let found = record::fetch(ONLINE, session, at).await?;
        let answer = credentials(session, at, &found).await?;
        let key = word(&answer, "primaryKey").or_else(|| word(&answer, "accessToken")).unwrap_or_default();
        let authorization = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
            Failure::input(format!("the key of online endpoint `{}` cannot stand in a header", at.name))
                .hint(format!("run `peregrine online-endpoint regenerate-keys -n {}`", at.name))
        })?;
        Ok(Door { client: caller(session)?, uri: scoring_uri(&found, at)?, authorization })
    }

    /// A request to the endpoint, or to one of its deployments.
    pub(in crate::commands) fn request(&self, payload: &Payload, deployment: Option<&str>) -> RequestBuilder {
        // Replaces the token of this user: a scoring address takes keys.
        let mut headers = HeaderMap::from_iter([(AUTHORIZATION, self.authorization.clone())]);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(payload.kind));
        let request = self.client.request(Method::POST, &self.uri).headers(headers).body(payload.bytes.clone());
        match deployment {
            Some(name) => request.header(DEPLOYMENT, name),
            None => request,
        }
    }
}

/// Who calls an endpoint sees what all its callers see: the operator's certificate, where there is one. The client of this
/// command knows a door of the server's that shows another.
fn caller(session: &Session<'_>) -> Done<Client> {
    let config = &session.context.config;
    let shown = agent::server::address(&config.home).filter(|_| config.url.is_none()).and_then(|left| left.local_url);
    if shown.is_none() {
        return Ok(session.client.clone());
    }
    let read = |path| fs::read(path).map_err(|error| Failure::file("cannot read `server.authority_file`", &error));
    let authority = config.authority_file.as_ref().map(read).transpose()?;
    Ok(Client::new(Connection { url: session.client.url().to_owned(), token: String::new(), authority })?)
}

/// The keys, or a token, as the calls that exist for it give them.
pub(super) async fn credentials(session: &Session<'_>, at: &Place, found: &Value) -> Done<Value> {
    let by_key = word(&found["properties"], "authMode").is_none_or(|mode| mode.eq_ignore_ascii_case("key"));
    let action = if by_key { "listKeys" } else { "token" };
    let answer = settle::post(session, &format!("{}/{action}", at.path), &json!({}), true).await;
    answer.doing(|| format!("cannot get the credentials of `{}`", at.name))
}

pub(super) async fn invoke(context: &Context, at: &Place, file: &Path, deployment: Option<&str>) -> Done {
    let payload = Payload::of(Some(file))?;
    let session = context.session().await?;
    let door = Door::of(&session, at).await?;
    let answer = door.request(&payload, deployment).send().await;
    let answer = answer.map_err(|error| unreachable(&at.name, error))?;
    if !answer.status().is_success() {
        return Err(refused(&at.name, answer).await);
    }
    let bytes = answer.bytes().await.map_err(|error| unreachable(&at.name, error))?;
    context.output.bytes(&bytes)
}

fn unreachable(name: &str, error: reqwest::Error) -> Failure {
    let mut failure =
        Failure::new(Exit::Unreachable, format!("online endpoint `{name}` did not answer")).because(error.to_string());
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        failure = failure.because(inner.to_string());
        cause = inner.source();
    }
    failure.hint("`peregrine server status` shows whether the router runs")
}

/// An answer that is no success, in the words of whoever gave it.
async fn refused(name: &str, answer: Response) -> Failure {
    let status = answer.status();
    let header = |key: &str| answer.headers().get(key).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (own, deployment, id) = (header(MODEL_STATUS), header(DEPLOYMENT), header("x-request-id"));
    let body = answer.bytes().await.unwrap_or_default();
    let mut failure = Failure::new(exit_of(status), format!("online endpoint `{name}` answered {}", status.as_u16()));
    if let Some(own) = own {
        let who = deployment.as_deref().unwrap_or("the model");
        failure = failure.because(format!("the model of `{who}` answered {own}"));
    }
    failure = failure.because(words(&body));
    if let Some(id) = id {
        failure = failure.because(format!("it is request `{id}` in the router's log"));
    }
    match hint(status, name, deployment.as_deref()) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The message of the router's own answers; of others, their text.
pub(super) fn words(body: &[u8]) -> String {
    let tree: Value = serde_json::from_slice(body).unwrap_or_default();
    let own = tree["error"]["message"].as_str().or_else(|| tree["message"].as_str());
    let text = own.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    match text.trim() {
        "" => "the answer has no text".to_owned(),
        text => text.chars().take(SHOWN_BYTES).collect(),
    }
}

/// Whose fault it is: the model's, the caller's, or that of too few replicas.
fn exit_of(status: StatusCode) -> Exit {
    match status.as_u16() {
        401 | 403 => Exit::NotAllowed,
        502 | 504 | 424 => Exit::JobFailed,
        503 => Exit::Unreachable,
        400..=499 => Exit::Input,
        _ => Exit::Ours,
    }
}

fn hint(status: StatusCode, name: &str, deployment: Option<&str>) -> Option<String> {
    let deployment = deployment.unwrap_or("DEPLOYMENT");
    Some(match status.as_u16() {
        401 | 403 => format!("`peregrine online-endpoint get-credentials -n {name}` prints what opens it"),
        404 => format!("`peregrine online-endpoint show -n {name} --query traffic` shows who gets requests"),
        502 => format!("`peregrine online-deployment get-logs -n {deployment} -e {name}` shows what the model said"),
        503 => "raise `instance_count`, `max_queue_wait_ms` or `max_concurrent_requests_per_instance`".to_owned(),
        504 => "raise `request_settings.request_timeout_ms` of the deployment, or make the model faster".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_fault_it_is_decides_the_exit_code() {
        for (status, exit) in [
            (401, Exit::NotAllowed),
            (403, Exit::NotAllowed),
            (404, Exit::Input),
            (413, Exit::Input),
            (429, Exit::Input),
            (500, Exit::Ours),
            (502, Exit::JobFailed),
            (503, Exit::Unreachable),
            (504, Exit::JobFailed),
        ] {
            assert_eq!(exit_of(StatusCode::from_u16(status).unwrap()), exit, "{status}");
        }
    }

    #[test]
    fn an_answer_is_told_by_its_message_or_its_text() {
        assert_eq!(words(br#"{"error": {"code": "NoSlot", "message": "no slot"}}"#), "no slot");
        assert_eq!(words(br#"{"message": "An unexpected error"}"#), "An unexpected error");
        assert_eq!(words(b"plain words\n"), "plain words");
        assert_eq!(words(b""), "the answer has no text");
    }
}
