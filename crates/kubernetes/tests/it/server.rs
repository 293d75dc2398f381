//! A server that wants certain attempts on the cluster and writes down what it is told.

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing,
};
use domain::{
    AttemptId,
    cluster::{Check, CheckResult, ClusterAnswer, ClusterFacts, ClusterPoll, ClusterReport, ClusterWhat, Launch},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{net::TcpListener, sync::Notify};

#[derive(Default)]
pub(crate) struct Wire {
    state: Mutex<Told>,
    bell: Notify,
}

#[derive(Default)]
pub(crate) struct Told {
    pub(crate) wanted: BTreeMap<AttemptId, Launch>,
    pub(crate) stop: BTreeSet<AttemptId>,
    pub(crate) checks: Vec<Check>,
    /// Launches are sent again although they are held.
    pub(crate) repeat: bool,
    /// Nobody answers.
    pub(crate) away: bool,
    /// The only token that is good, and how many others were turned away.
    pub(crate) token: Option<String>,
    pub(crate) turned_away: u64,
    pub(crate) polls: u64,
    pub(crate) holds: Vec<AttemptId>,
    pub(crate) facts: Option<ClusterFacts>,
    pub(crate) news: Vec<(AttemptId, ClusterWhat)>,
    /// Attempts that were still wanted when their end was told.
    pub(crate) lost: BTreeSet<AttemptId>,
    pub(crate) checked: Vec<CheckResult>,
}

impl Wire {
    pub(crate) fn with(&self) -> MutexGuard<'_, Told> {
        self.bell.notify_waiters();
        self.state.lock().unwrap()
    }

    pub(crate) fn gone(&self, attempt: &AttemptId) -> Option<(String, String, bool)> {
        self.with().news.iter().rev().find_map(|(about, what)| match what {
            ClusterWhat::Gone { code, why, retryable, .. } if about == attempt => {
                Some((code.clone(), why.clone(), *retryable))
            }
            _ => None,
        })
    }

    /// Why it waits, by the last that was told.
    pub(crate) fn waiting(&self, attempt: &AttemptId) -> String {
        let told = self.with();
        let mut texts = told.news.iter().rev().filter_map(|(about, what)| match what {
            ClusterWhat::Waiting { text } if about == attempt => Some(text.clone()),
            _ => None,
        });
        texts.next().unwrap_or_default()
    }

    /// Everything that was noticed about it.
    pub(crate) fn notices(&self, attempt: &AttemptId) -> String {
        let told = self.with();
        let texts = told.news.iter().filter_map(|(about, what)| match what {
            ClusterWhat::Notice { text } if about == attempt => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn bound(&self, attempt: &AttemptId) -> usize {
        let told = self.with();
        let parts: BTreeSet<u32> = told
            .news
            .iter()
            .filter_map(|(about, what)| match what {
                ClusterWhat::Bound { part, .. } if about == attempt => Some(*part),
                _ => None,
            })
            .collect();
        parts.len()
    }
}

/// Serves on loopback until the task ends; says where.
pub(crate) async fn serve(wire: Arc<Wire>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/cluster/v1/poll", routing::post(poll))
        .route("/cluster/v1/report", routing::post(report))
        .with_state(wire);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

type Refused = (StatusCode, &'static str);

impl Told {
    fn admits(&mut self, headers: &HeaderMap) -> Result<(), Refused> {
        if self.away {
            return Err((StatusCode::SERVICE_UNAVAILABLE, "away"));
        }
        let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if self.token.as_ref().is_some_and(|good| given != format!("Bearer {good}")) {
            self.turned_away += 1;
            return Err((StatusCode::UNAUTHORIZED, "the token has expired"));
        }
        Ok(())
    }
}

async fn poll(
    State(wire): State<Arc<Wire>>,
    headers: HeaderMap,
    Json(poll): Json<ClusterPoll>,
) -> Result<Json<ClusterAnswer>, Refused> {
    for _ in 0..100 {
        let answer = {
            let mut told = wire.state.lock().unwrap();
            told.admits(&headers)?;
            told.polls += 1;
            told.holds.clone_from(&poll.holds);
            let held: BTreeSet<_> = poll.holds.iter().collect();
            let leaving: BTreeSet<_> = poll.leaving.iter().collect();
            let known = told.facts.as_ref().map(ClusterFacts::digest);
            ClusterAnswer {
                launch: told.wanted.values().filter(|l| told.repeat || !held.contains(&l.attempt)).cloned().collect(),
                stop: told.stop.iter().filter(|a| held.contains(a) && !leaving.contains(a)).cloned().collect(),
                remove: poll
                    .holds
                    .iter()
                    .filter(|a| !told.wanted.contains_key(a) && !leaving.contains(a))
                    .cloned()
                    .collect(),
                checks: std::mem::take(&mut told.checks),
                send_facts: known.is_none(),
                ..ClusterAnswer::default()
            }
        };
        if answer != ClusterAnswer::default() {
            return Ok(Json(answer));
        }
        let _ = tokio::time::timeout(Duration::from_millis(100), wire.bell.notified()).await;
    }
    Ok(Json(ClusterAnswer::default()))
}

async fn report(
    State(wire): State<Arc<Wire>>,
    headers: HeaderMap,
    Json(report): Json<ClusterReport>,
) -> Result<Json<Value>, Refused> {
    let mut told = wire.state.lock().unwrap();
    told.admits(&headers)?;
    told.facts = report.facts.or(told.facts.take());
    told.checked.extend(report.checks);
    let gone = report.news.iter().filter(|news| matches!(news.what, ClusterWhat::Gone { .. }));
    let lost: Vec<_> = gone.map(|news| news.attempt.clone()).filter(|a| told.wanted.contains_key(a)).collect();
    told.lost.extend(lost);
    told.news.extend(report.news.into_iter().map(|news| (news.attempt, news.what)));
    Ok(Json(json!({})))
}
