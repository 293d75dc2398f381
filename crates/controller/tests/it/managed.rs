//! A managed cluster in a hostile world: a provider that fails, lies and does what it says it did not, machines that die or are cut
//! off, servers that restart. Virtual time, a real store, the real decisions.

mod line;

use crate::{Home, seeds};
use compute::{Found, Health, Listing, Order, Provider, Site, Started, Trouble};
use controller::{Managed, ManagedSettings};
use domain::{
    AttemptId, Resources, Timestamp,
    cluster::{Finding, Launch},
    machine::{PartFate, Standing},
};
use planner::nodes::Bounds;
use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use store::{MachineRow, Store};

const CLUSTER: &str = "@default/crew";
const TICK_MS: i64 = 5_000;
const SEEDS: u64 = 6;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

fn now() -> Timestamp {
    Timestamp(NOW.get())
}

/// Numbers by seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    /// Once in so many.
    fn once_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

struct Machine {
    joins_at: Option<i64>,
    dead: bool,
    /// Cut off until then; what it runs goes on.
    cut_until: i64,
    /// Its owner takes it back then, and says so beforehand.
    back_at: Option<i64>,
    /// Parts at work, and how many ticks each still takes.
    runs: BTreeMap<(AttemptId, u32), u32>,
    left: Vec<(AttemptId, u32)>,
}

struct Cloud {
    dice: Dice,
    machines: BTreeMap<String, Machine>,
    /// Nothing fails any more.
    calm: bool,
}

impl Cloud {
    fn fails(&mut self, many: u64) -> bool {
        !self.calm && self.dice.once_in(many)
    }
}

#[derive(Clone)]
struct Fake(Arc<Mutex<Cloud>>);

fn trouble() -> Trouble {
    Trouble::new("provider", "the cloud has its moods")
}

impl Provider for Fake {
    async fn create(&self, order: &Order) -> Result<(), Trouble> {
        let mut cloud = self.0.lock().unwrap();
        if cloud.fails(6) {
            return Err(trouble());
        }
        if cloud.fails(10) {
            return Ok(());
        }
        let joins_at = (!cloud.fails(8)).then(|| NOW.get() + i64::try_from(cloud.dice.below(60_000)).unwrap());
        let machine =
            Machine { joins_at, dead: false, cut_until: 0, back_at: None, runs: BTreeMap::new(), left: Vec::new() };
        cloud.machines.entry(order.name.clone()).or_insert(machine).dead = false;
        // It did what it was asked and says that it did not.
        if cloud.fails(10) { Err(trouble()) } else { Ok(()) }
    }

    async fn delete(&self, name: &str) -> Result<(), Trouble> {
        let mut cloud = self.0.lock().unwrap();
        if cloud.fails(4) {
            return Err(trouble());
        }
        cloud.machines.remove(name);
        if cloud.fails(8) { Err(trouble()) } else { Ok(()) }
    }

    async fn list(&self) -> Result<Listing, Trouble> {
        let mut cloud = self.0.lock().unwrap();
        if cloud.fails(6) {
            return Err(trouble());
        }
        if cloud.fails(6) {
            return Ok(Listing::nothing());
        }
        let found = |(name, machine): (&String, &Machine)| Found {
            name: name.clone(),
            health: match machine {
                Machine { dead: true, .. } => Health::Dead("it is dead".to_owned()),
                Machine { back_at: Some(_), .. } => Health::Leaves("its owner wants it".to_owned()),
                Machine { joins_at: Some(at), .. } if NOW.get() < *at => Health::Waits("it is booting".to_owned()),
                _ => Health::Well,
            },
        };
        let mut all: Vec<Found> = cloud.machines.iter().map(found).collect();
        // It leaves one out that is there.
        if !all.is_empty() && cloud.fails(10) {
            let one = cloud.dice.below(u64::try_from(all.len()).unwrap());
            all.remove(usize::try_from(one).unwrap());
        }
        Ok(Listing::all(all))
    }

    async fn offers(&self, size: &Resources) -> Result<Resources, Trouble> {
        Ok(*size)
    }

    async fn check(&self) -> Vec<Finding> {
        Vec::new()
    }
}

