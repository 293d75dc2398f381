//! Watching a replica: when it is ready, when it is no more, and when it is past hope.
//!
//! Until it is ready for the first time it is asked often at first and ever less often, so that little is added to its own
//! start and a slow one is not asked in a storm. From then on it is asked as the deployment says, and only a change is told.
//! Its end by liveness begins to count once it has been ready: before that, the time it has to start is the limit.
//! Invariant: nothing here outlives the attempt, and an agent that came back begins anew without taking back a word.

use super::{super::RunMark, probe};
use crate::{
    attempt::{logs::Logs, process},
    context::Context,
};
use domain::{Assignment, Probe, Serving, ServingKind, job::Failure, report::What};
use std::{convert::Infallible, net::SocketAddr, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout_at},
};

/// The shortest and the longest pause between two questions to a replica that starts; in between, a twentieth of the time
/// it has taken so far.
const EAGER: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));
/// No deployment is asked more often than this.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);
/// How often what a start waits for is told at most.
const TELL_EVERY: Duration = Duration::from_secs(2);
/// How long routers may take to send nothing more to a replica that goes, and to have its last answers.
const LET_GO: Duration = Duration::from_secs(6);
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Resolves when the replica has to be ended, with the reason; never where the attempt is none.
pub(in crate::attempt) async fn watch(
    cx: &Context,
    assignment: &Assignment,
    mark: &RunMark,
    logs: &Logs,
    fresh: bool,
) -> Failure {
    let (Some(serving), Some(address)) = (&assignment.plan.serve, mark.address) else {
        return std::future::pending().await;
    };
    let (started, was_ready) = watch::channel(false);
    let watch = Watch { cx, assignment, mark, logs, serving, address, began: Instant::now() };
    if fresh {
        watch.say(false, "started; waits for it to be ready");
    }
    tokio::select! {
        failure = watch.readiness(&started) => failure,
        failure = watch.liveness(was_ready) => failure,
        never = watch.look_after() => match never {},
    }
}

/// A replica that has to go tells so first, and answers until routers have heard of it.
pub(in crate::attempt) async fn let_go(cx: &Context, assignment: &Assignment, mark: &RunMark, why: &str) {
    if assignment.plan.serve.is_some() {
        let what = What::Serving { address: mark.address, ready: false, text: why.to_owned() };
        cx.reporter.say(&assignment.attempt, cx.now(), what);
        sleep(LET_GO).await;
    }
}

struct Watch<'a> {
    cx: &'a Context,
    assignment: &'a Assignment,
    mark: &'a RunMark,
    logs: &'a Logs,
    serving: &'a Serving,
    address: SocketAddr,
    began: Instant,
}

