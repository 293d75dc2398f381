//! A safe rollout: traffic moves to a deployment step by step; each step is watched, and a bad one is undone.
//!
//! What counts is decided by `planner::rollout`. Invariants: whatever ends it, the traffic is as the last message says; a
//! traffic that someone else has changed meanwhile is left alone.

mod seen;

use super::{
    super::{endpoint, record::Place},
    ONLINE, ONLINE_ENDPOINT,
};
use crate::{
    args::record::Rollout as Args,
    commands::{
        Context, Session,
        endpoint::{
            call::{Door, Payload},
            load::{Shot, pace},
        },
        record, settle,
    },
    failure::{Doing, Done, Exit, Failure},
};
use api::arm::tree::{entries, word};
use planner::rollout::{Rules, Seen, Shares, Verdict, judge, shares};
use seen::{Own, by_deployment};
use serde_json::{Value, json};
use std::{cell::RefCell, collections::BTreeMap, process::ExitCode, time::Duration};
use tokio::time::Instant;

const LOOK: Duration = Duration::from_secs(1);
/// A step that saw too few requests is watched this many times as long before it is given up.
const EXTENSIONS: u32 = 3;

/// How a step ended.
enum Ended {
    Judged(Verdict),
    Interrupted,
}

struct Rollout<'a> {
    context: &'a Context,
    session: &'a Session<'a>,
    endpoint: &'a Place,
    name: &'a str,
    args: &'a Args,
    rules: Rules,
    /// The traffic as it was found, and as it is now.
    before: Shares,
    now: Shares,
    /// A request of its own to send, and to whom.
    door: Option<(Door, Payload)>,
    told: Vec<Value>,
}

pub(super) async fn run(context: &Context, endpoint: &Place, at: &Place, args: &Args) -> Done<ExitCode> {
    let session = context.session().await?;
    let found = record::fetch(ONLINE_ENDPOINT, &session, endpoint).await?;
    let deployment = record::fetch(ONLINE, &session, at).await?;
    let state = word(&deployment["properties"], "provisioningState").unwrap_or("Unknown");
    if state != "Succeeded" {
        return Err(Failure::input(format!("online deployment `{}` is `{state}`: it cannot take traffic", at.name))
            .hint(format!("`peregrine online-deployment get-logs -n {} -e {}` shows why", at.name, endpoint.name)));
    }
    let door = match &args.request_file {
        Some(file) => Some((Door::of(&session, endpoint).await?, Payload::of(Some(file))?)),
        None => None,
    };
    let before = traffic(&found);
    let rollout = Rollout {
        context,
        session: &session,
        endpoint,
        name: &at.name,
        args,
        rules: Rules {
            max_error_percent: args.max_error_percent,
            max_latency: args.max_latency_ms.map(Duration::from_millis),
            max_slowdown: args.max_slowdown,
            min_requests: args.min_requests.max(1),
        },
        now: before.clone(),
        before,
        door,
        told: Vec::new(),
    };
    rollout.carry_out().await
}