fn settings(bounds: Bounds) -> ManagedSettings {
    ManagedSettings {
        cluster: CLUSTER.into(),
        workspace: "default".into(),
        compute: "crew".into(),
        uid: "u".into(),
        size: ("S".into(), Resources { cpu_milli: 1000, memory_bytes: 1 << 30, gpus: 0 }),
        bounds,
        tier: Default::default(),
        preempts: false,
        deleting: None,
        forced: false,
        token: |_, _, name| name.to_owned(),
        clock: now,
    }
}

struct Job {
    comes: i64,
    parts: u32,
    ticks: u32,
    number: u32,
    done: bool,
}

fn launch(seq: usize, job: &Job) -> Launch {
    Launch {
        number: job.number,
        parts: job.parts,
        ..Launch::fixture(AttemptId::parse(&format!("att_{}_{}", seq + 1, job.number)).unwrap())
    }
}

/// Every machine that is well and can be heard does what a node does with one poll.
async fn machines_act(store: &Store, cloud: &Mutex<Cloud>, jobs: &[Job]) {
    let names: Vec<String> = cloud.lock().unwrap().machines.keys().cloned().collect();
    for name in names {
        let (heard, mut told) = {
            let mut cloud = cloud.lock().unwrap();
            let (dies, cut, back) = (cloud.fails(400), cloud.fails(300), cloud.fails(300));
            let minutes = if cloud.dice.once_in(4) { 100 } else { 20 };
            let long = i64::try_from(cloud.dice.below(minutes)).unwrap() * 60_000;
            // A provider may take it away at any moment.
            let Some(machine) = cloud.machines.get_mut(&name) else { continue };
            if cut {
                machine.cut_until = NOW.get() + long;
            }
            if back {
                machine.back_at.get_or_insert(NOW.get() + 60_000);
            }
            if machine.back_at.is_some_and(|at| NOW.get() >= at) {
                cloud.machines.remove(&name);
                continue;
            }
            machine.dead |= dies;
            if machine.dead {
                machine.runs.clear();
            }
            // Work goes on whether or not anybody hears of it.
            for left in machine.runs.values_mut() {
                *left = left.saturating_sub(1);
            }
            let over: Vec<_> =
                machine.runs.iter().filter(|(_, left)| **left == 0).map(|(key, _)| key.clone()).collect();
            for key in over {
                machine.runs.remove(&key);
                machine.left.push(key);
            }
            let heard =
                !machine.dead && NOW.get() >= machine.cut_until && machine.joins_at.is_some_and(|at| NOW.get() >= at);
            (heard, machine.left.clone())
        };
        if !heard {
            continue;
        }
        // The store works on a thread of its own, where it is another time.
        let (asked, now) = (name.clone(), now());
        let own = store
            .write(move |tx| {
                let Some(row) = tx.machine(CLUSTER, &asked)? else { return Ok(None) };
                let standing = if row.standing == Standing::Preparing { Standing::Ready } else { row.standing };
                let since = if standing == row.standing { row.since } else { now };
                tx.put_machine(&MachineRow { standing, since, seen_at: Some(now), ..row })?;
                let parts = tx.parts_of_machine(CLUSTER, &asked)?;
                for (attempt, part) in told.drain(..) {
                    if parts.iter().any(|own| own.attempt == attempt && own.part == part) {
                        tx.put_fate(&attempt, part, &PartFate::Left)?;
                    }
                }
                Ok(Some((standing, tx.parts_of_machine(CLUSTER, &asked)?)))
            })
            .await
            .unwrap();
        let mut cloud = cloud.lock().unwrap();
        let Some(machine) = cloud.machines.get_mut(&name) else { continue };
        // A node that nobody knows any more, or that is to leave, ends what it has.
        let Some((standing, own)) = own.filter(|(standing, _)| *standing == Standing::Ready) else {
            machine.runs.clear();
            continue;
        };
        assert_eq!(standing, Standing::Ready);
        machine.runs.retain(|(attempt, _), _| own.iter().any(|part| part.attempt == *attempt));
        for part in own.into_iter().filter(|part| matches!(part.fate, None | Some(PartFate::Own))) {
            let seq = usize::try_from(part.attempt.parts().unwrap().0).unwrap() - 1;
            let key = (part.attempt, part.part);
            if !machine.left.contains(&key) {
                machine.runs.entry(key).or_insert(jobs[seq].ticks);
            }
        }
    }
}

