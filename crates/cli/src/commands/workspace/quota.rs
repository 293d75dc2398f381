//! `workspace quota`: how much may be held at once, and by whom what of it is in use.

use super::named;
use crate::{
    args::place::QuotaArgs,
    commands::Context,
    failure::{Doing, Done},
    output::Column,
};
use api::arm::Scope;
use domain::resources::humane_bytes;
use serde_json::{Value, json};

const COLUMNS: &[Column] = &[
    Column::new("FOR", whom).whole(),
    Column::new("COMPUTE", |item| item["compute"].as_str().unwrap_or("all").to_owned()),
    Column::new("LIMITS", |item| amounts(&item["limits"])),
    Column::new("IN USE", |item| {
        let one = |by: &Value| format!("{}: {}", by["user"].as_str().unwrap_or_default(), amounts(by));
        item["in_use"].as_array().into_iter().flatten().map(one).collect::<Vec<_>>().join("; ")
    }),
];

pub(super) async fn run(context: &Context, args: &QuotaArgs) -> Done {
    let name = named(Some(args.name.as_deref().unwrap_or(&context.config.workspace)))?;
    let session = context.session().await?;
    let path = format!("{}/quotas", Scope { workspace: name.to_string(), ..session.scope.clone() }.path());
    let asked = json!({"cpus": args.cpus, "memory": args.memory, "gpus": args.gpus, "jobs": args.jobs});
    let sets = args.clear || asked.as_object().into_iter().flatten().any(|(_, amount)| !amount.is_null());
    if !sets {
        let found: Value =
            session.client.get(&path).await.doing(|| format!("cannot show the quotas of workspace `{name}`"))?;
        let items = found["value"].as_array().into_iter().flatten().map(view).collect();
        return context.output.list(items, COLUMNS);
    }
    let mut body = asked;
    body["user"] = json!(if args.each_user { "*" } else { args.user.as_deref().unwrap_or_default() });
    if let Some(team) = &args.team {
        body["team"] = json!(team);
    }
    body["target"] = json!(args.compute);
    let set: Value =
        session.client.put(&path, &body).await.doing(|| format!("cannot set a quota of workspace `{name}`"))?;
    if args.clear {
        context.output.note("the quota is gone");
        return Ok(());
    }
    context.output.show(&view(&set))
}

fn view(item: &Value) -> Value {
    json!({
        "user": item["user"], "team": item["team"], "compute": item["target"], "limits": snaked(&item["limits"]),
        "in_use": item["inUse"].as_array().into_iter().flatten().map(snaked).collect::<Vec<_>>(),
        "described": item["described"],
    })
}

fn snaked(value: &Value) -> Value {
    let entries = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    entries
        .map(|(key, value)| (api::arm::datastore::snake(key), value.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn whom(item: &Value) -> String {
    if let Some(team) = item["team"].as_str() {
        return format!("team {team}");
    }
    match item["user"].as_str().unwrap_or_default() {
        "" => "the workspace".to_owned(),
        "*" => "each user".to_owned(),
        person => person.to_owned(),
    }
}

/// `4 CPUs, 8 GiB memory, 2 jobs`.
fn amounts(item: &Value) -> String {
    let parts = [("cpus", " CPUs"), ("memory_bytes", " memory"), ("gpus", " GPUs"), ("jobs", " jobs")];
    let part = |(key, unit): (&str, &str)| {
        let amount = item.get(key).filter(|amount| !amount.is_null())?;
        let said = match key {
            "memory_bytes" => humane_bytes(amount.as_u64()?),
            _ => amount.to_string().trim_end_matches(".0").to_owned(),
        };
        Some(format!("{said}{unit}"))
    };
    parts.into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
}
