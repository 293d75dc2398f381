//! Long-running operations: what became of a change, for clients that ask again and again.
//!
//! Invariant: an operation is remembered for a day and then forgotten.

use crate::{Error, Tx};
use domain::Timestamp;

/// How long a client may ask after an operation.
const KEPT_MS: i64 = 24 * 3_600_000;

#[derive(Debug, Clone)]
pub struct OperationRow {
    pub id: String,
    pub workspace: String,
    /// The path of the resource it changes.
    pub resource: String,
    /// `InProgress`, `Succeeded`, `Failed` or `Canceled`.
    pub status: String,
    /// What went wrong, as the `error` object of an answer.
    pub error: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl Tx<'_> {
    /// Adds an operation and forgets those nobody asks after any more.
    pub fn insert_operation(&mut self, row: &OperationRow) -> Result<(), Error> {
        self.exec("delete from operations where started_at < ?1", &[(row.started_at.0 - KEPT_MS).into()])?;
        self.exec(
            "insert into operations (id, workspace, resource, status, error, started_at, ended_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            &[
                row.id.as_str().into(),
                row.workspace.as_str().into(),
                row.resource.as_str().into(),
                row.status.as_str().into(),
                row.error.as_deref().into(),
                row.started_at.into(),
                row.ended_at.into(),
            ],
        )?;
        Ok(())
    }

    /// Writes down how an operation that was under way ended.
    pub fn end_operation(&mut self, id: &str, error: Option<&str>, now: Timestamp) -> Result<(), Error> {
        let status = if error.is_some() { "Failed" } else { "Succeeded" };
        self.exec(
            "update operations set status = ?2, error = ?3, ended_at = ?4 where id = ?1 and status = 'InProgress'",
            &[id.into(), status.into(), error.into(), now.into()],
        )?;
        Ok(())
    }

    pub fn operation(&mut self, id: &str) -> Result<Option<OperationRow>, Error> {
        let sql = "select id, workspace, resource, status, error, started_at, ended_at from operations where id = ?1";
        let Some(mut row) = self.fetch_one(sql, &[id.into()])? else { return Ok(None) };
        Ok(Some(OperationRow {
            id: row.text(0)?,
            workspace: row.text(1)?,
            resource: row.text(2)?,
            status: row.text(3)?,
            error: row.maybe_text(4)?,
            started_at: Timestamp(row.int(5)?),
            ended_at: row.maybe_int(6)?.map(Timestamp),
        }))
    }
}
