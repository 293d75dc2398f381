//! A server of one attempt: hands it out when all its parts are there, and keeps what it is told. An agent of a node counts
//! as the one part there is.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Query, State as With},
    http::StatusCode,
    routing::{post, put},
};
use domain::{
    Assignment, Part,
    report::{Joining, Poll, PollAnswer, ReportAnswer, ReportBatch, What},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};

pub(crate) struct State {
    assignment: Assignment,
    parts: u32,
    joined: BTreeMap<u32, String>,
    polls: u32,
    reports: Vec<(u32, What)>,
    pub(crate) logs: BTreeMap<String, Vec<u8>>,
    /// Parts to be stopped.
    stop: BTreeSet<u32>,
    pub(crate) unknown: bool,
    /// Offers what is held already.
    pub(crate) offers_again: bool,
    /// So many reports are recorded without a word about it.
    pub(crate) loses_answers: u32,
    over: bool,
}

type Shared = Arc<Mutex<State>>;

pub(crate) struct StandIn {
    state: Shared,
    address: SocketAddr,
    runtime: Mutex<Option<Runtime>>,
}

impl StandIn {
    pub(crate) fn start(parts: u32, assignment: Assignment) -> StandIn {
        let state = State {
            assignment,
            parts,
            joined: BTreeMap::new(),
            polls: 0,
            reports: Vec::new(),
            logs: BTreeMap::new(),
            stop: BTreeSet::new(),
            unknown: false,
            offers_again: false,
            loses_answers: 0,
            over: false,
        };
        let state = Arc::new(Mutex::new(state));
        let (address, runtime) = serve(Arc::clone(&state), "127.0.0.1:0".parse().unwrap());
        StandIn { state, address, runtime: Mutex::new(Some(runtime)) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every connection breaks and no new one is taken.
    pub(crate) fn go_away(&self) {
        self.runtime.lock().unwrap().take().unwrap().shutdown_timeout(Duration::from_secs(1));
    }

    pub(crate) fn come_back(&self) {
        *self.runtime.lock().unwrap() = Some(serve(Arc::clone(&self.state), self.address).1);
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    pub(crate) fn stop(&self, part: u32) {
        self.state.lock().unwrap().stop.insert(part);
    }

    pub(crate) fn log(&self, path: &str) -> String {
        let state = self.state.lock().unwrap();
        String::from_utf8(state.logs.get(path).cloned().unwrap_or_default()).unwrap()
    }

    pub(crate) fn reports(&self, part: u32) -> Vec<What> {
        let state = self.state.lock().unwrap();
        state.reports.iter().filter(|(of, _)| *of == part).map(|(_, what)| what.clone()).collect()
    }

    pub(crate) fn joined(&self) -> BTreeMap<u32, String> {
        self.state.lock().unwrap().joined.clone()
    }

    pub(crate) fn polls(&self) -> u32 {
        self.state.lock().unwrap().polls
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.lock().unwrap().take() {
            runtime.shutdown_background();
        }
    }
}

fn serve(state: Shared, at: SocketAddr) -> (SocketAddr, Runtime) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = TcpListener::bind(at).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new()
        .route("/agent/v1/poll", post(poll))
        .route("/agent/v1/report", post(report))
        .route("/agent/v1/attempts/{attempt}/logs/{*path}", put(append))
        .with_state(state);
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        axum::serve(listener, routes).await.unwrap();
    });
    (address, runtime)
}

async fn poll(With(state): With<Shared>, Json(poll): Json<Poll>) -> Json<PollAnswer> {
    for _ in 0..10 {
        if let Some(answer) = answer(&mut state.lock().unwrap(), &poll) {
            return Json(answer);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Json(PollAnswer::default())
}

fn answer(state: &mut State, poll: &Poll) -> Option<PollAnswer> {
    let of_node = Joining { part: 0, address: "127.0.0.1".into() };
    let joining = poll.joining.clone().unwrap_or(of_node);
    state.polls += 1;
    state.joined.insert(joining.part, joining.address);
    let attempt = state.assignment.attempt.clone();
    let mut answer = PollAnswer::default();
    let held = !poll.holds.is_empty();
    if !state.over && state.joined.len() == state.parts as usize && (state.offers_again || !held) {
        let mut assignment = state.assignment.clone();
        let addresses = state.joined.values().cloned().collect();
        assignment.part = (state.parts > 1).then_some(Part { index: joining.part, addresses });
        answer.assignments.push(assignment);
    }
    if state.stop.contains(&joining.part) && poll.stopping.is_empty() {
        answer.stop.push(attempt.clone());
    }
    if state.unknown {
        answer.unknown.push(attempt);
    }
    (answer != PollAnswer::default()).then_some(answer)
}

async fn report(With(state): With<Shared>, Json(batch): Json<ReportBatch>) -> Result<Json<ReportAnswer>, StatusCode> {
    let mut state = state.lock().unwrap();
    let part = batch.part.unwrap_or(0);
    let over = batch.reports.iter().any(|report| matches!(report.what, What::Over { .. }));
    state.reports.extend(batch.reports.into_iter().map(|report| (part, report.what)));
    if over && state.loses_answers > 0 {
        state.loses_answers -= 1;
        return Err(StatusCode::BAD_GATEWAY);
    }
    state.over |= over && batch.part.is_none();
    let recorded = if over { vec![state.assignment.attempt.clone()] } else { Vec::new() };
    Ok(Json(ReportAnswer { recorded }))
}

async fn append(
    With(state): With<Shared>,
    Path((_, path)): Path<(String, String)>,
    Query(query): Query<BTreeMap<String, usize>>,
    body: Bytes,
) -> (StatusCode, [(&'static str, String); 1]) {
    let mut state = state.lock().unwrap();
    let log = state.logs.entry(path).or_default();
    let offset = query["offset"];
    let gap = offset > log.len();
    if !gap {
        log.truncate(log.len().max(offset));
        let known = (log.len() - offset).min(body.len());
        assert_eq!(log[offset..offset + known], body[..known], "a repeated range is what it was");
        log.extend_from_slice(&body[known..]);
    }
    let status = if gap { StatusCode::CONFLICT } else { StatusCode::OK };
    (status, [("x-peregrine-next", log.len().to_string())])
}
