//! Reuse: a job that is to run is not, where an earlier one was the same in all that matters and its outputs are there.

use domain::{JobEvent, Place, Plan, likeness};
use serde_json::{Value, json};
use store::{Error, NewJob, Tx};

/// Accepts a job that an earlier one may stand for, and says in its story which one does or why none does.
pub(super) fn begin(tx: &mut Tx<'_>, new: &mut NewJob, mut body: Value) -> Result<i64, Error> {
    let fields = likeness::of(&new.plan);
    let mut gone = None;
    for (original, name) in tx.alike(&new.workspace, &fields)? {
        let plan = tx.plan(original)?.unwrap_or_default();
        match missing(&plan) {
            None => return stand_in(tx, new, body, (&name, plan)),
            Some(output) => {
                gone =
                    gone.or(Some(format!("job `{name}` is the same, and its output `{output}` is not there any more")))
            }
        }
    }
    let lineage = lineage(new);
    let why = match (gone, tx.differs_from_last(&new.workspace, &lineage, &fields)?) {
        (Some(gone), _) => gone,
        (None, None) => "no earlier job of this step is on record".to_owned(),
        (None, Some((last, differing))) if differing.is_empty() => {
            format!("job `{last}` is the same and has not completed")
        }
        (None, Some((last, differing))) => {
            format!(
                "it differs from job `{last}` in {}",
                differing.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ")
            )
        }
    };
    body["properties"]["azureml.isreused"] = json!("false");
    new.body = body.to_string();
    let seq = tx.insert_job(new)?;
    tx.add_event(seq, new.at, "reuse", &format!("it runs anew: {why}"))?;
    tx.put_likeness(seq, (&new.workspace, &lineage), &fields)?;
    Ok(seq)
}

/// The same step of the same experiment, run after run.
fn lineage(new: &NewJob) -> String {
    format!("{}/{}", new.experiment, new.parent.as_ref().map_or("", |part| part.step.as_str()))
}

/// The job is born completed, with the outputs, logs and metrics of the original.
fn stand_in(tx: &mut Tx<'_>, new: &mut NewJob, mut body: Value, (name, plan): (&str, Plan)) -> Result<i64, Error> {
    body["properties"]["azureml.isreused"] = json!("true");
    body["properties"]["azureml.reusedrunid"] = json!(name);
    new.body = body.to_string();
    (new.plan.outputs, new.plan.artifacts) = (plan.outputs, plan.artifacts);
    new.reused = Some(name.to_owned());
    let seq = tx.insert_job(new)?;
    let mut job = tx.job_by_seq(seq)?.ok_or_else(|| Error::Decode(format!("job {seq} is gone")))?;
    job.apply(JobEvent::Reused, new.at).map_err(|illegal| Error::Decode(illegal.to_string()))?;
    let text = format!(
        "not run: job `{name}` is the same in everything that matters; its outputs, logs and metrics are taken"
    );
    tx.add_event(seq, new.at, "reused", &text)?;
    tx.put_job(&job, Some(&text), new.at)?;
    tx.copy_logged(&new.workspace, name, new.name.as_str())?;
    Ok(seq)
}

/// An output that cannot be seen to exist.
fn missing(plan: &Plan) -> Option<&String> {
    let there = |place: &Place| matches!(place, Place::Folder { path } if path.exists());
    plan.outputs.iter().find(|(_, output)| !there(&output.place)).map(|(name, _)| name)
}
