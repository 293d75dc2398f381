//! Searching runs: a filter and an order become one statement, or three where the order begins with a metric.
//!
//! Runs that have the metric as a number, those for which it is not a number and those without it come one behind the
//! other, and the first two are read along the index of latest values: a page costs what it shows, however many runs there are.
//! In the order that runs have by themselves, a page begins behind the last run of the one before: runs that come meanwhile
//! move nothing, and the last page costs what the first one does.
//! Invariant: keys and values of a client are bound to statements, never part of their text.

mod terms;

use crate::{
    Error, RunRow, Tx, Value,
    tables::runs::{RUN, run_of},
};
use domain::tracking::{Clause, Entity, Filter, Order, OrderKey, ViewType};
use terms::{Statement, metric_holds};

/// Which runs, in which order, and which of them.
#[derive(Debug, Clone)]
pub struct RunQuery {
    pub workspace: String,
    /// Numbers of experiments; every one that is not deleted where it says nothing.
    pub experiments: Option<Vec<i64>>,
    pub filter: Filter,
    pub order: Order,
    pub shows: ViewType,
    pub from: usize,
    /// The run behind which to begin, instead of `from`, where the order allows for it.
    pub after: Option<RunPlace>,
    pub limit: usize,
}

/// Where a run stands in the order that runs have by themselves: by its start, newest first, and then by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPlace {
    pub started_at: i64,
    pub run_id: String,
}

/// How many runs there are: counted up to a limit where a filter has to look at each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount {
    pub runs: usize,
    /// There may be more.
    pub at_least: bool,
}

