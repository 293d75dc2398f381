//! Metric points: appended as they come, folded into compact chunks, never changed.
//!
//! A request's points are one row, so that logging costs one insert whatever its size. When a run has gathered enough of
//! them they are folded: per metric a chunk is added and the latest value is written, which search reads.
//! Invariants: a point that was acknowledged is in a batch or in a chunk; folding changes nothing that is shown.

use crate::{Bell, Error, Tx};
use domain::tracking::points::{self, Point};
use std::collections::BTreeMap;

/// A run's batches are folded when they are this many, or this large together.
const FOLD_ROWS: i64 = 512;
const FOLD_BYTES: i64 = 1 << 20;
/// One folding ends when it has gathered this many metrics: more would keep other writers waiting.
const FOLD_KEYS: usize = 2000;
/// Chunks of one metric are joined when they are this many.
const JOIN_CHUNKS: i64 = 64;

/// The latest value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Latest {
    pub key: String,
    pub point: Point,
}

/// What was logged after a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Since {
    /// The number of the last request.
    pub last: i64,
    /// Some requests in between were folded: `points` has not all of them, the history has.
    pub gap: bool,
    /// By metric, in the order they came.
    pub points: BTreeMap<String, Vec<Point>>,
}

impl Tx<'_> {
    /// Adds the points of one request to a run.
    pub fn append_points(&mut self, run: i64, metrics: &[(&str, Point)]) -> Result<(), Error> {
        if metrics.is_empty() {
            return Ok(());
        }
        let last = self.fetch_one(
            "select n, rows, total_bytes from point_batches where run = ?1 order by n desc limit 1",
            &[run.into()],
        )?;
        let (n, rows, total) = match last {
            Some(mut row) => (row.int(0)? + 1, row.int(1)? + 1, row.int(2)?),
            None => (0, 1, 0),
        };
        let bytes = points::encode_batch(metrics);
        let total = total + i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        self.exec(
            "insert into point_batches (run, n, rows, total_bytes, points) values (?1, ?2, ?3, ?4, ?5)",
            &[run.into(), n.into(), rows.into(), total.into(), bytes.into()],
        )?;
        if rows >= FOLD_ROWS || total >= FOLD_BYTES {
            self.fold_points(run)?;
        }
        self.ring(Bell::Points);
        Ok(())
    }

    /// Runs of some experiments with points that are not folded, in no order.
    pub fn runs_with_loose_points(&mut self, workspace: &str, numbers: Option<&[i64]>) -> Result<Vec<i64>, Error> {
        let sql = "select distinct b.run from point_batches b join runs r on r.seq = b.run \
                   join experiments e on e.seq = r.experiment where b.rows > 0 and e.workspace = ?1";
        let rows = match numbers {
            Some(numbers) => {
                let sql = format!("{sql} and e.number in (select value from json_each(?2))");
                self.fetch(&sql, &[workspace.into(), numbers.into()])?
            }
            None => self.fetch(sql, &[workspace.into()])?,
        };
        rows.into_iter().map(|mut row| row.int(0)).collect()
    }

    /// Turns a run's oldest batches into chunks and latest values; whether there are more of them.
    pub fn fold_points(&mut self, run: i64) -> Result<bool, Error> {
        let mut loose: BTreeMap<String, Vec<Point>> = BTreeMap::new();
        let (mut last, mut more) = (-1, false);
        for mut row in self.fetch("select n, points from point_batches where run = ?1 order by n", &[run.into()])? {
            more = loose.len() >= FOLD_KEYS;
            if more {
                break;
            }
            last = row.int(0)?;
            for (key, points) in batch(&row.blob(1)?)? {
                loose.entry(key).or_default().extend(points);
            }
        }
        loose.iter().try_for_each(|(key, gathered)| self.fold_metric(run, key, gathered))?;
        self.exec(
            "delete from point_batches where run = ?1 and n <= ?2 and n < (select max(n) from point_batches where run = ?1)",
            &[run.into(), last.into()],
        )?;
        self.exec(
            "update point_batches set rows = 0, total_bytes = 0, points = ?3 where run = ?1 and n = ?2 and rows > 0",
            &[run.into(), last.into(), Vec::new().into()],
        )?;
        Ok(more)
    }

    fn fold_metric(&mut self, run: i64, key: &str, gathered: &[Point]) -> Result<(), Error> {
        let next = "select coalesce(max(n), -1) + 1 from point_chunks where run = ?1 and key = ?2";
        let n = self.fetch_one(next, &[run.into(), key.into()])?.map_or(Ok(0), |mut row| row.int(0))?;
        self.put_chunk(run, key, n, gathered)?;
        if (n + 1) % JOIN_CHUNKS == 0 {
            self.join_chunks(run, key, n)?;
        }
        match points::latest(gathered) {
            Some(point) => self.put_latest(run, key, &point),
            None => Ok(()),
        }
    }

    /// The number of the last request that logged to a run; -1 where none did.
    pub fn last_points(&mut self, run: i64) -> Result<i64, Error> {
        let sql = "select coalesce(max(n), -1) from point_batches where run = ?1";
        self.fetch_one(sql, &[run.into()])?.map_or(Ok(-1), |mut row| row.int(0))
    }

    /// What was logged to a run after its request number `after`, and the number of the last one.
    pub fn points_since(&mut self, run: i64, after: i64) -> Result<Since, Error> {
        let sql = "select n, rows, points from point_batches where run = ?1 and n >= ?2 order by n";
        let (mut since, mut expected) = (Since { last: after, ..Since::default() }, after + 1);
        for mut row in self.fetch(sql, &[run.into(), expected.into()])? {
            let n = row.int(0)?;
            // Folded rows are not there any more, or are there without what they held.
            since.gap |= n != expected || row.int(1)? == 0;
            (since.last, expected) = (n, n + 1);
            for (key, points) in batch(&row.blob(2)?)? {
                since.points.entry(key).or_default().extend(points);
            }
        }
        Ok(since)
    }

    fn put_chunk(&mut self, run: i64, key: &str, n: i64, points: &[Point]) -> Result<(), Error> {
        let count = i64::try_from(points.len()).unwrap_or(i64::MAX);
        self.exec(
            "insert into point_chunks (run, key, n, count, points) values (?1, ?2, ?3, ?4, ?5)",
            &[run.into(), key.into(), n.into(), count.into(), points::encode(points).into()],
        )?;
        Ok(())
    }

    /// Makes one large chunk of the last many small ones, without points that were sent twice. It takes the place of the
    /// last of them, so that the next ones to be joined begin after it and no point is moved more than once.
    fn join_chunks(&mut self, run: i64, key: &str, last: i64) -> Result<(), Error> {
        let first = last + 1 - JOIN_CHUNKS;
        let sql = "select points from point_chunks where run = ?1 and key = ?2 and n >= ?3 order by n";
        let mut joined = Vec::new();
        for mut row in self.fetch(sql, &[run.into(), key.into(), first.into()])? {
            joined.extend(decoded(&row.blob(0)?)?);
        }
        self.exec(
            "delete from point_chunks where run = ?1 and key = ?2 and n >= ?3",
            &[run.into(), key.into(), first.into()],
        )?;
        self.put_chunk(run, key, last, &points::dedup(&joined))
    }

    fn put_latest(&mut self, run: i64, key: &str, point: &Point) -> Result<(), Error> {
        if let Some(known) = self.folded_latest(run, key)?
            && !points::is_later(point, &known)
        {
            return Ok(());
        }
        let value = (!point.value.is_nan()).then_some(point.value);
        self.exec(
            "insert into latest_metrics (run, key, experiment, nan, value, at, step) \
             select seq, ?2, experiment, ?3, ?4, ?5, ?6 from runs where seq = ?1 \
             on conflict (run, key) do update set nan = ?3, value = ?4, at = ?5, step = ?6",
            &[
                run.into(),
                key.into(),
                value.is_none().into(),
                value.into(),
                point.timestamp_ms.into(),
                point.step.into(),
            ],
        )?;
        Ok(())
    }

    fn folded_latest(&mut self, run: i64, key: &str) -> Result<Option<Point>, Error> {
        let sql = "select nan, value, at, step from latest_metrics where run = ?1 and key = ?2";
        let row = self.fetch_one(sql, &[run.into(), key.into()])?;
        row.map(|mut row| {
            let value = if row.int(0)? != 0 { f64::NAN } else { row.real(1)? };
            Ok(Point { value, timestamp_ms: row.int(2)?, step: row.int(3)? })
        })
        .transpose()
    }

    /// The latest value of each metric of some runs, by run.
    pub fn latest_of(&mut self, runs: &[i64]) -> Result<BTreeMap<i64, Vec<Latest>>, Error> {
        let sql =
            "select run, key, nan, value, at, step from latest_metrics where run in (select value from json_each(?1))";
        let mut all: BTreeMap<i64, BTreeMap<String, Point>> = BTreeMap::new();
        for mut row in self.fetch(sql, &[runs.into()])? {
            let value = if row.int(2)? != 0 { f64::NAN } else { row.real(3)? };
            let point = Point { value, timestamp_ms: row.int(4)?, step: row.int(5)? };
            all.entry(row.int(0)?).or_default().insert(row.text(1)?, point);
        }
        let loose =
            "select distinct run from point_batches where rows > 0 and run in (select value from json_each(?1))";
        for mut row in self.fetch(loose, &[runs.into()])? {
            let run = row.int(0)?;
            for (key, gathered) in self.loose_points(run, None)? {
                let known = all.entry(run).or_default();
                let both: Vec<Point> = known.get(&key).copied().into_iter().chain(gathered).collect();
                known.extend(points::latest(&both).map(|point| (key, point)));
            }
        }
        let shown =
            |metrics: BTreeMap<String, Point>| metrics.into_iter().map(|(key, point)| Latest { key, point }).collect();
        Ok(all.into_iter().map(|(run, metrics)| (run, shown(metrics))).collect())
    }

    /// Every point of a metric, each once, by time, step and value.
    pub fn history(&mut self, run: i64, key: &str) -> Result<Vec<Point>, Error> {
        let loose = self.loose_points(run, Some(key))?.remove(key).unwrap_or_default();
        self.whole_history(run, key, loose)
    }

    /// Shows the history of each of some metrics of a run, one after the other: together they may be large. What is not
    /// folded yet is read once for all of them.
    pub fn histories<'k>(
        &mut self,
        run: i64,
        keys: impl Iterator<Item = &'k str>,
        mut show: impl FnMut(Vec<Point>),
    ) -> Result<(), Error> {
        let mut loose = self.loose_points(run, None)?;
        for key in keys {
            show(self.whole_history(run, key, loose.remove(key).unwrap_or_default())?);
        }
        Ok(())
    }

    fn whole_history(&mut self, run: i64, key: &str, loose: Vec<Point>) -> Result<Vec<Point>, Error> {
        let sql = "select points from point_chunks where run = ?1 and key = ?2 order by n";
        let mut all = Vec::new();
        for mut row in self.fetch(sql, &[run.into(), key.into()])? {
            all.extend(decoded(&row.blob(0)?)?);
        }
        all.extend(loose);
        let mut all = points::dedup(&all);
        if !all.is_sorted_by(|a, b| points::history_order(a, b).is_le()) {
            all.sort_by(points::history_order);
        }
        Ok(all)
    }

    /// Points that are not folded yet, by metric, in the order they came; of one metric where one is named.
    fn loose_points(&mut self, run: i64, only: Option<&str>) -> Result<BTreeMap<String, Vec<Point>>, Error> {
        let mut all: BTreeMap<String, Vec<Point>> = BTreeMap::new();
        for mut row in self.fetch("select points from point_batches where run = ?1 order by n", &[run.into()])? {
            for (key, points) in
                batch(&row.blob(0)?)?.into_iter().filter(|(key, _)| only.is_none_or(|only| only == key))
            {
                all.entry(key).or_default().extend(points);
            }
        }
        Ok(all)
    }
}

fn batch(bytes: &[u8]) -> Result<Vec<(String, Vec<Point>)>, Error> {
    points::decode_batch(bytes).map_err(|error| Error::Decode(error.to_string()))
}

fn decoded(bytes: &[u8]) -> Result<Vec<Point>, Error> {
    points::decode(bytes).map_err(|error| Error::Decode(error.to_string()))
}
