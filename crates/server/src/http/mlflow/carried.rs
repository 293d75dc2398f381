//! What whoever moves things here from another server may say of them, beside what MLflow's own clients say: the id, the
//! number and the age they had there.
//!
//! It stands under `peregrine` in the body of a call that makes something. Invariant: only owners of the workspace may say
//! it, because it writes the past.

use super::{call::Call, fault::Fault};
use domain::{
    Role, Timestamp,
    tracking::{Stage, limits},
};
use serde::Deserialize;
use serde_json::Value;

/// What a thing keeps of where it comes from.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Carried {
    /// The id of a run or of a logged model.
    pub(super) id: Option<String>,
    /// The number of a version of a registered model.
    pub(super) version: Option<i64>,
    /// The stage such a version is in.
    stage: Option<String>,
    /// When it was made, in milliseconds.
    created_at: Option<i64>,
}

impl Carried {
    /// What a call carries; nothing for nearly every call.
    pub(super) fn of(call: &Call) -> Result<Carried, Fault> {
        let Some(said) = call.args.get("peregrine").filter(|said| !said.is_null()) else {
            return Ok(Carried::default());
        };
        if !call.by.caller.may(call.by.workspace(), Role::Owner) {
            let reason = "only an owner of the workspace may say which id, version or age something had elsewhere";
            return Err(Fault::forbidden(format!("`peregrine` in the body is refused: {reason}")));
        }
        let carried = Carried::deserialize(said).map_err(|error| bad(said, &error.to_string()))?;
        carried.id.as_deref().map(limits::run_id).transpose()?;
        match carried.version {
            Some(..=0) => Err(bad(said, "a version is a number from 1 on")),
            _ => Ok(carried),
        }
    }

    /// The stage of a version: the one it had, or none.
    pub(super) fn stage(&self) -> Result<Stage, Fault> {
        Ok(self.stage.as_deref().map(Stage::parse).transpose()?.unwrap_or(Stage::None))
    }

    /// When the thing was made: there, or here and now.
    pub(super) fn created_at(&self, now: Timestamp) -> Timestamp {
        self.created_at.filter(|at| *at > 0).map_or(now, Timestamp)
    }
}

fn bad(said: &Value, reason: &str) -> Fault {
    Fault::invalid(format!("Invalid value {} for parameter 'peregrine': {reason}", domain::tracking::text::json(said)))
}
