//! Giving pages that hold nothing back to the file system, a few at a time.
//!
//! The file is kept in a mode that allows it, set when the file is made, or once for a file that is older than that.

use crate::{Error, Tx};
use rusqlite::Connection;

/// SQLite's number for "on demand".
const ON_DEMAND: i64 = 2;

/// Puts a database into the mode. One that has content is written anew for it.
pub(super) fn prepare(on: &Connection) -> rusqlite::Result<()> {
    let mode: i64 = on.query_row("pragma auto_vacuum", [], |row| row.get(0))?;
    if mode == ON_DEMAND {
        return Ok(());
    }
    on.pragma_update(None, "auto_vacuum", ON_DEMAND)?;
    let pages: i64 = on.query_row("pragma page_count", [], |row| row.get(0))?;
    if pages > 0 { on.execute_batch("vacuum") } else { Ok(()) }
}

impl Tx<'_> {
    /// Gives up to so many unused pages back; how many bytes that were, 0 when there are none.
    pub(crate) fn give_back_pages(&mut self, most: i64) -> Result<u64, Error> {
        let before = self.number("pragma page_count")?;
        self.fetch(&format!("pragma incremental_vacuum({most})"), &[])?;
        let given = before - self.number("pragma page_count")?;
        Ok(u64::try_from(given * self.number("pragma page_size")?).unwrap_or(0))
    }

    fn number(&mut self, pragma: &str) -> Result<i64, Error> {
        self.fetch_one(pragma, &[])?.map_or(Ok(0), |mut row| row.int(0))
    }
}
