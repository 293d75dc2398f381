//! A column of doubles, written in the cheapest of four ways.
//!
//! Losses from float32 tensors, short decimals and counters are far from random: each has a way that
//! is exact and small. `Mixed` decides value by value and covers the rest; `Raw` is never beaten by more than it costs.
//! Every way takes at least half a byte a value; readers rely on it.

use super::bytes::{Reader, length, put as put_number, unzigzag, zigzag};
use super::{Corrupt, Point};

/// Eight bytes each.
const RAW: u8 = 0;
/// Float32 values: lengths in half bytes, then the bytes that differ from the value before.
const SINGLE: u8 = 1;
/// Whole numbers of one power of ten, each as the difference from the one before.
const DECIMAL: u8 = 2;
/// A half byte says how each value is written: 0 to 8 are that many bytes that differ from the value before,
/// 9 a float32, 10 and above a whole number of that power of ten.
const MIXED: u8 = 3;

const MIXED_SINGLE: u8 = 9;
const MIXED_DECIMAL: u8 = 10;
const MIXED_MAX_POWER: usize = 5;

const POWERS: [f64; 10] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// Appends the values of the points.
pub(super) fn put(out: &mut Vec<u8>, points: &[Point]) {
    let uniform = shorter_of(decimal(points), single(points));
    // What fits one way so well is not worth another look.
    let fits = uniform.as_ref().is_some_and(|way| way.len() <= 3 * points.len());
    let mixed = if fits { None } else { Some(mixed(points)) };
    match shorter_of(uniform, mixed) {
        Some(best) if best.len() <= 8 * points.len() => out.extend(best),
        _ => put_raw(out, points),
    }
}

/// Fills in the values of the points.
pub(super) fn read(reader: &mut Reader, points: &mut [Point]) -> Result<(), Corrupt> {
    match reader.byte()? {
        RAW => points.iter_mut().try_for_each(|point| {
            point.value = f64::from_bits(reader.low_bytes(8)?);
            Ok(())
        }),
        SINGLE => read_single(reader, points),
        DECIMAL => read_decimal(reader, points),
        MIXED => read_mixed(reader, points),
        _ => Err(reader.corrupt("values written in no known way")),
    }
}

fn shorter_of(a: Option<Vec<u8>>, b: Option<Vec<u8>>) -> Option<Vec<u8>> {
    [a, b].into_iter().flatten().min_by_key(Vec::len)
}

fn put_raw(out: &mut Vec<u8>, points: &[Point]) {
    out.push(RAW);
    out.extend(points.iter().flat_map(|point| point.value.to_bits().to_le_bytes()));
}

/// The column as float32 values, if all of them are such.
fn single(points: &[Point]) -> Option<Vec<u8>> {
    as_single(points.first()?.value)?;
    let mut out = vec![SINGLE];
    let mut codes = Codes::reserve(&mut out, points.len());
    let mut last = 0_u32;
    for point in points {
        let bits = as_single(point.value)?.to_bits();
        let differs = last ^ bits;
        let kept = 4 - differs.leading_zeros() as usize / 8;
        codes.put(&mut out, kept as u8);
        out.extend_from_slice(&differs.to_le_bytes()[..kept]);
        last = bits;
    }
    Some(out)
}

fn read_single(reader: &mut Reader, points: &mut [Point]) -> Result<(), Corrupt> {
    let codes = reader.take(points.len().div_ceil(2) as u64)?;
    let mut last = 0_u32;
    for (at, point) in points.iter_mut().enumerate() {
        let kept = usize::from(code(codes, at));
        if kept > 4 {
            return Err(reader.corrupt("a float32 of more than four bytes"));
        }
        last ^= reader.low_bytes(kept)? as u32;
        point.value = f64::from(f32::from_bits(last));
    }
    Ok(())
}

/// The column as whole numbers of one power of ten, if all values are such.
fn decimal(points: &[Point]) -> Option<Vec<u8>> {
    let mut power = 0;
    for point in points {
        power = (power..POWERS.len()).find(|power| scaled(point.value, *power).is_some())?;
    }
    let mut out = vec![DECIMAL, power as u8];
    let mut last = 0;
    for point in points {
        let whole = scaled(point.value, power)?;
        put_number(&mut out, zigzag(whole - last));
        last = whole;
    }
    Some(out)
}

