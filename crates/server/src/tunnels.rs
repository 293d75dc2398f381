//! Streams between users and the services of jobs.
//!
//! A user's request and an agent's, each turned into a stream of bytes, are joined here. The agent is asked with the
//! answer to its poll. Invariants: a tunnel is told to one agent once, opened once and by that agent; whoever stops
//! waiting for one takes it back.

use crate::app::App;
use axum::{
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{AttemptId, tunnel::Tunnel};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

/// The end of a tunnel that leads to a node, or why there is none.
pub(crate) type Opened = Result<OnUpgrade, String>;

struct Wanted {
    tunnel: Tunnel,
    /// Of a job's parts the one it leads to.
    part: u32,
    told: bool,
    answer: oneshot::Sender<Opened>,
}

type Pair = (OnUpgrade, OnUpgrade);

pub(crate) struct Tunnels {
    wanted: Mutex<HashMap<String, Wanted>>,
    joined: mpsc::UnboundedSender<Pair>,
    to_splice: Mutex<Option<mpsc::UnboundedReceiver<Pair>>>,
}

impl Default for Tunnels {
    fn default() -> Tunnels {
        let (joined, to_splice) = mpsc::unbounded_channel();
        Tunnels { wanted: Mutex::default(), joined, to_splice: Mutex::new(Some(to_splice)) }
    }
}

/// A tunnel that someone waits for.
pub(crate) struct Asked<'a> {
    all: &'a Tunnels,
    id: String,
    pub(crate) opened: oneshot::Receiver<Opened>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.all.wanted().remove(&self.id);
    }
}

impl Tunnels {
    pub(crate) fn ask(&self, tunnel: Tunnel, part: u32) -> Asked<'_> {
        let (answer, opened) = oneshot::channel();
        let id = tunnel.id.clone();
        self.wanted().insert(id.clone(), Wanted { tunnel, part, told: false, answer });
        Asked { all: self, id, opened }
    }

    /// Those an agent has not been told of yet: of the attempts it holds, and of its own part of them.
    pub(crate) fn tell(&self, holds: &[AttemptId], part: Option<u32>) -> Vec<Tunnel> {
        let mut wanted = self.wanted();
        let its = wanted
            .values_mut()
            .filter(|one| !one.told && part.is_none_or(|part| part == one.part) && holds.contains(&one.tunnel.attempt));
        its.map(|one| {
            one.told = true;
            one.tunnel.clone()
        })
        .collect()
    }

    /// The attempt to which a tunnel leads that someone waits for.
    pub(crate) fn attempt_of(&self, id: &str) -> Option<AttemptId> {
        self.wanted().get(id).map(|one| one.tunnel.attempt.clone())
    }

    /// Who waits for a tunnel. An agent of one attempt opens none of another's.
    pub(crate) fn answer(&self, id: &str, attempt: Option<&AttemptId>) -> Option<oneshot::Sender<Opened>> {
        let mut wanted = self.wanted();
        let its = wanted.get(id).is_some_and(|one| attempt.is_none_or(|own| *own == one.tunnel.attempt));
        if its { wanted.remove(id).map(|one| one.answer) } else { None }
    }

    /// Has the two carried into each other as soon as both are streams.
    pub(crate) fn join(&self, one: OnUpgrade, other: OnUpgrade) {
        // There is nobody to carry it only while the server ends.
        let _ = self.joined.send((one, other));
    }

    fn wanted(&self) -> MutexGuard<'_, HashMap<String, Wanted>> {
        self.wanted.lock().expect("nothing panics while it holds the table")
    }
}

/// Carries bytes both ways, for as long as the server runs.
pub(crate) async fn run(app: App) {
    let receiver = app.tunnels.to_splice.lock().expect("nothing panics while it holds it").take();
    let Some(mut pairs) = receiver else { return };
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            Some((one, other)) = pairs.recv() => drop(open.spawn(carry(one, other))),
            Some(_) = open.join_next(), if !open.is_empty() => {}
        }
    }
}

async fn carry(one: OnUpgrade, other: OnUpgrade) {
    let (Ok(one), Ok(other)) = tokio::join!(one, other) else { return };
    // Either end may break it off; that is how most of them end.
    let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(one), &mut TokioIo::new(other)).await;
}

/// The stream that a request wants to become.
pub(crate) fn stream_of(request: &mut Request) -> Option<OnUpgrade> {
    let asked = request.headers().get(header::UPGRADE).is_some_and(|kind| kind == api::STREAM);
    request.extensions_mut().remove::<OnUpgrade>().filter(|_| asked)
}

/// From now on the connection is a stream.
pub(crate) fn switching() -> Response {
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static(api::STREAM)),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
