//! A sweep over standard input and output, for measurements of the samplers.
//!
//! The first line is `{"sweep": ..., "seed": n}` with the keys of a sweep's file. Every trial to start is printed as
//! `{"number", "values", "ms"}`, with the time its pass took; every further line, `{"number", "value"}`, ends one. A line without a value is
//! a trial that failed. The last line printed is `{"end": ...}`.

use domain::{Timestamp, spec::Sweep};
use planner::sweep::{Series, Stage, SweepDecision, SweepWorld, Trial, advance};
use serde_json::{Value, json};
use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut lines = io::stdin().lines();
    let first: Value = serde_json::from_str(&lines.next().expect("a first line")?)?;
    let sweep = Sweep::of(&first["sweep"]).expect("a sweep that makes sense");
    let mut trials: Vec<Trial> = Vec::new();
    let mut out = io::stdout().lock();
    loop {
        let world = SweepWorld {
            sweep: &sweep,
            seed: first["seed"].as_u64().unwrap_or(0),
            since: Timestamp(0),
            now: Timestamp(0),
            stop: None,
            trials: &trials,
            earlier: &[],
        };
        #[expect(clippy::disallowed_methods, reason = "this is what is measured")]
        let began = std::time::Instant::now();
        let decisions = advance(&world);
        let ms = began.elapsed().as_secs_f64() * 1e3 / decisions.len().max(1) as f64;
        for decision in decisions {
            match decision {
                SweepDecision::Start { number, values } => {
                    writeln!(out, "{}", json!({"number": number, "values": values, "ms": ms}))?;
                    let series = Series::new(sweep.objective.goal);
                    trials.push(Trial { number, values, stage: Stage::Live, series, judged: 0 });
                }
                SweepDecision::End { best, .. } => return writeln!(out, "{}", json!({"end": best})),
                SweepDecision::Stop { .. } | SweepDecision::Keep { .. } => {}
            }
        }
        out.flush()?;
        let Some(line) = lines.next() else { return Ok(()) };
        let ended: Value = serde_json::from_str(&line?)?;
        let trial = &mut trials[ended["number"].as_u64().unwrap_or(0) as usize];
        match ended["value"].as_f64() {
            Some(value) => {
                trial.series.push(value);
                trial.stage = Stage::Completed;
            }
            None => trial.stage = Stage::Failed("told so".into()),
        }
    }
}
