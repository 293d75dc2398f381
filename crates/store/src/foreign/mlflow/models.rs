//! Models of an MLflow database: those that runs logged, and those that were registered.

use super::{ForeignError, Mlflow, Point, Texts, finite};

/// A model that a run logged, known by an id of its own.
#[derive(Debug, Clone)]
pub struct LoggedModel {
    pub id: String,
    pub name: String,
    pub model_type: String,
    pub source_run: String,
    pub artifact_location: String,
    /// 1 begun, 2 whole, 3 given up.
    pub status: i64,
    pub deleted: bool,
    pub created_at: i64,
    pub tags: Texts,
    pub params: Texts,
}

/// A point that tells of a model.
#[derive(Debug, Clone)]
pub struct ModelPoint {
    pub model: String,
    pub run: String,
    pub key: String,
    pub point: Point,
    pub dataset_name: Option<String>,
    pub dataset_digest: Option<String>,
}

/// A registered model's name and what is said of it.
#[derive(Debug, Clone)]
pub struct RegisteredModel {
    pub name: String,
    pub description: String,
    pub created_at: Option<i64>,
    pub tags: Texts,
    /// Aliases, each with the version it names.
    pub aliases: Vec<(String, i64)>,
}

/// A version of a registered model.
#[derive(Debug, Clone)]
pub struct Version {
    pub name: String,
    pub version: i64,
    pub description: String,
    pub created_at: Option<i64>,
    pub stage: String,
    pub source: String,
    pub run_id: String,
    pub run_link: String,
    pub tags: Texts,
}

impl Mlflow {
    /// The logged models of an experiment, oldest first.
    pub fn logged_models(&self, experiment: i64) -> Result<Vec<LoggedModel>, ForeignError> {
        if !self.schema.has("logged_models") {
            return Ok(Vec::new());
        }
        let table = self.schema.table("logged_models");
        let sql = format!(
            "select model_id, name, {}, {}, artifact_location, status, {}, creation_timestamp_ms from logged_models \
             where experiment_id = ?1 order by creation_timestamp_ms, model_id",
            table.or("model_type", "null"),
            table.or("source_run_id", "null"),
            table.or("lifecycle_stage", "'active'"),
        );
        let mut tags = self.tags_by("logged_model_tags", "model_id", "tag_key", "tag_value")?;
        let mut params = self.tags_by("logged_model_params", "model_id", "param_key", "param_value")?;
        self.rows("logged models", &sql, &[&experiment], |row| {
            let text = |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(at)?.unwrap_or_default());
            let id: String = row.get(0)?;
            Ok(LoggedModel {
                name: text(1)?,
                model_type: text(2)?,
                source_run: text(3)?,
                artifact_location: text(4)?,
                status: row.get(5)?,
                deleted: text(6)? == "deleted",
                created_at: row.get(7)?,
                tags: tags.remove(&id).unwrap_or_default(),
                params: params.remove(&id).unwrap_or_default(),
                id,
            })
        })
    }

    /// The points of a run that tell of models.
    pub fn points_of_models(&self, run: &str) -> Result<Vec<ModelPoint>, ForeignError> {
        self.model_points("run_id", run)
    }

    /// The points that tell of a model, of all runs.
    pub fn points_of_model(&self, model: &str) -> Result<Vec<ModelPoint>, ForeignError> {
        self.model_points("model_id", model)
    }

    fn model_points(&self, by: &str, id: &str) -> Result<Vec<ModelPoint>, ForeignError> {
        if !self.schema.has("logged_model_metrics") {
            return Ok(Vec::new());
        }
        let table = self.schema.table("logged_model_metrics");
        let sql = format!(
            "select model_id, metric_name, metric_value, metric_timestamp_ms, metric_step, {}, {}, run_id \
             from logged_model_metrics where {by} = ?1 order by 1, 2, 4, 5",
            table.or("dataset_name", "null"),
            table.or("dataset_digest", "null"),
        );
        self.rows("metrics of models", &sql, &[&id], |row| {
            let value = finite(row.get::<_, Option<f64>>(2)?.unwrap_or(f64::NAN));
            Ok(ModelPoint {
                model: row.get(0)?,
                run: row.get(7)?,
                key: row.get(1)?,
                point: Point { value, timestamp_ms: row.get(3)?, step: row.get(4)? },
                dataset_name: row.get(5)?,
                dataset_digest: row.get(6)?,
            })
        })
    }

    /// The registered models, by name.
    pub fn registered_models(&self) -> Result<Vec<RegisteredModel>, ForeignError> {
        if !self.schema.has("registered_models") {
            return Ok(Vec::new());
        }
        let table = self.schema.table("registered_models");
        let sql = format!(
            "select name, {}, creation_time from registered_models where {} order by name",
            table.or("description", "null"),
            table.in_workspace()
        );
        let mut tags = self.tags_by("registered_model_tags", "name", "key", "value")?;
        let mut aliases = self.tags_by("registered_model_aliases", "name", "alias", "cast(version as text)")?;
        self.rows("registered models", &sql, &[], |row| {
            let name: String = row.get(0)?;
            let named = aliases.remove(&name).unwrap_or_default();
            let numbered = |(alias, version): (String, String)| Some((alias, version.parse().ok()?));
            Ok(RegisteredModel {
                description: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
                created_at: row.get(2)?,
                tags: tags.remove(&name).unwrap_or_default(),
                aliases: named.into_iter().filter_map(numbered).collect(),
                name,
            })
        })
    }

    /// Every version of every registered model, in the order they were made. Those that were deleted are not among them.
    pub fn versions(&self) -> Result<Vec<Version>, ForeignError> {
        if !self.schema.has("model_versions") {
            return Ok(Vec::new());
        }
        let table = self.schema.table("model_versions");
        let sql = format!(
            "select name, version, {}, creation_time, current_stage, source, {}, {} from model_versions \
             where {} and coalesce(current_stage, '') <> 'Deleted_Internal' order by creation_time, name, version",
            table.or("description", "null"),
            table.or("run_id", "null"),
            table.or("run_link", "null"),
            table.in_workspace()
        );
        let mut tags = self.tags_by("model_version_tags", "name || '/' || version", "key", "value")?;
        self.rows("versions of models", &sql, &[], |row| {
            let text = |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(at)?.unwrap_or_default());
            let (name, version): (String, i64) = (row.get(0)?, row.get(1)?);
            Ok(Version {
                tags: tags.remove(&format!("{name}/{version}")).unwrap_or_default(),
                name,
                version,
                description: text(2)?,
                created_at: row.get(3)?,
                stage: text(4)?,
                source: text(5)?,
                run_id: text(6)?,
                run_link: text(7)?,
            })
        })
    }
}
