//! The audit: who changed what, and who was refused. Only ever added to.
//!
//! Invariant: a change and its record are one transaction, so that neither stands without the other.

use crate::{Error, Row, Tx};
use domain::Timestamp;
use std::{
    future::Future,
    sync::{Arc, Mutex},
};

/// Someone doing something.
#[derive(Debug, Clone)]
pub struct Act {
    pub at: Timestamp,
    pub caller: String,
    /// Empty where it concerns the server as a whole.
    pub workspace: String,
    pub route: &'static str,
    pub method: String,
    pub path: String,
}

/// One line of the audit.
#[derive(Debug, Clone)]
pub struct AuditRow {
    pub id: i64,
    pub at: Timestamp,
    pub caller: String,
    pub workspace: String,
    pub route: String,
    pub method: String,
    pub path: String,
    pub status: i64,
}

/// An act under way; empty once it is on record.
pub(crate) type Acting = Arc<Mutex<Option<Act>>>;

tokio::task_local! {
    static ACTING: Acting;
}

/// Runs `work` on someone's behalf: the first change it makes is recorded together with `act`.
pub async fn acting<F: Future>(act: Act, work: F) -> F::Output {
    ACTING.scope(Arc::new(Mutex::new(Some(act))), work).await
}

/// The act under way in this task.
pub(crate) fn act_under_way() -> Option<Acting> {
    ACTING.try_with(Arc::clone).ok()
}

impl Tx<'_> {
    /// Runs `work`, and records the act if this was its first change.
    pub(crate) fn audited<T>(
        &mut self,
        acting: &Acting,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.changes;
        let done = work(self)?;
        let changed = self.changes != before;
        let act = changed.then(|| acting.lock().expect("nothing panics while it holds the act").take()).flatten();
        if let Some(act) = act {
            self.add_audit(&act, 200)?;
        }
        Ok(done)
    }

    /// Records the act under way although nothing in the database changed.
    pub(crate) fn record_act(&mut self, acting: &Acting) -> Result<(), Error> {
        let act = acting.lock().expect("nothing panics while it holds the act").take();
        act.map_or(Ok(()), |act| self.add_audit(&act, 200))
    }

    /// Adds a line: 200 for what was done, the refusal's status otherwise.
    pub fn add_audit(&mut self, act: &Act, status: i64) -> Result<(), Error> {
        self.exec(
            "insert into audit (at, caller, workspace, route, method, path, status) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            &[
                act.at.into(),
                act.caller.as_str().into(),
                act.workspace.as_str().into(),
                act.route.into(),
                act.method.as_str().into(),
                act.path.as_str().into(),
                status.into(),
            ],
        )?;
        Ok(())
    }

    /// The newest lines, of one workspace or of all, older than the line `before`.
    pub fn audit(&mut self, workspace: Option<&str>, before: Option<i64>, limit: i64) -> Result<Vec<AuditRow>, Error> {
        let rows = self.fetch(
            "select id, at, caller, workspace, route, method, path, status from audit \
             where (lower(workspace) = lower(?1) or ?1 is null) and (id < ?2 or ?2 is null) order by id desc limit ?3",
            &[workspace.into(), before.into(), limit.into()],
        )?;
        rows.into_iter().map(audit_of).collect()
    }
}

fn audit_of(mut row: Row) -> Result<AuditRow, Error> {
    Ok(AuditRow {
        id: row.int(0)?,
        at: Timestamp(row.int(1)?),
        caller: row.text(2)?,
        workspace: row.text(3)?,
        route: row.text(4)?,
        method: row.text(5)?,
        path: row.text(6)?,
        status: row.int(7)?,
    })
}