impl Watch<'_> {
    async fn readiness(&self, started: &watch::Sender<bool>) -> Failure {
        let probe = self.http(&self.serving.readiness);
        if let Err(seen) = self.first_ready(&probe).await {
            return self.not_ready(&seen);
        }
        self.say(true, "ready");
        started.send_replace(true);
        let mut judge = Judge { well: true, against: 0 };
        loop {
            sleep(period(&probe)).await;
            let asked = probe::ask(self.address, &probe).await;
            match judge.hear(asked.is_ok(), &probe) {
                Some(true) => self.say(true, "ready again"),
                Some(false) => self.say(false, &format!("not ready: {}", asked.err().unwrap_or_default())),
                None => {}
            }
        }
    }

    /// Returns at the first run of successes; what was seen last, when the time is over.
    async fn first_ready(&self, probe: &Probe) -> Result<(), String> {
        let deadline = self.began + Duration::from_secs(self.serving.start_seconds.max(1));
        sleep_until((self.began + Duration::from_millis(probe.initial_delay_ms)).min(deadline)).await;
        let (mut successes, mut last) = (0, String::new());
        let (mut told, mut told_at) = (String::new(), self.began);
        while let Ok(asked) = timeout_at(deadline, probe::ask(self.address, probe)).await {
            match asked {
                Ok(()) if successes + 1 >= probe.success_threshold => return Ok(()),
                Ok(()) => successes += 1,
                Err(seen) => (successes, last) = (0, seen),
            }
            if last != told && told_at.elapsed() > TELL_EVERY {
                self.say(false, &format!("waits for it to be ready: {last}"));
                (told, told_at) = (last.clone(), Instant::now());
            }
            let pause = (self.began.elapsed() / 20).clamp(EAGER.0, EAGER.1);
            sleep_until((Instant::now() + pause).min(deadline)).await;
        }
        Err(if last.is_empty() { "it did not answer".to_owned() } else { last })
    }

    async fn liveness(&self, mut was_ready: watch::Receiver<bool>) -> Failure {
        let probe = self.http(&self.serving.liveness);
        if was_ready.wait_for(|ready| *ready).await.is_err() {
            return std::future::pending().await;
        }
        sleep_until(self.began + Duration::from_millis(probe.initial_delay_ms)).await;
        let mut judge = Judge { well: true, against: 0 };
        loop {
            sleep(period(&probe)).await;
            let asked = probe::ask(self.address, &probe).await;
            if let (Some(false), Err(seen)) = (judge.hear(asked.is_ok(), &probe), asked) {
                let times = probe.failure_threshold.max(1);
                let text = format!("the replica was ended: its liveness probe failed {times} times in a row ({seen})");
                self.say(false, &text);
                return Failure::new("ReplicaUnhealthy", text);
            }
        }
    }

    /// Keeps the log short and tells when the kernel killed a part of the replica that its server then replaced.
    async fn look_after(&self) -> Infallible {
        let mut kills = process::oom_kills(self.mark).unwrap_or(0);
        loop {
            sleep(LOOK_EVERY).await;
            self.logs.cut().await;
            let now = process::oom_kills(self.mark).unwrap_or(0);
            if now > kills {
                let text = "a process of the replica used more memory than its limit and was killed";
                self.logs.system("lifecycle.log", text);
                self.cx.reporter.say(&self.assignment.attempt, self.cx.now(), What::Notice { text: text.into() });
                kills = now;
            }
        }
    }

    fn not_ready(&self, seen: &str) -> Failure {
        let seconds = self.serving.start_seconds;
        if process::oom_kills(self.mark).is_some_and(|kills| kills > 0) {
            let text = format!("it was not ready within {seconds} s, because it needs more memory than its limit");
            return Failure::new("UserError.OutOfMemory", text);
        }
        Failure::new("ReplicaNotReady", format!("it was not ready within {seconds} s: {seen}"))
    }

    /// The inference server takes connections long before `init()` is through: only an answer says that it is.
    fn http(&self, probe: &Probe) -> Probe {
        let usual = (!matches!(self.serving.kind, ServingKind::Container)).then(|| "/".to_owned());
        Probe { path: probe.path.clone().or(usual), ..probe.clone() }
    }

    fn say(&self, ready: bool, text: &str) {
        self.logs.system("lifecycle.log", text);
        let what = What::Serving { address: Some(self.address), ready, text: text.to_owned() };
        self.cx.reporter.say(&self.assignment.attempt, self.cx.now(), what);
    }
}

fn period(probe: &Probe) -> Duration {
    Duration::from_millis(probe.period_ms).max(SHORTEST_PERIOD)
}

/// Changes its mind only after as many answers against it, in a row, as the probe says.
#[derive(Debug)]
struct Judge {
    well: bool,
    against: u32,
}

impl Judge {
    /// The new opinion, if this answer changed it.
    fn hear(&mut self, well: bool, probe: &Probe) -> Option<bool> {
        self.against = if well == self.well { 0 } else { self.against + 1 };
        let enough = if well { probe.success_threshold } else { probe.failure_threshold };
        if self.against == 0 || self.against < enough {
            return None;
        }
        *self = Judge { well, against: 0 };
        Some(well)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flapping_probe_changes_nothing_and_a_steady_one_does() {
        let probe = Probe { success_threshold: 2, failure_threshold: 3, ..Probe::default() };
        for (answers, changes) in [
            ("+-+-+-+--+--+", ""),
            ("---", "-"),
            ("-------", "-"),
            ("---+-+-+-", "-"),
            ("---++", "-+"),
            ("+++", ""),
            ("---++---", "-+-"),
        ] {
            let mut judge = Judge { well: true, against: 0 };
            let heard = answers.chars().filter_map(|answer| judge.hear(answer == '+', &probe));
            let got: String = heard.map(|well| if well { '+' } else { '-' }).collect();
            assert_eq!(got, changes, "{answers}");
        }
    }

    #[test]
    fn a_threshold_of_zero_is_taken_for_one() {
        let probe = Probe { success_threshold: 0, failure_threshold: 0, ..Probe::default() };
        let mut judge = Judge { well: true, against: 0 };
        assert_eq!(judge.hear(true, &probe), None);
        assert_eq!(judge.hear(false, &probe), Some(false));
        assert_eq!(judge.hear(true, &probe), Some(true));
    }
}
