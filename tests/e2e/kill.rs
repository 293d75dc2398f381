//! Kills at random moments, and the proof that none of them lost a job, ran one twice or tore a file.
//!
//! The server, the agent, both, or the keeper above the agent is ended with SIGKILL in the middle of submits or while
//! a job is in a chosen phase, as the server has recorded it a moment before. Nothing is repaired by hand: the next
//! command line starts a server, the server a keeper, the keeper an agent. `PEREGRINE_KILLS` says how many kills,
//! `PEREGRINE_SEED` which ones.

mod chance;
mod field;
mod proof;
mod tally;
mod victim;

use chance::Chance;
use field::{Field, New};
use proof::Proof;
use std::sync::atomic::{AtomicUsize, Ordering};
use tally::{MOMENTS, Tally, VICTIMS};
use victim::{find, kill};

/// How often to look for a job in the wanted phase before any other phase will do.
const LOOKS: usize = 100;

#[test]
fn kills_at_any_moment_lose_no_job_and_run_none_twice() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = number("PEREGRINE_KILLS").unwrap_or(80);
    let seed = number("PEREGRINE_SEED").unwrap_or_else(Chance::any_seed);
    println!("{kills} kills; PEREGRINE_SEED={seed} draws them again");
    let start = tokio::time::Instant::now();
    let mut chance = Chance::of(seed);
    let mut field = Field::new();
    let mut tally = Tally::default();
    field.top_up(&mut chance);
    let mut said = 0;
    while tally.kills() < kills {
        if tally.kills() >= said {
            println!("{said} kills after {:.0?}, {} jobs", start.elapsed(), field.jobs.len());
            said += 25;
        }
        round(&mut field, &mut chance, &mut tally);
        field.revive();
        field.top_up(&mut chance);
    }
    drain(&mut field);
    let proof = Proof::of(&field);
    println!("all over after {:.0?}\n", start.elapsed());
    println!("{}\n{} jobs submitted; ended: {:?}", tally.table(), field.jobs.len(), proof.ends);
    assert!(proof.wrong.is_empty(), "seed {seed}:\n{}", proof.wrong.join("\n"));
    for name in MOMENTS {
        assert!(tally.of_moment(name) > 0, "no kill fell into `{name}` (seed {seed})");
    }
    for name in VICTIMS {
        assert!(tally.of_victim(name) > 0, "the {name} was never killed (seed {seed})");
    }
}

/// One kill: who, in the middle of what, counted by what it really fell into.
fn round(field: &mut Field, chance: &mut Chance, tally: &mut Tally) {
    let aim = tally.wanting(chance);
    if aim == "submit" {
        let victim = chance.pick(&["server", "server", "both"]);
        if kill_in_submit(field, chance, victim) {
            tally.count(aim, victim);
        }
        return;
    }
    let victim = chance.pick(&["server", "server", "agent", "agent", "agent", "both", "both", "keeper"]);
    // The victims are looked up first, so that nothing stands between the last look and the kill.
    let pids: Vec<_> = roles(victim, chance).iter().map(|role| find(&field.home, role)).collect();
    if victim == "keeper" {
        field.suspects.extend(field.open().into_iter().map(|(name, _)| name));
    }
    if let Some(moment) = take_aim(field, chance, aim)
        && strike(&pids, chance)
    {
        tally.count(moment, victim);
    }
}

/// The processes of a victim, in the order in which they go.
fn roles(victim: &str, chance: &mut Chance) -> &'static [&'static str] {
    match victim {
        "server" => &["server"],
        "agent" => &["agent"],
        "keeper" => &["keeper"],
        _ if chance.one_in(2) => &["server", "agent"],
        _ => &["agent", "server"],
    }
}

/// Kills them all; false when one had gone by itself.
fn strike(pids: &[rustix::process::Pid], chance: &mut Chance) -> bool {
    let mut killed = true;
    for (n, pid) in pids.iter().enumerate() {
        if n > 0 && chance.one_in(2) {
            chance.pause(150);
        }
        killed &= kill(*pid);
    }
    // Now and then the survivors are left alone for a while.
    if chance.one_in(3) {
        chance.pause(600);
    }
    killed
}

