//! Gangs of one and of several, with Volcano and with gates: made once, started whole, removed without a trace.

use crate::stage::{Stage, TYPE};
use kubernetes::settings::{Gangs, Settings};

fn with(gangs: Gangs) -> Settings {
    Settings { training: true, gangs, ..Settings::default() }
}

/// The same story for whoever sees to gangs.
fn a_gang_lives_once(gangs: Gangs) {
    let Some(mut stage) = Stage::set(with(gangs)) else { return };
    stage.wire.with().repeat = true;
    let (one, four) = (stage.want(1, |_| {}), stage.want(4, |_| {}));
    stage
        .until("all pods to run", || stage.pods(&one, "Running").len() == 1 && stage.pods(&four, "Running").len() == 4);
    stage.until("the server to hear where", || stage.wire.bound(&one) == 1 && stage.wire.bound(&four) == 4);
    assert_eq!((stage.count("secrets", &one), stage.count("secrets", &four)), (1, 1));
    let before = (stage.uids(&one), stage.uids(&four));
    stage.kill();
    stage.wire.with().news.clear();
    stage.start();
    stage.until("a new operator to find them again", || stage.wire.bound(&one) == 1 && stage.wire.bound(&four) == 4);
    let polls = stage.wire.with().polls;
    stage.until("some more polls with the same launches", || stage.wire.with().polls > polls + 5);
    assert_eq!((stage.uids(&one), stage.uids(&four)), before, "a launch that comes again changes nothing");
    assert_eq!((stage.wire.gone(&one), stage.wire.gone(&four)), (None, None));
    stage.wire.with().repeat = false;
    stage.drop_and_see_nothing_left(&one);
    stage.drop_and_see_nothing_left(&four);
}

#[test]
fn with_gates_a_gang_lives_once_and_leaves_nothing() {
    a_gang_lives_once(Gangs::Gates);
}

#[test]
fn with_volcano_a_gang_lives_once_and_leaves_nothing() {
    a_gang_lives_once(Gangs::Volcano);
}

#[test]
fn an_operator_killed_while_it_makes_a_gang_leaves_it_to_the_next() {
    for gangs in [Gangs::Gates, Gangs::Volcano] {
        let Some(mut stage) = Stage::set(with(gangs)) else { return };
        let wanted: Vec<_> = (0..6).map(|_| stage.want(2, |_| {})).collect();
        for _ in 0..3 {
            stage.until("something to be made", || wanted.iter().any(|attempt| !stage.pods(attempt, "").is_empty()));
            stage.kill();
            stage.start();
        }
        stage.until("all of them to run", || wanted.iter().all(|attempt| stage.pods(attempt, "Running").len() == 2));
        for attempt in &wanted {
            assert_eq!(stage.count("secrets", attempt), 1, "{attempt}");
            assert_eq!(stage.wire.gone(attempt), None, "{attempt}");
        }
        wanted.iter().for_each(|attempt| stage.drop_and_see_nothing_left(attempt));
    }
}

pub(crate) fn a_gang_that_does_not_fit_says_what_is_missing_and_starts_nothing(stage: &Stage) {
    let nodes = stage.fake_nodes();
    let attempt = stage.want(nodes as u32 + 1, |launch| launch.instance_type = TYPE.to_owned());
    let expect = format!("needs 8 GPUs, 1 CPU, 1 GiB memory for each of {} pods", nodes + 1);
    let room = format!("room for {nodes} of {} pods now", nodes + 1);
    let told = |waits: String| waits.starts_with(&expect) && waits.contains(&room);
    stage.until("the reason", || told(stage.wire.waiting(&attempt)));
    assert_eq!(stage.wire.bound(&attempt), 0);
    stage.drop_and_see_nothing_left(&attempt);
}

#[test]
fn a_part_of_a_gang_does_not_keep_nodes() {
    // With an autoscaler that does not come, a gang is shown to the scheduler, which places what it can.
    let Some(stage) = Stage::set(Settings { node_autoscaling: true, ..with(Gangs::Gates) }) else { return };
    let nodes = stage.fake_nodes();
    let attempt = stage.want(nodes as u32 + 1, |_| {});
    stage.until("a part of it to be placed", || stage.wire.bound(&attempt) > 0);
    let began = std::time::Instant::now();
    stage.until("it to be taken back", || stage.pods(&attempt, "Running").is_empty());
    assert!(began.elapsed().as_secs() < 30, "nodes were held for {:?}", began.elapsed());
    stage.until("it to wait again, whole and gated", || stage.pods(&attempt, "").len() == nodes + 1);
    assert_eq!(stage.wire.gone(&attempt), None, "nothing of it ran, so nothing of it is lost");
    stage.drop_and_see_nothing_left(&attempt);
}
