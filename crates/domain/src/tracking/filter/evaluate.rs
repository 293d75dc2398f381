//! Filters applied in memory, with the answers a database would give.

use super::{Clause, Comparator, Entity, FilterValue, ilike, like};
use std::cmp::Ordering;

/// One value of a thing, as a filter or an order sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field<'a> {
    Text(&'a str),
    Integer(i64),
    Float(f64),
}

impl Field<'_> {
    /// The order of two values of one kind; `None` across kinds and beside what is not a number.
    pub fn compare(self, other: Field) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Field::Text(b)) => Some(a.cmp(b)),
            (Self::Integer(a), Field::Integer(b)) => Some(a.cmp(&b)),
            (a, b) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        }
    }

    /// The value as a float, when it is a number.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Text(_) => None,
            Self::Integer(whole) => Some(whole as f64),
            Self::Float(float) => Some(float),
        }
    }
}

/// Something that can be searched.
pub trait Fields {
    /// Whether any value the thing has under this name passes the test. Most names have one value or
    /// none; a run has one per dataset, a logged model one per logged point of a metric.
    fn any(&self, entity: Entity, key: &str, test: &mut dyn FnMut(Field<'_>) -> bool) -> bool;
}

impl Clause {
    /// Whether a thing satisfies this clause.
    pub fn matches(&self, fields: &dyn Fields) -> bool {
        match self.comparator {
            Comparator::IsNull => !fields.any(self.entity, &self.key, &mut |_| true),
            Comparator::IsNotNull => fields.any(self.entity, &self.key, &mut |_| true),
            _ => fields.any(self.entity, &self.key, &mut |field| self.holds(field)),
        }
    }

    /// Whether one value satisfies the comparison. What is not a number differs from everything.
    fn holds(&self, field: Field) -> bool {
        let value = match &self.value {
            FilterValue::Text(text) => Field::Text(text),
            FilterValue::Integer(whole) => Field::Integer(*whole),
            FilterValue::Float(float) => Field::Float(*float),
            FilterValue::List(list) => return self.holds_in(field, list),
            FilterValue::Nothing => return false,
        };
        match (self.comparator, field, value) {
            (Comparator::Like, Field::Text(text), Field::Text(pattern)) => return like(text, pattern),
            (Comparator::ILike, Field::Text(text), Field::Text(pattern)) => return ilike(text, pattern),
            _ => {}
        }
        let order = field.compare(value);
        match self.comparator {
            Comparator::Equal => order == Some(Ordering::Equal),
            Comparator::NotEqual => order != Some(Ordering::Equal),
            Comparator::Greater => order == Some(Ordering::Greater),
            Comparator::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Comparator::Less => order == Some(Ordering::Less),
            Comparator::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            _ => false,
        }
    }

    fn holds_in(&self, field: Field, list: &[String]) -> bool {
        let Field::Text(text) = field else { return false };
        list.iter().any(|item| item == text) == (self.comparator == Comparator::In)
    }
}
