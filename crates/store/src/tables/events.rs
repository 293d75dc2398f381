//! Events: facts that happened to a job, kept for people and audit. Never changed, only added.

use crate::{Error, Row, Tx};
use domain::Timestamp;

/// One fact in a job's life.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub at: Timestamp,
    pub kind: String,
    pub text: String,
}

impl Tx<'_> {
    pub fn add_event(&mut self, job_seq: i64, at: Timestamp, kind: &str, text: &str) -> Result<(), Error> {
        self.exec(
            "insert into events (job_seq, at, kind, text) values (?1, ?2, ?3, ?4)",
            &[job_seq.into(), at.into(), kind.into(), text.into()],
        )?;
        Ok(())
    }

    /// A job's story, oldest first.
    pub fn events(&mut self, job_seq: i64) -> Result<Vec<EventRow>, Error> {
        let rows = self.fetch("select at, kind, text from events where job_seq = ?1 order by id", &[job_seq.into()])?;
        rows.into_iter().map(event_of).collect()
    }
}

fn event_of(mut row: Row) -> Result<EventRow, Error> {
    Ok(EventRow { at: Timestamp(row.int(0)?), kind: row.text(1)?, text: row.text(2)? })
}
