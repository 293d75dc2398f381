//! Reuse: a job that is to run is not, where an earlier one was the same in all that matters and what it left is there
//! as it left it.

use super::traces::{self, Traces};
use domain::{JobEvent, Place, Plan, PlannedInput, likeness};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{Error, NewJob, Tx};

type Fields = BTreeMap<String, String>;

/// Under what it is noted whether a job's logs are there. No output is called so.
const LOGS: &str = "its logs";

/// Accepts a job that an earlier one may stand for, and says in its story which one does or why none does.
pub(super) fn begin(tx: &mut Tx<'_>, new: &mut NewJob, mut body: Value, traces: &mut Traces) -> Result<i64, Error> {
    let mut fields = likeness::of(&new.plan);
    fields.extend(asked(&body));
    let mut hindrance = traced(&new.plan, traces, &mut fields).err();
    if hindrance.is_none() {
        for (original, name) in tx.alike(&new.workspace, &fields)? {
            let plan = tx.plan(original)?.unwrap_or_default();
            match spoiled(tx, original, &plan)? {
                None => return stand_in(tx, new, body, (&name, plan)),
                Some(how) => hindrance = hindrance.or(Some(format!("job `{name}` is the same, and {how}"))),
            }
        }
    }
    let lineage = lineage(new);
    let why = match hindrance {
        Some(why) => why,
        None => differs(tx.differs_from_last(&new.workspace, &lineage, &fields)?),
    };
    body["properties"]["azureml.isreused"] = json!("false");
    new.body = body.to_string();
    let seq = tx.insert_job(new)?;
    tx.add_event(seq, new.at, "reuse", &format!("it runs anew: {why}"))?;
    tx.put_likeness(seq, (&new.workspace, &lineage), &fields)?;
    Ok(seq)
}

/// Notes what a job that completed left, so that it can be told later whether that is still so.
pub(super) fn left_by(tx: &mut Tx<'_>, seq: i64) -> Result<(), Error> {
    let plan = tx.plan(seq)?.unwrap_or_default();
    tx.put_left(seq, &left(&plan))
}

fn differs(last: Option<(String, Vec<String>)>) -> String {
    match last {
        None => "no earlier job of this step is on record".to_owned(),
        Some((last, differing)) if differing.is_empty() => format!("job `{last}` is the same and has not completed"),
        Some((last, differing)) => {
            let named: Vec<String> = differing.iter().map(|one| format!("`{one}`")).collect();
            format!("it differs from job `{last}` in {}", named.join(", "))
        }
    }
}

/// What is asked of the outputs: where they are to lie and as which assets. Others would not find them there.
fn asked(body: &Value) -> Fields {
    let words = [("uri", "path"), ("assetName", "name"), ("assetVersion", "version")];
    let outputs = body["outputs"].as_object().into_iter().flatten();
    let of_output = |(name, output): (&String, &Value)| {
        let named =
            words.map(|(key, shown)| Some((format!("outputs.{name}.{shown}"), output[key].as_str()?.to_owned())));
        named.into_iter().flatten().collect::<Vec<_>>()
    };
    outputs.flat_map(of_output).collect()
}

/// Adds what lies at the places of the inputs; the reason where that cannot be told of one.
fn traced(plan: &Plan, traces: &mut Traces, fields: &mut Fields) -> Result<(), String> {
    for (name, input) in &plan.inputs {
        let PlannedInput::Data { place, .. } = input else { continue };
        let trace = traces
            .of(place)
            .map_err(|why| format!("whether the files of input `{name}` have changed cannot be told: {why}"))?;
        fields.insert(format!("inputs.{name} (its files)"), trace);
    }
    Ok(())
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

/// What a job left, by output, and whether it left logs.
fn left(plan: &Plan) -> Fields {
    let logs = matches!(&plan.artifacts, Place::Folder { path } if path.join("user_logs").is_dir());
    let outputs = plan.outputs.iter().map(|(name, output)| (name.clone(), traces::of(&output.place)));
    let mut left: Fields = outputs.filter_map(|(name, trace)| Some((name, trace.ok()?))).collect();
    left.insert(LOGS.to_owned(), logs.to_string());
    left
}

/// What of that which a job left is not as it was.
fn spoiled(tx: &mut Tx<'_>, seq: i64, plan: &Plan) -> Result<Option<String>, Error> {
    let now = left(plan);
    let Some(differing) = tx.left_differs(seq, &now)? else {
        return Ok(Some("what it left was not noted".to_owned()));
    };
    if differing.iter().any(|name| name == LOGS) {
        return Ok(Some("its logs are not there any more".to_owned()));
    }
    let (unseen, changed) = (plan.outputs.keys().find(|name| !now.contains_key(*name)), differing.first());
    Ok(match (unseen, changed) {
        (Some(output), _) => Some(format!("its output `{output}` is not there any more, or cannot be looked at")),
        (None, Some(output)) => Some(format!("its output `{output}` was changed since")),
        (None, None) => None,
    })
}
