//! Which tables and columns a database of MLflow has.

use super::super::ForeignError;
use rusqlite::Connection;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// Tables by name, each with its columns.
pub(super) struct Schema {
    pub(super) revision: String,
    tables: BTreeMap<String, BTreeSet<String>>,
}

/// A table that may lack some columns, or all of them.
pub(super) struct Table<'a>(Option<&'a BTreeSet<String>>);

/// What must be there: without these nothing can be told of a run.
const NEEDED: [(&str, &[&str]); 5] = [
    ("experiments", &["experiment_id", "name"]),
    ("runs", &["run_uuid", "experiment_id", "user_id", "status", "start_time", "end_time", "lifecycle_stage"]),
    ("metrics", &["run_uuid", "key", "value", "timestamp"]),
    ("params", &["run_uuid", "key", "value"]),
    ("tags", &["run_uuid", "key", "value"]),
];

/// What must be there of tables that only newer databases have.
const IF_THERE: [(&str, &[&str]); 9] = [
    (
        "datasets",
        &[
            "dataset_uuid",
            "name",
            "digest",
            "dataset_source_type",
            "dataset_source",
            "dataset_schema",
            "dataset_profile",
        ],
    ),
    ("inputs", &["input_uuid", "source_type", "source_id", "destination_type", "destination_id"]),
    ("input_tags", &["input_uuid", "name", "value"]),
    ("registered_models", &["name", "creation_time"]),
    ("model_versions", &["name", "version", "creation_time", "current_stage", "source"]),
    ("logged_models", &["model_id", "experiment_id", "name", "artifact_location", "creation_timestamp_ms", "status"]),
    ("logged_model_params", &["model_id", "param_key", "param_value"]),
    ("logged_model_tags", &["model_id", "tag_key", "tag_value"]),
    (
        "logged_model_metrics",
        &["model_id", "metric_name", "metric_timestamp_ms", "metric_step", "metric_value", "run_id"],
    ),
];

impl Schema {
    pub(super) fn read(on: &Connection) -> rusqlite::Result<Schema> {
        let sql = "select m.name, c.name from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table'";
        let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut statement = on.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            tables.entry(row.get(0)?).or_default().insert(row.get(1)?);
        }
        let revision = match tables.contains_key("alembic_version") {
            true => on.query_row("select version_num from alembic_version limit 1", [], |row| row.get(0)).ok(),
            false => None,
        };
        Ok(Schema { revision: revision.unwrap_or_else(|| "none".into()), tables })
    }

    /// Whether what is read of a database is there.
    pub(super) fn check(&self, path: &Path) -> Result<(), ForeignError> {
        if let Some((table, _)) = NEEDED.iter().find(|(table, _)| !self.has(table)) {
            return Err(ForeignError::NotMlflow { path: path.to_owned(), table });
        }
        let there = IF_THERE.iter().filter(|(table, _)| self.has(table));
        for (table, columns) in NEEDED.iter().chain(there) {
            if let Some(column) = columns.iter().find(|column| !self.table(table).has(column)) {
                let lacks = format!("{table}.{column}");
                return Err(ForeignError::Schema { path: path.to_owned(), revision: self.revision.clone(), lacks });
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    pub(super) fn table(&self, name: &str) -> Table<'_> {
        Table(self.tables.get(name))
    }
}

impl Table<'_> {
    pub(super) fn has(&self, column: &str) -> bool {
        self.0.is_some_and(|columns| columns.contains(column))
    }

    /// The column, or what stands for it where there is none.
    pub(super) fn or<'c>(&self, column: &'c str, otherwise: &'c str) -> &'c str {
        if self.has(column) { column } else { otherwise }
    }

    /// The condition that a row is of the workspace everyone has; older databases have no other.
    pub(super) fn in_workspace(&self) -> &'static str {
        if self.has("workspace") { "coalesce(workspace, 'default') = 'default'" } else { "true" }
    }
}