async fn run(seed: u64) {
    NOW.set(1_000_000);
    let home = Home::new();
    let store = home.open();
    let mut dice = Dice(seed);
    let most = u32::try_from(2 + dice.below(4)).unwrap();
    let bounds = Bounds { least: 0, most, idle_ms: 60_000, lost_ms: 600_000 };
    let cloud = Arc::new(Mutex::new(Cloud { dice: Dice(seed ^ 7), machines: BTreeMap::new(), calm: false }));
    let mut jobs: Vec<Job> = (0..12)
        .map(|_| Job {
            comes: NOW.get() + i64::try_from(dice.below(30 * 60_000)).unwrap(),
            parts: u32::try_from(1 + dice.below(2)).unwrap(),
            ticks: u32::try_from(1 + dice.below(40)).unwrap(),
            number: 0,
            done: false,
        })
        .collect();
    let begin = || Managed::new(store.clone(), Fake(Arc::clone(&cloud)), settings(bounds));
    let mut managed = begin();
    let mut over_at = None;
    loop {
        NOW.set(NOW.get() + TICK_MS);
        if NOW.get() > 24 * 3_600_000 {
            let rows = store.read(|tx| Ok((tx.machines(CLUSTER)?, tx.machine_parts(CLUSTER)?))).await.unwrap();
            let open: Vec<_> = jobs
                .iter()
                .enumerate()
                .filter(|(_, job)| !job.done)
                .map(|(at, job)| (at, job.parts, job.ticks, job.number))
                .collect();
            panic!("seed {seed}: it never ends: {open:?} {rows:#?}");
        }
        if dice.once_in(40) {
            managed = begin();
        }
        machines_act(&store, &cloud, &jobs).await;
        // A steward's round.
        let look = managed.look().await.unwrap();
        for (seq, job) in jobs.iter_mut().enumerate().filter(|(_, job)| !job.done && job.comes <= NOW.get()) {
            let sent = launch(seq, job);
            let Some(held) = look.held.iter().find(|held| held.attempt == sent.attempt) else {
                let started = managed.launch(std::slice::from_ref(&sent), &look).await.unwrap().remove(0);
                assert!(!matches!(started, Started::Never(_)), "seed {seed}: {started:?}");
                continue;
            };
            assert_eq!(held.parts.len(), job.parts as usize, "seed {seed}: a gang is given nodes whole");
            // It is over, and is begun anew, once every part is.
            let left = held.parts.iter().filter(|part| part.state == compute::PartState::Left).count();
            let gone = held.parts.iter().filter(|part| matches!(part.state, compute::PartState::Gone { .. })).count();
            if left + gone == held.parts.len() {
                managed.remove(std::slice::from_ref(&sent.attempt)).await.unwrap();
                job.done = gone == 0;
                job.number += u32::from(gone > 0);
            }
        }
        managed.settle().await.unwrap();
        // Answers of the provider come at once here.
        tokio::task::yield_now().await;
        managed.settle().await.unwrap();

        let rows = store.read(|tx| tx.machines(CLUSTER)).await.unwrap();
        let there = rows.iter().filter(|row| row.standing != Standing::Gone).count();
        assert!(there <= most as usize, "seed {seed}: {there} nodes of {most}");
        let mut cloud = cloud.lock().unwrap();
        // No part is at work twice: neither in two places, nor as two attempts once the first was given up and begun anew. One that
        // nobody hears of counts too, for it goes on until its provider has taken it away.
        let mut at_work: BTreeMap<(i64, u32), Vec<AttemptId>> = BTreeMap::new();
        for machine in cloud.machines.values() {
            for (attempt, part) in machine.runs.keys() {
                at_work.entry((attempt.parts().unwrap().0, *part)).or_default().push(attempt.clone());
            }
        }
        assert!(at_work.values().all(|attempts| attempts.len() == 1), "seed {seed}: {at_work:?}");
        if jobs.iter().all(|job| job.done) {
            cloud.calm = true;
            let over = *over_at.get_or_insert(NOW.get());
            if NOW.get() - over > 3_600_000 {
                assert!(cloud.machines.is_empty(), "seed {seed}: {:?} are orphans", cloud.machines.keys());
                assert!(rows.is_empty(), "seed {seed}: {rows:?}");
                return;
            }
        }
    }
}

#[test]
fn whatever_fails_clusters_keep_the_laws_every_job_done_once_and_no_node_left_behind() {
    seeds::each(SEEDS, |seed| seeds::alone(run(seed)));
}
