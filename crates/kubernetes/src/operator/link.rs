//! The way to the server: one poll that waits for work, one that tells what happened.
//!
//! Both dial out, through the proxy the environment names. Token and authority are read anew before each call, so that they
//! may be replaced while the operator runs. Invariants: what is not told stays to be told; a server that is away holds up
//! nothing on the cluster; an answer is acted on before the next question.

mod outbox;

pub(crate) use outbox::Outbox;

use super::{metrics::Metrics, pace::Pace};
use api::{Client, ClientError, Connection};
use domain::{
    AttemptId, Timestamp,
    cluster::{ClusterAnswer, ClusterPoll, ClusterReport},
};
use serde_json::Value;
use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{sleep, timeout},
};

/// A poll that has not been answered for this long is lost.
const POLL_AT_MOST: Duration = Duration::from_secs(90);
const REPORT_AT_MOST: Duration = Duration::from_secs(30);
/// What is held changes in bursts; the server is told when they are over.
const SETTLE: Duration = Duration::from_millis(300);
/// News are sent in batches, not one by one.
const GATHER: Duration = Duration::from_millis(50);

/// Where the server is and what proves who we are.
#[derive(Debug, Clone)]
pub struct Server {
    pub url: String,
    pub token_file: PathBuf,
    /// Absent, or naming a file that does not exist: the system's authorities.
    pub authority_file: Option<PathBuf>,
}

/// What the operator holds, as the server is told with every poll.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Holding {
    pub(crate) holds: Vec<AttemptId>,
    pub(crate) leaving: Vec<AttemptId>,
    pub(crate) facts: String,
}

/// An answer, and how to say that it was taken in.
pub(crate) type Answered = (Box<ClusterAnswer>, oneshot::Sender<()>);

#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("cannot read `{}`", .0.display())]
    File(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
}

pub(crate) struct Link {
    server: Server,
    metrics: Arc<Metrics>,
    clock: fn() -> Timestamp,
    /// Which cluster this is.
    uid: String,
}

impl Link {
    pub(crate) fn new(server: Server, metrics: Arc<Metrics>, clock: fn() -> Timestamp, uid: String) -> Link {
        Link { server, metrics, clock, uid }
    }

    /// Asks for work, for ever.
    pub(crate) async fn ask(&self, mut holding: watch::Receiver<Option<Holding>>, to: mpsc::Sender<Answered>) {
        let mut way = Way::default();
        let mut pace = Pace::default();
        loop {
            let Some(held) = holding.borrow_and_update().clone() else {
                // Nothing may be asked before everything on the cluster was listed.
                if holding.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let answer = tokio::select! {
                answer = self.poll(&mut way, held) => answer,
                // What is held has changed: ask anew, so that the server knows.
                () = settled(&mut holding) => continue,
            };
            match answer {
                Ok(answer) => {
                    pace.succeeded();
                    self.metrics.connected(true);
                    let (taken, wait) = oneshot::channel();
                    if to.send((Box::new(answer), taken)).await.is_err() {
                        return;
                    }
                    let _ = wait.await;
                }
                Err(error) => {
                    self.metrics.connected(false);
                    let wait = pace.after_failure();
                    tracing::warn!(
                        server = self.server.url,
                        error = chain(&error),
                        wait_ms = wait.as_millis(),
                        "cannot ask the server"
                    );
                    sleep(wait).await;
                }
            }
        }
    }

    /// Tells what is in the outbox, for ever.
    pub(crate) async fn tell(&self, outbox: &Outbox) {
        let (mut way, mut pace, mut most) = (Way::default(), Pace::default(), outbox::AT_ONCE);
        loop {
            outbox.filled().await;
            sleep(GATHER).await;
            let report = outbox.take(most);
            let sent = async {
                let client = way.client(&self.server)?;
                let post = client.post::<Value>("/cluster/v1/report", &report);
                Ok(timeout(REPORT_AT_MOST, post).await.map_err(|_| LinkError::Late(REPORT_AT_MOST))??)
            };
            let sent: Result<Value, LinkError> = sent.await;
            match sent {
                Ok(_) => {
                    pace.succeeded();
                    most = outbox::AT_ONCE;
                    self.metrics.told.inc_by(report.news.len() as u64);
                }
                Err(error) if is_refused(&error) => {
                    // The server will not take this however often it is sent; of several things one may be at fault.
                    match outbox::count(&report) {
                        0 | 1 => tracing::error!(error = chain(&error), "the server refused to be told something"),
                        several => {
                            most = several / 2;
                            outbox.put_back(report);
                            continue;
                        }
                    }
                }
                Err(error) if is_conflict(&error) && report.facts.is_some() => {
                    // Asked for again once the server takes them; what happened to attempts must not wait for that.
                    tracing::error!(error = chain(&error), "the server refused what this cluster says of itself");
                    outbox.put_back(ClusterReport { facts: None, ..report });
                }
                Err(error) => {
                    outbox.put_back(report);
                    let wait = pace.after_failure();
                    tracing::warn!(
                        server = self.server.url,
                        error = chain(&error),
                        wait_ms = wait.as_millis(),
                        "cannot tell the server"
                    );
                    sleep(wait).await;
                }
            }
        }
    }

    async fn poll(&self, way: &mut Way, held: Holding) -> Result<ClusterAnswer, LinkError> {
        let (now, uid) = ((self.clock)(), self.uid.clone());
        let poll = ClusterPoll { now, uid, facts: held.facts, holds: held.holds, leaving: held.leaving };
        let client = way.client(&self.server)?;
        let answer = client.post("/cluster/v1/poll", &poll);
        let mut answer: ClusterAnswer =
            timeout(POLL_AT_MOST, answer).await.map_err(|_| LinkError::Late(POLL_AT_MOST))??;
        // A server may not know who signed its certificate; the authority that leads us to it leads pods to it too.
        let own = way.made_of.1.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        for launch in answer.launch.iter_mut().filter(|launch| launch.authority.is_empty()) {
            launch.authority = own.clone().into_owned();
        }
        Ok(answer)
    }
}

async fn settled(holding: &mut watch::Receiver<Option<Holding>>) {
    if holding.changed().await.is_err() {
        // Nobody changes it any more.
        std::future::pending::<()>().await;
    }
    sleep(SETTLE).await;
}

fn is_refused(error: &LinkError) -> bool {
    matches!(error, LinkError::Client(ClientError::Refused { status: 400 | 413 | 422, .. }))
}

fn is_conflict(error: &LinkError) -> bool {
    matches!(error, LinkError::Client(ClientError::Refused { status: 409, .. }))
}

/// A client for as long as token and authority stay the same.
#[derive(Default)]
struct Way {
    made_of: (String, Option<Vec<u8>>),
    client: Option<Client>,
}

impl Way {
    fn client(&mut self, server: &Server) -> Result<Client, LinkError> {
        let path = &server.token_file;
        let token = fs::read_to_string(path).map_err(|error| LinkError::File(path.clone(), error))?.trim().to_owned();
        let authority =
            server.authority_file.as_ref().and_then(|path| fs::read(path).ok()).filter(|pem| !pem.is_empty());
        let parts = (token, authority);
        if let Some(client) = self.client.clone().filter(|_| self.made_of == parts) {
            return Ok(client);
        }
        let url = server.url.trim_end_matches('/').to_owned();
        let client = Client::new(Connection { url, token: parts.0.clone(), authority: parts.1.clone() })?;
        self.made_of = parts;
        self.client = Some(client.clone());
        Ok(client)
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Json, Router, http::StatusCode, routing};
    use domain::cluster::{AttemptNews, ClusterFacts, ClusterWhat};
    use serde_json::json;
    use tokio::net::TcpListener;

