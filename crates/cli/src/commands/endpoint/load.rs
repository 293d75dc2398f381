//! Requests at a steady pace, and how long their answers took.
//!
//! The pace is the clock's, not the endpoint's: a request is due at its time whether or not earlier ones were answered,
//! and is timed from then. An endpoint that stalls shows it in every request that was due meanwhile.

mod report;

use super::{
    super::record::Place,
    call::{DEPLOYMENT, Door, Payload},
};
use crate::{
    args::record::Test,
    commands::Context,
    failure::{Done, Exit},
    roles,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use report::Report;
use std::{process::ExitCode, time::Duration};
use tokio::time::{Instant, sleep_until};

/// More at once would measure this program, not the endpoint.
const MOST_IN_FLIGHT: usize = 4_096;
/// A request that got no answer by then gets none.
const PATIENCE: Duration = Duration::from_secs(60);

/// How one request went.
pub(in crate::commands) struct Sample {
    /// `None`: no answer.
    pub(in crate::commands) status: Option<u16>,
    /// From when it was due until its answer was whole.
    pub(in crate::commands) took: Duration,
    /// Who answered, as the router says.
    pub(in crate::commands) deployment: Option<String>,
    /// What was said of a failure.
    pub(in crate::commands) fault: Option<String>,
}

/// A request that is sent again and again.
pub(in crate::commands) struct Shot<'a> {
    pub(in crate::commands) door: &'a Door,
    pub(in crate::commands) payload: &'a Payload,
    pub(in crate::commands) deployment: Option<&'a str>,
}

pub(super) async fn test(context: &Context, at: &Place, args: &Test) -> Done<ExitCode> {
    let payload = Payload::of(args.request_file.as_deref())?;
    roles::raise_open_files();
    let session = context.session().await?;
    let door = Door::of(&session, at).await?;
    let shot = Shot { door: &door, payload: &payload, deployment: args.deployment_name.as_deref() };
    let whom = args.deployment_name.as_deref().map_or(String::new(), |name| format!(", deployment `{name}`"));
    context.output.note(&format!(
        "sending {} requests a second for {} s to online endpoint `{}`{whom}; Ctrl-C ends it early",
        args.rps,
        args.duration.as_secs(),
        at.name
    ));
    let mut report = Report::default();
    let begin = Instant::now();
    let sent = pace(&shot, args.rps.get(), args.duration, |sample| report.add(sample)).await;
    report.close(sent, begin.elapsed());
    let (rows, value) = report.shown(&at.name, args.rps.get());
    context.output.grid(&rows, value)?;
    match report.failed() {
        0 => Ok(ExitCode::SUCCESS),
        failed => {
            context.output.note(&format!("{failed} of {} requests failed{}", report.requests(), report.first_fault()));
            Ok(ExitCode::from(Exit::JobFailed as u8))
        }
    }
}

/// Sends `rps` requests a second for so long, or until Ctrl-C, and hands over each as it ends. How many were due and not
/// sent because too many were under way.
pub(in crate::commands) async fn pace(
    shot: &Shot<'_>,
    rps: u32,
    lasts: Duration,
    mut each: impl FnMut(Sample),
) -> Sent {
    let total = (lasts.as_secs_f64() * f64::from(rps)).ceil() as u64;
    let (begin, mut running, mut sent) = (Instant::now(), FuturesUnordered::new(), Sent::default());
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let next = sent.sent + sent.held_back;
        if next >= total && running.is_empty() {
            return sent;
        }
        let due = begin + Duration::from_secs_f64(next as f64 / f64::from(rps));
        tokio::select! {
            Some(sample) = running.next(), if !running.is_empty() => each(sample),
            () = sleep_until(due), if next < total => {
                if running.len() < MOST_IN_FLIGHT {
                    running.push(shot.send(due));
                    sent.sent += 1;
                } else {
                    sent.held_back += 1;
                }
            }
            _ = &mut interrupted => return sent,
        }
    }
}

/// What became of requests that were due.
#[derive(Clone, Copy, Default)]
pub(in crate::commands) struct Sent {
    sent: u64,
    held_back: u64,
}

impl Shot<'_> {
    /// Sends it now and waits for the whole answer; the time counts from `due`.
    pub(in crate::commands) async fn send(&self, due: Instant) -> Sample {
        let asked = self.door.request(self.payload, self.deployment).timeout(PATIENCE).send().await;
        let whole = match asked {
            Ok(answer) => {
                let status = answer.status();
                let by = answer.headers().get(DEPLOYMENT).and_then(|name| name.to_str().ok()).map(str::to_owned);
                answer.bytes().await.map(|bytes| (status, by, bytes))
            }
            Err(error) => Err(error),
        };
        let took = due.elapsed();
        match whole {
            Ok((status, deployment, bytes)) => {
                let fault = (!status.is_success()).then(|| super::call::words(&bytes));
                Sample { status: Some(status.as_u16()), took, deployment, fault }
            }
            Err(error) => Sample { status: None, took, deployment: None, fault: Some(error.without_url().to_string()) },
        }
    }
}
