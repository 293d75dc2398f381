//! Teams: named sets of a workspace's people, who may share a quota.

use crate::{
    app::App,
    auth::{Caller, allow},
    http::{
        At, Body,
        change::{self, Halt},
    },
    problem::Problem,
};
use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
};
use domain::{
    Role, Timestamp,
    names::TeamName,
    sharing::{Quota, Team, Whom},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::{Error, Tx};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Everyone who is in it from now on, by name.
    people: BTreeSet<String>,
}

/// The teams of a workspace.
pub(crate) async fn list(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let name = workspace.name.clone();
    let teams = app.store.read(move |tx| tx.teams(Some(&name))).await?;
    Ok(Json(json!({"value": teams.iter().map(view).collect::<Vec<_>>()})))
}

/// Makes a team of people who may work here, or says anew who is in it.
pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    Body(wanted): Body<Wanted>,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let name = TeamName::parse(&at.name).map_err(|bad| Problem::bad(bad.to_string()))?;
    if wanted.people.is_empty() {
        return Err(Problem::bad(format!("team `{name}` would be empty: name its `people`, or delete it")));
    }
    let team = Team { workspace: workspace.name.clone(), name, people: wanted.people };
    let (kept, home, now) = (team.clone(), app.tokens.owner().to_owned(), app.now());
    change::change(&app, move |tx| {
        let there = tx.teams(Some(&kept.workspace))?.into_iter().find(|team| team.name == kept.name);
        let mut known = people(tx, &kept.workspace, now)?;
        known.insert(home);
        // Who was in it before may stay, also without a role by now.
        let before = there.map(|team| team.people).unwrap_or_default();
        let unknown = kept.people.iter().find(|&person| !known.contains(person) && !before.contains(person));
        match unknown {
            Some(person) => Err(Halt::from(nobody(person, &kept.workspace, &known))),
            None => Ok(tx.put_team(&kept, &caller.name, now)?),
        }
    })
    .await?;
    Ok(Json(view(&team)))
}

/// Takes a team away; its people stay, and so does what they use.
pub(crate) async fn delete(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, wanted) = (workspace.name.clone(), at.name.clone());
    change::change(&app, move |tx| {
        let teams = tx.teams(Some(&key))?;
        let Some(team) = teams.iter().find(|team| team.name.as_str() == wanted) else {
            return Err(Halt::from(missing(&wanted, &teams)));
        };
        let theirs = |quota: &&Quota| matches!(&quota.whom, Whom::Team { name, .. } if *name == wanted);
        if let Some(quota) = tx.quotas(Some(&key))?.iter().find(theirs) {
            let target = quota.target.as_ref().map(|target| format!(" --compute {target}")).unwrap_or_default();
            let message = format!(
                "team `{wanted}` has a quota; take it away first: \
                 `peregrine workspace quota -n {key} --team {wanted}{target} --clear`"
            );
            return Err(Problem::conflict(message).into());
        }
        tx.delete_team(&key, &team.name)?;
        Ok(())
    })
    .await?;
    Ok(StatusCode::OK)
}

/// A 404 that names the teams there are.
pub(super) fn missing(name: &str, teams: &[Team]) -> Problem {
    let names: Vec<String> = teams.iter().map(|team| team.name.to_string()).collect();
    Problem::missing("team", name, &names)
}

fn nobody(person: &str, workspace: &str, known: &BTreeSet<String>) -> Problem {
    let names = known.iter().take(50).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Problem::bad(format!(
        "nobody called `{}` has a role in workspace `{workspace}`; there are: {names}",
        person.escape_default()
    ))
}

/// Who may work in a workspace, by name.
fn people(tx: &mut Tx<'_>, workspace: &str, now: Timestamp) -> Result<BTreeSet<String>, Error> {
    let rows = tx.principals()?.into_iter().filter(|row| {
        row.revoked_at.is_none()
            && row.expires_at.is_none_or(|at| at > now)
            && allow(&row.roles, workspace, Role::Contributor)
    });
    Ok(rows.map(|row| row.name).collect())
}

fn view(team: &Team) -> Value {
    json!({"name": team.name, "people": team.people})
}
