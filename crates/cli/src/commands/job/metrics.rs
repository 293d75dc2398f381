//! What a job has logged: a line a metric, and with `--watch` drawn again whenever something new comes.

mod events;
mod series;

pub(super) use series::number;

use self::{
    events::{Event, Events},
    series::{COLUMNS, Series},
};
use crate::{
    args::job::Metrics,
    commands::{Context, Session},
    failure::{Doing, Done, Failure},
};
use serde_json::Value;

pub(super) async fn metrics(context: &Context, args: &Metrics) -> Done {
    let session = context.session().await?;
    let asked = |path: &str| {
        let encode =
            |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
        let only = args.metric.as_ref().map(|key| format!("&key={}", encode(key))).unwrap_or_default();
        session.path(&format!("jobs/{}/{path}?points={}{only}", encode(&args.name), args.points))
    };
    if args.watch {
        return watch(&session, args, &asked("metrics/stream")).await;
    }
    let found =
        session.find(&asked("metrics")).await.doing(|| format!("cannot read the metrics of job `{}`", args.name))?;
    let found = found.ok_or_else(|| unknown(&session, &args.name))?;
    let series = Series::of(&found);
    context.output.list(series.items(), COLUMNS)?;
    if series.is_empty() {
        context.output.note(&format!("job `{}` has logged no metric yet", args.name));
    }
    if let Some(left_out) = found["leftOut"].as_u64().filter(|n| *n > 0) {
        context.output.note(&format!("hint: {left_out} metrics more; `--metric NAME` shows one of them"));
    }
    Ok(())
}

fn unknown(session: &Session<'_>, name: &str) -> Failure {
    Failure::input(format!("there is no job `{name}`"))
        .because(format!("workspace `{}` has none of that name", session.scope.workspace))
        .hint("run `peregrine job list`, or name another workspace with `-w`")
}

/// Shows what comes until the job ends. On a terminal the table is drawn over; elsewhere each new value is a line.
async fn watch(session: &Session<'_>, args: &Metrics, path: &str) -> Done {
    let output = session.output();
    let mut events = Events::new(session, path);
    let mut series = Series::default();
    let mut drawn = 0;
    while let Some(Event { name, data }) = events.next().await.doing(|| format!("cannot follow job `{}`", args.name))? {
        match name.as_str() {
            "metrics" => series = Series::of(&data),
            "points" => {
                let new = series.add(&data);
                if !output.stdout_is_terminal() {
                    new.iter().try_for_each(|line| output.text(&format!("{line}\n")))?;
                }
            }
            _ => {
                output.note(&format!("job `{}` is {}", args.name, word(&data)));
                return Ok(());
            }
        }
        if output.stdout_is_terminal() {
            let table = output.table_text(&series.items(), COLUMNS);
            let up = if drawn > 0 { format!("\x1b[{drawn}A\x1b[J") } else { String::new() };
            drawn = table.lines().count();
            output.text(&format!("{up}{table}"))?;
        } else if name == "metrics" {
            series.lines().iter().try_for_each(|line| output.text(&format!("{line}\n")))?;
        }
    }
    Ok(())
}

fn word(data: &Value) -> String {
    data["status"].as_str().unwrap_or("over").to_lowercase()
}
