//! `compute list-usage --by …`: who has what now, and who has used how much lately; `-n …`: how full a target was.

use super::{at, named, snaked, text};
use crate::{
    args::place::UsageBy,
    commands::{Context, Session},
    failure::{Doing, Done},
    output::Column,
};
use api::arm::{PROVIDER, Scope};
use domain::resources::humane_bytes;
use serde_json::{Value, json};

const COLUMNS: &[Column] = &[
    Column::new("WHO", |item| text(item, "name")).whole(),
    Column::new("JOBS", |item| text(item, "jobs")),
    Column::new("CPUS", |item| text(item, "cpus")),
    Column::new("MEMORY", |item| humane_bytes(item["memory_bytes"].as_u64().unwrap_or(0))),
    Column::new("GPUS", |item| text(item, "gpus")),
    Column::new("CORE-HOURS OF 7 DAYS", |item| text(item, "core_hours")),
];

/// As many rows as a screen has.
const ROWS: u32 = 24;

const OVER_TIME: &[Column] = &[
    Column::new("AT", |item| text(item, "at")).whole(),
    Column::new("NODES", |item| format!("{} of {}", text(item, "ready_nodes"), text(item, "nodes"))),
    Column::new("CORES", |item| of_all(item, "cpu_milli", |milli| milli.div_ceil(1000).to_string())),
    Column::new("MEMORY", |item| of_all(item, "memory_bytes", humane_bytes)),
    Column::new("GPUS", |item| of_all(item, "gpus", |count| count.to_string())),
    Column::new("RUNNING", |item| text(item, "running_jobs")),
    Column::new("WAITING", |item| text(item, "waiting_jobs")),
];

/// What is in use, and of how much.
fn of_all(item: &Value, key: &str, word: fn(u64) -> String) -> String {
    let amount = |which: &str| item[which][key].as_u64().unwrap_or(0);
    let all = amount("allocatable");
    format!("{} of {}", word(all.saturating_sub(amount("free"))), word(all))
}

/// How full a target was in the last hours.
pub(super) async fn over(context: &Context, name: &str, hours: u32) -> Done {
    let name = named(Some(name))?;
    let session = context.session().await?;
    let answer: Value = session
        .client
        .get(&format!("{}/usage?hours={hours}&points={ROWS}", at(&session, &name)))
        .await
        .doing(|| format!("cannot see how full `{name}` was"))?;
    let rows = answer["value"].as_array().into_iter().flatten();
    context.output.list(rows.map(|row| Value::Object(snaked(row))).collect(), OVER_TIME)
}

pub(super) async fn run(context: &Context, by: UsageBy) -> Done {
    let session = context.session().await?;
    let mut rows = Vec::new();
    match by {
        UsageBy::User => {
            let people = of(&session, &session.scope.workspace).await?;
            rows.extend(people.iter().map(|one| row(&text(one, "user"), std::slice::from_ref(one))));
        }
        // Someone who is in several teams counts in each.
        UsageBy::Team => {
            let people = of(&session, &session.scope.workspace).await?;
            let found: Value = session
                .client
                .get(&format!("{}/teams", session.scope.path()))
                .await
                .doing(|| format!("cannot see the teams of workspace `{}`", session.scope.workspace))?;
            for team in found["value"].as_array().into_iter().flatten() {
                let within = |one: &&Value| team["people"].as_array().is_some_and(|all| all.contains(&one["user"]));
                let theirs: Vec<Value> = people.iter().filter(within).cloned().collect();
                rows.push(row(&text(team, "name"), &theirs));
            }
        }
        UsageBy::Workspace => {
            let path = format!("/subscriptions/{}/providers/{PROVIDER}/workspaces", session.scope.subscription);
            let found = session.client.list(&path, usize::MAX).await.doing(|| "cannot list workspaces".to_owned())?;
            for name in found.iter().map(|workspace| text(workspace, "name")) {
                rows.push(row(&name, &of(&session, &name).await?));
            }
        }
    }
    context.output.list(rows, COLUMNS)
}

async fn of(session: &Session<'_>, workspace: &str) -> Done<Vec<Value>> {
    let scope = Scope { workspace: workspace.to_owned(), ..session.scope.clone() };
    let answer: Value = session
        .client
        .get(&format!("{}/usage", scope.path()))
        .await
        .doing(|| format!("cannot see what workspace `{workspace}` uses"))?;
    Ok(answer["value"].as_array().cloned().unwrap_or_default())
}

fn row(name: &str, people: &[Value]) -> Value {
    let sum = |key: &str| people.iter().filter_map(|one| one[key].as_f64()).sum::<f64>();
    let whole = |key: &str| people.iter().filter_map(|one| one[key].as_u64()).sum::<u64>();
    json!({
        "name": name, "jobs": whole("jobs"), "cpus": sum("cpus"), "memory_bytes": whole("memoryBytes"),
        "gpus": whole("gpus"), "core_hours": (sum("coreHours") * 1000.0).round() / 1000.0,
    })
}
