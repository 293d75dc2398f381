//! Batch endpoints and deployments.

use super::{Checks, Kind, there};
use serde_json::Value;
use store::RecordKey;

impl Checks<'_, '_> {
    pub(super) fn batch_endpoint(&mut self, key: &RecordKey, properties: &Value) -> Result<(), store::Error> {
        self.word("properties.authMode", properties.get("authMode"), &["AADToken"]);
        let at = "properties.defaults.deploymentName";
        let Some(name) = self.text(at, properties["defaults"].get("deploymentName")).filter(|name| !name.is_empty())
        else {
            return Ok(());
        };
        let known = self.deployments(Kind::BatchDeployment, key)?;
        if !known.contains(&name) {
            let list = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
            let message = format!("there is no deployment `{name}` (there are: {list})");
            self.mistake(at, message, "create the deployment first");
        }
        Ok(())
    }

    pub(super) fn batch_deployment(&mut self, properties: &Value) -> Result<(), store::Error> {
        self.model(&properties["model"])?;
        self.asset("properties.environmentId", "environments", properties.get("environmentId"))?;
        self.code(properties)?;
        self.compute("properties.compute", properties.get("compute"))?;
        let pipeline = &properties["deploymentConfiguration"];
        let component = pipeline["componentId"].get("assetId");
        self.asset("properties.deploymentConfiguration.componentId.assetId", "components", component)?;
        let default = pipeline["settings"].get("default_compute").filter(|name| *name != "serverless");
        self.compute("properties.deploymentConfiguration.settings.default_compute", default)?;
        for (key, least) in [("miniBatchSize", 1), ("maxConcurrencyPerInstance", 1), ("errorThreshold", -1)] {
            self.number(&format!("properties.{key}"), properties.get(key), least, i64::MAX);
        }
        let count = properties["resources"].get("instanceCount");
        self.number("properties.resources.instanceCount", count, 1, 10_000);
        let retry = &properties["retrySettings"];
        self.number("properties.retrySettings.maxRetries", retry.get("maxRetries"), 0, 10_000);
        self.duration("properties.retrySettings.timeout", retry.get("timeout"));
        self.word("properties.outputAction", properties.get("outputAction"), &["AppendRow", "SummaryOnly"]);
        let levels = ["Info", "Warning", "Debug"];
        self.word("properties.loggingLevel", properties.get("loggingLevel"), &levels);
        Ok(())
    }

    fn model(&mut self, model: &Value) -> Result<(), store::Error> {
        if there(Some(model)).is_none() {
            return Ok(());
        }
        self.word("properties.model.referenceType", model.get("referenceType"), &["Id", "DataPath", "OutputPath"]);
        self.asset("properties.model.assetId", "models", model.get("assetId"))
    }
}
