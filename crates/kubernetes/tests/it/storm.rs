//! More gangs than fit, of all sizes and priorities, under an operator that is killed again and again; every event of every pod
//! is watched. Who goes first, a cluster that grows, and jobs by the hundred.
//!
//! As large as the cluster: on 20 nodes it takes half a minute, on 1,000 as long as `PEREGRINE_STORM_SECONDS` says, with as many
//! jobs at once as `PEREGRINE_BURST` does.

use crate::stage::{SCALED, SMALL, Stage, client, number};
use domain::AttemptId;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::WatchParams, core::WatchEvent};
use kubernetes::settings::{Gangs, Settings};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::runtime::{Builder, Runtime};

/// A gang may hold nodes in part for this long.
const PARTIAL_AT_MOST: Duration = Duration::from_secs(30);
/// How long a gang that runs whole is left alone before the server calls it over.
const LIFE: Duration = Duration::from_secs(2);

#[test]
fn with_volcano_no_gang_is_lost_doubled_or_partial_while_operators_die() {
    storm(Gangs::Volcano);
}

#[test]
fn with_gates_no_gang_is_lost_doubled_or_partial_while_operators_die() {
    storm(Gangs::Gates);
}

fn storm(gangs: Gangs) {
    let Some(mut stage) = Stage::set(Settings { training: true, gangs, ..Settings::default() }) else { return };
    let nodes = stage.fake_nodes();
    let witness = Witness::watch(&stage);
    // One and a half times what fits: single pods, middling gangs, and a few that take a quarter of the cluster.
    let sizes = [1, 2, 1, 4, 1, 8, 2, (nodes / 4).max(3) as u32];
    let mut wanted = BTreeMap::new();
    let mut pods = 0;
    while pods < nodes + nodes / 2 {
        let number = wanted.len();
        let parts = sizes[number % sizes.len()];
        wanted.insert(stage.want(parts, |launch| launch.priority = (number % 3) as i64 - 1), parts);
        pods += parts as usize;
    }
    let seconds = number("PEREGRINE_STORM_SECONDS", 8);
    let began = Instant::now();
    let mut deaths = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep(Duration::from_millis(2_000 + deaths % 3 * 1_000));
        stage.kill();
        stage.start();
        deaths += 1;
        witness.end_those_that_ran(&stage, &wanted);
    }
    stage.until_within(Duration::from_secs(60 + seconds * 4), "every gang to have run", || {
        witness.end_those_that_ran(&stage, &wanted);
        stage.wire.with().wanted.is_empty()
    });
    nothing_is_left(&stage, Duration::from_secs(120));
    let seen = witness.seen.lock().unwrap();
    println!(
        "{} gangs, {pods} pods, {nodes} nodes, {deaths} dead operators, {} events, {:.0} s; longest in part: {:.1} s",
        wanted.len(),
        seen.events,
        began.elapsed().as_secs_f64(),
        seen.longest.as_secs_f64(),
    );
    assert_eq!(seen.ended.len(), wanted.len());
    assert!(seen.longest <= PARTIAL_AT_MOST, "a gang held nodes in part for {:?}", seen.longest);
    assert_eq!(seen.doubled, BTreeSet::new(), "parts that ran twice");
    assert_eq!(stage.wire.with().lost, BTreeSet::new());
}

#[test]
fn a_cluster_grows_from_nothing_for_a_whole_gang() {
    let Some(stage) = Stage::set(Settings { training: true, node_autoscaling: true, ..Settings::default() }) else {
        return;
    };
    let parts = 6;
    let witness = Witness::watch(&stage);
    let attempt = stage.want(parts, |launch| launch.instance_type = SCALED.to_owned());
    let began = Instant::now();
    stage.until("nodes for all of it", || stage.pods(&attempt, "Running").len() == parts as usize);
    println!("nothing became {parts} nodes in {:.1} s", began.elapsed().as_secs_f64());
    assert!(witness.seen.lock().unwrap().longest <= PARTIAL_AT_MOST);
    stage.drop_and_see_nothing_left(&attempt);
}

#[test]
fn what_fits_beside_a_gang_that_waits_goes_before_it_and_the_gang_goes_when_it_fits() {
    for gangs in [Gangs::Gates, Gangs::Volcano] {
        let Some(stage) = Stage::set(Settings { training: true, gangs, ..Settings::default() }) else { return };
        let nodes = stage.fake_nodes() as u32;
        let runs = |attempt: &AttemptId, parts: u32| stage.pods(attempt, "Running").len() == parts as usize;
        let (most, four) = (stage.want(nodes - 2, |_| {}), 4);
        stage.until("most nodes to be taken", || runs(&most, nodes - 2));
        let waits = stage.want(four, |_| {});
        stage.until("the reason", || stage.wire.waiting(&waits).contains("room for 2 of 4 pods now"));
        let small = stage.want(2, |_| {});
        stage.until("the smaller one to run", || runs(&small, 2));
        assert_eq!(stage.wire.bound(&waits), 0);
        stage.drop_and_see_nothing_left(&most);
        stage.until("the larger one to run", || runs(&waits, four));
        stage.drop_and_see_nothing_left(&waits);
        stage.drop_and_see_nothing_left(&small);
    }
}

