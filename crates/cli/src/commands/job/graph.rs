//! `job show --graph`: the steps of a pipeline, each under those it waits for, or as a Mermaid chart.

use super::unknown;
use crate::{
    args::job::GraphForm,
    commands::Session,
    failure::{Doing, Done},
    output::duration_between,
    outside,
};
use domain::JobName;
use serde_json::Value;
use std::collections::HashMap;

/// A pipeline's steps as the server knows them.
pub(super) async fn fetch(session: &Session<'_>, name: &JobName) -> Done<Value> {
    let found = session.find(&session.path(&format!("jobs/{name}/graph"))).await;
    found.doing(|| format!("cannot show the steps of job `{name}`"))?.ok_or_else(|| unknown(session, name))
}

pub(super) async fn show(session: &Session<'_>, name: &JobName, form: GraphForm) -> Done {
    let graph = fetch(session, name).await?;
    let output = session.output();
    match form {
        GraphForm::Mermaid => output.text(&mermaid(&graph)),
        GraphForm::Text if output.is_for_people() => output.text(&(lines(steps(&graph)).join("\n") + "\n")),
        GraphForm::Text => output.show(&graph),
    }
}

pub(super) fn steps(graph: &Value) -> &[Value] {
    graph["steps"].as_array().map_or(&[], Vec::as_slice)
}

/// One line a step: a mark, its name as far in as its longest way from the start, what it waits for, how long it took.
pub(super) fn lines(steps: &[Value]) -> Vec<String> {
    let mut depths: HashMap<&str, usize> = HashMap::new();
    let mut rows = Vec::with_capacity(steps.len());
    for step in steps {
        let after: Vec<&str> = step["after"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let depth = after.iter().map(|one| depths.get(one).map_or(0, |depth| depth + 1)).max().unwrap_or(0);
        let name = step["name"].as_str().unwrap_or_default();
        depths.insert(name, depth);
        rows.push((format!("{} {}{name}", mark(step), "  ".repeat(depth.min(20))), step, after));
    }
    let width = rows.iter().map(|(head, ..)| head.chars().count()).max().unwrap_or(0).min(60);
    rows.into_iter().map(|(head, step, after)| line(&head, width, step, &after)).collect()
}

fn line(head: &str, width: usize, step: &Value, after: &[&str]) -> String {
    let took = duration_between(&step["startedAt"], &step["endedAt"], outside::now());
    let mut line = format!("{head:<width$}  {:<11} {took:>6}", step["status"].as_str().unwrap_or_default());
    if !after.is_empty() {
        let shown: Vec<&str> = after.iter().take(4).copied().collect();
        let more = after.len().saturating_sub(4);
        line += &format!("  <- {}", shown.join(", "));
        if more > 0 {
            line += &format!(" and {more} more");
        }
    }
    if step["reused"].is_string() {
        line += &format!("  (reused from `{}`)", step["reused"].as_str().unwrap_or_default());
    }
    line.trim_end().to_owned()
}

/// A letter that says where a step is, legible without color.
fn mark(step: &Value) -> char {
    match step["status"].as_str().unwrap_or_default() {
        "Completed" => '+',
        "Failed" => 'x',
        "Canceled" | "CancelRequested" => '-',
        "NotStarted" | "NotRun" => '.',
        _ => '*',
    }
}

/// The same as a chart that documents and web pages draw.
fn mermaid(graph: &Value) -> String {
    let steps = steps(graph);
    let at: HashMap<&str, usize> =
        steps.iter().enumerate().filter_map(|(at, step)| Some((step["name"].as_str()?, at))).collect();
    let mut out = String::from("flowchart TD\n");
    for (n, step) in steps.iter().enumerate() {
        let text = |key: &str| step[key].as_str().unwrap_or_default().replace('"', "'");
        out += &format!("  s{n}[\"{}<br/>{}\"]\n", text("name"), text("status"));
        for before in step["after"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if let Some(before) = at.get(before) {
                out += &format!("  s{before} --> s{n}\n");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn graph() -> Value {
        json!({"steps": [
            {"name": "prep", "after": [], "status": "Completed", "startedAt": "2026-01-01T00:00:00Z", "endedAt": "2026-01-01T00:00:02Z"},
            {"name": "train", "after": ["prep"], "status": "Failed"},
            {"name": "eval", "after": ["prep", "train"], "status": "NotRun"},
        ]})
    }

    #[test]
    fn steps_stand_under_what_they_wait_for() {
        let shown = lines(steps(&graph()));
        assert!(shown[0].starts_with("+ prep ") && shown[0].contains("Completed"), "{shown:?}");
        assert!(shown[1].starts_with("x   train ") && shown[1].ends_with("<- prep"), "{shown:?}");
        assert!(shown[2].starts_with(".     eval ") && shown[2].ends_with("<- prep, train"), "{shown:?}");
    }

    #[test]
    fn a_chart_has_a_box_for_each_step_and_an_arrow_for_each_wait() {
        let chart = mermaid(&graph());
        assert_eq!(chart.matches("-->").count(), 3);
        assert!(chart.contains("s1[\"train<br/>Failed\"]") && chart.contains("s0 --> s2"), "{chart}");
    }
}
