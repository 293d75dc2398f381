//! Searching logged models, also by what their metrics were on certain data.

use super::{shown, with_points};
use crate::{
    app::App,
    http::mlflow::{
        Answer, artifacts, brief,
        call::{Call, experiment_number},
        fault::{Fault, read},
        search::{offset, token},
    },
};
use axum::{Json, extract::State};
use domain::tracking::{
    Entity, Field, Fields, Filter, Order, OrderKey, Subject,
    limits::Search,
    order::{LoggedOrder, OnDataset},
};
use serde_json::{Value, json};
use std::cmp::Ordering;
use store::{LoggedModelRow, ModelPoint};

pub(in crate::http::mlflow) async fn search(State(app): State<App>, call: Call) -> Answer {
    let ids = call.texts("experiment_ids")?;
    if call.args.get("experiment_ids").is_none_or(Value::is_null) {
        return Err(Fault::required("experiment_ids"));
    }
    let numbers = ids.iter().map(|id| experiment_number(id)).collect::<Result<Vec<_>, _>>()?;
    let filter = Filter::parse(Subject::LoggedModels, &call.word("filter")?)?;
    let clauses = call.list("order_by")?;
    let order = Order::logged_models(&clauses.iter().map(order_clause).collect::<Vec<_>>())?;
    let datasets = call.list("datasets")?.iter().map(dataset).collect::<Result<Vec<_>, _>>()?;
    let most = call.most(Search::LoggedModels)?.unwrap_or(usize::MAX);
    let (from, by) = (offset(&call)?, call.by.clone());
    let mut found = read(&app, move |tx| {
        let rows = tx.logged_models(by.workspace(), &numbers)?;
        Ok(with_points(tx, rows)?)
    })
    .await?;
    found.retain(|(row, points)| filter.matches(&Seen { row, points, datasets: &datasets, latest: false }));
    found.sort_by(|a, b| {
        let by_key = |key: &OrderKey| {
            let datasets = key.dataset.as_slice();
            key.compare(
                &Seen { row: &a.0, points: &a.1, datasets, latest: true },
                &Seen { row: &b.0, points: &b.1, datasets, latest: true },
            )
        };
        order.keys.iter().map(by_key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    let page: Vec<Value> =
        found.iter().skip(from).take(most).map(|(row, points)| shown(&call.by, row, points)).collect();
    let next = (from.saturating_add(most) < found.len()).then(|| token(from + most));
    Ok(Json(brief([("models", json!(page)), ("next_page_token", json!(next))])))
}

fn order_clause(clause: &Value) -> LoggedOrder<'_> {
    let text = |key: &str| clause.get(key).and_then(Value::as_str);
    LoggedOrder {
        field_name: text("field_name"),
        ascending: clause.get("ascending").and_then(Value::as_bool),
        dataset_name: text("dataset_name"),
        dataset_digest: text("dataset_digest"),
    }
}

fn dataset(clause: &Value) -> Result<OnDataset, Fault> {
    let text = |key: &str| clause.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let unnamed = || Fault::invalid("`dataset_name` in the `datasets` clause must be specified.");
    Ok(OnDataset { name: text("dataset_name").ok_or_else(unnamed)?, digest: text("dataset_digest") })
}

/// A logged model as filters and orders see it: every point of a metric, or the latest, on some datasets or any.
struct Seen<'a> {
    row: &'a LoggedModelRow,
    points: &'a [ModelPoint],
    datasets: &'a [OnDataset],
    latest: bool,
}

impl Seen<'_> {
    fn counts(&self, point: &ModelPoint) -> bool {
        let on = |dataset: &OnDataset| {
            point.dataset_name.as_ref() == Some(&dataset.name)
                && dataset.digest.as_ref().is_none_or(|digest| point.dataset_digest.as_ref() == Some(digest))
        };
        self.datasets.is_empty() || self.datasets.iter().any(on)
    }
}

impl Fields for Seen<'_> {
    fn any(&self, entity: Entity, key: &str, test: &mut dyn FnMut(Field<'_>) -> bool) -> bool {
        let row = self.row;
        let mut text = |value: Option<&str>| value.is_some_and(|value| test(Field::Text(value)));
        match (entity, key) {
            (Entity::Attribute, "name") => text(Some(&row.name)),
            (Entity::Attribute, "model_id") => text(Some(&row.model_id)),
            (Entity::Attribute, "experiment_id") => text(Some(&row.number.to_string())),
            (Entity::Attribute, "model_type") => text(row.model_type.as_deref()),
            (Entity::Attribute, "source_run_id") => text(row.source_run.as_deref()),
            (Entity::Attribute, "status") => text(row.status.strip_prefix("LOGGED_MODEL_")),
            (Entity::Attribute, "status_message") => text(row.status_message.as_deref()),
            (Entity::Attribute, "artifact_location") => text(Some(&artifacts::model_uri(row))),
            (Entity::Attribute, "lifecycle_stage") => text(Some("active")),
            (Entity::Attribute, "creation_timestamp") => test(Field::Integer(row.created_at.0)),
            (Entity::Attribute, "last_updated_timestamp") => test(Field::Integer(row.changed_at.0)),
            (Entity::Tag, key) => text(row.tags.get(key).map(String::as_str)),
            (Entity::Param, key) => text(row.params.get(key).map(String::as_str)),
            (Entity::Metric, key) => {
                let mut points = self.points.iter().filter(|point| point.key == key && self.counts(point));
                let place = |point: &&ModelPoint| (point.point.timestamp_ms, point.point.step);
                match self.latest {
                    true => points.max_by_key(place).is_some_and(|point| test(Field::Float(point.point.value))),
                    false => points.any(|point| test(Field::Float(point.point.value))),
                }
            }
            _ => false,
        }
    }
}