#[test]
fn a_gang_of_higher_priority_goes_first_although_it_came_last() {
    for gangs in [Gangs::Gates, Gangs::Volcano] {
        let Some(stage) = Stage::set(Settings { training: true, gangs, ..Settings::default() }) else { return };
        // Volcano knows priorities by their classes, which the target names.
        for (level, value) in [("high", 1000), ("low", 10)] {
            stage.cluster.apply(&format!(
                r#"{{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {{"name": "test-{level}"}},
                "preemptionPolicy": "Never", "value": {value}}}"#
            ));
        }
        let nodes = stage.fake_nodes() as u32;
        let want = |priority: i64| {
            stage.want(nodes, |launch| {
                launch.priority = priority;
                for level in ["high", "low"] {
                    launch.target.settings.insert(format!("priority_class_{level}"), format!("test-{level}"));
                }
            })
        };
        let all = |attempt: &AttemptId| stage.pods(attempt, "Running").len() == nodes as usize;
        let first = want(3);
        stage.until("all nodes to be taken", || all(&first));
        let low = want(1);
        stage.until("one to wait", || !stage.wire.waiting(&low).is_empty());
        let high = want(3);
        stage.until("another to wait", || !stage.wire.waiting(&high).is_empty());
        stage.drop_and_see_nothing_left(&first);
        stage.until("the higher one to run", || all(&high));
        assert_eq!(stage.wire.bound(&low), 0);
        stage.drop_and_see_nothing_left(&high);
        stage.until("the lower one to run", || all(&low));
        stage.drop_and_see_nothing_left(&low);
        stage.cluster.ok(&["delete", "priorityclass", "test-high", "test-low"]);
    }
}

#[test]
fn a_part_that_made_way_for_a_more_important_job_is_told_so() {
    let Some(stage) = Stage::set(Settings { training: true, gangs: Gangs::Gates, ..Settings::default() }) else {
        return;
    };
    let class = format!("urgent-{}", stage.namespace());
    stage.cluster.apply(&format!(
        r#"{{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {{"name": "{class}"}}, "value": 1000}}"#
    ));
    let nodes = stage.fake_nodes();
    let all = stage.want(nodes as u32, |_| {});
    stage.until("all nodes to be taken", || stage.pods(&all, "Running").len() == nodes);
    let urgent = stage.want(1, |launch| drop(launch.target.settings.insert("priority_class".into(), class.clone())));
    stage.until("word of who made way", || stage.wire.gone(&all).is_some());
    let (code, why, retryable) = stage.wire.gone(&all).unwrap();
    assert!(code == "Preempted" && retryable, "{code}: {why}");
    stage.until("the urgent one to run", || stage.pods(&urgent, "Running").len() == 1);
    stage.drop_and_see_nothing_left(&all);
    stage.drop_and_see_nothing_left(&urgent);
    stage.cluster.ok(&["delete", "priorityclass", &class]);
}

#[test]
fn of_a_burst_of_jobs_every_one_runs_once() {
    // Volcano itself takes its time over each.
    for (gangs, share) in [(Gangs::Gates, 1), (Gangs::Volcano, 5)] {
        let Some(mut stage) = Stage::set(Settings { training: true, gangs, ..Settings::default() }) else { return };
        let count = number("PEREGRINE_BURST", 100) / share;
        let witness = Witness::watch(&stage);
        let began = Instant::now();
        let one = || (stage.want(1, |launch| launch.instance_type = SMALL.to_owned()), 1);
        let wanted: BTreeMap<_, _> = (0..count).map(|_| one()).collect();
        stage.until("some of them", || witness.seen.lock().unwrap().gangs.len() > wanted.len() / 4);
        stage.kill();
        stage.start();
        let patience = Duration::from_secs(180 + count / 2);
        stage.until_within(patience, "all of them to have run", || {
            witness.end_those_that_ran(&stage, &wanted);
            stage.wire.with().wanted.is_empty()
        });
        println!("{count} jobs ran in {:.0} s", began.elapsed().as_secs_f64());
        nothing_is_left(&stage, patience);
        println!("and were gone after {:.0} s", began.elapsed().as_secs_f64());
        assert_eq!(witness.seen.lock().unwrap().doubled, BTreeSet::new(), "pods that ran twice");
        assert_eq!(stage.wire.with().lost, BTreeSet::new());
    }
}

