//! `data replicate` and `model replicate`: an asset's files are put where work will run, ahead of it.
//!
//! It is a job that reads the asset and does nothing: what it reads stays in the cache of its nodes. So it waits its turn as any
//! job does, may be watched and canceled, and costs nothing where the files lie already.

use super::{
    Context, Session,
    asset::{self, Kind},
    job,
};
use crate::{
    args::asset::Replicate,
    failure::{Done, Failure},
    outside,
    spec_file::Base,
    upload::segment,
};
use domain::{
    assignment::InputMode,
    names,
    resources::humane_bytes,
    spec::{CommandJob, DataInput, DataType, Distribution, Environment, EnvironmentRef, Input, JobResources},
};
use serde_json::Value;
use std::process::ExitCode;

/// What the job runs in where there are containers: hardly anything.
const IMAGE: &str = "busybox";

pub(super) async fn run(context: &Context, kind: Kind, args: &Replicate) -> Done<ExitCode> {
    let session = context.session().await?;
    let found = asset::find(&session, kind, &args.which).await?;
    let (asset, version) = (&args.which.name, found["name"].as_str().unwrap_or_default());
    let properties = &found["properties"];
    let nodes = nodes(&session, &args.to, args.nodes).await?;
    let name = names::friendly(outside::random());
    let (kind, path) = (data_type(properties), format!("azureml:{asset}:{version}"));
    let data = Input::Data(DataInput { kind, path, mode: Some(InputMode::RoMount) });
    let spread = Distribution::PyTorch { process_count_per_instance: Some(1) };
    let job = CommandJob {
        name: Some(name.to_string()),
        display_name: Some(format!("replicate {asset}:{version} to {}", args.to)),
        experiment_name: Some("replicate".to_owned()),
        command: "true".to_owned(),
        environment: Some(EnvironmentRef::Inline(Box::new(Environment {
            image: Some(IMAGE.to_owned()),
            ..Environment::default()
        }))),
        compute: Some(format!("azureml:{}", args.to)),
        distribution: (nodes > 1).then_some(spread),
        resources: JobResources { instance_count: Some(nodes), ..JobResources::default() },
        inputs: [("data".to_owned(), data)].into(),
        ..CommandJob::default()
    };
    let code = job::submit_and_follow(session, job, &Base::here()).await?;
    if code == ExitCode::SUCCESS {
        tell(context, &format!("{asset}:{version}"), &args.to, name.as_str()).await?;
    }
    Ok(code)
}

/// How many nodes of a target are to have it, or why it cannot be put there.
async fn nodes(session: &Session<'_>, target: &str, wanted: Option<u32>) -> Done<u32> {
    let refused =
        |why: &str, next: &str| Err(Failure::input(format!("nothing is kept on `{target}`")).because(why).hint(next));
    let Some(found) = session.find(&session.path(&format!("computes/{}", segment(target)))).await? else {
        let none = Failure::input(format!("there is no compute target `{target}`"));
        return Err(none.hint("run `peregrine compute list`"));
    };
    let properties = &found["properties"];
    match properties["computeType"].as_str().unwrap_or_default() {
        "Kubernetes" => refused(
            "what a pod fetches goes with the pod",
            "mount a volume that has the data in the jobs' pods, or use a cluster whose nodes keep it",
        ),
        "Slurm" => refused(
            "a job under Slurm has its data on the disk of its node for as long as it runs",
            "put the data on a file system that the nodes share and name it by a datastore of type `nfs`",
        ),
        "Pool" => refused("it stands for other targets", "name one of its targets"),
        "AmlCompute" => {
            let there = properties["properties"]["currentNodeCount"].as_u64().and_then(|n| u32::try_from(n).ok());
            Ok(wanted.or(there).unwrap_or(1).max(1))
        }
        _ if wanted.is_some_and(|wanted| wanted > 1) => {
            refused("it keeps data once for all its work", "leave `--nodes` out")
        }
        _ => Ok(1),
    }
}

/// How much of it had to be moved.
async fn tell(context: &Context, what: &str, target: &str, job: &str) -> Done {
    let session = context.session().await?;
    let found = session.find(&session.path(&format!("jobs/{job}"))).await?.unwrap_or_default();
    let moved = &found["properties"]["peregrine"]["dataBytes"];
    let bytes = |key: &str| humane_bytes(moved[key].as_u64().unwrap_or(0));
    let text = match moved.is_null() {
        true => format!("`{what}` lies where `{target}` reads it in place: nothing had to be moved"),
        false => format!(
            "`{what}` is on `{target}`: {} from the store, {} from other nodes, {} were there already",
            bytes("store"),
            bytes("peers"),
            bytes("cache")
        ),
    };
    context.output.note(&text);
    Ok(())
}

fn data_type(properties: &Value) -> DataType {
    match properties["dataType"].as_str().or(properties["modelType"].as_str()) {
        Some("uri_file") => DataType::UriFile,
        Some("mltable") => DataType::MlTable,
        Some("mlflow_model") => DataType::MlflowModel,
        Some("triton_model") => DataType::TritonModel,
        Some("custom_model") => DataType::CustomModel,
        _ => DataType::UriFolder,
    }
}
