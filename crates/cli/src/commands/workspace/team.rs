//! `workspace team`: who is in which team of a workspace.

use super::named;
use crate::{
    args::place::TeamArgs,
    commands::Context,
    failure::{Doing, Done, Failure},
    output::Column,
};
use api::arm::Scope;
use domain::names::TeamName;
use serde_json::{Value, json};

const COLUMNS: &[Column] = &[
    Column::new("TEAM", |item| item["name"].as_str().unwrap_or_default().to_owned()).whole(),
    Column::new("PEOPLE", |item| {
        let people = item["people"].as_array().into_iter().flatten().filter_map(Value::as_str);
        people.collect::<Vec<_>>().join(", ")
    }),
];

pub(super) async fn run(context: &Context, args: &TeamArgs) -> Done {
    let name = named(Some(args.name.as_deref().unwrap_or(&context.config.workspace)))?;
    let team = args.team.as_deref().map(TeamName::parse).transpose();
    let team = team.map_err(|bad| Failure::input(bad.to_string()))?;
    let session = context.session().await?;
    let path = format!("{}/teams", Scope { workspace: name.to_string(), ..session.scope.clone() }.path());
    match team {
        Some(team) if args.delete => {
            session.client.delete(&format!("{path}/{team}")).await.doing(|| format!("cannot delete team `{team}`"))?;
            context.output.note(&format!("team `{team}` is gone"));
            Ok(())
        }
        Some(team) if !args.people.is_empty() => {
            let (path, body) = (format!("{path}/{team}"), json!({"people": args.people}));
            let set: Value =
                session.client.put(&path, &body).await.doing(|| format!("cannot set who is in team `{team}`"))?;
            context.output.show(&set)
        }
        only => {
            let found: Value =
                session.client.get(&path).await.doing(|| format!("cannot show the teams of workspace `{name}`"))?;
            let mut items = found["value"].as_array().cloned().unwrap_or_default();
            if let Some(only) = only {
                items.retain(|item| item["name"] == only.as_str());
                if items.is_empty() {
                    return Err(Failure::input(format!("there is no team `{only}` in workspace `{name}`"))
                        .hint("see those there are: `peregrine workspace team`"));
                }
            }
            context.output.list(items, COLUMNS)
        }
    }
}
