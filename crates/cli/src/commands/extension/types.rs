//! Instance types from the command line: applying files, and making types that go with the nodes there are.

use super::{connect, failed};
use crate::{
    args::place::{ApplyTypes, GenerateTypes},
    commands::Context,
    failure::{Done, Failure},
    output::Column,
    spec_file,
};
use domain::spec::yaml::to_yaml;
use kubernetes::{
    connect::{Cluster, Error},
    instance_type::{cluster, files},
};
use serde_json::{Value, json};

const TYPES: &[Column] = &[
    Column::new("NAME", |item| super::text(item, "name")).whole(),
    Column::new("WHAT", |item| super::text(item, "what")),
];

/// Applies every instance type of the files, or none: the cluster is asked about all of them first.
pub(in crate::commands) async fn apply(context: &Context, args: &ApplyTypes) -> Done {
    let mut all = Vec::new();
    for path in &args.file {
        let (text, shown) = (spec_file::read_text(path)?, path.display().to_string());
        let found = files::read(&shown, &text);
        all.extend(
            found.map_err(|mistakes| Failure::mistakes(format!("`{shown}` cannot be applied"), &text, &mistakes))?,
        );
    }
    let cluster = connect(&args.reach).await?;
    put(context, &cluster, &all, args.dry_run).await
}

/// Prints types for the nodes of a cluster, or applies them.
pub(in crate::commands) async fn generate(context: &Context, args: &GenerateTypes) -> Done {
    let reached = connect(&args.reach).await?;
    let types = cluster::generated(&reached, !args.no_reservation).await.map_err(failed)?;
    if types.is_empty() {
        return Err(
            Failure::input("no node of the cluster has room for work").hint("look at them with `kubectl get nodes`")
        );
    }
    let all: Vec<Value> = types.iter().map(|one| json!(one)).collect();
    if args.apply {
        return put(context, &reached, &all, false).await;
    }
    match context.output.format_was_chosen() {
        true => context.output.show(&json!({"apiVersion": "v1", "kind": "List", "items": all})),
        false => context.output.text(&all.iter().map(|one| format!("---\n{}", to_yaml(one))).collect::<String>()),
    }
}

async fn put(context: &Context, reached: &Cluster, all: &[Value], dry_run: bool) -> Done {
    let mut refused = Vec::new();
    for one in all {
        match cluster::apply(reached, one, true).await {
            Ok(_) => {}
            Err(Error::Refused { reasons, code: 400..500, doing }) => {
                refused.extend(
                    reasons.into_iter().map(|reason| format!("{}: {reason}", doing.trim_start_matches("apply "))),
                );
            }
            Err(error) => return Err(failed(error)),
        }
    }
    if !refused.is_empty() {
        let failure = Failure::input("nothing was applied: the cluster refuses instance types");
        return Err(refused
            .into_iter()
            .fold(failure, Failure::because)
            .hint("docs/guides/instance-types.md has the rules"));
    }
    let mut done = Vec::new();
    for one in all {
        let what = match dry_run {
            true => "would be applied",
            false => cluster::apply(reached, one, false).await.map_err(failed)?,
        };
        done.push(json!({"name": one["metadata"]["name"], "what": what}));
    }
    context.output.list(done, TYPES)
}
