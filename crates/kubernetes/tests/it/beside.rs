//! Claims about single gangs: each in a namespace of its own, all at once under one operator, as on any cluster.

use crate::{faults::*, gangs, refusals::*, stage::Stage};
use kubernetes::settings::{Gangs, Settings};
use std::time::Instant;

type Claim = (&'static str, fn(&Stage));

/// The name of a claim and the claim.
macro_rules! claims {
    ($($name:path),* $(,)?) => { [$((stringify!($name), $name as fn(&Stage))),*] };
}

/// What holds whoever sees to gangs.
const EITHER: [Claim; 7] = claims![
    a_pod_that_is_deleted_may_be_tried_again,
    a_quota_is_waited_for_and_a_refusal_is_final,
    what_is_stopped_before_it_ran_is_gone_at_once,
    gangs::a_gang_that_does_not_fit_says_what_is_missing_and_starts_nothing,
    a_namespace_deleted_under_a_job_is_told_and_waited_for,
    a_webhook_that_does_not_answer_is_waited_for_and_one_that_refuses_is_final,
    a_job_whose_node_is_drained_may_be_tried_again,
];

#[test]
fn with_gates_everything_that_befalls_a_gang_is_told() {
    let more = claims![
        a_pod_whose_node_leaves_the_cluster_may_be_tried_again,
        an_image_that_cannot_be_pulled_is_told_while_it_is_tried_and_one_without_a_name_is_final,
        a_node_that_stops_answering_is_told_and_its_job_is_left_alone,
    ];
    all_hold(Gangs::Gates, &more);
}

#[test]
fn with_volcano_everything_that_befalls_a_gang_is_told() {
    // A small pod of ours must not come to the node that stops answering, which is there with gates.
    let more = claims![what_is_stopped_and_has_ended_is_removed_at_once, a_target_is_checked_in_its_own_namespace];
    all_hold(Gangs::Volcano, &more);
}

fn all_hold(gangs: Gangs, more: &[Claim]) {
    let Some(stage) = Stage::set(Settings { training: true, gangs, ..Settings::default() }) else { return };
    let play = |(name, claim): &Claim| {
        let began = Instant::now();
        claim(&stage.beside());
        println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
    };
    std::thread::scope(|scope| {
        let claims = EITHER.iter().chain(more);
        let played: Vec<_> = claims.map(|claim| (claim.0, scope.spawn(|| play(claim)))).collect();
        let failed: Vec<_> = played.into_iter().filter_map(|(name, claim)| claim.join().err().map(|_| name)).collect();
        assert!(failed.is_empty(), "these do not hold: {failed:?}");
    });
}
