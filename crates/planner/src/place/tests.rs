//! Placement, told in words.

use super::*;
use domain::sharing::{Limits, Whom};
use expect_test::{Expect, expect};

/// `node:cpus:window[:handed] ...  |  job:cpus[:priority[:person]] ...  [ |  person:used ... ]`
fn check(world: &str, expect: Expect) {
    check_with(world, Vec::new(), expect);
}

fn check_with(world: &str, quotas: Vec<Quota>, expect: Expect) {
    let mut parts = world.split('|');
    let (nodes, jobs) = (parts.next().unwrap(), parts.next().unwrap());
    let mut shares = vec![Share { holder: holder("ann"), ..Share::default() }];
    for text in parts.next().unwrap_or_default().split_whitespace() {
        let (person, used) = text.split_once(':').unwrap();
        let used = used.parse::<f64>().unwrap() * 60_000.0;
        match shares.iter_mut().find(|share| share.holder.person == person) {
            Some(share) => share.used = used,
            None => shares.push(Share { holder: holder(person), used, turn: 0 }),
        }
    }
    let share = |person: &str| shares.iter().position(|share| share.holder.person == person).unwrap();
    let cpu = |text: &str| Resources { cpu_milli: text.parse::<u64>().unwrap() * 1000, ..Resources::default() };
    let nodes = nodes.split_whitespace().map(|text| {
        let parts: Vec<&str> = text.split(':').collect();
        let count = parts.get(3).map_or(0, |n| n.parse().unwrap());
        Node {
            name: parts[0].trim_end_matches('!').into(),
            target: "t".into(),
            capacity: cpu(parts[1]),
            silent: parts[0].ends_with('!').then(|| "it does not answer".to_owned()),
            handed: vec![Handed { priority: 1, share: 0, count }],
            window: parts[2].parse().unwrap(),
        }
    });
    let queue = jobs.split_whitespace().enumerate().map(|(at, text)| {
        let parts: Vec<&str> = text.split(':').collect();
        Waiting {
            seq: at as i64 + 1,
            job: JobName::parse(parts[0]).unwrap(),
            target: "t".into(),
            called: "t".into(),
            priority: parts.get(2).map_or(1, |p| p.parse().unwrap()),
            share: share(parts.get(3).copied().unwrap_or("ann")),
            needs: cpu(parts[1]),
        }
    });
    let (nodes, queue) = (nodes.collect(), queue.collect());
    let world = World { nodes, queue, shares: shares.clone(), quotas, half_life_ms: 1000, ..World::default() };
    let lines: Vec<String> = place(&world)
        .iter()
        .map(|decision| match decision {
            Decision::Place { seq, node, .. } => format!("{} -> {node}", world.queue[*seq as usize - 1].job),
            Decision::Wait { seq, because } => format!("{}: {because}", world.queue[*seq as usize - 1].job),
        })
        .collect();
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn jobs_are_handed_out_up_to_the_window() {
    check(
        "n:2:2 | a:1 b:1 c:1",
        expect![[r#"
        a -> n
        b -> n
        c: waits for its turn on `t`"#]],
    );
}

#[test]
fn a_job_of_higher_priority_goes_past_a_full_window() {
    check(
        "n:2:1:1 | a:1:3 b:1",
        expect![[r#"
        a -> n
        b: waits for its turn on `t`"#]],
    );
}

#[test]
fn a_job_that_fits_nowhere_says_so_and_lets_others_by() {
    check(
        "n:2:4 | a:8 b:1",
        expect![[r#"
        a: needs 8 CPUs, more than any node of `t` has (2 CPUs)
        b -> n"#]],
    );
}

#[test]
fn work_spreads_over_the_least_laden_node() {
    check(
        "m:2:4:2 n:2:4 | a:1 b:1 c:1",
        expect![[r#"
        a -> n
        b -> n
        c -> m"#]],
    );
}

#[test]
fn a_silent_node_says_why() {
    check("n!:2:4 | a:1", expect!["a: it does not answer"]);
    check(" | a:1", expect!["a: compute target `t` has no node yet"]);
}

fn holder(person: &str) -> Holder {
    Holder { workspace: "w".into(), person: person.into() }
}

#[test]
fn who_has_used_less_goes_first_and_then_they_take_turns() {
    check(
        "n:2:9 | a:1 b:1 c:1:1:bob d:1:1:bob e:1:1:bob | ann:3 bob:1.5",
        expect![[r#"
            c -> n
            d -> n
            a -> n
            e -> n
            b -> n"#]],
    );
}

#[test]
fn a_full_window_of_one_does_not_keep_another_out() {
    check(
        "n:2:2:2 | a:1 b:1:1:bob | ann:0 bob:9",
        expect![[r#"
            a: waits for its turn on `t`
            b -> n"#]],
    );
}

#[test]
fn over_quota_a_job_waits_and_lets_others_by() {
    let limits = Limits { cpu_milli: Some(2000), ..Limits::default() };
    let each = Quota { workspace: "w".into(), whom: Whom::Each, target: None, limits };
    check_with(
        "n:8:9 | a:2 b:1 c:1:1:bob | bob:1",
        vec![each],
        expect![[r#"
            a -> n
            c -> n
            b: waits for the quota of each user in workspace `w`: 2 CPUs"#]],
    );
}

/// What three people get of one machine when one of them asks for far more than the others.
#[test]
fn nobody_starves_and_everyone_gets_a_like_share() {
    let job = |seq: i64, share: usize| Waiting {
        seq,
        job: JobName::parse(&format!("j{seq}")).unwrap(),
        target: "t".into(),
        called: "t".into(),
        priority: 1,
        share,
        needs: Resources { cpu_milli: 1000, ..Resources::default() },
    };
    let half_life_ms = 3_600_000;
    let mut queue: Vec<Waiting> = (0..500).map(|seq| job(seq, 0)).collect();
    let mut shares: Vec<Share> =
        ["ann", "bob", "cat"].map(|who| Share { holder: holder(who), ..Share::default() }).into();
    let mut ran = [0_u32; 3];
    let mut at = 500;
    for round in 0..600_i64 {
        // Bob comes late, and cat now and then.
        if round >= 100 {
            queue.push(job(at, 1));
            at += 1;
        }
        if round % 10 == 0 {
            queue.push(job(at, 2));
            at += 1;
        }
        let now = Timestamp(round * 60_000);
        let capacity = Resources { cpu_milli: 64_000, ..Resources::default() };
        let (name, target) = ("n".into(), "t".into());
        let node = Node { name, target, capacity, silent: None, handed: Vec::new(), window: 1 };
        let world = World {
            nodes: vec![node],
            queue: queue.clone(),
            shares: shares.clone(),
            now,
            half_life_ms,
            ..World::default()
        };
        let first = place(&world).into_iter().find_map(|decision| match decision {
            Decision::Place { seq, .. } => Some(seq),
            Decision::Wait { .. } => None,
        });
        let done = queue.remove(queue.iter().position(|job| Some(job.seq) == first).unwrap());
        ran[done.share] += 1;
        for share in &mut shares {
            share.used *= (-60_000.0 / half_life_ms as f64).exp2();
        }
        shares[done.share].used += 60_000.0;
    }
    assert_eq!(ran.iter().sum::<u32>(), 600);
    assert!(ran[2] >= 59, "cat asks for little and gets all of it: {ran:?}");
    // Bob has never had anything when he comes, so he is first until he has had as much lately as ann.
    assert!((220..=330).contains(&ran[1]) && ran[0] > 200, "{ran:?}");
}
