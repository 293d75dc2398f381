//! Registered models as they are kept: a name of model assets, what is said of the name, and its versions.
//!
//! What MLflow registers is what Azure's clients list, and the reverse: there is no second registry. A version is an asset;
//! MLflow's own words about it stand in the asset's `properties`, aliases and the last number given out beside the name.

mod seen;
mod told;

pub(super) use seen::{SeenModel, SeenVersion};
pub(super) use told::is_prompt;
pub(crate) use told::{tell_added, tell_retagged};

use super::{brief, call::Asker, fault::Fault, key_values};
use crate::app::scope;
use api::arm;
use domain::{
    Timestamp,
    tracking::{Stage, limits},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::{AssetKey, AssetRow, Error, RecordFilter, RecordKey, RecordRow, Tx};

const KIND: &str = "models";
/// Under which names MLflow's words stand in the `properties` of an asset.
pub(super) const SOURCE: &str = "mlflow.source";
pub(super) const STORAGE: &str = "mlflow.storage";
pub(super) const RUN: &str = "mlflow.runId";
pub(super) const RUN_LINK: &str = "mlflow.runLink";

/// A registered model.
pub(super) struct Model {
    pub(super) row: RecordRow,
    /// What is said of the name.
    pub(super) said: Value,
    /// Whether anything was said of it before.
    kept: bool,
    pub(super) versions: Vec<Version>,
}

/// One of its versions.
#[derive(Clone)]
pub(super) struct Version {
    pub(super) row: AssetRow,
    pub(super) body: Value,
}

impl Model {
    /// A name nothing is known of yet.
    pub(super) fn new(by: &Asker, name: &str, now: Timestamp) -> Model {
        let row = RecordRow {
            key: key_of(by, name),
            body: "{}".into(),
            archived: false,
            created_by: by.caller.name.clone(),
            created_at: now,
            changed_at: now,
            version: 1,
        };
        Model { row, said: json!({}), kept: false, versions: Vec::new() }
    }

    /// The model of that name, if something is said of it or it has versions.
    pub(super) fn find(tx: &mut Tx<'_>, by: &Asker, name: &str) -> Result<Option<Model>, Error> {
        let mut versions: Vec<Version> = tx
            .versions(by.workspace(), KIND, name, None)?
            .into_iter()
            .filter(|row| !row.anonymous())
            .map(Version::of)
            .collect();
        versions.reverse();
        let said = tx.record(&key_of(by, name))?;
        let first = match (&said, versions.first(), versions.iter().map(|version| version.row.changed_at).max()) {
            (Some(_), _, _) => None,
            (None, Some(first), Some(changed_at)) => Some(RecordRow {
                changed_at,
                created_by: first.row.created_by.clone(),
                ..Model::new(by, name, first.row.created_at).row
            }),
            _ => return Ok(None),
        };
        let kept = said.is_some();
        let Some(row) = said.or(first) else { return Ok(None) };
        let said = serde_json::from_str(&row.body).unwrap_or_default();
        Ok(Some(Model { row, said, kept, versions }))
    }

    /// The same for one that must be there.
    pub(super) fn get(tx: &mut Tx<'_>, by: &Asker, name: &str) -> Result<Model, Fault> {
        limits::model_name(name)?;
        let missing = || Fault::missing(format!("Registered Model with name={name} not found"));
        Model::find(tx, by, name)?.ok_or_else(missing)
    }

    /// All of them, by name.
    pub(super) fn all(tx: &mut Tx<'_>, by: &Asker) -> Result<Vec<Model>, Error> {
        let mut names = tx.names_page(by.workspace(), KIND, "", i64::MAX)?;
        let filter = RecordFilter {
            workspace: by.workspace().to_owned(),
            kind: KIND.into(),
            parent: String::new(),
            archived: None,
            after: String::new(),
            limit: i64::MAX,
        };
        names.extend(tx.records(&filter)?.into_iter().map(|row| row.key.name));
        names.sort();
        names.dedup();
        names.iter().filter_map(|name| Model::find(tx, by, name).transpose()).collect()
    }

    /// Writes what is said of the name.
    pub(super) fn save(&mut self, tx: &mut Tx<'_>) -> Result<(), Error> {
        self.row.body = self.said.to_string();
        if self.kept {
            return tx.put_record(&mut self.row);
        }
        self.kept = true;
        tx.insert_record(&self.row)
    }

    pub(super) fn name(&self) -> &str {
        &self.row.key.name
    }

    pub(super) fn tags(&self) -> BTreeMap<String, String> {
        arm::texts(&self.said, "tags")
    }

    pub(super) fn tags_mut(&mut self) -> &mut Map<String, Value> {
        map_in(&mut self.said, "tags")
    }

    /// Which version each alias names.
    pub(super) fn aliases(&self) -> BTreeMap<String, String> {
        self.said.get("mlflow").map(|own| arm::texts(own, "aliases")).unwrap_or_default()
    }

    pub(super) fn aliases_mut(&mut self) -> &mut Map<String, Value> {
        map_in(&mut self.said["mlflow"], "aliases")
    }

    /// The number of the next version: one that no version has had.
    pub(super) fn next_number(&mut self) -> i64 {
        let there = self.versions.iter().filter_map(|version| version.row.key.version.parse().ok()).max().unwrap_or(0);
        let given = self.said["mlflow"]["given"].as_i64().unwrap_or(0);
        let next = there.max(given) + 1;
        self.said["mlflow"]["given"] = json!(next);
        next
    }

    /// The number a version had elsewhere, if no version has it here.
    pub(super) fn take_number(&mut self, number: i64) -> Result<i64, Fault> {
        if self.versions.iter().any(|version| version.row.key.version == number.to_string()) {
            let name = self.name();
            return Err(Fault::exists(format!("Model Version (name={name}, version={number}) already exists.")));
        }
        let given = self.said["mlflow"]["given"].as_i64().unwrap_or(0);
        self.said["mlflow"]["given"] = json!(given.max(number));
        Ok(number)
    }

    pub(super) fn version(&self, version: &str) -> Result<&Version, Fault> {
        let number = limits::model_version(version).ok().map(|number| number.to_string());
        let wanted = number.as_deref().unwrap_or(version);
        if let Some(found) = self.versions.iter().find(|found| found.row.key.version == wanted) {
            return Ok(found);
        }
        limits::model_version(version)?;
        Err(Fault::missing(format!("Model Version (name={}, version={version}) not found", self.name())))
    }

    /// The newest version of each stage, in the order of the stages' words.
    pub(super) fn latest(&self) -> Vec<&Version> {
        let mut latest: BTreeMap<&'static str, &Version> = BTreeMap::new();
        for version in &self.versions {
            latest.insert(version.stage().as_str(), version);
        }
        latest.into_values().collect()
    }

    pub(super) fn view(&self) -> Value {
        let aliases = self.aliases();
        let latest: Vec<Value> = self.latest().into_iter().map(|version| version.view(&BTreeMap::new())).collect();
        brief([
            ("name", json!(self.name())),
            ("creation_timestamp", json!(self.row.created_at.0)),
            ("last_updated_timestamp", json!(self.row.changed_at.0)),
            ("description", json!(arm::text(&self.said, "description"))),
            ("latest_versions", json!(latest)),
            ("tags", key_values(&self.tags())),
            ("aliases", aliases.iter().map(|(alias, version)| json!({"alias": alias, "version": version})).collect()),
        ])
    }
}

fn key_of(by: &Asker, name: &str) -> RecordKey {
    RecordKey { workspace: by.workspace().into(), kind: KIND.into(), parent: String::new(), name: name.into() }
}

fn map_in<'a>(body: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !body[key].is_object() {
        body[key] = json!({});
    }
    body[key].as_object_mut().expect("it was made one just now")
}

