//! A search space laid flat: one axis for every value that may be drawn, those inside choices included.
//!
//! A *point* has one number for every axis: a place from 0 to 1 on the axis of a number, the index of the value on the
//! axis of a choice. An axis inside a map exists only where the map was chosen; elsewhere its number is fixed, so equal
//! trials have equal points. Axes are numbered in the order in which the space is walked, and every walk here is the same.

use super::chance::quantile;
use domain::spec::sweep::{Leaf, Pick, Range, Space, Values};
use serde_json::Value;

pub(crate) type Point = Vec<f64>;

/// The number of an axis that is not there in this point.
const ABSENT: f64 = -1.0;

#[derive(Debug, Clone)]
pub(crate) struct Axes {
    space: Space,
    pub(crate) each: Vec<Axis>,
}

#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) kind: Kind,
    /// The axis and the index on it that must be chosen for this one to exist.
    when: Option<(usize, usize)>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Number(Scale),
    /// So many values. Those of an ordered choice are numbers, the lowest first: neighbours are alike.
    Choice {
        count: usize,
        ordered: bool,
    },
}

/// How a place from 0 to 1 becomes a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    /// The number is this to the power of what lies between `low` and `high`.
    base: Option<f64>,
    /// The number is a multiple of it.
    step: Option<f64>,
    /// Three standard deviations on either side of the mean, not equally likely everywhere.
    bell: bool,
    /// A whole number below this one.
    below: Option<f64>,
}

impl Axes {
    /// `base` is that of the logarithmic ranges.
    pub(crate) fn of(space: &Space, base: Option<f64>) -> Axes {
        let mut axes = Axes { space: space.clone(), each: Vec::new() };
        for range in space.values() {
            axes.add(range, None, base.unwrap_or(std::f64::consts::E));
        }
        axes
    }

    fn add(&mut self, range: &Range, when: Option<(usize, usize)>, base: f64) {
        let at = self.each.len();
        let Range::Choice { values } = range else {
            self.each.push(Axis { kind: Kind::Number(Scale::of(range, base)), when });
            return;
        };
        let number = |pick: &Pick| match pick {
            Pick::Value(value) => value.as_f64(),
            Pick::Branch(_) => None,
        };
        let numbers: Option<Vec<f64>> = values.iter().map(number).collect();
        let ordered = numbers.is_some_and(|numbers| numbers.is_sorted_by(|a, b| a < b));
        self.each.push(Axis { kind: Kind::Choice { count: values.len(), ordered }, when });
        for (index, pick) in values.iter().enumerate() {
            for range in drawn(pick) {
                self.add(range, Some((at, index)), base);
            }
        }
    }

    /// Whether an axis exists in this point.
    pub(crate) fn has(&self, point: &[f64], at: usize) -> bool {
        self.each[at].when.is_none_or(|(parent, index)| point[parent] == index as f64)
    }

    /// The point for one number from 0 to below 1 on each axis, as likely as the ranges say.
    pub(crate) fn drawn(&self, mut unit: impl FnMut(usize) -> f64) -> Point {
        let place = |(at, axis): (usize, &Axis)| match &axis.kind {
            Kind::Choice { count, .. } => (unit(at) * *count as f64).floor().min(*count as f64 - 1.0),
            Kind::Number(scale) => scale.likely(unit(at)),
        };
        self.settled(self.each.iter().enumerate().map(place).collect())
    }

    /// The same point with every number where a value can be, and those of absent axes fixed.
    pub(crate) fn settled(&self, mut point: Point) -> Point {
        for at in 0..point.len() {
            let there = self.has(&point, at);
            point[at] = match &self.each[at].kind {
                Kind::Number(scale) if there => scale.settled(point[at]),
                Kind::Number(_) => 0.5,
                Kind::Choice { .. } if there => point[at].max(0.0),
                Kind::Choice { .. } => ABSENT,
            };
        }
        point
    }

    /// What a trial at this point gets.
    pub(crate) fn values(&self, point: &[f64]) -> Values {
        let mut at = 0;
        self.space.iter().map(|(name, range)| (name.clone(), self.value(range, point, &mut at))).collect()
    }

