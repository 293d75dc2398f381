//! Logs of a run behind signed links, since clients fetch them without saying who they are.
//!
//! A link opens one log folder of one run for a while, and nothing else: not another run's, not a captured output.

use crate::{app::App, auth::sign_folder_link, http::blobs::container_url, problem::Problem};
use domain::Timestamp;
use serde_json::{Map, Value, json};
use store::{JobRow, WorkspaceRow, files::ARTIFACT_CONTAINER};

/// How long a link opens what it names. Clients ask for new ones with every poll.
const LINK_MS: i64 = 3_600_000;
/// The folders of an attempt that hold logs.
const FOLDERS: [&str; 2] = ["user_logs/", "system_logs/"];
/// The log of the latest attempt, where it is not the first: a name that clients stream, after that of the first.
const RETRY_LOG: &str = "user_logs/std_log_retry.txt";

/// The logs there are, each with a link.
pub(super) async fn files(app: &App, workspace: &WorkspaceRow, row: &JobRow) -> Result<Map<String, Value>, Problem> {
    let root = format!("ExperimentRun/dcid.{}/", row.files_of());
    let last = row.job.attempts.saturating_sub(1);
    let folders: Vec<String> = (0..=last).flat_map(|n| FOLDERS.map(|folder| attempt(n) + folder)).collect();
    let (files, place, at) = (app.files.clone(), workspace.name.clone(), root.clone());
    let listed = tokio::task::spawn_blocking(move || {
        let list = |folder: &String| files.list(&place, ARTIFACT_CONTAINER, &format!("{at}{folder}"), "", usize::MAX);
        folders.iter().map(|folder| Ok((folder.clone(), list(folder)?))).collect::<Result<Vec<_>, Problem>>()
    });
    let found = listed.await.map_err(|_| store::Error::Closed)??;
    let expires = Timestamp(app.now().0 + LINK_MS);
    let container = container_url(app, &workspace.name, ARTIFACT_CONTAINER);
    let latest = attempt(last) + "user_logs/std_log.txt";
    let mut all = Map::new();
    for (folder, files) in found {
        let opened = format!("{root}{folder}");
        let link = sign_folder_link(app.store.keyring(), &workspace.name, ARTIFACT_CONTAINER, &opened, false, expires);
        for file in files {
            let address = json!(format!("{container}/{}?{link}", encode(&file.path)));
            let name = file.path.strip_prefix(&root).unwrap_or(&file.path).to_owned();
            if last > 0 && name == latest {
                all.insert(RETRY_LOG.into(), address.clone());
            }
            all.insert(name, address);
        }
    }
    Ok(all)
}

/// The folder of an attempt inside its run; the first has none of its own.
fn attempt(n: u32) -> String {
    if n == 0 { String::new() } else { format!("retry-{n:03}/") }
}

fn encode(path: &str) -> String {
    let part = |part| percent_encoding::utf8_percent_encode(part, percent_encoding::NON_ALPHANUMERIC).to_string();
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}
