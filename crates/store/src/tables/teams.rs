//! Teams: records of a workspace that name people. They have no table of their own.

use super::records::{RecordKey, RecordRow};
use crate::{Bell, Error, Tx, tables::jobs::json};
use domain::{Timestamp, names::TeamName, sharing::Team};

const KIND: &str = "team";

impl Tx<'_> {
    /// The teams of one workspace, or of all, by name.
    pub fn teams(&mut self, workspace: Option<&str>) -> Result<Vec<Team>, Error> {
        let rows = self.records_of(KIND)?.into_iter();
        rows.filter(|row| workspace.is_none_or(|only| row.key.workspace == only)).map(team_of).collect()
    }

    /// Makes a team, or says anew who is in it.
    pub fn put_team(&mut self, team: &Team, by: &str, now: Timestamp) -> Result<(), Error> {
        let body = json(&team.people)?;
        // Who is in a team decides what its people wait for.
        self.ring(Bell::Queue);
        let key = key_of(&team.workspace, &team.name);
        match self.record(&key)? {
            Some(row) => self.put_record(&mut RecordRow { body, changed_at: now, ..row }),
            None => self.insert_record(&RecordRow {
                key,
                body,
                archived: false,
                created_by: by.to_owned(),
                created_at: now,
                changed_at: now,
                version: 1,
            }),
        }
    }

    /// Whether there was one.
    pub fn delete_team(&mut self, workspace: &str, name: &TeamName) -> Result<bool, Error> {
        self.ring(Bell::Queue);
        self.delete_record(&key_of(workspace, name))
    }
}

fn key_of(workspace: &str, name: &TeamName) -> RecordKey {
    RecordKey {
        workspace: workspace.to_owned(),
        kind: KIND.to_owned(),
        parent: String::new(),
        name: name.as_str().to_owned(),
    }
}

fn team_of(row: RecordRow) -> Result<Team, Error> {
    let RecordKey { workspace, name, .. } = row.key;
    let people = serde_json::from_str(&row.body).map_err(|error| Error::Decode(error.to_string()))?;
    let name = TeamName::parse(&name).map_err(|error| Error::Decode(error.to_string()))?;
    Ok(Team { workspace, name, people })
}
