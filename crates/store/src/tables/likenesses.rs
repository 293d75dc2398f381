//! What makes jobs alike, so that one that was run can stand for one that is to be.

use super::jobs::json;
use crate::{Error, Tx};
use domain::likeness;
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;

type Fields = BTreeMap<String, String>;

/// Longer values are kept as digests.
const WHOLE_BYTES: usize = 80;
/// Before the names under which it is noted what a job left; no field is called so.
const LEFT: &str = "left: ";
/// How many jobs that are alike are looked at.
const CANDIDATES: i64 = 4;

impl Tx<'_> {
    /// Completed jobs that were the same in all that matters, newest first: sequence number and name.
    pub fn alike(&mut self, workspace: &str, fields: &Fields) -> Result<Vec<(i64, String)>, Error> {
        let sql = "select j.seq, j.name from likenesses l join jobs j on j.seq = l.job_seq \
                   where l.workspace = ?1 and l.digest = ?2 and j.status = 'Completed' and j.archived = 0 \
                   order by l.job_seq desc limit ?3";
        let rows = self.fetch(sql, &[workspace.into(), whole(&short(fields))?.into(), CANDIDATES.into()])?;
        rows.into_iter().map(|mut row| Ok((row.int(0)?, row.text(1)?))).collect()
    }

    /// The job that was last run in a lineage, and the fields in which it differs.
    pub fn differs_from_last(
        &mut self,
        workspace: &str,
        lineage: &str,
        fields: &Fields,
    ) -> Result<Option<(String, Vec<String>)>, Error> {
        let sql = "select j.name, l.fields from likenesses l join jobs j on j.seq = l.job_seq \
                   where l.workspace = ?1 and l.lineage = ?2 order by l.job_seq desc limit 1";
        let Some(mut row) = self.fetch_one(sql, &[workspace.into(), lineage.into()])? else { return Ok(None) };
        let mut last: Fields = row.json(1)?;
        last.retain(|name, _| !name.starts_with(LEFT));
        Ok(Some((row.text(0)?, likeness::differing(&short(fields), &last))))
    }

    /// Notes what matters about a job that will run.
    pub fn put_likeness(
        &mut self,
        job_seq: i64,
        (workspace, lineage): (&str, &str),
        fields: &Fields,
    ) -> Result<(), Error> {
        let fields = short(fields);
        self.exec(
            "insert into likenesses (job_seq, workspace, digest, lineage, fields) values (?1, ?2, ?3, ?4, ?5)",
            &[job_seq.into(), workspace.into(), whole(&fields)?.into(), lineage.into(), json(&fields)?.into()],
        )
        .map(drop)
    }

    /// Notes what a job that may stand for others left, by name.
    pub fn put_left(&mut self, job_seq: i64, left: &Fields) -> Result<(), Error> {
        let Some(mut fields) = self.likeness(job_seq)? else { return Ok(()) };
        fields.extend(short(left).into_iter().map(|(name, value)| (format!("{LEFT}{name}"), value)));
        let sql = "update likenesses set fields = ?2 where job_seq = ?1";
        self.exec(sql, &[job_seq.into(), json(&fields)?.into()]).map(drop)
    }

    /// The names of what a job left that is not any more as it was; `None` where nobody noted what it left.
    pub fn left_differs(&mut self, job_seq: i64, now: &Fields) -> Result<Option<Vec<String>>, Error> {
        let fields = self.likeness(job_seq)?.unwrap_or_default();
        let left = fields.into_iter().filter_map(|(name, value)| Some((name.strip_prefix(LEFT)?.to_owned(), value)));
        let left: Fields = left.collect();
        Ok((!left.is_empty()).then(|| likeness::differing(&short(now), &left)))
    }

    fn likeness(&mut self, job_seq: i64) -> Result<Option<Fields>, Error> {
        let row = self.fetch_one("select fields from likenesses where job_seq = ?1", &[job_seq.into()])?;
        row.map(|mut row| row.json(0)).transpose()
    }

    /// Gives a run all that was logged to another.
    pub fn copy_logged(&mut self, workspace: &str, from: &str, to: &str) -> Result<(), Error> {
        let (Some(from), Some(to)) = (self.run(workspace, from)?, self.run(workspace, to)?) else { return Ok(()) };
        for (table, columns) in [
            ("run_params", "key, value"),
            ("run_tags", "key, value"),
            ("latest_metrics", "key, experiment, nan, value, at, step"),
            ("point_batches", "n, rows, total_bytes, points"),
            ("point_chunks", "key, n, count, points"),
        ] {
            let sql = format!(
                "insert into {table} (run, {columns}) select ?2, {columns} from {table} where run = ?1 on conflict do nothing"
            );
            // The parent of the other run is not this one's; a tag that is there stays.
            self.exec(&sql, &[from.seq.into(), to.seq.into()])?;
        }
        Ok(())
    }
}

fn short(fields: &Fields) -> Fields {
    let one = |value: &String| if value.len() > WHOLE_BYTES { digest_of(value) } else { value.clone() };
    fields.iter().map(|(name, value)| (name.clone(), one(value))).collect()
}

fn whole(fields: &Fields) -> Result<String, Error> {
    Ok(digest_of(&json(fields)?))
}

/// The digest of a text, as what is alike is compared by.
pub fn digest_of(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