/// Where a version's files are, as Azure's clients name it.
pub(super) fn asset_uri(by: &Asker, folder: &str) -> String {
    let scope = scope(&by.workspace);
    format!(
        "azureml://subscriptions/{}/resourcegroups/{}/workspaces/{}/datastores/{}/paths/{folder}",
        scope.subscription,
        scope.group,
        scope.workspace,
        crate::http::workspaces::ARTIFACT_STORE
    )
}

impl Version {
    pub(super) fn of(row: AssetRow) -> Version {
        let body = serde_json::from_str(&row.body).unwrap_or_default();
        Version { row, body }
    }

    /// Adds it to the assets.
    pub(super) fn add(
        tx: &mut Tx<'_>,
        by: &Asker,
        (name, number): (&str, i64),
        body: &Value,
        now: Timestamp,
    ) -> Result<(), Error> {
        let key = AssetKey {
            workspace: by.workspace().into(),
            kind: KIND.into(),
            name: name.into(),
            version: number.to_string(),
        };
        crate::http::assets::insert(tx, &key, body, &by.caller.name, now)
    }

    /// Writes what was changed of it.
    pub(super) fn save(&self, tx: &mut Tx<'_>) -> Result<(), Error> {
        tx.put_asset(self.row.seq, &self.body.to_string(), self.row.archived, self.row.changed_at)
    }

    fn own(&self, key: &str) -> Option<String> {
        self.body.get("properties").and_then(|own| arm::text(own, key)).filter(|text| !text.is_empty())
    }

    pub(super) fn tags(&self) -> BTreeMap<String, String> {
        arm::texts(&self.body, "tags")
    }

    pub(super) fn tags_mut(&mut self) -> &mut Map<String, Value> {
        map_in(&mut self.body, "tags")
    }

    pub(super) fn stage(&self) -> Stage {
        arm::text(&self.body, "stage").and_then(|word| Stage::parse(&word).ok()).unwrap_or_default()
    }

    pub(super) fn run_id(&self) -> Option<String> {
        self.own(RUN).or_else(|| arm::text(&self.body, "jobName").filter(|name| !name.is_empty()))
    }

    pub(super) fn source(&self) -> String {
        self.own(SOURCE).or_else(|| arm::text(&self.body, "modelUri")).unwrap_or_default()
    }

    /// Where clients of MLflow read its files. Those of an asset that is not MLflow's are read under the asset's name.
    pub(super) fn storage(&self) -> String {
        let under = || format!("mlflow-artifacts:/registered-models/{}/{}", self.row.key.name, self.row.key.version);
        self.own(STORAGE).or_else(|| self.own(SOURCE)).unwrap_or_else(under)
    }

    pub(super) fn view(&self, aliases: &BTreeMap<String, String>) -> Value {
        let own = aliases.iter().filter(|(_, version)| **version == self.row.key.version);
        brief([
            ("name", json!(self.row.key.name)),
            ("version", json!(self.row.key.version)),
            ("creation_timestamp", json!(self.row.created_at.0)),
            ("last_updated_timestamp", json!(self.row.changed_at.0)),
            ("current_stage", json!(self.stage().as_str())),
            ("description", json!(arm::text(&self.body, "description"))),
            ("source", json!(self.source())),
            ("run_id", json!(self.run_id().unwrap_or_default())),
            ("run_link", json!(self.own(RUN_LINK).unwrap_or_default())),
            ("status", json!("READY")),
            ("tags", key_values(&self.tags())),
            ("aliases", own.map(|(alias, _)| json!(alias)).collect()),
        ])
    }
}
