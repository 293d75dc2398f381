//! Places for agents elsewhere: what lies among this server's own files is reached through its blob surface.
//!
//! Invariant: an attempt reads and writes what its own plan names, while it lives, and nothing else.

use crate::{
    app::App,
    auth::attempt_token,
    http::blobs::{self, address},
    problem::Problem,
};
use axum::http::StatusCode;
use domain::{Assignment, AttemptId, Place};
use std::{collections::BTreeMap, path::Path};

/// The name under which an agent finds the credentials for this server's own files.
const SERVER: &str = "@server";

/// A place among the server's own files: whose, in which container, under which name. The name is empty for all of it.
struct Own {
    owner: String,
    container: String,
    path: String,
}

/// Whether a path lies where an agent elsewhere can reach it.
pub(crate) fn is_own(app: &App, path: &Path) -> bool {
    own(app, path).is_some()
}

fn own(app: &App, path: &Path) -> Option<Own> {
    let mut parts = path.strip_prefix(app.files.root()).ok()?.components().map(|part| part.as_os_str().to_str());
    let (owner, container) = (parts.next()??.to_owned(), parts.next()??.to_owned());
    Some(Own { owner, container, path: parts.collect::<Option<Vec<_>>>()?.join("/") })
}

/// As an agent elsewhere calls what lies at a path.
pub(crate) fn url(app: &App, path: &Path) -> Option<String> {
    let Own { container, path: inside, .. } = own(app, path)?;
    // What is known to be a folder need not be asked for as if it were a file.
    let end = if path.is_dir() && !inside.is_empty() { "/" } else { "" };
    Some(format!("az://{container}/{inside}{end}"))
}

/// The same assignment for an agent that reaches this server at `url`.
pub(super) fn from_afar(app: &App, mut assignment: Assignment, url: &str) -> Assignment {
    for place in assignment.plan.places_mut() {
        let Place::Folder { path } = &*place else { continue };
        let (Some(Own { owner, .. }), Some(there)) = (own(app, path), self::url(app, path)) else { continue };
        let endpoint = format!("{url}/blob/{}", address::account(&owner));
        let options = BTreeMap::from([("endpoint".to_owned(), endpoint), ("account_name".to_owned(), owner)]);
        *place = Place::Object { url: there, datastore: SERVER.to_owned(), options };
    }
    let token = attempt_token(app.store.keyring(), &assignment.attempt);
    assignment.secrets.insert(SERVER.to_owned(), BTreeMap::from([("bearer_token".to_owned(), token)]));
    assignment
}

/// Whether an attempt may read, or with `write` change, what is named `within` a container.
pub(crate) async fn may(
    app: &App,
    attempt: &AttemptId,
    place: &blobs::Place,
    within: &str,
    write: bool,
) -> Result<(), Problem> {
    let refused =
        |message: String| Err(Problem::new(StatusCode::FORBIDDEN, "AuthorizationPermissionMismatch", message));
    let wanted = attempt.clone();
    let plan = app.store.read(move |tx| {
        let job = wanted.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten();
        let Some(job) = job.filter(|job| job.state.attempt() == Some(&wanted)) else { return Ok(None) };
        tx.plan(job.seq)
    });
    let Some(plan) = plan.await? else {
        return refused(format!("attempt `{attempt}` is over, and so is its way to its data"));
    };
    let opens = |(named, writes): (&Place, bool)| {
        let Place::Folder { path } = named else { return false };
        let Some(own) = own(app, path).filter(|_| writes || !write) else { return false };
        let rest = within.strip_prefix(&own.path);
        // A list of `in` would show `in2` too; only a blob may be named without the slash behind it.
        let blob = !place.path.is_empty();
        let inside = own.path.is_empty() || rest.is_some_and(|rest| rest.starts_with('/') || blob && rest.is_empty());
        own.owner == place.workspace && own.container == place.container && inside
    };
    if plan.places().any(opens) {
        return Ok(());
    }
    let verb = if write { "write" } else { "read" };
    refused(format!("attempt `{attempt}` may not {verb} `{}/{within}`: its job does not name it", place.container))
}