    /// A server that takes this cluster for another, does not understand one attempt, and writes down the rest of what it is
    /// told.
    async fn serve(listener: TcpListener, heard: mpsc::UnboundedSender<ClusterReport>) {
        let error = |status, message: &str| (status, Json(json!({"error": {"code": "No", "message": message}})));
        let report = async move |Json(report): Json<ClusterReport>| {
            if report.facts.is_some() {
                return error(StatusCode::CONFLICT, "another cluster");
            }
            if report.news.iter().any(|news| news.attempt.as_str() == "att_13_0") {
                return error(StatusCode::BAD_REQUEST, "what is this?");
            }
            heard.send(report).unwrap();
            (StatusCode::OK, Json(json!({})))
        };
        axum::serve(listener, Router::new().route("/cluster/v1/report", routing::post(report))).await.unwrap();
    }

    #[tokio::test]
    async fn news_do_not_wait_for_what_the_server_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let token_file = std::env::temp_dir().join(format!("peregrine-link-{}", super::super::pace::nonce()));
        fs::write(&token_file, "t").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Server { url, token_file: token_file.clone(), authority_file: None };
        let link = Link::new(server, Arc::default(), || Timestamp(0), "uid-2".to_owned());
        let outbox = Outbox::default();
        outbox.facts(ClusterFacts::default());
        for number in 10..20 {
            let (attempt, what) = (AttemptId::of(number, 0), ClusterWhat::Notice { text: "hello".into() });
            outbox.news(AttemptNews { attempt, at: Timestamp(1), what });
        }
        let (heard, mut told) = mpsc::unbounded_channel::<ClusterReport>();
        let all = async {
            let mut attempts = Vec::new();
            while attempts.len() < 9 {
                attempts.extend(told.recv().await.unwrap().news.into_iter().map(|news| news.attempt));
            }
            attempts
        };
        let mut attempts = tokio::select! {
            () = serve(listener, heard) => Vec::new(),
            () = link.tell(&outbox) => Vec::new(),
            attempts = all => attempts,
        };
        fs::remove_file(token_file).unwrap();
        attempts.sort();
        attempts.dedup();
        assert_eq!(attempts.len(), 9, "all but the one that was not understood: {attempts:?}");
    }
}
