//! Containers and the account around them: little more than that they are there.

use super::{Place, absent, on_disk};
use crate::{app::App, problem::Problem};
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::Timestamp;
use store::files::Spot;

/// Properties of a container. Those of a workspace's own stores, and those a link opens, are there before their first blob.
pub(super) async fn show(app: &App, place: &Place, by_link: bool) -> Result<Response, Problem> {
    check(place)?;
    let own = app.owner(&place.workspace).await?;
    let expected = by_link
        || place.container == store::files::ARTIFACT_CONTAINER
        || place.container.strip_prefix("azureml-blobstore-").is_some_and(|id| id == own.id);
    let folder = app.files.container(&place.workspace, &place.container);
    let meta = on_disk(move || Ok(std::fs::metadata(folder).ok().filter(std::fs::Metadata::is_dir))).await?;
    if meta.is_none() && !expected {
        return Err(no_container(place));
    }
    let since =
        meta.and_then(|meta| meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    let modified = Timestamp(i64::try_from(since.as_millis()).unwrap_or(0));
    let etag = format!("\"0x{:X}\"", since.as_nanos());
    let headers = [
        ("etag", etag.as_str()),
        ("last-modified", &modified.http_date()),
        ("x-ms-lease-status", "unlocked"),
        ("x-ms-lease-state", "available"),
        ("x-ms-has-immutability-policy", "false"),
        ("x-ms-has-legal-hold", "false"),
    ];
    Ok((StatusCode::OK, headers).into_response())
}

/// Makes a container. A link opens one that has a name already, so it makes none.
pub(super) async fn make(app: &App, place: &Place, by_link: bool) -> Result<Response, Problem> {
    check(place)?;
    if by_link {
        return Err(Problem::forbidden("a link opens its own container and makes no other; sign in to make one"));
    }
    let name = &place.container;
    let sound = (3..=63).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !sound {
        let message = format!("`{name}` is no name for a container: 3 to 63 lowercase letters, digits and `-`");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "InvalidResourceName", message));
    }
    let folder = app.files.container(&place.workspace, name);
    let made = on_disk(move || {
        folder.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        match std::fs::create_dir(&folder) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.into()),
        }
    });
    if !made.await? {
        let message = format!("there is a container `{name}` already");
        return Err(Problem::new(StatusCode::CONFLICT, "ContainerAlreadyExists", message));
    }
    let mut answer = show(app, place, true).await?;
    *answer.status_mut() = StatusCode::CREATED;
    Ok(answer)
}

/// What kind of account this is, for clients that ask.
pub(super) fn account() -> Response {
    let headers =
        [("x-ms-sku-name", "Standard_LRS"), ("x-ms-account-kind", "StorageV2"), ("x-ms-is-hns-enabled", "false")];
    (StatusCode::OK, headers).into_response()
}

/// The address must name a container and nothing in it.
fn check(place: &Place) -> Result<(), Problem> {
    let sound = Spot::parse(&place.workspace, &place.container, "any").is_ok() && place.path.is_empty();
    if sound { Ok(()) } else { Err(no_container(place)) }
}

pub(super) fn no_container(place: &Place) -> Problem {
    absent(
        "ContainerNotFound",
        &format!("there is no container `{}` in workspace `{}`", place.container, place.workspace),
    )
}
