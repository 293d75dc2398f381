//! Following a job that consists of steps: on a terminal their tree, drawn over itself; elsewhere a line for each change.

use super::{PATIENCE, detached, farewell};
use crate::{
    commands::{Session, job},
    failure::{Done, Exit},
    local,
    output::Output,
};
use domain::JobName;
use job::graph;
use serde_json::Value;
use std::{collections::HashMap, process::ExitCode, time::Duration};
use tokio::time::Instant;

/// How often the steps are asked for.
const EVERY: Duration = Duration::from_millis(500);
/// The most lines of a tree that are drawn; of a larger one, what is under way or failed.
const MOST: usize = 40;

/// Shows the steps of a job until it ends. The exit code is 1 unless it completed.
pub(super) async fn follow(mut session: Session<'_>, name: &JobName) -> Done<ExitCode> {
    let output = session.output();
    let mut drawn = Drawn { output, lines: 0, told: HashMap::new() };
    let over = tokio::select! {
        followed = until_over(&mut session, name, &mut drawn) => Some(followed),
        _ = tokio::signal::ctrl_c() => None,
    };
    match over {
        Some(followed) => followed?,
        None => return Ok(detached(output, name)),
    }
    let job = job::fetch(&session, name).await?;
    Ok(farewell(output, name, &job))
}

async fn until_over(session: &mut Session<'_>, name: &JobName, drawn: &mut Drawn<'_>) -> Done {
    let mut away: Option<Instant> = None;
    loop {
        match graph::fetch(session, name).await {
            Ok(found) => {
                away = None;
                drawn.show(graph::steps(&found));
                if matches!(found["status"].as_str(), Some("Completed" | "Failed" | "Canceled")) {
                    return Ok(());
                }
                tokio::time::sleep(EVERY).await;
            }
            Err(failure) if failure.exit == Exit::Unreachable => {
                if away.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                    return Err(failure);
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
                if let Ok(client) = local::connect(&session.context.config, false).await {
                    session.client = client;
                }
            }
            Err(failure) => return Err(failure),
        }
    }
}

struct Drawn<'a> {
    output: &'a Output,
    /// How many lines stand on the terminal.
    lines: usize,
    /// The status of each step that was told.
    told: HashMap<String, String>,
}

impl Drawn<'_> {
    fn show(&mut self, steps: &[Value]) {
        match self.output.shows_progress() {
            true => self.draw(steps),
            false => self.tell(steps),
        }
    }

    fn draw(&mut self, steps: &[Value]) {
        let busy = |step: &&Value| !matches!(step["status"].as_str(), Some("NotStarted" | "NotRun" | "Completed"));
        let lines = match steps.len() > MOST {
            true => {
                let shown: Vec<Value> = steps.iter().filter(busy).take(MOST).cloned().collect();
                let over = steps.iter().filter(|step| step["endedAt"].is_string()).count();
                let mut lines = graph::lines(&shown);
                lines.push(format!("{over} of {} steps are over", steps.len()));
                lines
            }
            false => graph::lines(steps),
        };
        let width = self.output.progress_width().saturating_sub(1);
        let mut text = if self.lines > 0 { format!("\x1b[{}A", self.lines) } else { String::new() };
        for line in &lines {
            text += &format!("\r\x1b[2K{}\n", line.chars().take(width).collect::<String>());
        }
        text += "\x1b[J";
        self.lines = lines.len();
        self.output.draw(&text);
    }

    fn tell(&mut self, steps: &[Value]) {
        for step in steps {
            let (name, status) =
                (step["name"].as_str().unwrap_or_default(), step["status"].as_str().unwrap_or_default());
            if self.told.get(name).is_some_and(|told| told == status) || matches!(status, "NotStarted" | "NotRun") {
                continue;
            }
            let why = step["message"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
            let reused = step["reused"].as_str().map(|from| format!(" (reused from `{from}`)")).unwrap_or_default();
            self.output.note(&format!("step `{name}`: {status}{reused}{why}"));
            self.told.insert(name.to_owned(), status.to_owned());
        }
    }
}
