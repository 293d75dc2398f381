//! Environments: registered here, shipped as curated, or replaced by the operator under a curated name.

use super::Lookup;
use crate::http::registries;
use api::arm::{self, AssetRef};
use domain::{
    EnvironmentPlan, curated,
    spec::{CommandJob, EnvironmentRef},
};
use serde_json::Value;
use store::AssetRow;

impl Lookup<'_, '_> {
    pub(super) fn environment(&mut self, spec: &CommandJob) -> Result<EnvironmentPlan, store::Error> {
        let Some(EnvironmentRef::Named(reference)) = &spec.environment else { return Ok(EnvironmentPlan::default()) };
        let Some(parsed) = AssetRef::parse("environments", reference) else {
            self.mistake(
                "environment",
                format!("`{reference}` is not a reference to an environment"),
                "write it like `azureml:name:version`",
            );
            return Ok(EnvironmentPlan::default());
        };
        if self.strays("environment", reference, &parsed) {
            return Ok(EnvironmentPlan::default());
        }
        let (AssetRef::Here { name, .. } | AssetRef::Registry { name, .. }) = &parsed;
        let found = match &parsed {
            // The versions of what is shipped are not ours; an environment of that name here stands for all of them.
            AssetRef::Registry { registry, .. } if registry == registries::SHIPPED => {
                self.tx.latest_asset(&self.workspace.name, "environments", name)?
            }
            parsed => self.referred("environments", parsed)?,
        };
        if let Some(row) = found {
            return self.planned(&parsed.to_string(), &row);
        }
        if let Some(known) = curated::find(reference).or_else(|| curated::find(name)) {
            return Ok(EnvironmentPlan {
                label: known.name.clone(),
                python: Some(known.python.clone()),
                pip: known.pip.clone(),
                ..EnvironmentPlan::default()
            });
        }
        let message = format!("there is no environment `{parsed}`{}", self.known_environments(&parsed, name)?);
        self.mistake(
            "environment",
            message,
            "create it with `peregrine environment create`, or see `peregrine environment list --registry azureml`",
        );
        Ok(EnvironmentPlan::default())
    }

    fn planned(&mut self, label: &str, row: &AssetRow) -> Result<EnvironmentPlan, store::Error> {
        let body: Value = serde_json::from_str(&row.body).map_err(|error| store::Error::Decode(error.to_string()))?;
        let build = match body.get("build").filter(|build| build.is_object()) {
            Some(build) => {
                let uri = arm::text(build, "contextUri").unwrap_or_default();
                let dockerfile = arm::text(build, "dockerfilePath").unwrap_or_else(|| "Dockerfile".into());
                self.place("environment.build", &uri, 0)?.map(|place| (place, dockerfile))
            }
            None => None,
        };
        let label = if row.key.name == "CliV2AnonymousEnvironment" { "inline".to_owned() } else { label.to_owned() };
        Ok(EnvironmentPlan {
            label,
            image: arm::text(&body, "image"),
            conda: arm::text(&body, "condaFile"),
            build,
            ..EnvironmentPlan::default()
        })
    }

    /// What there is instead: versions of that name, or the names.
    fn known_environments(&mut self, reference: &AssetRef, name: &str) -> Result<String, store::Error> {
        let owner = match reference {
            AssetRef::Registry { registry, .. } => registries::owner(registry),
            AssetRef::Here { .. } => self.workspace.name.clone(),
        };
        let versions = self.tx.version_names(&owner, "environments", name, 10)?;
        if !versions.is_empty() {
            return Ok(format!("; `{name}` has versions {}", versions.join(", ")));
        }
        let names = self.tx.asset_names(&owner, "environments")?;
        Ok(if names.is_empty() { String::new() } else { format!(" (there are: {})", names.join(", ")) })
    }
}
