//! The parts of attempts that run away from this machine, one row an attempt, until it is over.

use crate::{Error, Tx, tables::jobs::json};
use domain::{AttemptId, gang::Gang};

impl Tx<'_> {
    pub fn gang(&mut self, attempt: &AttemptId) -> Result<Option<Gang>, Error> {
        let row = self.fetch_one("select body from gangs where attempt = ?1", &[attempt.as_str().into()])?;
        row.map(|mut row| row.json(0)).transpose()
    }

    pub fn put_gang(&mut self, attempt: &AttemptId, gang: &Gang) -> Result<(), Error> {
        self.exec(
            "insert into gangs (attempt, body) values (?1, ?2) on conflict (attempt) do update set body = ?2",
            &[attempt.as_str().into(), json(gang)?.into()],
        )?;
        Ok(())
    }

    pub fn drop_gang(&mut self, attempt: &AttemptId) -> Result<(), Error> {
        self.exec("delete from gangs where attempt = ?1", &[attempt.as_str().into()])?;
        Ok(())
    }
}
