//! What webhooks are still to be told: written with the change it tells of, removed once it was told.
//!
//! Whoever sends one claims it first, which puts it off for a while. Invariant: a delivery whose sender went away is due
//! again, so that each is made at least once.

use crate::{Bell, Error, Row, Tx};
use domain::Timestamp;

#[derive(Debug, Clone)]
pub struct DeliveryRow {
    pub seq: i64,
    /// Known to the receiver, the same at every try.
    pub id: String,
    pub workspace: String,
    /// The name of the webhook's record.
    pub webhook: String,
    pub body: String,
    /// How often it was claimed.
    pub tries: i64,
    pub created_at: Timestamp,
}

const ROW: &str = "seq, id, workspace, webhook, body, tries, created_at";

impl Tx<'_> {
    /// Adds a delivery, due at once; its `seq` is given to it.
    pub fn insert_delivery(&mut self, row: &DeliveryRow) -> Result<(), Error> {
        self.exec(
            "insert into deliveries (id, workspace, webhook, body, created_at, due_at) values (?1, ?2, ?3, ?4, ?5, ?5)",
            &[
                row.id.as_str().into(),
                row.workspace.as_str().into(),
                row.webhook.as_str().into(),
                row.body.as_str().into(),
                row.created_at.into(),
            ],
        )?;
        self.ring(Bell::Deliveries);
        Ok(())
    }

    /// The oldest delivery of each webhook that is due.
    pub fn due_deliveries(&mut self, now: Timestamp) -> Result<Vec<DeliveryRow>, Error> {
        let waiting = "select distinct workspace, webhook from deliveries where due_at <= ?1";
        let oldest = format!(
            "select {ROW} from deliveries where workspace = ?1 and webhook = ?2 and due_at <= ?3 \
             order by seq limit 1"
        );
        let mut due = Vec::new();
        for mut row in self.fetch(waiting, &[now.into()])? {
            let values = [row.text(0)?.into(), row.text(1)?.into(), now.into()];
            due.extend(self.fetch_one(&oldest, &values)?.map(row_of).transpose()?);
        }
        Ok(due)
    }

    /// When the next delivery after `now` is due, if one is.
    pub fn next_delivery(&mut self, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let row = self.fetch_one("select min(due_at) from deliveries where due_at > ?1", &[now.into()])?;
        row.map_or(Ok(None), |mut row| row.maybe_int(0)).map(|at| at.map(Timestamp))
    }

    /// Takes a delivery on, until then; `false` when someone else has.
    pub fn claim_delivery(&mut self, row: &DeliveryRow, until: Timestamp) -> Result<bool, Error> {
        let sql = "update deliveries set due_at = ?3, tries = tries + 1 where seq = ?1 and tries = ?2";
        Ok(self.exec(sql, &[row.seq.into(), row.tries.into(), until.into()])? > 0)
    }

    /// Puts a delivery that failed off.
    pub fn put_off_delivery(&mut self, seq: i64, until: Timestamp) -> Result<(), Error> {
        self.exec("update deliveries set due_at = ?2 where seq = ?1", &[seq.into(), until.into()])?;
        Ok(())
    }

    pub fn delete_delivery(&mut self, seq: i64) -> Result<(), Error> {
        self.exec("delete from deliveries where seq = ?1", &[seq.into()])?;
        Ok(())
    }
}

fn row_of(mut row: Row) -> Result<DeliveryRow, Error> {
    Ok(DeliveryRow {
        seq: row.int(0)?,
        id: row.text(1)?,
        workspace: row.text(2)?,
        webhook: row.text(3)?,
        body: row.text(4)?,
        tries: row.int(5)?,
        created_at: Timestamp(row.int(6)?),
    })
}
