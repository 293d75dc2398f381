//! In which order a search answers: the client's keys, then the tie-breakers that make pages stable.
//!
//! A thing without the value asked for comes after those with it, whichever the direction; a metric
//! that is not a number comes between the two. The keys of an `Order` always end in one that no two things share.

use super::filter::{Kind, entity, identifier, pieces, unquote};
use super::text::{quoted_list, quoted_set, shown};
use super::{Bad, Entity, Field, Fields, Subject};
use std::cmp::Ordering;

/// One key of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderKey {
    pub entity: Entity,
    /// Canonical for attributes: `created` arrives as `start_time`.
    pub key: String,
    pub ascending: bool,
    /// For a metric of logged models: only points logged on this dataset count.
    pub dataset: Option<OnDataset>,
}

/// A dataset by name, and by digest when one is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDataset {
    pub name: String,
    pub digest: Option<String>,
}

/// Keys in falling weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub keys: Vec<OrderKey>,
}

/// One key of an order of logged models, as a request holds it.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoggedOrder<'a> {
    pub field_name: Option<&'a str>,
    /// Ascending unless said otherwise.
    pub ascending: Option<bool>,
    pub dataset_name: Option<&'a str>,
    pub dataset_digest: Option<&'a str>,
}

impl OrderKey {
    fn attribute(key: &str, ascending: bool) -> Self {
        Self { entity: Entity::Attribute, key: key.to_owned(), ascending, dataset: None }
    }

    /// How two things stand to each other by this key alone.
    pub fn compare(&self, a: &dyn Fields, b: &dyn Fields) -> Ordering {
        let (rank_a, rank_b) = (self.rank(a), self.rank(b));
        if rank_a != rank_b || rank_a != Rank::Value {
            return rank_a.cmp(&rank_b);
        }
        let order = self.values(a, b);
        if self.ascending { order } else { order.reverse() }
    }

    fn rank(&self, fields: &dyn Fields) -> Rank {
        let mut rank = Rank::Missing;
        fields.any(self.entity, &self.key, &mut |field| {
            let is_nan = field.as_f64().is_some_and(f64::is_nan);
            rank = if is_nan { Rank::NotANumber } else { Rank::Value };
            true
        });
        rank
    }

    fn values(&self, a: &dyn Fields, b: &dyn Fields) -> Ordering {
        let mut order = Ordering::Equal;
        a.any(self.entity, &self.key, &mut |x: Field| {
            b.any(self.entity, &self.key, &mut |y: Field| {
                order = x.compare(y).unwrap_or(Ordering::Equal);
                true
            })
        });
        order
    }
}

/// What a thing has under a key; the order of the variants is the order of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Value,
    NotANumber,
    Missing,
}

impl Order {
    /// Reads `order_by` clauses such as `metrics.loss DESC`. Logged models have `Order::logged_models`.
    pub fn parse<S: AsRef<str>>(subject: Subject, clauses: &[S]) -> Result<Self, Bad> {
        let mut keys: Vec<OrderKey> = Vec::new();
        for clause in clauses {
            let (path, ascending) = direction(clause.as_ref())?;
            let (entity, key) = name(subject, path)?;
            // Experiments may repeat a field; the later one then decides nothing.
            let repeated = keys.iter().any(|known| known.entity == entity && known.key == key);
            if repeated && subject != Subject::Experiments {
                let all = quoted_list(clauses.iter().map(AsRef::as_ref));
                return Err(Bad::value(format!("`order_by` contains duplicate fields: {}", shown(&all))));
            }
            keys.push(OrderKey { entity, key, ascending, dataset: None });
        }
        Ok(Self::finished(subject, keys))
    }

