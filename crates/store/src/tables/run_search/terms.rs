//! What filters and orders name, in the database's words. A run that is a job has the job's name, tags and literal inputs.

use crate::Value;
use domain::tracking::{Clause, Comparator, Entity, FilterValue, OrderKey};

/// A statement and what is bound to it, made together.
#[derive(Debug, Default)]
pub(super) struct Statement {
    text: String,
    values: Vec<Value>,
}

const NAME: &str = "coalesce((select value from job_labels where job_seq = r.job_seq and kind = 'name'), r.name)";

impl Statement {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Adds words of our own.
    pub(super) fn push(&mut self, text: &str) -> &mut Statement {
        self.text.push_str(text);
        self
    }

    /// Adds a value.
    pub(super) fn bind(&mut self, value: Value) -> &mut Statement {
        self.values.push(value);
        self.text.push_str(&format!("?{}", self.values.len()));
        self
    }

    /// Adds a condition.
    pub(super) fn holds(&mut self, clause: &Clause) {
        match clause.entity {
            Entity::Metric => {
                self.push("exists (select 1 from latest_metrics m2 where m2.run = r.seq and m2.key = ");
                self.bind(clause.key.as_str().into()).push(" and ");
                metric_holds(self, "m2.", clause);
                self.push(")");
            }
            Entity::Dataset => {
                self.push("exists (select 1 from run_inputs i where i.run = r.seq and ");
                let column = match clause.key.as_str() {
                    "name" => "i.name",
                    "digest" => "i.digest",
                    _ => "i.context",
                };
                compare(self, clause, |statement| statement.push(column));
                self.push(")");
            }
            Entity::Attribute | Entity::Param | Entity::Tag => {
                compare(self, clause, |statement| statement.value_of(clause.entity, &clause.key));
            }
        }
    }

    /// Adds a key of an order; what has no value comes last.
    pub(super) fn by(&mut self, key: &OrderKey) {
        let way = if key.ascending { "" } else { " desc" };
        match (key.entity, key.key.as_str()) {
            (Entity::Attribute, "start_time" | "run_id" | "status" | "user_id" | "artifact_uri") => {
                self.value_of(key.entity, &key.key);
            }
            (Entity::Metric, name) => {
                self.push("coalesce((select nan from latest_metrics where run = r.seq and key = ");
                self.bind(name.into()).push("), 2), ");
                self.push("(select value from latest_metrics where run = r.seq and key = ").bind(name.into()).push(")");
            }
            _ => {
                self.push("(");
                self.value_of(key.entity, &key.key);
                self.push(") is null, ");
                self.value_of(key.entity, &key.key);
            }
        }
        self.push(way);
    }

    /// Adds the one value a run has under a name, null where it has none.
    fn value_of(&mut self, entity: Entity, key: &str) -> &mut Statement {
        match (entity, key) {
            (Entity::Attribute, key) => self.push(attribute(key)),
            (Entity::Param, key) => {
                self.push("coalesce((select value from run_params where run = r.seq and key = ").bind(key.into());
                self.push("), ").label("param", key).push(")")
            }
            (_, key) => {
                self.push("coalesce((select value from run_tags where run = r.seq and key = ").bind(key.into());
                self.push("), ").label("tag", key);
                self.push(match key {
                    "mlflow.runName" => ", ",
                    "mlflow.user" => ", case when r.job_seq is not null then r.user end",
                    "mlflow.source.type" => ", case when r.job_seq is not null then 'JOB' end",
                    _ => "",
                });
                self.push(if key == "mlflow.runName" { NAME } else { "" }).push(")")
            }
        }
    }

    /// Adds what the body of a run's job says.
    fn label(&mut self, kind: &str, key: &str) -> &mut Statement {
        self.push("(select value from job_labels where job_seq = r.job_seq and kind = '").push(kind);
        self.push("' and key = ").bind(key.into()).push(")")
    }
}

fn attribute(key: &str) -> &'static str {
    match key {
        "run_id" => "r.run_id",
        "run_name" => NAME,
        "status" => "r.status",
        "user_id" => "r.user",
        "start_time" => "r.started_at",
        "end_time" => "r.ended_at",
        "artifact_uri" => "('mlflow-artifacts:/' || e.number || '/' || r.run_id || '/artifacts')",
        _ => "null",
    }
}

/// A condition on a row of `latest_metrics`. What is not a number differs from every number, and that is all.
pub(super) fn metric_holds(statement: &mut Statement, row: &str, clause: &Clause) {
    let either = clause.comparator == Comparator::NotEqual;
    statement.push(if either { "(" } else { "" }).push(row);
    statement.push(if either { "nan = 1 or " } else { "nan = 0 and " });
    compare(statement, clause, |statement| statement.push(row).push("value"));
    statement.push(if either { ")" } else { "" });
}

/// Adds the comparison of `what` with a clause's value.
fn compare(statement: &mut Statement, clause: &Clause, what: impl Fn(&mut Statement) -> &mut Statement) {
    let ignores_case = clause.comparator == Comparator::ILike;
    statement.push(if ignores_case { "lower(" } else { "" });
    what(statement);
    statement.push(if ignores_case { ")" } else { "" });
    statement.push(match clause.comparator {
        Comparator::Equal => " = ",
        Comparator::NotEqual => " <> ",
        Comparator::Greater => " > ",
        Comparator::GreaterEqual => " >= ",
        Comparator::Less => " < ",
        Comparator::LessEqual => " <= ",
        Comparator::Like | Comparator::ILike => " like ",
        Comparator::In => " in ",
        Comparator::NotIn => " not in ",
        Comparator::IsNull => " is null",
        Comparator::IsNotNull => " is not null",
    });
    match &clause.value {
        FilterValue::Text(text) if clause.comparator == Comparator::Like => {
            statement.bind(pattern(text)).push(" escape '!'")
        }
        FilterValue::Text(text) if ignores_case => {
            statement.bind(pattern(&text.to_ascii_lowercase())).push(" escape '!'")
        }
        FilterValue::Text(text) => statement.bind(text.as_str().into()),
        FilterValue::Integer(number) => statement.bind((*number).into()),
        // Said, because the column may hold whole numbers.
        FilterValue::Float(number) => statement.push("cast(").bind((*number).into()).push(" as double precision)"),
        FilterValue::List(items) => {
            statement.push("(select value from json_each(").bind(Value::Texts(items.clone())).push("))")
        }
        FilterValue::Nothing => statement,
    };
}

/// A pattern in which nothing but `%` and `_` has a meaning, whatever the engine takes for a sign of escape.
fn pattern(text: &str) -> Value {
    text.replace('!', "!!").into()
}