fn read_decimal(reader: &mut Reader, points: &mut [Point]) -> Result<(), Corrupt> {
    let power = usize::from(reader.byte()?);
    let power = *POWERS.get(power).ok_or_else(|| reader.corrupt("a power of ten too large"))?;
    let mut whole = 0_i64;
    for point in points {
        whole = whole.wrapping_add(unzigzag(reader.number()?));
        point.value = whole as f64 / power;
    }
    Ok(())
}

/// The column with a way for each value.
fn mixed(points: &[Point]) -> Vec<u8> {
    let mut out = vec![MIXED];
    let mut codes = Codes::reserve(&mut out, points.len());
    let mut last = 0_u64;
    for point in points {
        let bits = point.value.to_bits();
        let differs = last ^ bits;
        let kept = 8 - differs.leading_zeros() as usize / 8;
        last = bits;
        match shorter(point.value, kept) {
            Some(Short::Decimal(power, whole)) => {
                codes.put(&mut out, MIXED_DECIMAL + power as u8);
                put_number(&mut out, zigzag(whole));
            }
            Some(Short::Single(single)) => {
                codes.put(&mut out, MIXED_SINGLE);
                out.extend_from_slice(&single.to_bits().to_le_bytes());
            }
            None => {
                codes.put(&mut out, kept as u8);
                out.extend_from_slice(&differs.to_le_bytes()[..kept]);
            }
        }
    }
    out
}

fn read_mixed(reader: &mut Reader, points: &mut [Point]) -> Result<(), Corrupt> {
    let codes = reader.take(points.len().div_ceil(2) as u64)?;
    let mut last = 0_u64;
    for (at, point) in points.iter_mut().enumerate() {
        last = match code(codes, at) {
            MIXED_SINGLE => f64::from(f32::from_bits(reader.low_bytes(4)? as u32)).to_bits(),
            code @ MIXED_DECIMAL.. => {
                let power = POWERS[usize::from(code - MIXED_DECIMAL)];
                (unzigzag(reader.number()?) as f64 / power).to_bits()
            }
            kept => last ^ reader.low_bytes(usize::from(kept))?,
        };
        point.value = f64::from_bits(last);
    }
    Ok(())
}

/// A way to write one value.
enum Short {
    Single(f32),
    Decimal(usize, i64),
}

/// A way that takes fewer bytes than `most`.
fn shorter(value: f64, most: usize) -> Option<Short> {
    let decimal = || (0..=MIXED_MAX_POWER).find_map(|power| Some((power, scaled(value, power)?)));
    if most <= 1 {
        return None;
    }
    let single = as_single(value).filter(|_| most > 4);
    match decimal() {
        Some((power, whole)) if length(zigzag(whole)) < if single.is_some() { 5 } else { most } => {
            Some(Short::Decimal(power, whole))
        }
        _ => single.map(Short::Single),
    }
}

/// The value as a float32, if nothing is lost. What is not a number keeps its bits only as a double.
fn as_single(value: f64) -> Option<f32> {
    let single = value as f32;
    (!value.is_nan() && f64::from(single).to_bits() == value.to_bits()).then_some(single)
}

/// The whole number that, divided by the power of ten, is this value bit for bit.
fn scaled(value: f64, power: usize) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = (value * POWERS[power]).round();
    // What is not a number is in no range.
    let fits = (-EXACT..EXACT).contains(&whole);
    let whole = whole as i64;
    (fits && (whole as f64 / POWERS[power]).to_bits() == value.to_bits()).then_some(whole)
}

/// Half bytes in front of a column, filled in while the column is written behind them.
struct Codes {
    start: usize,
    count: usize,
}

impl Codes {
    fn reserve(out: &mut Vec<u8>, count: usize) -> Self {
        let start = out.len();
        out.resize(start + count.div_ceil(2), 0);
        Self { start, count: 0 }
    }

    fn put(&mut self, out: &mut [u8], code: u8) {
        out[self.start + self.count / 2] |= if self.count.is_multiple_of(2) { code } else { code << 4 };
        self.count += 1;
    }
}

fn code(codes: &[u8], at: usize) -> u8 {
    let pair = codes[at / 2];
    if at.is_multiple_of(2) { pair & 0x0f } else { pair >> 4 }
}
