//! Metric points in few bytes: times and steps as changes of change, values by whatever fits them.
//!
//! A block stands for itself, so blocks may be written one behind the other and read as one series.
//! Every double comes back bit for bit, those that are not numbers included. Reading trusts nothing: bytes that
//! are no block are refused, and what is allocated is bounded by the bytes that came.

mod bytes;
mod column;
mod series;
mod values;

pub use series::{dedup, downsample, history_order, is_later, latest};

use bytes::Reader;
use std::collections::HashMap;

/// One logged value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    pub step: i64,
    pub value: f64,
}

/// Bytes that no encoder wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("metric points are damaged at byte {at}: {reason}")]
pub struct Corrupt {
    /// Where reading stopped.
    pub at: usize,
    pub reason: &'static str,
}

/// The first byte of a block of one metric, and of one of many.
const SERIES: u8 = 1;
const BATCH: u8 = 2;

/// One block with the points in their order; nothing for no points.
pub fn encode(points: &[Point]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_into(points, &mut out);
    out
}

/// Appends one block; `decode` reads blocks one behind the other as one series.
pub fn encode_into(points: &[Point], out: &mut Vec<u8>) {
    if points.is_empty() {
        return;
    }
    out.push(SERIES);
    bytes::put(out, points.len() as u64);
    put_columns(out, points);
}

/// The points of all blocks.
pub fn decode(bytes: &[u8]) -> Result<Vec<Point>, Corrupt> {
    let mut points = Vec::new();
    let mut reader = Reader::new(bytes);
    while !reader.is_done() {
        reader.expect(SERIES)?;
        let count = reader.number()?;
        let count = usize::try_from(count).map_err(|_| reader.corrupt("more points than bytes"))?;
        points.append(&mut columns(&mut reader, count)?);
    }
    Ok(points)
}

/// One block with the points of many metrics, grouped by key; nothing for no points. Keys keep the order
/// of their first point, points their order within a key.
pub fn encode_batch(logged: &[(&str, Point)]) -> Vec<u8> {
    let mut out = Vec::new();
    if logged.is_empty() {
        return out;
    }
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<(&str, Vec<Point>)> = Vec::new();
    for (key, point) in logged {
        let place = *places.entry(key).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(*point);
    }
    out.push(BATCH);
    bytes::put(&mut out, groups.len() as u64);
    for (key, points) in &groups {
        bytes::put(&mut out, key.len() as u64);
        out.extend_from_slice(key.as_bytes());
        bytes::put(&mut out, points.len() as u64);
    }
    let all: Vec<Point> = groups.into_iter().flat_map(|(_, points)| points).collect();
    put_columns(&mut out, &all);
    out
}

/// The keys of all blocks and the points of each. A key comes once per block that holds it.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<(String, Vec<Point>)>, Corrupt> {
    let mut groups = Vec::new();
    let mut reader = Reader::new(bytes);
    while !reader.is_done() {
        reader.expect(BATCH)?;
        let mut heads = Vec::new();
        let mut total = 0_usize;
        for _ in 0..reader.number()? {
            let length = reader.number()?;
            let key = std::str::from_utf8(reader.take(length)?).map_err(|_| reader.corrupt("a key that is no text"))?;
            let count = usize::try_from(reader.number()?).ok();
            let count = count.filter(|count| *count > 0).ok_or_else(|| reader.corrupt("a key without points"))?;
            total = total.checked_add(count).ok_or_else(|| reader.corrupt("more points than bytes"))?;
            heads.push((key.to_owned(), count));
        }
        let mut points = columns(&mut reader, total)?.into_iter();
        groups.extend(heads.into_iter().map(|(key, count)| (key, points.by_ref().take(count).collect())));
    }
    Ok(groups)
}

fn put_columns(out: &mut Vec<u8>, points: &[Point]) {
    column::put(out, points.iter().map(|point| point.timestamp_ms));
    column::put(out, points.iter().map(|point| point.step));
    values::put(out, points);
}

/// The three columns of a block. Each value takes at least half a byte, which bounds what is allocated.
fn columns(reader: &mut Reader, count: usize) -> Result<Vec<Point>, Corrupt> {
    if count == 0 {
        return Err(reader.corrupt("a block without points"));
    }
    if count / 2 > reader.left() {
        return Err(reader.corrupt("more points than bytes"));
    }
    let mut points = vec![Point { timestamp_ms: 0, step: 0, value: 0.0 }; count];
    column::read(reader, points.iter_mut().map(|point| &mut point.timestamp_ms))?;
    column::read(reader, points.iter_mut().map(|point| &mut point.step))?;
    values::read(reader, &mut points)?;
    Ok(points)
}

#[cfg(test)]
mod tests;
