//! The lines of waiting jobs: how many stand before each, told of many jobs at once.

use crate::{Error, JobRow, Row, Tx};
use domain::Plan;
use std::collections::{BTreeMap, HashMap, hash_map::Entry};

/// A waiting job, as far as its place in the line is a matter of it.
struct Stands {
    cluster: String,
    priority: i64,
    placed: bool,
    turn: i64,
    seq: i64,
    /// Of those who wait with the same priority, how many are the same person's and came before.
    own: i64,
}

/// Who stands before others on a cluster.
struct Line {
    /// How many there are of each priority.
    all: BTreeMap<i64, i64>,
    /// Those an agent holds: their priority, turn and place in the table.
    placed: Vec<(i64, i64, i64)>,
}

impl Line {
    /// The same as `ahead_of` counts, job by job.
    fn ahead(&self, one: &Stands) -> i64 {
        let before: i64 = self.all.range(one.priority + 1..).map(|(_, count)| count).sum();
        let same = self.placed.iter().filter(|(priority, ..)| *priority == one.priority);
        let held = same.filter(|(_, turn, seq)| !one.placed || (*turn, *seq) < (one.turn, one.seq)).count();
        before + i64::try_from(held).unwrap_or(i64::MAX) + if one.placed { 0 } else { one.own }
    }
}

impl Tx<'_> {
    /// How many stand before each of these waiting jobs, as `ahead_of` tells it of one; each cluster's line is looked at once.
    pub fn ahead_of_each(&mut self, rows: &[JobRow]) -> Result<HashMap<i64, i64>, Error> {
        let seqs: Vec<i64> = rows.iter().map(|row| row.job.seq).collect();
        let sql = "select m.seq, m.cluster, m.priority, m.phase, m.turn, case when m.phase = 'queued' then \
                   (select count(*) from jobs j where j.phase = 'queued' and j.cluster = m.cluster \
                   and j.workspace = m.workspace and j.created_by = m.created_by and j.priority = m.priority \
                   and j.seq < m.seq) else 0 end from jobs m where m.seq in (select value from json_each(?1))";
        let found = self.fetch(sql, &[seqs.as_slice().into()])?;
        let stands = |mut row: Row| {
            let (seq, cluster, priority) = (row.int(0)?, row.text(1)?, row.int(2)?);
            Ok(Stands { cluster, priority, placed: row.text(3)? == "placed", turn: row.int(4)?, seq, own: row.int(5)? })
        };
        let found = found.into_iter().map(stands).collect::<Result<Vec<_>, Error>>()?;
        let (mut lines, mut ahead) = (HashMap::new(), HashMap::new());
        for one in found {
            let line: &mut Line = match lines.entry(one.cluster.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(fresh) => fresh.insert(self.line(&one.cluster)?),
            };
            ahead.insert(one.seq, line.ahead(&one));
        }
        Ok(ahead)
    }

    fn line(&mut self, cluster: &str) -> Result<Line, Error> {
        let sql = "select priority, count(*) from jobs where phase in ('queued', 'placed') and cluster = ?1 \
                   group by priority order by priority";
        let all = self.fetch(sql, &[cluster.into()])?;
        let all = all.into_iter().map(|mut row| Ok((row.int(0)?, row.int(1)?))).collect::<Result<_, Error>>()?;
        let sql = "select priority, turn, seq from jobs where phase = 'placed' and cluster = ?1";
        let placed = self.fetch(sql, &[cluster.into()])?;
        let placed = placed.into_iter().map(|mut row| Ok((row.int(0)?, row.int(1)?, row.int(2)?)));
        Ok(Line { all, placed: placed.collect::<Result<_, Error>>()? })
    }

    /// The plans of several jobs.
    pub fn plans(&mut self, seqs: &[i64]) -> Result<HashMap<i64, Plan>, Error> {
        let rows =
            self.fetch("select seq, plan from jobs where seq in (select value from json_each(?1))", &[seqs.into()])?;
        rows.into_iter().map(|mut row| Ok((row.int(0)?, row.json(1)?))).collect()
    }
}
