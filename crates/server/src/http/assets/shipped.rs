//! Environments that are shipped: there without being made.

use crate::http::views::{self, Named};
use api::arm::Scope;
use domain::{Timestamp, curated};
use serde_json::{Value, json};
use store::{AssetKey, AssetRow};

/// The shipped environment of this name, if assets of this kind are environments.
pub(super) fn find(kind: &str, name: &str) -> Option<&'static curated::Curated> {
    if kind == "environments" { curated::find(name) } else { None }
}

/// The one version of a shipped environment.
pub(super) fn view(scope: &Scope, curated: &curated::Curated) -> Value {
    let mut view = views::asset(scope, &row(scope, curated));
    view["properties"]["environmentType"] = json!("Curated");
    view["properties"]["latestVersion"] = json!("1");
    view
}

/// The name of a shipped environment.
pub(super) fn name(scope: &Scope, curated: &curated::Curated) -> Value {
    Named { latest: row(scope, curated), next: 2, said: None }.view(scope)
}

fn row(scope: &Scope, curated: &curated::Curated) -> AssetRow {
    AssetRow {
        seq: 0,
        key: AssetKey {
            workspace: scope.workspace.clone(),
            kind: "environments".into(),
            name: curated.name.clone(),
            version: "1".into(),
        },
        body: json!({
            "description": curated.description, "condaFile": conda_text(curated), "tags": {"curated": "true"}, "isAnonymous": false,
        })
        .to_string(),
        archived: false,
        created_by: "peregrine".into(),
        created_at: Timestamp(0),
        changed_at: Timestamp(0),
    }
}

fn conda_text(curated: &curated::Curated) -> String {
    let pip: String = curated.pip.iter().map(|line| format!("    - {line}\n")).collect();
    format!("name: {}\ndependencies:\n  - python={}\n  - pip\n  - pip:\n{pip}", curated.name, curated.python)
}
