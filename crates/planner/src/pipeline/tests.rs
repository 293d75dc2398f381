//! What follows from what, on graphs written as text.

mod sim;

use super::*;
use domain::pipeline::Settings;
use expect_test::{Expect, expect};

/// Steps as `name`, `name<a,b` (inputs from), `name<a?` (it can do without), `name/2` (group of two at once),
/// `name@c` and `name!c` (if `c` says yes, says no).
fn graph(text: &str, go_on: bool) -> Graph {
    let mut graph = Graph {
        settings: Settings {
            continue_on_step_failure: go_on,
            continue_run_on_failed_optional_input: true,
            ..Settings::default()
        },
        ..Graph::default()
    };
    for word in text.split_whitespace() {
        let (word, group) = word.split_once('/').map_or((word, None), |(word, most)| (word, Some(most)));
        let (word, inputs) = word.split_once('<').map_or((word, ""), |(word, inputs)| (word, inputs));
        let (name, when) = match word.find(['@', '!']) {
            Some(at) => (&word[..at], Some((word.as_bytes()[at] == b'@', &word[at + 1..]))),
            None => (word, None),
        };
        let at = |name: &str| graph.steps.iter().position(|step| step.name == name).unwrap();
        let source = |name: &str| Source {
            steps: vec![at(name.trim_end_matches('?'))],
            output: "o".into(),
            optional: name.ends_with('?'),
        };
        let step = Step {
            name: name.into(),
            bound: inputs.split(',').filter(|one| !one.is_empty()).map(|one| (one.into(), source(one))).collect(),
            when: when.map(|(is, name)| Condition::Said { source: source(name), is }).into_iter().collect(),
            group: group.map(|_| 0),
            ..Step::default()
        };
        if let (Some(most), true) = (group, graph.groups.is_empty()) {
            graph.groups.push(most.parse().unwrap());
        }
        graph.steps.push(step);
    }
    graph
}

/// Plays a script: `a` completes, `a-` fails, `a~` was canceled, `a+` says yes, `a=` says no, `^` someone cancels.
fn check(steps: &str, go_on: bool, script: &str, expect: Expect) {
    let graph = graph(steps, go_on);
    let mut progress = Progress::of(&graph);
    let mut lines = vec![shown(&graph, &progress.advance(&graph))];
    for word in script.split_whitespace() {
        if word == "^" {
            progress.cancel("enough");
        } else {
            let name = word.trim_end_matches(['-', '~', '+', '=']);
            let how = match &word[name.len()..] {
                "-" => End::Failed,
                "~" => End::Canceled,
                _ => End::Completed,
            };
            let said = [("+", true), ("=", false)].into_iter().find(|(mark, _)| word.ends_with(mark));
            let said = said.map(|(_, is)| ("o".to_owned(), is)).into_iter().collect();
            let step = graph.steps.iter().position(|step| step.name == name).unwrap();
            progress.ended(&graph, Ended { step, how, at: Timestamp(lines.len() as i64), said });
        }
        lines.push(format!("{word}: {}", shown(&graph, &progress.advance(&graph))));
    }
    expect.assert_eq(&lines.join("\n"));
}

fn shown(graph: &Graph, decisions: &[Decision]) -> String {
    let name = |step: &usize| graph.steps[*step].name.as_str();
    let one = |decision: &Decision| match decision {
        Decision::Start { step, inputs } => {
            let without: Vec<&str> =
                inputs.iter().filter(|one| one.from.is_none()).map(|one| one.input.as_str()).collect();
            format!("start {}{}", name(step), without.iter().map(|one| format!(" without {one}")).collect::<String>())
        }
        Decision::Stop { step, because } => format!("stop {} because {because}", name(step)),
        Decision::End(Ending::Failed { step, left_out }) => {
            format!("end: {} failed, {left_out} more did not complete", name(step))
        }
        Decision::End(ending) => format!("end: {ending:?}"),
    };
    decisions.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_step_starts_the_moment_its_inputs_exist() {
    check(
        "a b c<a d<a,b e<d",
        false,
        "a b c d e",
        expect![[r#"
            start a; start b
            a: start c
            b: start d
            c: 
            d: start e
            e: end: Completed"#]],
    );
}

#[test]
fn a_failure_stops_the_others_and_the_end_waits_for_them() {
    check(
        "a b c<a",
        false,
        "a- b~",
        expect![[r#"
            start a; start b
            a-: stop b because step `a` failed
            b~: end: a failed, 2 more did not complete"#]],
    );
}

#[test]
fn what_does_not_depend_on_a_failure_goes_on_if_asked_to() {
    check(
        "a b c<a d<b e<c,d",
        true,
        "a- b d",
        expect![[r#"
            start a; start b
            a-: 
            b: start d
            d: end: a failed, 2 more did not complete"#]],
    );
}

#[test]
fn an_optional_input_whose_maker_failed_is_left_out() {
    check(
        "a b c<a?,b",
        true,
        "a- b c",
        expect![[r#"
            start a; start b
            a-: 
            b: start c without a?
            c: end: a failed, 0 more did not complete"#]],
    );
}

#[test]
fn a_cancel_stops_what_runs_and_starts_nothing() {
    check(
        "a b<a c",
        false,
        "^ a c~",
        expect![[r#"
            start a; start c
            ^: stop a because enough; stop c because enough
            a: 
            c~: end: Canceled"#]],
    );
    check(
        "a",
        false,
        "a",
        expect![[r#"
        start a
        a: end: Completed"#]],
    );
}

#[test]
fn a_branch_that_was_not_taken_is_no_failure() {
    check(
        "c yes@c no!c after<yes other<no?",
        false,
        "c= no other",
        expect![[r#"
            start c
            c=: start no
            no: start other
            other: end: Completed"#]],
    );
}

#[test]
fn a_group_runs_so_many_at_once() {
    check(
        "a/2 b/2 c/2 d<a,b,c",
        false,
        "b a c d",
        expect![[r#"
            start a; start b
            b: start c
            a: 
            c: start d
            d: end: Completed"#]],
    );
}

#[test]
fn a_pipeline_without_steps_is_over() {
    check("", false, "", expect!["end: Completed"]);
}

#[test]
fn ten_thousand_steps_are_no_effort_and_no_deep_stack() {
    let mut graph = graph("a", false);
    for at in 1..10_000 {
        let source = Source { steps: vec![at - 1], output: "o".into(), optional: false };
        graph.steps.push(Step { name: format!("s{at}"), bound: [("i".into(), source)].into(), ..Step::default() });
    }
    graph.settings.continue_on_step_failure = true;
    let mut progress = Progress::of(&graph);
    progress.advance(&graph);
    let news = Ended { step: 0, how: End::Failed, at: Timestamp(1), said: Vec::new() };
    progress.ended(&graph, news);
    assert_eq!(progress.advance(&graph), [Decision::End(Ending::Failed { step: 0, left_out: 9_999 })]);
}
