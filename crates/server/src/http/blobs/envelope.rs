//! The manners of the dialect: every answer names its request, every refusal is XML with its code in a header.

use crate::{app::App, patience::Lent, problem::Told};
use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long and how much of a body is taken that nobody wants, before the connection is cut.
const DRAIN: Duration = Duration::from_secs(20);
const DRAIN_BYTES: usize = 256 << 20;
/// The version told to clients that name none.
const VERSION: HeaderValue = HeaderValue::from_static("2021-06-08");

/// The most that is taken of a body that is no blob's.
const DRAIN_SMALL: usize = 16 << 20;

/// Around everything under `/blob`, also around those who refuse before a handler is reached. Of everyone's bodies, what a
/// refusal left unread is taken: a client that still sends would not see the answer.
pub(crate) async fn manners(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path != "/blob" && !path.starts_with("/blob/") {
        if !crate::guard::is_long(&request) {
            return next.run(request).await;
        }
        let (request, rest) = lend(request);
        let answer = next.run(request).await;
        if answer.status().is_client_error() || answer.status().is_server_error() {
            drain(rest, DRAIN_SMALL).await;
        }
        return answer;
    }
    let version = request.headers().get("x-ms-version").cloned().unwrap_or(VERSION);
    let named = request.headers().get("x-ms-client-request-id").cloned();
    let head = request.method() == Method::HEAD;
    let (request, rest) = lend(request);
    let mut answer = next.run(request).await;
    if answer.status().is_client_error() || answer.status().is_server_error() {
        answer = in_dialect(answer, head);
        drain(rest, DRAIN_BYTES).await;
    }
    let id = super::super::workspaces::guid(app.store.keyring().random());
    let headers = answer.headers_mut();
    headers.insert("x-ms-version", version);
    headers.insert("x-ms-request-id", super::text(&id));
    if let Some(named) = named {
        headers.insert("x-ms-client-request-id", named);
    }
    answer
}

/// The same request, whose body comes back when its handler is done with it.
fn lend(request: Request) -> (Request, oneshot::Receiver<Body>) {
    let (back, rest) = oneshot::channel();
    (request.map(|body| Body::new(Lent::new(body, back))), rest)
}

/// Takes what is left of a body and forgets it: a client that still sends would not read the answer.
async fn drain(mut rest: oneshot::Receiver<Body>, most: usize) {
    let Ok(body) = rest.try_recv() else { return };
    let mut chunks = body.into_data_stream();
    let mut taken = 0;
    let all = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            taken += chunk.len();
            if taken > most {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN, all).await;
}

/// The envelope blob clients read: XML, and the code again in a header.
fn in_dialect(answer: Response, head: bool) -> Response {
    let status = answer.status();
    let told = answer.extensions().get::<Told>().cloned();
    let told =
        told.unwrap_or_else(|| Told { code: code_of(status), message: "the request cannot be served".to_owned() });
    let code = match told.code {
        "UserError" => "InvalidInput",
        "MethodNotAllowed" => "UnsupportedHttpVerb",
        code => code,
    };
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code><Message>{}</Message></Error>",
        escape(&told.message)
    );
    let body = if head { String::new() } else { text };
    let mut shown = (status, [(header::CONTENT_TYPE, "application/xml")], body).into_response();
    for name in
        [header::CONNECTION, header::RETRY_AFTER, header::ALLOW, header::WWW_AUTHENTICATE, header::CONTENT_RANGE]
    {
        if let Some(value) = answer.headers().get(&name) {
            shown.headers_mut().insert(name, value.clone());
        }
    }
    shown.headers_mut().insert("x-ms-error-code", HeaderValue::from_static(code));
    shown
}

fn code_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "AuthenticationFailed",
        StatusCode::NOT_FOUND => "ResourceNotFound",
        StatusCode::METHOD_NOT_ALLOWED => "UnsupportedHttpVerb",
        StatusCode::PAYLOAD_TOO_LARGE => "RequestBodyTooLarge",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "ServerBusy",
        status if status.is_server_error() => "InternalError",
        _ => "InvalidInput",
    }
}

/// Text inside XML. Letters that XML cannot hold are left out.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if is_xml(letter) => out.push(letter),
            _ => {}
        }
    }
    out
}

/// Whether XML 1.0 can hold a letter at all.
pub(super) fn is_xml(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r') || letter >= ' ' && !matches!(letter, '\u{fffe}' | '\u{ffff}')
}