    fn value(&self, range: &Range, point: &[f64], at: &mut usize) -> Value {
        let here = *at;
        *at += 1;
        let Range::Choice { values } = range else {
            return match &self.each[here].kind {
                Kind::Number(scale) => scale.number(point[here]),
                Kind::Choice { .. } => Value::Null,
            };
        };
        let mut chosen = Value::Null;
        for (index, pick) in values.iter().enumerate() {
            let value = match pick {
                Pick::Value(value) => value.clone(),
                Pick::Branch(map) => {
                    map.iter().map(|(name, leaf)| (name.clone(), self.leaf(leaf, point, at))).collect()
                }
            };
            if point[here] == index as f64 {
                chosen = value;
            }
        }
        chosen
    }

    fn leaf(&self, leaf: &Leaf, point: &[f64], at: &mut usize) -> Value {
        match leaf {
            Leaf::Fixed(value) => value.clone(),
            Leaf::Drawn(range) => self.value(range, point, at),
        }
    }

    /// Where a trial with these values lies; `None` for values that are not of this space.
    pub(crate) fn point(&self, values: &Values) -> Option<Point> {
        let mut point = Vec::with_capacity(self.each.len());
        for (name, range) in &self.space {
            self.place(range, Some(values.get(name)?), &mut point)?;
        }
        Some(self.settled(point))
    }

    fn place(&self, range: &Range, value: Option<&Value>, point: &mut Point) -> Option<()> {
        let Range::Choice { values } = range else {
            let Kind::Number(scale) = &self.each[point.len()].kind else { return None };
            point.push(match value {
                Some(value) => scale.place(value.as_f64()?),
                None => 0.5,
            });
            return Some(());
        };
        let chosen = match value {
            Some(value) => Some(values.iter().position(|pick| matches(pick, value))?),
            None => None,
        };
        point.push(chosen.map_or(ABSENT, |index| index as f64));
        for (index, pick) in values.iter().enumerate() {
            let Pick::Branch(map) = pick else { continue };
            for (name, leaf) in map {
                let Leaf::Drawn(range) = leaf else { continue };
                let inner = value.filter(|_| chosen == Some(index)).and_then(|value| value.get(name));
                self.place(range, inner, point)?;
            }
        }
        Some(())
    }

    /// How many points there are when every axis is a choice.
    pub(crate) fn count(&self) -> u64 {
        self.space.values().map(combinations).fold(1, u64::saturating_mul)
    }

    /// The `index`-th of them: the last name of the space changes fastest.
    pub(crate) fn nth(&self, mut index: u64) -> Values {
        let mut values = Values::new();
        for (name, range) in self.space.iter().rev() {
            let count = combinations(range).max(1);
            values.insert(name.clone(), nth_of(range, index % count));
            index /= count;
        }
        values
    }
}

impl Scale {
    fn of(range: &Range, e: f64) -> Scale {
        let plain = Scale { low: 0.0, high: 1.0, base: None, step: None, bell: false, below: None };
        let flat = |low: f64, high: f64| Scale { low, high, ..plain };
        let bell = |mu: f64, sigma: f64| Scale { low: mu - 3.0 * sigma, high: mu + 3.0 * sigma, bell: true, ..plain };
        let (base, log) = (None, Some(e));
        match *range {
            Range::Choice { .. } => plain,
            Range::RandInt { upper } => {
                let upper = upper as f64;
                Scale { step: Some(1.0), below: Some(upper), ..flat(-0.5, upper - 0.5) }
            }
            Range::Uniform { min_value, max_value } => flat(min_value, max_value),
            Range::QUniform { min_value, max_value, q } => Scale { step: Some(q), base, ..flat(min_value, max_value) },
            Range::LogUniform { min_value, max_value } => Scale { base: log, ..flat(min_value, max_value) },
            Range::QLogUniform { min_value, max_value, q } => {
                Scale { base: log, step: Some(q), ..flat(min_value, max_value) }
            }
            Range::Normal { mu, sigma } => bell(mu, sigma),
            Range::QNormal { mu, sigma, q } => Scale { step: Some(q), ..bell(mu, sigma) },
            Range::LogNormal { mu, sigma } => Scale { base: log, ..bell(mu, sigma) },
            Range::QLogNormal { mu, sigma, q } => Scale { base: log, step: Some(q), ..bell(mu, sigma) },
        }
    }

