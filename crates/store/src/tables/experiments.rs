//! Experiments: names that runs are grouped under.
//!
//! Invariant: every workspace has experiment 0, `Default`; a name is used once, deleted experiments included.

use crate::{Error, Row, Tx};
use domain::Timestamp;
use std::collections::BTreeMap;

/// The experiment of whoever names none.
pub const DEFAULT_EXPERIMENT: &str = "Default";

#[derive(Debug, Clone)]
pub struct ExperimentRow {
    pub seq: i64,
    /// Its id in its workspace.
    pub number: i64,
    pub name: String,
    pub artifact_location: String,
    pub deleted: bool,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    pub tags: BTreeMap<String, String>,
}

const ROW: &str = "seq, number, name, artifact_location, deleted, created_at, changed_at";

impl Tx<'_> {
    /// The experiment of that name, made if it is not there. A deleted one is used as it is.
    pub fn experiment_named(&mut self, workspace: &str, name: &str, now: Timestamp) -> Result<i64, Error> {
        let found = self.fetch_one(
            "select seq from experiments where workspace = ?1 and name = ?2",
            &[workspace.into(), name.into()],
        )?;
        match found {
            Some(mut row) => row.int(0),
            None => self.insert_experiment(workspace, name, "", now).map(|(seq, _)| seq),
        }
    }

    /// Adds an experiment; its place in the table and its number. `Exists` when the name is taken.
    pub fn insert_experiment(
        &mut self,
        workspace: &str,
        name: &str,
        location: &str,
        now: Timestamp,
    ) -> Result<(i64, i64), Error> {
        let next = "select coalesce(max(number), -1) + 1 from (select number from experiments where workspace = ?1 \
                    union all select number from spent_numbers where workspace = ?1) as numbers";
        let number = match name {
            DEFAULT_EXPERIMENT => 0,
            _ => self.fetch_one(next, &[workspace.into()])?.map_or(Ok(0), |mut row| row.int(0))?.max(1),
        };
        let seq = self.insert(
            "insert into experiments (workspace, number, name, artifact_location, created_at, changed_at) \
             values (?1, ?2, ?3, ?4, ?5, ?5) returning seq",
            &[workspace.into(), number.into(), name.into(), location.into(), now.into()],
        )?;
        Ok((seq, number))
    }

    pub fn experiment(&mut self, workspace: &str, number: i64) -> Result<Option<ExperimentRow>, Error> {
        let sql = format!("select {ROW} from experiments where workspace = ?1 and number = ?2");
        let row = self.fetch_one(&sql, &[workspace.into(), number.into()])?;
        row.map(|row| self.with_tags(row)).transpose()
    }

    pub fn experiment_by_name(&mut self, workspace: &str, name: &str) -> Result<Option<ExperimentRow>, Error> {
        let sql = format!("select {ROW} from experiments where workspace = ?1 and name = ?2");
        let row = self.fetch_one(&sql, &[workspace.into(), name.into()])?;
        row.map(|row| self.with_tags(row)).transpose()
    }

    /// All experiments of a workspace, in the order they were made.
    pub fn experiments(&mut self, workspace: &str) -> Result<Vec<ExperimentRow>, Error> {
        let sql = format!("select {ROW} from experiments where workspace = ?1 order by seq");
        let rows = self.fetch(&sql, &[workspace.into()])?;
        rows.into_iter().map(|row| self.with_tags(row)).collect()
    }

    /// Writes what may change: name, deletion, time of change.
    pub fn put_experiment(&mut self, row: &ExperimentRow) -> Result<(), Error> {
        self.exec(
            "update experiments set name = ?2, deleted = ?3, changed_at = ?4 where seq = ?1",
            &[row.seq.into(), row.name.as_str().into(), row.deleted.into(), row.changed_at.into()],
        )?;
        Ok(())
    }

    pub fn put_experiment_tag(&mut self, experiment: i64, key: &str, value: &str) -> Result<(), Error> {
        self.exec(
            "insert into experiment_tags (experiment, key, value) values (?1, ?2, ?3) \
             on conflict (experiment, key) do update set value = ?3",
            &[experiment.into(), key.into(), value.into()],
        )?;
        Ok(())
    }

    /// Whether there was such a tag.
    pub fn delete_experiment_tag(&mut self, experiment: i64, key: &str) -> Result<bool, Error> {
        let gone = self
            .exec("delete from experiment_tags where experiment = ?1 and key = ?2", &[experiment.into(), key.into()])?;
        Ok(gone > 0)
    }

    fn with_tags(&mut self, mut row: Row) -> Result<ExperimentRow, Error> {
        let mut experiment = ExperimentRow {
            seq: row.int(0)?,
            number: row.int(1)?,
            name: row.text(2)?,
            artifact_location: row.text(3)?,
            deleted: row.int(4)? != 0,
            created_at: Timestamp(row.int(5)?),
            changed_at: Timestamp(row.int(6)?),
            tags: BTreeMap::new(),
        };
        let sql = "select key, value from experiment_tags where experiment = ?1";
        for mut tag in self.fetch(sql, &[experiment.seq.into()])? {
            experiment.tags.insert(tag.text(0)?, tag.text(1)?);
        }
        Ok(experiment)
    }
}
