//! Resources kept as their clients sent them: schedules, endpoints, deployments, registries, marks on asset names.
//!
//! Invariants: a record changes only from the version its writer saw; its secrets are sealed for its own place.

use crate::{Bell, Error, Row, Tx};
use domain::Timestamp;
use std::collections::BTreeMap;

/// Where a record stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordKey {
    /// Empty for what belongs to the server as a whole.
    pub workspace: String,
    pub kind: String,
    /// The endpoint of a deployment; empty for everything else.
    pub parent: String,
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct RecordRow {
    pub key: RecordKey,
    pub body: String,
    pub archived: bool,
    pub created_by: String,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    pub version: i64,
}

/// Which records, and how many of them.
#[derive(Debug, Clone)]
pub struct RecordFilter {
    pub workspace: String,
    pub kind: String,
    pub parent: String,
    pub archived: Option<bool>,
    /// Only names after this one.
    pub after: String,
    pub limit: i64,
}

const ROW: &str = "workspace, kind, parent, name, body, archived, created_by, created_at, changed_at, version";

impl RecordKey {
    fn values(&self) -> [crate::Value; 4] {
        [&self.workspace, &self.kind, &self.parent, &self.name].map(|text| text.as_str().into())
    }

    fn place(&self) -> String {
        format!("{}/{}/{}/{}", self.workspace, self.kind, self.parent, self.name)
    }
}

impl Tx<'_> {
    pub fn record(&mut self, key: &RecordKey) -> Result<Option<RecordRow>, Error> {
        let sql = format!("select {ROW} from records where workspace = ?1 and kind = ?2 and parent = ?3 and name = ?4");
        self.fetch_one(&sql, &key.values())?.map(row_of).transpose()
    }

    /// Records by name.
    pub fn records(&mut self, filter: &RecordFilter) -> Result<Vec<RecordRow>, Error> {
        let sql = format!(
            "select {ROW} from records where workspace = ?1 and kind = ?2 and parent = ?3 and name > ?4 \
             and (archived = ?5 or ?5 is null) order by name limit ?6"
        );
        let values = [
            filter.workspace.as_str().into(),
            filter.kind.as_str().into(),
            filter.parent.as_str().into(),
            filter.after.as_str().into(),
            filter.archived.into(),
            filter.limit.into(),
        ];
        self.fetch(&sql, &values)?.into_iter().map(row_of).collect()
    }

    /// The names there are, for messages.
    pub fn record_names(&mut self, workspace: &str, kind: &str, parent: &str) -> Result<Vec<String>, Error> {
        let sql = "select name from records where workspace = ?1 and kind = ?2 and parent = ?3 order by name limit 50";
        let rows = self.fetch(sql, &[workspace.into(), kind.into(), parent.into()])?;
        rows.into_iter().map(|mut row| row.text(0)).collect()
    }

    /// Records of one name in every workspace.
    pub fn records_named(&mut self, kind: &str, name: &str) -> Result<Vec<RecordRow>, Error> {
        let sql = format!("select {ROW} from records where kind = ?1 and name = ?2 and parent = '' order by workspace");
        self.fetch(&sql, &[kind.into(), name.into()])?.into_iter().map(row_of).collect()
    }

    /// Every record of a kind, in every workspace.
    pub fn records_of(&mut self, kind: &str) -> Result<Vec<RecordRow>, Error> {
        let sql = format!("select {ROW} from records where kind = ?1 order by name, workspace");
        self.fetch(&sql, &[kind.into()])?.into_iter().map(row_of).collect()
    }

    /// Adds a record; `Exists` when there is one of that name.
    pub fn insert_record(&mut self, row: &RecordRow) -> Result<(), Error> {
        let [workspace, kind, parent, name] = row.key.values();
        self.exec(
            "insert into records (workspace, kind, parent, name, body, archived, created_by, created_at, changed_at, version) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            &[
                workspace,
                kind,
                parent,
                name,
                row.body.as_str().into(),
                row.archived.into(),
                row.created_by.as_str().into(),
                row.created_at.into(),
                row.changed_at.into(),
                row.version.into(),
            ],
        )?;
        self.ring(Bell::Serving);
        Ok(())
    }

    /// Writes a record over the version it was read at, and counts the version up.
    pub fn put_record(&mut self, row: &mut RecordRow) -> Result<(), Error> {
        let [workspace, kind, parent, name] = row.key.values();
        let changed = self.exec(
            "update records set body = ?5, archived = ?6, changed_at = ?7, version = version + 1 \
             where workspace = ?1 and kind = ?2 and parent = ?3 and name = ?4 and version = ?8",
            &[
                workspace,
                kind,
                parent,
                name,
                row.body.as_str().into(),
                row.archived.into(),
                row.changed_at.into(),
                row.version.into(),
            ],
        )?;
        if changed == 0 {
            return Err(Error::Conflict);
        }
        row.version += 1;
        self.ring(Bell::Serving);
        Ok(())
    }

    pub fn delete_record(&mut self, key: &RecordKey) -> Result<bool, Error> {
        let sql = "delete from records where workspace = ?1 and kind = ?2 and parent = ?3 and name = ?4";
        self.ring(Bell::Serving);
        Ok(self.exec(sql, &key.values())? > 0)
    }

    /// Deletes every record of a kind below one parent.
    pub fn delete_records_under(&mut self, workspace: &str, kind: &str, parent: &str) -> Result<(), Error> {
        let sql = "delete from records where workspace = ?1 and kind = ?2 and parent = ?3";
        self.exec(sql, &[workspace.into(), kind.into(), parent.into()])?;
        Ok(())
    }

    pub fn put_record_secret(&mut self, key: &RecordKey, secret: &BTreeMap<String, String>) -> Result<(), Error> {
        let sealed = self.keyring.seal(&key.place(), super::jobs::json(secret)?.as_bytes())?;
        let [workspace, kind, parent, name] = key.values();
        self.exec(
            "update records set secret = ?5 where workspace = ?1 and kind = ?2 and parent = ?3 and name = ?4",
            &[workspace, kind, parent, name, crate::Value::Blob(sealed)],
        )?;
        self.ring(Bell::Serving);
        Ok(())
    }

    /// The secrets of a record, opened; empty where it has none.
    pub fn record_secret(&mut self, key: &RecordKey) -> Result<BTreeMap<String, String>, Error> {
        let sql = "select secret from records where workspace = ?1 and kind = ?2 and parent = ?3 and name = ?4 \
                   and secret is not null";
        let Some(mut row) = self.fetch_one(sql, &key.values())? else { return Ok(BTreeMap::new()) };
        let open = self.keyring.open(&key.place(), &row.blob(0)?)?;
        serde_json::from_slice(&open).map_err(|error| Error::Decode(error.to_string()))
    }
}

fn row_of(mut row: Row) -> Result<RecordRow, Error> {
    Ok(RecordRow {
        key: RecordKey { workspace: row.text(0)?, kind: row.text(1)?, parent: row.text(2)?, name: row.text(3)? },
        body: row.text(4)?,
        archived: row.int(5)? != 0,
        created_by: row.text(6)?,
        created_at: Timestamp(row.int(7)?),
        changed_at: Timestamp(row.int(8)?),
        version: row.int(9)?,
    })
}
