//! One of several operators acts at a time: the one that holds the Lease.
//!
//! Another takes the Lease only after it has seen it unchanged for the whole of its length, by its own clock, so that clocks
//! that differ do no harm. Invariant: who could not renew for two thirds of that length stops acting.

use super::pace::Pace;
use crate::names;
use domain::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff,
};
use kube::{Api, Client, api::PostParams};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

const LENGTH: Duration = Duration::from_secs(15);
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// Nothing of a leader that could not renew for this long is still at work when another begins.
const GIVE_UP: Duration = Duration::from_secs(10);

pub(crate) struct Seat {
    api: Api<Lease>,
    /// Who we are; different for every start.
    holder: String,
    clock: fn() -> Timestamp,
    /// How far the API server's clock is ahead of ours.
    skew_ms: Arc<AtomicI64>,
}

impl Seat {
    pub(crate) fn new(client: Client, namespace: &str, holder: String, clock: fn() -> Timestamp) -> Seat {
        Seat { api: Api::namespaced(client, namespace), holder, clock, skew_ms: Arc::default() }
    }

    /// How far the API server's clock is ahead of ours, kept up to date while the Lease is renewed.
    pub(crate) fn skew_ms(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.skew_ms)
    }

    /// Returns when the Lease is ours.
    ///
    /// The instant is from before it was asked for: what others see of it may be as old as that.
    pub(crate) async fn take(&self) -> Instant {
        let mut pace = Pace::default();
        let mut seen: Option<(Option<String>, Instant)> = None;
        loop {
            let asked = Instant::now();
            match self.try_take(&mut seen).await {
                Ok(true) => return asked,
                Ok(false) => pace.succeeded(),
                Err(error) => {
                    tracing::warn!(error = %error, "cannot read or write the lease; trying again");
                    sleep(pace.after_failure()).await;
                }
            }
            sleep(RENEW_EVERY / 2).await;
        }
    }

    /// Keeps the Lease, which was asked for at `renewed`; returns when it is lost.
    pub(crate) async fn keep(&self, renewed: Instant) {
        self.keep_at(renewed, RENEW_EVERY, GIVE_UP).await;
    }

    async fn keep_at(&self, mut renewed: Instant, every: Duration, give_up: Duration) {
        loop {
            sleep(every).await;
            // Others count from when it was written, which is before its answer comes.
            let asked = Instant::now();
            match timeout(give_up.saturating_sub(renewed.elapsed()), self.renew()).await {
                Ok(Ok(true)) => renewed = asked,
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(error = %error, "cannot renew the lease"),
                Err(_) => tracing::warn!("cannot renew the lease: no answer"),
            }
            if renewed.elapsed() > give_up {
                return;
            }
        }
    }

    /// Lets the next one begin at once.
    pub(crate) async fn leave(&self) {
        let Ok(mut lease) = self.api.get(names::OPERATOR).await else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() == Some(&self.holder) {
            spec.holder_identity = None;
            // Who does not get to say so is only waited for.
            let _ = self.api.replace(names::OPERATOR, &PostParams::default(), &lease).await;
        }
    }

    async fn try_take(&self, seen: &mut Option<(Option<String>, Instant)>) -> Result<bool, kube::Error> {
        let Some(mut lease) = self.api.get_opt(names::OPERATOR).await? else {
            let mut lease = Lease { spec: Some(self.spec(0)), ..Lease::default() };
            lease.metadata.name = Some(names::OPERATOR.to_owned());
            return self.settled(self.api.create(&PostParams::default(), &lease).await);
        };
        let version = lease.metadata.resource_version.clone();
        let since = match seen {
            Some((known, since)) if *known == version => *since,
            _ => seen.insert((version, Instant::now())).1,
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let vacant = spec.holder_identity.as_deref().is_none_or(str::is_empty);
        if !vacant && since.elapsed() < LENGTH {
            return Ok(false);
        }
        lease.spec = Some(self.spec(spec.lease_transitions.unwrap_or_default() + 1));
        self.settled(self.api.replace(names::OPERATOR, &PostParams::default(), &lease).await)
    }

    async fn renew(&self) -> Result<bool, kube::Error> {
        let mut lease = self.api.get(names::OPERATOR).await?;
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.holder) {
            return Ok(false);
        }
        spec.renew_time = self.now();
        self.settled(self.api.replace(names::OPERATOR, &PostParams::default(), &lease).await)
    }

    fn spec(&self, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(LENGTH.as_secs() as i32),
            acquire_time: self.now(),
            renew_time: self.now(),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    fn now(&self) -> Option<MicroTime> {
        jiff::Timestamp::from_millisecond((self.clock)().0).ok().map(MicroTime)
    }
}

impl Seat {
    /// Notes by the way how far the cluster's clock is from ours. Somebody else was quicker is an answer, not a failure.
    fn settled(&self, result: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
        match result {
            Ok(lease) => {
                let written =
                    lease.metadata.managed_fields.iter().flatten().filter_map(|entry| entry.time.as_ref()).max();
                if let Some(time) = written {
                    self.skew_ms.store(time.0.as_millisecond() - (self.clock)().0, Ordering::Relaxed);
                }
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Json, Router, routing};
    use std::sync::Mutex;

    const GIVE_UP_SOON: Duration = Duration::from_secs(2);

    /// A cluster that writes the first renewal at once, answers it late, and then answers nothing.
    fn slow(held: Lease, written: Arc<Mutex<Option<Instant>>>) -> Client {
        let read = Arc::clone(&written);
        let get = move || async move {
            if read.lock().unwrap().is_some() {
                std::future::pending::<()>().await;
            }
            Json(held)
        };
        let put = move |Json(lease): Json<Lease>| async move {
            *written.lock().unwrap() = Some(Instant::now());
            sleep(GIVE_UP_SOON * 4 / 5).await;
            Json(lease)
        };
        let path = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}";
        Client::new(Router::new().route(path, routing::get(get).put(put)), "default")
    }

    #[tokio::test]
    async fn who_renews_stops_by_the_time_of_the_writing_and_not_of_the_answer() {
        let written = Arc::new(Mutex::new(None));
        let mut held = Lease::default();
        held.metadata.name = Some(names::OPERATOR.to_owned());
        held.spec = Some(LeaseSpec { holder_identity: Some("me".into()), ..LeaseSpec::default() });
        let seat = Seat::new(slow(held, Arc::clone(&written)), "peregrine", "me".into(), || Timestamp(0));
        seat.keep_at(Instant::now(), Duration::from_millis(10), GIVE_UP_SOON).await;
        let since = written.lock().unwrap().unwrap().elapsed();
        assert!(since < GIVE_UP_SOON * 3 / 2, "another may have taken the lease {since:?} after it was renewed last");
    }
}
