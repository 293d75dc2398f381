//! `job download`: logs and captured files, and named outputs.

use super::{fetch, parse_name, view};
use crate::{
    args::job::Download,
    commands::{Context, Session},
    failure::{Doing, Done, Exit, Failure},
    upload::{Store, download as download_blobs, inside},
};
use api::arm::reference::{DataUri, data_uri};
use domain::{
    JobName,
    spec::expression::{self, Reference},
};
use reqwest::Method;
use serde_json::Value;
use std::path::Path;
use tokio::io::AsyncWriteExt;

pub(super) async fn download(context: &Context, args: &Download) -> Done {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    let job = fetch(&session, &name).await?;
    if !view::is_over(&job) {
        context.output.note(&format!("notice: job `{name}` is {}; this is what there is so far", view::status(&job)));
    }
    let outputs = &job["properties"]["outputs"];
    if let Some(output) = &args.output_name {
        if outputs.get(output).is_none() {
            return Err(no_output(&name, output, outputs));
        }
        let (store, path) = open_output(&session, &name, output, &outputs[output]).await?;
        return named_output(&session, output, &store, &path, &args.download_path).await;
    }
    artifacts(&session, &name, &args.download_path.join("artifacts")).await?;
    if args.all {
        for (output, place) in outputs.as_object().into_iter().flatten() {
            match open_output(&session, &name, output, place).await {
                Ok((store, path)) => named_output(&session, output, &store, &path, &args.download_path).await?,
                // Whoever asks for all still wants the rest.
                Err(elsewhere) if elsewhere.exit == Exit::Input => {
                    context.output.note(&format!("notice: output `{output}` stays at `{}`", address(place)));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

async fn artifacts(session: &Session<'_>, name: &JobName, to: &Path) -> Done {
    let listed: Value = session
        .client
        .get(&session.path(&format!("jobs/{name}/artifacts")))
        .await
        .doing(|| format!("cannot list the files of job `{name}`"))?;
    let files: Vec<&str> =
        listed["value"].as_array().into_iter().flatten().filter_map(|file| file["path"].as_str()).collect();
    for path in &files {
        take(session, name, path, &inside(to, path)?).await?;
    }
    session.output().note(&format!("{} in `{}`", counted(files.len()), to.display()));
    Ok(())
}

/// One file, piece by piece: a piece is at most as large as the server likes.
async fn take(session: &Session<'_>, name: &JobName, path: &str, to: &Path) -> Done {
    let cannot = |error: std::io::Error| Failure::file(format!("cannot write `{}`", to.display()), &error);
    if let Some(parent) = to.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(cannot)?;
    }
    let mut file = tokio::fs::File::create(to).await.map_err(cannot)?;
    let encoded = path.split('/').map(crate::upload::segment).collect::<Vec<_>>().join("/");
    let mut offset = 0;
    loop {
        let url = session.path(&format!("jobs/{name}/artifacts/{encoded}?offset={offset}"));
        let answer = session
            .client
            .send(session.client.request(Method::GET, &url))
            .await
            .doing(|| format!("cannot download `{path}`"))?;
        let bytes = answer.bytes().await.map_err(|error| session.client.unreachable(error))?;
        if bytes.is_empty() {
            return file.flush().await.map_err(cannot);
        }
        offset += bytes.len();
        file.write_all(&bytes).await.map_err(cannot)?;
    }
}

/// The store and path of a named output, if its files can be had through the server.
async fn open_output(session: &Session<'_>, job: &JobName, name: &str, place: &Value) -> Done<(Store, String)> {
    let uri = address(place);
    // An output without an address of its own lies under the job's name.
    let default =
        DataUri::Datastore { workspace: None, datastore: String::new(), path: format!("azureml/{job}/{name}/") };
    let place = if uri.is_empty() { default } else { data_uri(&filled_in(uri, job, name)) };
    let DataUri::Datastore { datastore, path, .. } = place else {
        return Err(Failure::input(format!("output `{name}` cannot be downloaded from here"))
            .because(format!("it lies at `{uri}`")));
    };
    let up = session.uploader();
    let store = Store::open(&up, Some(datastore.as_str()).filter(|name| !name.is_empty())).await;
    Ok((store.doing(|| format!("cannot download output `{name}`"))?, path))
}

/// An output's address with the words filled in that stand for the job and the output. No datastore is the default one.
fn filled_in(uri: &str, job: &JobName, output: &str) -> String {
    let known = |reference: &Reference| match reference {
        Reference::Other(word) if word == "name" => Some(job.to_string()),
        Reference::Other(word) if word == "output_name" => Some(output.to_owned()),
        Reference::Other(word) if word == "default_datastore" => Some(String::new()),
        _ => None,
    };
    expression::expand(uri, &known).unwrap_or_else(|_| uri.to_owned())
}

async fn named_output(session: &Session<'_>, name: &str, store: &Store, path: &str, to: &Path) -> Done {
    let to = to.join("named-outputs").join(name);
    let count = download_blobs(&session.uploader(), store, path, &to).await;
    match count.doing(|| format!("cannot download output `{name}`"))? {
        0 => session.output().note(&format!("output `{name}` is empty")),
        count => session.output().note(&format!("{} in `{}`", counted(count), to.display())),
    }
    Ok(())
}

fn address(place: &Value) -> &str {
    place["uri"].as_str().unwrap_or_default()
}

/// `1 file`, `2 files`.
pub(crate) fn counted(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

fn no_output(job: &JobName, output: &str, outputs: &Value) -> Failure {
    let known: Vec<String> = outputs.as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
    let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
    Failure::input(format!("job `{job}` has no output `{output}`")).because(known)
}
