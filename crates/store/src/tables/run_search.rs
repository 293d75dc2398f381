//! Searching runs: a filter and an order become one statement, or three where the order begins with a metric.
//!
//! Runs that have the metric as a number, those for which it is not a number and those without it come one behind the
//! other, and the first two are read along the index of latest values: a page costs what it shows, however many runs there are.
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
    /// Numbers of experiments.
    pub experiments: Vec<i64>,
    pub filter: Filter,
    pub order: Order,
    pub shows: ViewType,
    pub from: usize,
    pub limit: usize,
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
        let sql = "select seq from experiments where workspace = ?2 and number in (select value from json_each(?1))";
        let within = self.fetch(sql, &[query.experiments.as_slice().into(), query.workspace.as_str().into()])?;
        let within: Vec<i64> = within.into_iter().map(|mut row| row.int(0)).collect::<Result<_, _>>()?;
        let (mut found, mut skip) = (Vec::new(), query.from);
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

    fn page(
        &mut self,
        query: &RunQuery,
        within: &[i64],
        phase: Phase<'_>,
        (skip, limit): (usize, usize),
    ) -> Result<Vec<RunRow>, Error> {
        let mut statement = query.selection(RUN, within, phase);
        query.ordered(&mut statement, phase);
        let number = |n: usize| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
        statement.push(" limit ").bind(number(limit)).push(" offset ").bind(number(skip));
        let rows = self.fetch(statement.text(), statement.values())?;
        rows.into_iter().map(run_of).collect()
    }

    fn count(&mut self, query: &RunQuery, within: &[i64], phase: Phase<'_>) -> Result<usize, Error> {
        let statement = query.selection("count(*)", within, phase);
        let row = self.fetch_one(statement.text(), statement.values())?;
        Ok(usize::try_from(row.map_or(Ok(0), |mut row| row.int(0))?).unwrap_or(0))
    }
}

impl RunQuery {
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
        statement.push(if led.is_some() { "r.seq = m.run and " } else { "" }).push(lead);
        match within {
            [one] => statement.push(" = ").bind((*one).into()),
            many => statement.push(" in (select value from json_each(").bind(many.into()).push("))"),
        };
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
                Some(key) if clause.entity == Entity::Metric && clause.key == key.key => {
                    on_lead(&mut statement, clause)
                }
                _ => statement.holds(clause),
            }
        }
        statement
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