impl Rollout<'_> {
    async fn carry_out(mut self) -> Done<ExitCode> {
        let has = self.now.get(self.name).copied().unwrap_or(0);
        let mut steps: Vec<u8> = self.args.steps.iter().copied().filter(|percent| *percent > has).collect();
        steps.dedup();
        if !steps.is_sorted() {
            return Err(Failure::input("the steps do not rise").hint("write them like `--steps 10,25,50,100`"));
        }
        if !self.before.iter().any(|(name, share)| name != self.name && *share > 0) {
            // Nobody else has traffic: there is nothing to share.
            steps.retain(|percent| *percent == 100);
        }
        if self.door.is_none() && self.look().await?.is_none() {
            return Err(Failure::input("there is nothing to judge the deployment by")
                .because(format!("the server hears of no router that serves online endpoint `{}`", self.endpoint.name))
                .hint("add `--request-file FILE`, so that requests are sent and judged here"));
        }
        for percent in steps {
            let wanted = shares(&self.before, self.name, percent);
            self.move_to(&wanted).await?;
            self.say(&format!("traffic is {}; watching for {} s", text(&wanted), self.args.step_duration.as_secs()));
            match self.step(percent).await? {
                Ended::Judged(Verdict::Good(why)) => self.say(&format!("{percent} % is good: {why}")),
                Ended::Judged(Verdict::Bad(why) | Verdict::Unknown(why)) => return self.back(&why).await,
                Ended::Interrupted => return self.interrupted(),
            }
        }
        self.say(&format!("`{}` has {} % of the traffic", self.name, self.now.get(self.name).copied().unwrap_or(0)));
        self.report("completed", None)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Watches one step to its end, or until it is bad for certain.
    async fn step(&mut self, percent: u8) -> Done<Ended> {
        let own = RefCell::new(Own::default());
        let (verdict, seen) = tokio::select! {
            watched = self.watch(&own) => watched?,
            () = self.call(&own) => return Ok(Ended::Interrupted),
            _ = tokio::signal::ctrl_c() => return Ok(Ended::Interrupted),
        };
        let (word, why) = match &verdict {
            Verdict::Good(why) => ("good", why),
            Verdict::Bad(why) => ("bad", why),
            Verdict::Unknown(why) => ("unknown", why),
        };
        let slow = seen.percentile(95.0).filter(|slow| *slow != Duration::MAX).map(|slow| slow.as_secs_f64() * 1e3);
        self.told.push(json!({
            "percent": percent, "requests": seen.requests, "errors": seen.errors, "p95_ms": slow, "verdict": word,
            "because": why,
        }));
        Ok(Ended::Judged(verdict))
    }

    async fn watch(&self, own: &RefCell<Own>) -> Done<(Verdict, Seen)> {
        let (begin, first) = (Instant::now(), self.look().await.unwrap_or_default().unwrap_or_default());
        loop {
            tokio::time::sleep(LOOK.min(self.args.step_duration)).await;
            let (new, others) = match self.look().await {
                Ok(Some(now)) => {
                    let (new, others) = split(&now, &first, self.name);
                    // What no router has told of, this program has still seen.
                    if new.requests == 0 { (own.borrow().seen(), others) } else { (new, others) }
                }
                Ok(None) => (own.borrow().seen(), Seen::default()),
                // A server that is away for a moment has nothing to do with the deployment.
                Err(failure) if failure.exit == Exit::Unreachable => continue,
                Err(failure) => return Err(failure.doing(self.where_it_stands())),
            };
            let verdict = judge(&new, &others, &self.rules);
            let over = begin.elapsed() >= self.args.step_duration;
            let given_up = begin.elapsed() >= self.args.step_duration * EXTENSIONS;
            match verdict {
                Verdict::Bad(_) => return Ok((verdict, new)),
                Verdict::Good(_) if over => return Ok((verdict, new)),
                Verdict::Unknown(_) if given_up => return Ok((verdict, new)),
                _ => {}
            }
        }
    }

    /// Sends the request that was given, again and again; without one, waits for ever.
    async fn call(&self, own: &RefCell<Own>) {
        let Some((door, payload)) = &self.door else { return std::future::pending().await };
        let shot = Shot { door, payload, deployment: Some(self.name) };
        pace(&shot, self.args.rps.get(), Duration::from_secs(u64::from(u32::MAX)), |sample| {
            own.borrow_mut().add(&sample);
        })
        .await;
    }

    /// What routers have counted for each deployment; `None` where the server hears of no router that knows the endpoint.
    async fn look(&self) -> Done<Option<BTreeMap<String, Seen>>> {
        let client = &self.session.client;
        let path = format!("{}/counters", self.endpoint.path);
        let answer = client.send(client.request(reqwest::Method::GET, &path)).await?;
        let text = answer.text().await.map_err(|error| client.unreachable(error))?;
        Ok(by_deployment(&text, &self.endpoint.name))
    }

    /// Sets the traffic, unless someone else has changed it meanwhile.
    async fn move_to(&mut self, wanted: &Shares) -> Done {
        let (expected, at) = (&self.now, self.endpoint);
        let body = record::edited(ONLINE_ENDPOINT, self.session, at, |found| {
            let there = traffic(found);
            if there != *expected {
                return Err(Failure::input(format!(
                    "someone has set the traffic of `{}` to {}",
                    at.name,
                    text(&there)
                ))
                .hint("it is left as it is; begin again when that is over"));
            }
            found["properties"]["traffic"] = json!(wanted);
            Ok(())
        });
        let put = async { settle::put(self.session, &at.path, &body.await?, true).await };
        put.await.doing(|| self.where_it_stands())?;
        self.now = wanted.iter().filter(|(_, share)| **share > 0).map(|(n, s)| (n.clone(), *s)).collect();
        Ok(())
    }

    async fn back(mut self, why: &str) -> Done<ExitCode> {
        let before = self.before.clone();
        self.move_to(&before).await?;
        self.say(&format!("rolled back: {why}; traffic is {} again", text(&before)));
        self.report("rolled back", Some(why))?;
        Ok(ExitCode::from(Exit::JobFailed as u8))
    }

    fn interrupted(self) -> Done<ExitCode> {
        let (name, endpoint) = (self.name, &self.endpoint.name);
        self.say(&format!("interrupted; traffic stays {}", text(&self.now)));
        self.say(&format!(
            "hint: `peregrine online-deployment rollout -n {name} -e {endpoint}` goes on from there, \
                           `peregrine online-endpoint update -n {endpoint} --traffic \"{}\"` goes back",
            text(&self.before)
        ));
        self.report("interrupted", None)?;
        Ok(ExitCode::from(Exit::Interrupted as u8))
    }

    fn report(&self, outcome: &str, because: Option<&str>) -> Done {
        let value = json!({
            "endpoint": self.endpoint.name, "deployment": self.name, "outcome": outcome, "because": because,
            "traffic": self.now, "steps": self.told,
        });
        // The messages have said it all to people.
        if self.context.output.is_for_people() { Ok(()) } else { self.context.output.show(&value) }
    }

    fn say(&self, line: &str) {
        self.context.output.note(line);
    }

    fn where_it_stands(&self) -> String {
        format!(
            "the rollout stopped; traffic of online endpoint `{}` was {} at last",
            self.endpoint.name,
            text(&self.now)
        )
    }
}