fn nothing_is_left(stage: &Stage, patience: Duration) {
    stage.until_within(patience, "nothing to be left", || stage.is_bare());
}

/// What was seen of the pods of all gangs, event by event.
#[derive(Default)]
struct Seen {
    events: u64,
    gangs: BTreeMap<String, Gang>,
    ended: BTreeSet<AttemptId>,
    longest: Duration,
    doubled: BTreeSet<String>,
}

#[derive(Default)]
struct Gang {
    parts: usize,
    /// Uids of pods that have a node, by part.
    bound: BTreeMap<String, String>,
    /// Those that had a node when all others had one: what a part has run as, for good.
    ran: BTreeMap<String, String>,
    partial_since: Option<Instant>,
    whole_since: Option<Instant>,
}

struct Witness {
    seen: Arc<Mutex<Seen>>,
    _watching: Runtime,
}

impl Witness {
    fn watch(stage: &Stage) -> Witness {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (config, namespace, into) =
            (stage.cluster.fact("KUBECONFIG").to_owned(), stage.namespace(), Arc::clone(&seen));
        runtime.spawn(async move {
            let api: Api<Pod> = Api::namespaced(client(&config).await, &namespace);
            let mut from = "0".to_owned();
            loop {
                let ours = WatchParams::default().labels("peregrine.dev/attempt").timeout(290);
                let mut events = Box::pin(api.watch(&ours, &from).await.unwrap());
                while let Some(Ok(event)) = events.next().await {
                    let (pod, gone) = match event {
                        WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
                        WatchEvent::Deleted(pod) => (pod, true),
                        _ => continue,
                    };
                    from = pod.metadata.resource_version.clone().unwrap();
                    into.lock().unwrap().take(&pod, gone);
                }
            }
        });
        Witness { seen, _watching: runtime }
    }

    /// What the server would do: an attempt that ran whole for a while is over.
    fn end_those_that_ran(&self, stage: &Stage, wanted: &BTreeMap<AttemptId, u32>) {
        let mut seen = self.seen.lock().unwrap();
        seen.look();
        let ran = |attempt: &&AttemptId| {
            let gang = seen.gangs.get(attempt.as_str());
            gang.is_some_and(|gang| gang.whole_since.is_some_and(|since| since.elapsed() > LIFE))
        };
        let over: Vec<_> =
            wanted.keys().filter(|attempt| !seen.ended.contains(*attempt)).filter(ran).cloned().collect();
        for attempt in over {
            stage.wire.with().wanted.remove(&attempt);
            seen.ended.insert(attempt);
        }
    }
}

impl Seen {
    fn take(&mut self, pod: &Pod, gone: bool) {
        self.events += 1;
        let labels = pod.metadata.labels.as_ref().unwrap();
        let attempt = labels["peregrine.dev/attempt"].clone();
        let (name, uid) = (pod.metadata.name.clone().unwrap(), pod.metadata.uid.clone().unwrap());
        let over = AttemptId::parse(&attempt).is_ok_and(|attempt| self.ended.contains(&attempt));
        let gang = self.gangs.entry(attempt).or_default();
        gang.parts = labels["peregrine.dev/parts"].parse().unwrap();
        let bound = pod.spec.as_ref().unwrap().node_name.is_some() && !gone;
        match bound {
            true => {
                // A pod in the place of one that ran with its whole gang would be a second life.
                if gang.ran.get(&name).is_some_and(|before| *before != uid) {
                    self.doubled.insert(name.clone());
                }
                gang.bound.insert(name, uid);
            }
            false => drop(gang.bound.remove(&name)),
        }
        let (now, count) = (Instant::now(), gang.bound.len());
        let partial = count > 0 && count < gang.parts && !over && gang.whole_since.is_none();
        if count == gang.parts {
            gang.whole_since.get_or_insert(now);
            for (name, uid) in &gang.bound {
                gang.ran.entry(name.clone()).or_insert_with(|| uid.clone());
            }
        }
        match (partial, gang.partial_since) {
            (true, None) => gang.partial_since = Some(now),
            (false, Some(since)) => {
                self.longest = self.longest.max(since.elapsed());
                gang.partial_since = None;
            }
            _ => {}
        }
    }

    /// Gangs that are in part right now count as well.
    fn look(&mut self) {
        let now = self.gangs.values().filter_map(|gang| gang.partial_since).map(|since| since.elapsed()).max();
        self.longest = self.longest.max(now.unwrap_or_default());
    }
}
