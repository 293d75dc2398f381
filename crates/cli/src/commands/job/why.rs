//! `job why`: where a job is, and why, in sentences.

use super::{parse_name, unknown};
use crate::{
    args::job::Name,
    commands::Context,
    failure::{Doing, Done},
    output::instant,
};
use serde_json::Value;

pub(super) async fn why(context: &Context, args: &Name) -> Done {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    let found = session.find(&session.path(&format!("jobs/{name}/why"))).await;
    let Some(answer) = found.doing(|| format!("cannot explain job `{name}`"))? else {
        return Err(unknown(&session, &name));
    };
    match context.output.is_for_people() {
        true => context.output.text(&in_words(name.as_str(), &answer)),
        false => context.output.show(&answer),
    }
}

fn in_words(name: &str, answer: &Value) -> String {
    let text = |key: &str| answer[key].as_str().unwrap_or_default();
    let mut out = format!("job `{name}` is {}\n", text("status"));
    if !text("summary").is_empty() {
        out.push_str(&format!("  {}\n", text("summary").replace('\n', "\n    ")));
    }
    let ended = matches!(text("status"), "Completed" | "Failed" | "Canceled");
    if !ended && !text("note").is_empty() && !text("summary").contains(text("note")) {
        out.push_str(&format!("  {}\n", text("note")));
    }
    if let Some(ahead) =
        answer["ahead"].as_u64().filter(|ahead| *ahead > 0 && !text("summary").contains(&ahead.to_string()))
    {
        out.push_str(&format!("  {ahead} jobs are ahead of it\n"));
    }
    let lines = ["first", "quotas"].into_iter().flat_map(|key| answer[key].as_array().into_iter().flatten());
    lines.filter_map(Value::as_str).for_each(|line| out.push_str(&format!("  {line}\n")));
    if let Some(when) = answer["expected"].as_str() {
        out.push_str(&format!("  there is room for it {when}\n"));
    }
    let failure = &answer["failure"];
    if let Some(message) = failure["message"].as_str().filter(|message| !text("summary").contains(message)) {
        out.push_str(&format!("  because: {}\n", message.replace('\n', "\n    ")));
    }
    let last = failure["last_lines"].as_str().or(failure["lastLines"].as_str()).unwrap_or_default().trim_end();
    if !last.is_empty() {
        out.push_str("\nlast lines of the log:\n");
        last.lines().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    let events: Vec<&Value> = answer["events"].as_array().into_iter().flatten().collect();
    if !events.is_empty() {
        out.push_str("\nwhat happened:\n");
    }
    for event in events {
        let at = instant(&event["at"]).map(|at| at.iso()).unwrap_or_default();
        let time = at.get(..19).unwrap_or_default().replace('T', " ");
        out.push_str(&format!("  {time}  {}\n", event["text"].as_str().unwrap_or_default()));
    }
    for hint in answer["hints"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        out.push_str(&format!("\nhint: {hint}"));
    }
    out.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_reads_as_sentences() {
        let answer = json!({
            "status": "Queued", "summary": "waits for 1 GPU", "note": "", "ahead": 2,
            "first": ["`bob` goes first"], "quotas": ["the quota of `w`: 1 of 2 GPUs in use"], "expected": "when `b` ends",
            "events": [{"at": 0, "kind": "queued", "text": "accepted"}], "hints": ["free the GPU"],
        });
        expect_test::expect![[r#"
            job `a` is Queued
              waits for 1 GPU
              2 jobs are ahead of it
              `bob` goes first
              the quota of `w`: 1 of 2 GPUs in use
              there is room for it when `b` ends

            what happened:
              1970-01-01 00:00:00  accepted

            hint: free the GPU
        "#]]
        .assert_eq(&in_words("a", &answer));
    }
}
