//! Whether an endpoint answers: from the states of the deployments behind it and the replicas that are ready.
//!
//! Invariant: an endpoint is called healthy only where every deployment that traffic goes to has a replica that takes requests,
//! or may have none and starts one when it is asked.

use super::serving::words;
use domain::serving::Provisioning;
use serde_json::Value;
use store::{Error, RecordRow, ReplicaRow, ServingRow, Tx};

/// How an endpoint is, in one word and in a sentence.
pub(super) struct Health {
    pub(super) word: &'static str,
    pub(super) why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Answers,
    Asleep,
    Starting,
    Fails,
}

impl Health {
    pub(super) fn look(tx: &mut Tx<'_>, endpoint: &RecordRow, body: &Value) -> Result<Health, Error> {
        let mut behind = Vec::new();
        for row in tx.servings_of(&endpoint.key.workspace, &endpoint.key.name)? {
            if row.state == Provisioning::Deleting {
                continue;
            }
            let replicas = tx.replicas_of(&row.key)?.into_iter().filter(|replica| replica.gone_at.is_none()).collect();
            let share = body["properties"]["traffic"][&row.key.deployment].as_u64().unwrap_or(0);
            behind.push((row, replicas, share));
        }
        Ok(judge(&behind))
    }
}

fn judge(behind: &[(ServingRow, Vec<ReplicaRow>, u64)]) -> Health {
    if behind.is_empty() {
        return Health { word: "Empty", why: "no deployment is behind it".to_owned() };
    }
    let carries = behind.iter().any(|(_, _, share)| *share > 0);
    let asked: Vec<_> = behind.iter().filter(|(_, _, share)| !carries || *share > 0).collect();
    let hows: Vec<How> = asked.iter().map(|(row, replicas, _)| how(row, replicas)).collect();
    let some = |wanted: How| hows.contains(&wanted);
    let (word, because) = match (some(How::Answers) || some(How::Asleep), some(How::Starting), some(How::Fails)) {
        (true, _, true) => ("Degraded", How::Fails),
        (false, _, true) => ("Failing", How::Fails),
        (_, true, false) => ("Starting", How::Starting),
        (_, false, false) if some(How::Answers) => ("Healthy", How::Answers),
        _ => ("Asleep", How::Asleep),
    };
    let fitting = asked.iter().zip(&hows).filter(|(_, how)| **how == because);
    let said = fitting.map(|((row, replicas, _), _)| format!("`{}`: {}", row.key.deployment, words(row, replicas)));
    let why = said.collect::<Vec<_>>().join("; ");
    let silent = if carries { "" } else { "no deployment gets traffic; " };
    Health { word, why: format!("{silent}{why}") }
}

fn how(row: &ServingRow, replicas: &[ReplicaRow]) -> How {
    let ready = replicas.iter().any(|replica| replica.takes_requests().is_some());
    match &row.state {
        _ if ready => How::Answers,
        Provisioning::Failed(_) => How::Fails,
        Provisioning::Succeeded if row.settings.scale.least == 0 && replicas.is_empty() => How::Asleep,
        // It has answered before and does not now.
        Provisioning::Succeeded => How::Fails,
        _ => How::Starting,
    }
}
