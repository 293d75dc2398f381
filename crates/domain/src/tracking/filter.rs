//! The search language: `metrics.loss < 0.1 AND tags.team = 'vision'` becomes plain data.
//!
//! One lexer and one grouping serve all subjects; each subject has its own names, value kinds and
//! comparators (`rules`). A clause holds its key and value as data for bound parameters: nothing a
//! client writes in a filter ever becomes part of a query's text.

mod evaluate;
mod lex;
mod like;
mod list;
mod rules;
mod shape;
mod value;

pub use evaluate::{Field, Fields};
pub(crate) use lex::unquote;
pub use like::{ilike, like};
pub(crate) use rules::{entity, identifier};
pub(crate) use shape::{Kind, pieces};

use crate::tracking::Bad;

/// What is searched. Each subject has its own grammar of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Runs,
    Experiments,
    RegisteredModels,
    ModelVersions,
    LoggedModels,
}

/// What kind of thing a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entity {
    /// A field of the subject itself, under its canonical name: `created` arrives as `start_time`.
    Attribute,
    Metric,
    Param,
    Tag,
    /// A dataset among a run's inputs: `name`, `digest` or `context`.
    Dataset,
}

impl Entity {
    /// The word messages use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attribute => "attribute",
            Self::Metric => "metric",
            Self::Param => "parameter",
            Self::Tag => "tag",
            Self::Dataset => "dataset",
        }
    }
}

/// How a clause compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparator {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Like,
    ILike,
    In,
    NotIn,
    IsNull,
    IsNotNull,
}

impl Comparator {
    const ALL: [Self; 12] = [
        Self::Equal,
        Self::NotEqual,
        Self::Greater,
        Self::GreaterEqual,
        Self::Less,
        Self::LessEqual,
        Self::Like,
        Self::ILike,
        Self::In,
        Self::NotIn,
        Self::IsNull,
        Self::IsNotNull,
    ];

    /// The comparator as filters write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Like => "LIKE",
            Self::ILike => "ILIKE",
            Self::In => "IN",
            Self::NotIn => "NOT IN",
            Self::IsNull => "IS NULL",
            Self::IsNotNull => "IS NOT NULL",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|comparator| comparator.as_str() == word)
    }
}

/// What a clause compares with.
#[derive(Debug, Clone, PartialEq)]
pub enum FilterValue {
    Text(String),
    Integer(i64),
    Float(f64),
    /// For `IN` and `NOT IN`; never empty.
    List(Vec<String>),
    /// For `IS NULL` and `IS NOT NULL`.
    Nothing,
}

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    pub entity: Entity,
    pub key: String,
    pub comparator: Comparator,
    pub value: FilterValue,
}

/// Conditions that must all hold. No clauses: everything matches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    pub clauses: Vec<Clause>,
}

/// The tag that marks a registered model as a prompt.
pub const PROMPT_TAG: &str = "mlflow.prompt.is_prompt";

impl Filter {
    /// Reads a filter string; the empty one holds no clauses.
    pub fn parse(subject: Subject, text: &str) -> Result<Self, Bad> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let shapes = shape::comparisons(subject, text)?;
        // All names and values are read before any comparator is judged, so the first mistake told is the same everywhere.
        let drafts = shapes.iter().map(|shape| rules::draft(subject, shape)).collect::<Result<Vec<_>, _>>()?;
        let clauses = drafts.into_iter().map(|draft| rules::clause(subject, draft)).collect::<Result<_, _>>()?;
        Ok(Self { clauses })
    }

    /// Whether a thing satisfies every clause. Something absent satisfies `IS NULL` and nothing else.
    pub fn matches(&self, fields: &dyn Fields) -> bool {
        self.clauses.iter().all(|clause| clause.matches(fields))
    }

    /// Takes apart what a filter says about prompts, which share the registry with models: whether
    /// prompts are wanted (else things tagged `true` are to be left out), and the clauses that remain.
    /// Models carry no such tag, so a clause that asks for "no prompt" must not be applied as it stands.
    pub fn split_prompts(mut self) -> (Self, bool) {
        let marker = |clause: &Clause| clause.entity == Entity::Tag && clause.key == PROMPT_TAG;
        let wanted = self.clauses.iter().find(|clause| marker(clause)).is_some_and(|clause| {
            let is = |word: &str| matches!(&clause.value, FilterValue::Text(text) if text.eq_ignore_ascii_case(word));
            match clause.comparator {
                Comparator::Equal => is("true"),
                Comparator::NotEqual => is("false"),
                _ => false,
            }
        });
        if !wanted {
            self.clauses.retain(|clause| !marker(clause));
        }
        (self, wanted)
    }
}

#[cfg(test)]
pub(crate) mod tests;
