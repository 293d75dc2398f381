//! What filters and orders name, in the database's words. A run that is a job has the job's name, tags and literal inputs.

use crate::Value;
use domain::tracking::{Clause, Comparator, Entity, FilterValue, OrderKey};

/// A statement and what is bound to it, made together.
#[derive(Debug, Default)]
pub(super) struct Statement {
    text: String,
    values: Vec<Value>,
}

const NAME: &str =
    "coalesce((select json_extract(j.body, '$.displayName') from jobs j where j.seq = r.job_seq), r.name)";

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
                self.push("), (select cast(json_extract(t.value, '$.value') as text) from jobs j, ");
                self.push("json_each(j.body, '$.inputs') t where j.seq = r.job_seq and t.key = ").bind(key.into());
                self.push("))")
            }
            (_, key) => {
                self.push("coalesce((select value from run_tags where run = r.seq and key = ").bind(key.into());
                self.push("), (select cast(t.value as text) from jobs j, json_each(j.body, '$.tags') t ");
                self.push("where j.seq = r.job_seq and t.key = ").bind(key.into()).push(")");
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
        Comparator::Like | Comparator::ILike => " glob ",
        Comparator::In => " in ",
        Comparator::NotIn => " not in ",
        Comparator::IsNull => " is null",
        Comparator::IsNotNull => " is not null",
    });
    match &clause.value {
        FilterValue::Text(text) if clause.comparator == Comparator::Like => statement.bind(globbed(text)),
        FilterValue::Text(text) if ignores_case => statement.bind(globbed(&text.to_lowercase())),
        FilterValue::Text(text) => statement.bind(text.as_str().into()),
        FilterValue::Integer(number) => statement.bind((*number).into()),
        FilterValue::Float(number) => statement.bind((*number).into()),
        FilterValue::List(items) => {
            let items = serde_json::Value::from(items.clone()).to_string();
            statement.push("(select value from json_each(").bind(items.into()).push("))")
        }
        FilterValue::Nothing => statement,
    };
}

/// A pattern of `LIKE` as one of `GLOB`, which heeds case.
fn globbed(pattern: &str) -> Value {
    let mut out = String::with_capacity(pattern.len());
    for letter in pattern.chars() {
        match letter {
            '%' => out.push('*'),
            '_' => out.push('?'),
            '*' | '?' | '[' => out.extend(['[', letter, ']']),
            letter => out.push(letter),
        }
    }
    out.into()
}
