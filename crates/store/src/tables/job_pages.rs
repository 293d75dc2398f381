//! Lists of jobs, newest first, in pages that stay put while jobs arrive.
//!
//! Invariant: a page costs the same however many jobs there are. What an index cannot answer (a tag, a kind) is looked
//! for in a bounded number of jobs; a page may then hold fewer jobs than asked for, or none, and still have a next one.

use super::{
    REPLICA,
    jobs::{JobRow, ROW, row_of},
};
use crate::{Error, Tx, Value};

/// The most jobs that are looked through for one page.
const LOOKED_THROUGH: i64 = 2000;

/// Which jobs a list shows.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub workspace: String,
    /// `Some(false)` only active ones, `Some(true)` only archived ones.
    pub archived: Option<bool>,
    pub kind: Option<String>,
    /// `key` or `key=value`.
    pub tag: Option<String>,
    /// The job whose children are asked for; without one, jobs that are nobody's children.
    pub parent: Option<i64>,
    /// The schedule that made them, as far as it is remembered.
    pub schedule: Option<String>,
    /// Only jobs accepted before this sequence number: the cursor of the page before.
    pub before: Option<i64>,
    pub limit: i64,
}

/// One page of a list.
#[derive(Debug, Clone, Default)]
pub struct JobPage {
    pub rows: Vec<JobRow>,
    /// The cursor of the next page, where there is one.
    pub next: Option<i64>,
}

impl Tx<'_> {
    /// Newest first, after the cursor.
    pub fn jobs(&mut self, filter: &JobFilter) -> Result<JobPage, Error> {
        let mut terms = Terms::of(filter);
        let bounded = filter.kind.is_some() || filter.tag.is_some();
        let mut further = None;
        if bounded {
            let sql = format!(
                "select count(*), min(seq) from (select seq from jobs where {} order by seq desc limit ?{}) looked",
                terms.sql,
                terms.values.len() + 1
            );
            let mut values = terms.values.clone();
            values.push(LOOKED_THROUGH.into());
            let Some(mut row) = self.fetch_one(&sql, &values)? else { return Ok(JobPage::default()) };
            if row.int(0)? == LOOKED_THROUGH {
                let last = row.int(1)?;
                further = Some(last);
                terms.add("seq >=", last.into());
            }
            terms.narrow(filter);
        }
        // One more than is shown tells whether there is another page.
        terms.values.push((filter.limit + 1).into());
        let sql = format!("select {ROW} from jobs where {} order by seq desc limit ?{}", terms.sql, terms.values.len());
        let rows = self.fetch(&sql, &terms.values)?;
        let mut rows = rows.into_iter().map(row_of).collect::<Result<Vec<_>, _>>()?;
        let shown = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let more = rows.len() > shown;
        rows.truncate(shown);
        let next = if more { rows.last().map(|row| row.job.seq) } else { further };
        Ok(JobPage { rows, next })
    }
}

/// The conditions of a query and their values, in the order of their placeholders.
struct Terms {
    sql: String,
    values: Vec<Value>,
}

impl Terms {
    /// What the indexes answer.
    fn of(filter: &JobFilter) -> Terms {
        let mut terms = Terms {
            sql: "workspace = ?1 and kind <> ?2".to_owned(),
            values: vec![filter.workspace.as_str().into(), REPLICA.into()],
        };
        match filter.parent {
            Some(parent) => terms.add("parent =", parent.into()),
            None => terms.sql += " and parent is null",
        }
        if let Some(schedule) = &filter.schedule {
            let made =
                "name in (select made from schedule_runs where schedule_runs.workspace = jobs.workspace and schedule =";
            terms.add(made, schedule.as_str().into());
            terms.sql += ")";
        }
        if let Some(archived) = filter.archived {
            terms.add("archived =", archived.into());
        }
        if let Some(before) = filter.before {
            terms.add("seq <", before.into());
        }
        terms
    }

    /// What is looked for in each job.
    fn narrow(&mut self, filter: &JobFilter) {
        if let Some(kind) = &filter.kind {
            self.add("kind =", kind.as_str().into());
        }
        let Some(tag) = &filter.tag else { return };
        let (key, value) = tag.split_once('=').map_or((tag.as_str(), None), |(key, value)| (key, Some(value)));
        self.add("exists (select 1 from job_labels where job_seq = seq and kind = 'tag' and key =", key.into());
        if let Some(value) = value {
            self.add("value =", value.into());
        }
        self.sql += ")";
    }

    fn add(&mut self, condition: &str, value: Value) {
        self.values.push(value);
        self.sql += &format!(" and {condition} ?{}", self.values.len());
    }
}