/// Which part of the answer a statement reads, by the metric the order begins with.
#[derive(Debug, Clone, Copy)]
enum Phase<'q> {
    All,
    Numbers(&'q OrderKey),
    NotNumbers(&'q OrderKey),
    Missing(&'q OrderKey),
}

impl Tx<'_> {
    /// The runs a query finds. Points that are not folded yet are not seen by filters and orders of metrics.
    pub fn search_runs(&mut self, query: &RunQuery) -> Result<Vec<RunRow>, Error> {
        let within = self.within(query)?;
        let (mut found, mut skip) = (Vec::new(), query.after().map_or(query.from, |_| 0));
        for phase in query.phases() {
            let left = query.limit - found.len();
            let rows = self.page(query, &within, phase, (skip, left))?;
            let got = rows.len();
            found.extend(rows);
            if got == left {
                break;
            }
            let passed = match got {
                0 if skip > 0 => self.count(query, &within, phase)?,
                got => skip + got,
            };
            skip = skip.saturating_sub(passed);
        }
        Ok(found)
    }

    /// How many runs a query finds, however many it wants to see.
    pub fn count_runs(&mut self, query: &RunQuery, most: usize) -> Result<RunCount, Error> {
        let query = RunQuery { after: None, ..query.clone() };
        if query.experiments.is_none() && query.filter.clauses.is_empty() && query.shows == ViewType::ActiveOnly {
            return Ok(RunCount { runs: self.active_runs(&query.workspace)?, at_least: false });
        }
        let within = self.within(&query)?;
        let mut statement = Statement::default();
        statement.push("select count(*) from (");
        query.select(&mut statement, "1 as one", &within, Phase::All);
        statement.push(" limit ").bind(limit_of(most.saturating_add(1))).push(") found");
        let row = self.fetch_one(statement.text(), statement.values())?;
        let runs = usize::try_from(row.map_or(Ok(0), |mut row| row.int(0))?).unwrap_or(0);
        Ok(RunCount { runs: runs.min(most), at_least: runs > most })
    }

    /// Runs that are not deleted, of experiments that are not, counted along indices: all of them without the few that are.
    fn active_runs(&mut self, workspace: &str) -> Result<usize, Error> {
        let sql = "select (select count(*) from runs where workspace = ?1) \
                   - (select count(*) from runs where workspace = ?1 and deleted_at is not null) \
                   - (select count(*) from runs where deleted_at is null and experiment in \
                   (select seq from experiments where workspace = ?1 and deleted <> 0))";
        let row = self.fetch_one(sql, &[workspace.into()])?;
        Ok(usize::try_from(row.map_or(Ok(0), |mut row| row.int(0))?).unwrap_or(0))
    }

    /// The experiments a query looks into.
    fn within(&mut self, query: &RunQuery) -> Result<Vec<i64>, Error> {
        let rows = match &query.experiments {
            Some(numbers) => {
                let sql =
                    "select seq from experiments where workspace = ?2 and number in (select value from json_each(?1))";
                self.fetch(sql, &[numbers.as_slice().into(), query.workspace.as_str().into()])?
            }
            None => {
                let sql = "select seq from experiments where workspace = ?1 and deleted = 0";
                self.fetch(sql, &[query.workspace.as_str().into()])?
            }
        };
        rows.into_iter().map(|mut row| row.int(0)).collect()
    }

    fn page(
        &mut self,
        query: &RunQuery,
        within: &[i64],
        phase: Phase<'_>,
        (skip, limit): (usize, usize),
    ) -> Result<Vec<RunRow>, Error> {
        let mut statement = query.selection(RUN, within, phase);
        query.ordered(&mut statement, phase);
        statement.push(" limit ").bind(limit_of(limit)).push(" offset ").bind(limit_of(skip));
        let rows = self.fetch(statement.text(), statement.values())?;
        rows.into_iter().map(run_of).collect()
    }

    fn count(&mut self, query: &RunQuery, within: &[i64], phase: Phase<'_>) -> Result<usize, Error> {
        let statement = query.selection("count(*)", within, phase);
        let row = self.fetch_one(statement.text(), statement.values())?;
        Ok(usize::try_from(row.map_or(Ok(0), |mut row| row.int(0))?).unwrap_or(0))
    }
}

fn limit_of(n: usize) -> Value {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

impl RunQuery {
    /// Whether its order is the one that runs have by themselves.
    pub fn is_plain(&self) -> bool {
        let keys: Vec<_> = self.order.keys.iter().map(|key| (key.entity, key.key.as_str(), key.ascending)).collect();
        keys == [(Entity::Attribute, "start_time", false), (Entity::Attribute, "run_id", true)]
    }

    fn after(&self) -> Option<&RunPlace> {
        self.after.as_ref().filter(|_| self.is_plain())
    }

    fn phases(&self) -> Vec<Phase<'_>> {
        match self.order.keys.first() {
            Some(key) if key.entity == Entity::Metric => {
                vec![Phase::Numbers(key), Phase::NotNumbers(key), Phase::Missing(key)]
            }
            _ => vec![Phase::All],
        }
    }

    /// `select … from … where …` of one phase.
    fn selection(&self, columns: &str, within: &[i64], phase: Phase<'_>) -> Statement {
        let mut statement = Statement::default();
        self.select(&mut statement, columns, within, phase);
        statement
    }

    fn select(&self, statement: &mut Statement, columns: &str, within: &[i64], phase: Phase<'_>) {
        statement.push("select ").push(columns);
        let led = match phase {
            Phase::Numbers(key) | Phase::NotNumbers(key) => Some(key),
            Phase::All | Phase::Missing(_) => None,
        };
        let lead = if led.is_some() { "m.experiment" } else { "r.experiment" };
        statement.push(match led {
            // The order of the tables is the order they are read in: along the index of latest values.
            Some(_) => " from latest_metrics m cross join runs r",
            None => " from runs r",
        });
        statement.push(" join experiments e on e.seq = r.experiment where ");
        statement.push(if led.is_some() { "r.seq = m.run and " } else { "" });
        match (within, &self.experiments, led) {
            // Along the index of a workspace's runs, which are in order there.
            (_, None, None) => {
                statement.push("r.workspace = ").bind(self.workspace.as_str().into()).push(" and e.deleted = 0")
            }
            ([one], ..) => statement.push(lead).push(" = ").bind((*one).into()),
            (many, ..) => statement.push(lead).push(" in (select value from json_each(").bind(many.into()).push("))"),
        };
        if let Some(RunPlace { started_at, run_id }) = self.after() {
            statement.push(" and r.started_at <= ").bind((*started_at).into()).push(" and (r.started_at < ");
            statement.bind((*started_at).into()).push(" or r.run_id > ").bind(run_id.as_str().into()).push(")");
        }
        match phase {
            Phase::All => {}
            Phase::Numbers(key) => {
                statement.push(" and m.key = ").bind(key.key.as_str().into()).push(" and m.nan = 0");
            }
            Phase::NotNumbers(key) => {
                statement.push(" and m.key = ").bind(key.key.as_str().into()).push(" and m.nan = 1");
            }
            Phase::Missing(key) => {
                statement.push(" and not exists (select 1 from latest_metrics where run = r.seq and key = ");
                statement.bind(key.key.as_str().into()).push(")");
            }
        }
        statement.push(match self.shows {
            ViewType::ActiveOnly => " and r.deleted_at is null",
            ViewType::DeletedOnly => " and r.deleted_at is not null",
            ViewType::All => "",
        });
        for clause in &self.filter.clauses {
            statement.push(" and ");
            match led {
                Some(key) if clause.entity == Entity::Metric && clause.key == key.key => on_lead(statement, clause),
                _ => statement.holds(clause),
            }
        }
    }

    fn ordered(&self, statement: &mut Statement, phase: Phase<'_>) {
        statement.push(" order by ");
        let mut keys = self.order.keys.as_slice();
        match phase {
            Phase::All => {}
            Phase::Numbers(key) => {
                statement.push("m.value").push(if key.ascending { ", " } else { " desc, " });
                keys = &keys[1..];
            }
            Phase::NotNumbers(_) | Phase::Missing(_) => keys = &keys[1..],
        }
        for (n, key) in keys.iter().enumerate() {
            statement.push(if n > 0 { ", " } else { "" });
            statement.by(key);
        }
    }
}

/// A condition on the metric that leads the statement, which stands in the row that is read anyway.
fn on_lead(statement: &mut Statement, clause: &Clause) {
    metric_holds(statement, "m.", clause);
}