/// The deployment's own requests since then, and those of all others together.
fn split(now: &BTreeMap<String, Seen>, first: &BTreeMap<String, Seen>, name: &str) -> (Seen, Seen) {
    let none = Seen::default();
    let (mut new, mut others) = (Seen::default(), Seen::default());
    for (deployment, seen) in now {
        // A server that has begun anew counts from nothing.
        let earlier = first.get(deployment).filter(|first| first.requests <= seen.requests);
        let since = seen.since(earlier.unwrap_or(&none));
        if deployment == name {
            new = since;
        } else {
            others = others.and(&since);
        }
    }
    (new, others)
}

/// The traffic of an endpoint, without shares of nothing.
fn traffic(found: &Value) -> Shares {
    let share = |(name, share): (&String, &Value)| Some((name.clone(), u8::try_from(share.as_u64()?).ok()?));
    entries(&found["properties"]["traffic"]).filter_map(share).filter(|(_, share)| *share > 0).collect()
}

fn text(shares: &Shares) -> String {
    match shares.is_empty() {
        true => "nobody's".to_owned(),
        false => endpoint::shares(&json!(shares)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_compared_with_all_others_since_the_step_began() {
        let seen = |requests| Seen { requests, ..Seen::default() };
        let at =
            |a, b, c| BTreeMap::from([("a".to_owned(), seen(a)), ("b".to_owned(), seen(b)), ("c".to_owned(), seen(c))]);
        let (new, others) = split(&at(15, 7, 30), &at(10, 5, 0), "c");
        assert_eq!((new.requests, others.requests), (30, 7));
        let (new, others) = split(&at(2, 3, 4), &at(10, 5, 9), "c");
        assert_eq!((new.requests, others.requests), (4, 5), "the server has begun anew");
    }

    #[test]
    fn shares_of_nothing_are_no_traffic() {
        let found = json!({"properties": {"traffic": {"blue": 100, "green": 0}}});
        assert_eq!(traffic(&found), Shares::from([("blue".to_owned(), 100)]));
        assert_eq!(text(&traffic(&json!({}))), "nobody's");
    }
}
