//! Online endpoints and deployments: who may call, where requests go, what answers them.

use super::{Checks, Kind, there};
use crate::routers::{CORS, MAX_BODY};
use domain::{resources::parse_bytes, sizes, spec::routes::Cors};
use serde_json::Value;
use store::RecordKey;

const MODES: &[&str] = &["Key", "AMLToken", "AADToken"];
const COMPUTE_TYPES: &[&str] = &["Managed", "Kubernetes", "AzureMLCompute"];

impl Checks<'_, '_> {
    pub(super) fn online_endpoint(&mut self, key: &RecordKey, properties: &Value) -> Result<(), store::Error> {
        self.word("properties.authMode", properties.get("authMode"), MODES);
        self.compute("properties.compute", properties.get("compute"))?;
        let others = self.references.tx.records_named(Kind::OnlineEndpoint.table(), &key.name)?;
        if let Some(other) = others.iter().find(|other| other.key.workspace != key.workspace) {
            let message = format!("workspace `{}` has an endpoint of this name", other.key.workspace);
            self.mistake("name", message, "choose another: its address names an endpoint without its workspace");
        }
        self.router_properties(&properties["properties"]);
        let known = self.deployments(Kind::OnlineDeployment, key)?;
        let live = self.shares("properties.traffic", properties.get("traffic"), &known, 100);
        let total: i64 = live.iter().map(|(_, share)| share).sum();
        if total != 0 && total != 100 {
            let message = format!("the shares add up to {total}");
            self.mistake("properties.traffic", message, "make them add up to 100, or give none");
        }
        let mirrored = self.shares("properties.mirrorTraffic", properties.get("mirrorTraffic"), &known, 50);
        for (name, _) in &mirrored {
            if live.iter().any(|(other, _)| other == name) {
                let message = format!("deployment `{name}` has live traffic as well");
                self.mistake("properties.mirrorTraffic", message, "mirror to a deployment without live traffic");
            }
        }
        if mirrored.len() > 1 {
            self.mistake("properties.mirrorTraffic", "it names more than one deployment", "mirror to one deployment");
        }
        Ok(())
    }

    /// What an endpoint tells its routers in properties of ours.
    fn router_properties(&mut self, written: &Value) {
        let at = |key: &str| format!("properties.properties.{key}");
        if let Some(Err(bad)) = written[CORS].as_str().map(Cors::parse) {
            let fix = "write `*`, or origins such as `https://app.example` with commas between them";
            self.mistake(&at(CORS), format!("`{bad}` is not an origin"), fix);
        }
        if written[MAX_BODY].as_str().is_some_and(|text| parse_bytes(text).is_none_or(|bytes| bytes == 0)) {
            self.mistake(&at(MAX_BODY), "it is not an amount of bytes", "such as `\"104857600\"` or `\"100Mi\"`");
        }
    }

    /// Shares above zero, by deployment; every name must be there.
    fn shares(&mut self, at: &str, value: Option<&Value>, known: &[String], most: i64) -> Vec<(String, i64)> {
        let Some(value) = there(value) else { return Vec::new() };
        let Some(map) = value.as_object() else {
            self.mistake(at, "it is not a map of deployments to shares", "write it like `{\"blue\": 100}`");
            return Vec::new();
        };
        let mut shares = Vec::new();
        for (name, value) in map {
            let Some(share) = self.number(&format!("{at}.{name}"), Some(value), 0, most).filter(|n| *n > 0) else {
                continue;
            };
            if !known.contains(name) {
                let list = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
                let message = format!("there is no deployment `{name}` (there are: {list})");
                self.mistake(at, message, "create the deployment first");
            }
            shares.push((name.clone(), share));
        }
        shares
    }

    pub(super) fn online_deployment(
        &mut self,
        body: &Value,
        properties: &Value,
        offered: &[String],
    ) -> Result<(), store::Error> {
        self.word("properties.endpointComputeType", properties.get("endpointComputeType"), COMPUTE_TYPES);
        self.asset("properties.model", "models", properties.get("model").filter(|model| model.is_string()))?;
        self.asset("properties.environmentId", "environments", properties.get("environmentId"))?;
        self.code(properties)?;
        let managed =
            properties["endpointComputeType"].as_str().is_none_or(|kind| kind.eq_ignore_ascii_case("managed"));
        if managed && let Some(name) = self.text("properties.instanceType", properties.get("instanceType")) {
            let known = sizes::find(&name).is_some() || offered.iter().any(|kind| kind.eq_ignore_ascii_case(&name));
            if !known {
                let sizes = sizes::list().iter().map(|size| size.name);
                let list = offered.iter().map(String::as_str).chain(sizes).collect::<Vec<_>>().join(", ");
                let message = format!("there is no machine size `{name}` (there are: {list})");
                self.mistake("properties.instanceType", message, "`peregrine compute list-sizes` shows what they have");
            }
        }
        let capacity = body.get("sku").and_then(|sku| sku.get("capacity"));
        self.number("sku.capacity", capacity, 0, 10_000);
        self.scale(properties.get("scaleSettings"));
        let requests = &properties["requestSettings"];
        self.number(
            "properties.requestSettings.maxConcurrentRequestsPerInstance",
            requests.get("maxConcurrentRequestsPerInstance"),
            1,
            100_000,
        );
        for key in ["requestTimeout", "maxQueueWait"] {
            self.duration(&format!("properties.requestSettings.{key}"), requests.get(key));
        }
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            self.probe(probe, &properties[probe]);
        }
        Ok(())
    }

    /// The folder of a scoring script.
    pub(super) fn code(&mut self, properties: &Value) -> Result<(), store::Error> {
        let code = properties["codeConfiguration"].get("codeId");
        self.asset("properties.codeConfiguration.codeId", "codes", code)
    }

    fn scale(&mut self, scale: Option<&Value>) {
        let Some(scale) = there(scale) else { return };
        let at = |key: &str| format!("properties.scaleSettings.{key}");
        self.word(&at("scaleType"), scale.get("scaleType"), &["Default", "TargetUtilization"]);
        let least = self.number(&at("minInstances"), scale.get("minInstances"), 0, 10_000);
        let most = self.number(&at("maxInstances"), scale.get("maxInstances"), 0, 10_000);
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            let message = format!("at least {least} instances are asked for and at most {most}");
            self.mistake(&at("minInstances"), message, "make it no more than `maxInstances`");
        }
        self.number(&at("targetUtilizationPercentage"), scale.get("targetUtilizationPercentage"), 1, 100);
        self.duration(&at("pollingInterval"), scale.get("pollingInterval"));
    }

    fn probe(&mut self, name: &str, probe: &Value) {
        let at = |key: &str| format!("properties.{name}.{key}");
        for key in ["initialDelay", "period", "timeout"] {
            self.duration(&at(key), probe.get(key));
        }
        for key in ["failureThreshold", "successThreshold"] {
            self.number(&at(key), probe.get(key), 1, 100_000);
        }
    }
}