    /// Reads the order of logged models: metrics, perhaps on one dataset, and attributes.
    pub fn logged_models(clauses: &[LoggedOrder]) -> Result<Self, Bad> {
        let keys = clauses.iter().map(logged_key).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::finished(Subject::LoggedModels, keys))
    }

    /// How two things stand to each other. Datasets of keys are not looked at: `Fields` has the right values already.
    pub fn compare(&self, a: &dyn Fields, b: &dyn Fields) -> Ordering {
        self.keys.iter().map(|key| key.compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The keys with those of the subject's own order behind them.
    fn finished(subject: Subject, mut keys: Vec<OrderKey>) -> Self {
        let own: &[(&str, bool)] = match (subject, keys.is_empty()) {
            (Subject::Runs, _) => &[("start_time", false), ("run_id", true)],
            (Subject::Experiments, true) => &[("creation_time", false), ("experiment_id", true)],
            (Subject::Experiments, false) => &[("experiment_id", false)],
            (Subject::RegisteredModels, _) => &[("name", true)],
            (Subject::ModelVersions, true) => {
                &[("last_updated_timestamp", false), ("name", true), ("version_number", false)]
            }
            (Subject::ModelVersions, false) => &[("name", true), ("version_number", false)],
            (Subject::LoggedModels, _) => &[("creation_timestamp", false), ("model_id", true)],
        };
        for (key, ascending) in own {
            if !keys.iter().any(|known| known.entity == Entity::Attribute && known.key == *key) {
                keys.push(OrderKey::attribute(key, *ascending));
            }
        }
        Self { keys }
    }
}

/// Takes a clause apart into the path and whether it ascends.
fn direction(clause: &str) -> Result<(&str, bool), Bad> {
    let unreadable = || Bad::value(format!("Invalid order_by clause '{}'. Could not be parsed.", shown(clause)));
    let pieces = pieces(clause).ok_or_else(unreadable)?;
    match pieces.as_slice() {
        [path] if path.kind == Kind::Path => Ok((path.text, true)),
        [path, way] if path.kind == Kind::Path && way.is_word("asc") => Ok((path.text, true)),
        [path, way] if path.kind == Kind::Path && way.is_word("desc") => Ok((path.text, false)),
        [path, other] if path.kind == Kind::Path && other.kind == Kind::Path => {
            Err(Bad::value(format!("Invalid ordering key in order_by clause '{}'.", shown(clause))))
        }
        _ => Err(unreadable()),
    }
}

fn name(subject: Subject, path: &str) -> Result<(Entity, String), Bad> {
    match subject {
        Subject::Runs | Subject::LoggedModels => match identifier(subject, path)? {
            (Entity::Dataset, _) => Err(Bad::value("Invalid identifier type 'dataset'")),
            found => Ok(found),
        },
        Subject::Experiments => match identifier(subject, path)? {
            (Entity::Attribute, key) => Ok((Entity::Attribute, key)),
            (other, _) => Err(Bad::value(format!("Invalid order_by entity: {}", other.as_str()))),
        },
        Subject::RegisteredModels => model_key(unquote(path)),
        Subject::ModelVersions => version_key(path),
    }
}

fn model_key(key: &str) -> Result<(Entity, String), Bad> {
    match key {
        "name" => Ok((Entity::Attribute, key.to_owned())),
        "timestamp" | "last_updated_timestamp" => Ok((Entity::Attribute, "last_updated_timestamp".to_owned())),
        _ => Err(Bad::value(format!(
            "Invalid order by key '{}' specified. Valid keys are '{}'",
            shown(key),
            quoted_set(["name", "timestamp"])
        ))),
    }
}

fn version_key(path: &str) -> Result<(Entity, String), Bad> {
    const KEYS: [&str; 4] = ["name", "version_number", "creation_timestamp", "last_updated_timestamp"];
    let (kind, key) = match path.split_once('.') {
        None => (Entity::Attribute, path),
        Some((prefix, key)) => (entity(Subject::ModelVersions, prefix)?, key),
    };
    let key = unquote(key);
    match kind {
        Entity::Attribute if KEYS.contains(&key) => Ok((kind, key.to_owned())),
        Entity::Attribute => Err(Bad::value(format!(
            "Invalid attribute key '{}' specified. Valid keys are '{}'",
            shown(key),
            quoted_set(KEYS)
        ))),
        _ => Err(Bad::value(format!(
            "Invalid order by key '{}' specified. Valid keys are {}",
            shown(key),
            quoted_set(KEYS)
        ))),
    }
}

fn logged_key(clause: &LoggedOrder) -> Result<OrderKey, Bad> {
    let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    let field = clause.field_name.filter(|field| !field.is_empty());
    let field = field.ok_or_else(|| Bad::value("`field_name` in the `order_by` clause must be specified."))?;
    let dataset = match (given(clause.dataset_name), given(clause.dataset_digest)) {
        (None, Some(_)) => {
            let reason = "`dataset_digest` can only be specified if `dataset_name` is also specified.";
            return Err(Bad::value(reason));
        }
        (name, digest) => name.map(|name| OnDataset { name, digest }),
    };
    let (entity, key) = match field.split_once('.') {
        Some(("metrics", key)) => (Entity::Metric, key.to_owned()),
        Some(_) => {
            let reason = format!("Invalid order by field name: {}. Only metrics are supported.", shown(field));
            return Err(Bad::value(reason));
        }
        None => identifier(Subject::LoggedModels, field.trim())
            .map_err(|_| Bad::value(format!("Invalid order by field name: {}", shown(field))))?,
    };
    Ok(OrderKey { entity, key, ascending: clause.ascending.unwrap_or(true), dataset })
}

#[cfg(test)]
mod tests;