    /// The place for a share from 0 to below 1.
    fn likely(&self, unit: f64) -> f64 {
        if self.bell { (quantile(unit) + 3.0) / 6.0 } else { unit }
    }

    fn at(&self, place: f64) -> f64 {
        let between = self.low + place * (self.high - self.low);
        let number = self.base.map_or(between, |base| base.powf(between));
        let Some(step) = self.step else { return number };
        let rounded = tidy((number / step).round() * step);
        self.below.map_or(rounded, |below| rounded.clamp(0.0, below - 1.0))
    }

    fn number(&self, place: f64) -> Value {
        let number = self.at(place);
        let whole = self.step.is_some_and(|step| step.fract() == 0.0) && number.abs() < 9e15;
        if whole { Value::from(number as i64) } else { Value::from(number) }
    }

    fn place(&self, number: f64) -> f64 {
        let between = self.base.map_or(number, |base| number.ln() / base.ln());
        let place = (between - self.low) / (self.high - self.low);
        // The logarithm of a number that was rounded to 0 lies nowhere.
        if place.is_nan() { 0.0 } else { place.clamp(-1.0, 2.0) }
    }

    fn settled(&self, place: f64) -> f64 {
        if self.step.is_some() { self.place(self.at(place)) } else { place }
    }

    /// How many values there are from end to end, where they can be counted.
    pub(crate) fn count(&self) -> Option<f64> {
        let step = self.step?;
        Some(((self.at(1.0) - self.at(0.0)) / step).round() + 1.0)
    }
}

/// Without the dust of binary fractions: 0.1 * 3 is 0.3.
fn tidy(number: f64) -> f64 {
    format!("{number:.12e}").parse().unwrap_or(number)
}

fn drawn(pick: &Pick) -> impl Iterator<Item = &Range> {
    let map = match pick {
        Pick::Branch(map) => Some(map),
        Pick::Value(_) => None,
    };
    map.into_iter().flat_map(|map| map.values()).filter_map(|leaf| match leaf {
        Leaf::Drawn(range) => Some(range),
        Leaf::Fixed(_) => None,
    })
}

/// Whether a value is one that this pick gives.
fn matches(pick: &Pick, value: &Value) -> bool {
    match (pick, value) {
        (Pick::Value(own), value) => own == value || own.as_f64().is_some_and(|own| value.as_f64() == Some(own)),
        (Pick::Branch(map), Value::Object(object)) => {
            let fits = |(name, leaf): (&String, &Leaf)| match leaf {
                Leaf::Fixed(own) => object.get(name) == Some(own),
                Leaf::Drawn(_) => object.contains_key(name),
            };
            object.len() == map.len() && map.iter().all(fits)
        }
        (Pick::Branch(_), _) => false,
    }
}

fn combinations(range: &Range) -> u64 {
    let Range::Choice { values } = range else { return 1 };
    values.iter().map(of_pick).fold(0, u64::saturating_add)
}

fn of_pick(pick: &Pick) -> u64 {
    drawn(pick).map(combinations).fold(1, u64::saturating_mul)
}

fn nth_of(range: &Range, mut index: u64) -> Value {
    let Range::Choice { values } = range else { return Value::Null };
    for pick in values {
        let count = of_pick(pick);
        if index >= count {
            index -= count;
            continue;
        }
        return match pick {
            Pick::Value(value) => value.clone(),
            Pick::Branch(map) => map.iter().map(|(name, leaf)| (name.clone(), nth_leaf(leaf, &mut index))).collect(),
        };
    }
    Value::Null
}

fn nth_leaf(leaf: &Leaf, index: &mut u64) -> Value {
    match leaf {
        Leaf::Fixed(value) => value.clone(),
        Leaf::Drawn(range) => {
            let count = combinations(range).max(1);
            let value = nth_of(range, *index % count);
            *index /= count;
            value
        }
    }
}

#[cfg(test)]
mod tests;