/// Waits until some job is in the phase, and a moment more; the phase that job is in then.
fn take_aim(field: &mut Field, chance: &mut Chance, aim: &'static str) -> Option<&'static str> {
    if chance.one_in(4) {
        chance.pause(300);
    }
    for look in 0..LOOKS {
        let open = field.open();
        let fitting: Vec<&(String, String)> = open.iter().filter(|(_, phase)| phase == aim).collect();
        let job = match fitting.as_slice() {
            [] if aim == "stopping" => {
                let ripe: Vec<_> =
                    open.iter().filter(|(_, phase)| !["queued", "placed"].contains(&phase.as_str())).collect();
                if let [_, ..] = ripe.as_slice() {
                    field.cancel(&chance.pick(&ripe).0);
                }
                continue;
            }
            [] if look + 1 < LOOKS => {
                chance.pause(10);
                continue;
            }
            [] => &open.first()?.0,
            fitting => &chance.pick(fitting).0,
        };
        chance.pause(12);
        let phase = field.phase(job)?;
        if let Some(moment) = MOMENTS.iter().find(|moment| **moment == phase) {
            return Some(moment);
        }
    }
    None
}

/// Kills while submits are on their way, over the API and by the command line; whether any was when the kill came.
fn kill_in_submit(field: &mut Field, chance: &mut Chance, victim: &'static str) -> bool {
    let by_hand = chance.one_in(3).then(|| field.draw_file(chance));
    let batches: Vec<Vec<New>> = (0..4).map(|_| (0..4).map(|_| field.draw(chance)).collect()).collect();
    let pids: Vec<_> = roles(victim, chance).iter().map(|role| find(&field.home, role)).collect();
    let under_way = AtomicUsize::new(0);
    let shared: &Field = field;
    let (accepted, hit) = std::thread::scope(|scope| {
        let file = by_hand.as_ref().map(|(new, file)| {
            let args = ["job", "create", "-n", &new.name, "-f", file.to_str().unwrap(), "-o", "none"];
            let mut child = shared.command(&args).stderr(std::process::Stdio::null()).spawn().unwrap();
            scope.spawn(move || child.wait().unwrap().success())
        });
        let puts: Vec<_> = batches.iter().map(|batch| scope.spawn(|| put_all(shared, batch, &under_way))).collect();
        chance.pause(if by_hand.is_some() { 90 } else { 25 });
        let hit = under_way.load(Ordering::SeqCst) > 0 || file.as_ref().is_some_and(|file| !file.is_finished());
        let hit = strike(&pids, chance) && hit;
        let accepted: Vec<Vec<bool>> = puts.into_iter().map(|put| put.join().unwrap()).collect();
        ((accepted, file.map(|file| file.join().unwrap())), hit)
    });
    for (new, accepted) in batches.into_iter().flatten().zip(accepted.0.into_iter().flatten()) {
        field.note(new, accepted);
    }
    if let (Some((new, _)), Some(accepted)) = (by_hand, accepted.1) {
        field.note(new, accepted);
    }
    hit
}

fn put_all(field: &Field, batch: &[New], under_way: &AtomicUsize) -> Vec<bool> {
    let put = |new: &New| {
        under_way.fetch_add(1, Ordering::SeqCst);
        let accepted = field.put(new);
        under_way.fetch_sub(1, Ordering::SeqCst);
        accepted
    };
    batch.iter().map(put).collect()
}

/// Cancels most of what still waits, then waits for the end of every job, for as long as there is progress.
fn drain(field: &mut Field) {
    let waiting: Vec<String> = field
        .open()
        .into_iter()
        .filter(|(_, p)| ["queued", "placed"].contains(&p.as_str()))
        .map(|(name, _)| name)
        .collect();
    waiting.iter().skip(20).for_each(|name| field.cancel(name));
    let mut left = field.open().len();
    while left > 0 {
        let mut now = left;
        field.home.until(&format!("the end of one of {left} jobs: {:?}", field.open()), || {
            now = field.open().len();
            now < left
        });
        left = now;
    }
}
