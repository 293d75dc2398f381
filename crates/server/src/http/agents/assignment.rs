//! An assignment: the plan of a job with what only the server can add to it, when it is handed to the agent that runs it.

use crate::{
    app::{App, scope},
    auth::job_token,
    problem::Problem,
};
use domain::{Assignment, AttemptId, Place, Timestamp};
use std::collections::{BTreeMap, HashSet};
use store::{Error, Tx};

const TOKEN_LIFE_MS: i64 = 30 * 24 * 3_600_000;

/// What an agent is to run, unless the job has moved on meanwhile.
pub(super) fn of(tx: &mut Tx<'_>, attempt: AttemptId) -> Result<Option<Assignment>, Error> {
    let Some(job) = attempt.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten() else { return Ok(None) };
    if job.state.attempt() != Some(&attempt) {
        return Ok(None);
    }
    let plan = tx.plan(job.seq)?.ok_or_else(|| Error::Decode(format!("job {} has no plan", job.name)))?;
    let mut secrets = BTreeMap::new();
    for datastore in datastores_of(&plan) {
        let secret = tx.datastore_secret(&job.workspace, &datastore)?;
        secrets.insert(datastore, secret);
    }
    let run = tx.run(&job.workspace, job.name.as_str())?;
    let experiment = run.map(|run| tx.experiment(&job.workspace, run.number)).transpose()?.flatten();
    let mut server_variables = BTreeMap::new();
    if let Some(experiment) = experiment {
        server_variables.insert("MLFLOW_EXPERIMENT_ID".to_owned(), experiment.number.to_string());
        server_variables.insert("AZUREML_EXPERIMENT_ID".to_owned(), experiment.number.to_string());
        server_variables.insert("MLFLOW_EXPERIMENT_NAME".to_owned(), experiment.name.clone());
        server_variables.insert("AZUREML_ARM_PROJECT_NAME".to_owned(), experiment.name);
    }
    Ok(Some(Assignment {
        number: job.attempts.saturating_sub(1),
        workspace: job.workspace.clone(),
        job: job.name.clone(),
        priority: job.priority,
        turn: tx.turn(job.seq)?,
        attempt,
        plan,
        part: None,
        secrets,
        server_variables,
    }))
}

fn datastores_of(plan: &domain::Plan) -> HashSet<String> {
    let named = plan.places().filter_map(|(place, _)| match place {
        Place::Object { datastore, .. } if !datastore.is_empty() => Some(datastore.clone()),
        _ => None,
    });
    named.collect()
}

/// With what a job's process is told about its workspace and its server, which it reaches at `url`.
pub(super) async fn complete(app: &App, mut assignment: Assignment, url: &str) -> Result<Assignment, Problem> {
    let row = app.workspace(&assignment.workspace).await?;
    if assignment.plan.serve.is_some() {
        // A replica has no run to log to, and answers to its callers only.
        return Ok(assignment);
    }
    let expires = Timestamp(app.now().0 + TOKEN_LIFE_MS);
    let token = job_token(app.store.keyring(), &assignment.workspace, assignment.job.as_str(), expires);
    let job = assignment.job.to_string();
    let mut set = |name: &str, value: String| drop(assignment.server_variables.insert(name.to_owned(), value));
    set("MLFLOW_TRACKING_URI", format!("{url}/mlflow/v1.0{}", scope(&row).path()));
    set("MLFLOW_TRACKING_TOKEN", token.clone());
    set("MLFLOW_RUN_ID", job);
    set("AZUREML_ARM_SUBSCRIPTION", row.subscription.clone());
    set("AZUREML_ARM_RESOURCEGROUP", row.resource_group.clone());
    set("AZUREML_WORKSPACE_ID", row.id.clone());
    set("AZUREML_ARM_WORKSPACE_NAME", row.name.clone());
    set("IDENTITY_ENDPOINT", format!("{url}/msi/token"));
    set("IDENTITY_HEADER", token.clone());
    set("ARM_CLOUD_METADATA_URL", format!("{url}/metadata/endpoints?api-version=2019-05-01"));
    set("AZUREML_CURRENT_CLOUD", crate::http::identity::CLOUD.to_owned());
    set("AZUREML_RUN_TOKEN", token);
    set("AZUREML_RUN_TOKEN_EXPIRY", (expires.0 / 1000).to_string());
    if assignment.plan.parallel.is_some() {
        // By which the parts of this attempt know each other.
        set("PEREGRINE_GANG_KEY", app.store.keyring().sign(&format!("gang/{}", assignment.attempt)));
    }
    set("AZUREML_SERVICE_ENDPOINT", url.to_owned());
    set("AZUREML_DISCOVERY_SERVICE_ENDPOINT", format!("{url}/discovery"));
    Ok(assignment)
}
