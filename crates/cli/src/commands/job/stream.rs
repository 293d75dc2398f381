//! Following a job: its log on stdout byte for byte, where it is on stderr, and how it ended.
//!
//! Logs are read by byte offset, so nothing is shown twice or lost when the server goes away for a while. Before
//! the command runs, the log of the environment's build is followed instead, on stderr.

mod line;
mod steps;
mod tail;

use self::{
    line::StatusLine,
    tail::{From, Piece, Tail, Tails},
};
use super::{fetch, unknown, view};
use crate::{
    commands::Session,
    failure::{Doing, Done, Exit, Failure},
    local,
    output::{Output, duration_between},
    outside,
};
use api::ClientError;
use domain::JobName;
use serde_json::Value;
use std::{process::ExitCode, time::Duration};
use tokio::time::Instant;

/// How long a server may be away before following it is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the time in the line moves on.
const REDRAW: Duration = Duration::from_millis(250);
const BUILD_LOG: &str = "system_logs/environment.log";

/// Shows a job until it ends. The exit code is 1 unless it completed.
pub(super) async fn follow(session: Session<'_>, name: &JobName) -> Done<ExitCode> {
    let output = session.output();
    let job = fetch(&session, name).await?;
    if matches!(job["properties"]["jobType"].as_str(), Some("Pipeline" | "Sweep")) {
        return steps::follow(session, name).await;
    }
    let mut follower = Follower { name, line: StatusLine::new(output), away_since: None, wrote: false, session };
    let followed = tokio::select! {
        followed = follower.run(&job) => Some(followed),
        _ = tokio::signal::ctrl_c() => None,
    };
    follower.line.clear();
    match followed {
        Some(followed) => followed?,
        None => return Ok(detached(output, name)),
    }
    let job = fetch(&follower.session, name).await?;
    Ok(farewell(output, name, &job))
}

/// Every log file of a job, each under its name.
pub(super) async fn every_log(session: &Session<'_>, name: &JobName) -> Done<ExitCode> {
    let path = session.path(&format!("jobs/{name}/artifacts"));
    let found = session.find(&path).await.doing(|| format!("cannot list the logs of job `{name}`"))?;
    let Some(found) = found else { return Err(unknown(session, name)) };
    let mut logs: Vec<&str> =
        found["value"].as_array().into_iter().flatten().filter_map(|file| file["path"].as_str()).collect();
    logs.retain(|path| is_log(path));
    logs.sort_unstable();
    for log in logs {
        session.output().text(&format!("==> {log} <==\n"))?;
        let mut tail = Tail::new(log);
        let mut last = b'\n';
        loop {
            let piece = tail.read(session, name, 0).await?;
            let Some(end) = piece.bytes.last() else { break };
            last = *end;
            session.output().bytes(&piece.bytes)?;
        }
        session.output().text(if last == b'\n' { "\n" } else { "\n\n" })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_log(path: &str) -> bool {
    let top = path.split('/').next().unwrap_or(path);
    matches!(top, "user_logs" | "system_logs" | "logs" | "azureml-logs") || top.starts_with("retry-")
}

struct Follower<'a> {
    name: &'a JobName,
    session: Session<'a>,
    line: StatusLine<'a>,
    away_since: Option<Instant>,
    /// Some of the command's log was shown.
    wrote: bool,
}

impl Follower<'_> {
    async fn run(&mut self, job: &Value) -> Done {
        let mut tails = Tails { build: Tail::new(BUILD_LOG), log: Tail::new(&log_name(job)) };
        self.line.tell(view::status(job), phase(job), note(job));
        let mut running =
            !matches!(view::status(job), "Queued" | "Preparing" | "NotStarted" | "Starting" | "Provisioning");
        loop {
            let (from, piece) = self.read(&mut tails, running).await?;
            if from == From::Build {
                self.show_build(&piece);
            }
            if !running && piece.has_started() {
                self.finish_build(&mut tails.build).await;
                // A new attempt has a log of its own.
                let name = log_name(&fetch(&self.session, self.name).await?);
                if name != tails.log.path() {
                    tails.log = Tail::new(&name);
                }
            }
            if from == From::Log {
                self.show_log(&piece)?;
            }
            if from == From::Log && piece.over && piece.bytes.is_empty() {
                return self.other_log(&tails.log).await;
            }
            // A lost node sends a job back to the queue, and its next attempt has a new beginning.
            running = piece.has_started() || (running && !piece.bytes.is_empty());
        }
    }

    /// What the build said last, after the command had already started.
    async fn finish_build(&mut self, build: &mut Tail) {
        while let Ok(piece) = build.read(&self.session, self.name, 0).await {
            if piece.bytes.is_empty() {
                break;
            }
            self.show_build(&piece);
        }
    }

    fn show_build(&mut self, piece: &Piece) {
        if !piece.bytes.is_empty() {
            self.line.clear();
            self.session.output().draw(&String::from_utf8_lossy(&piece.bytes));
        }
        self.line.tell(&piece.status, &piece.phase, &piece.note);
    }

    fn show_log(&mut self, piece: &Piece) -> Done {
        if !piece.bytes.is_empty() {
            self.line.clear();
            self.wrote = true;
            self.session.output().bytes(&piece.bytes)?;
            self.line.at_line_start(piece.bytes.last() == Some(&b'\n'));
        }
        self.line.tell(&piece.status, &piece.phase, &piece.note);
        Ok(())
    }

    /// A job of several processes keeps a log for each; the first one's is shown where there is no common one.
    async fn other_log(&mut self, shown: &Tail) -> Done {
        if self.wrote {
            return Ok(());
        }
        let found = self.session.find(&self.session.path(&format!("jobs/{}/artifacts", self.name))).await?;
        let files = found.as_ref().and_then(|found| found["value"].as_array()).into_iter().flatten();
        let mut logs: Vec<&str> =
            files.filter_map(|file| file["path"].as_str()).filter(|path| path.starts_with("user_logs/")).collect();
        logs.sort_unstable();
        let Some(first) = logs.into_iter().find(|path| *path != shown.path()) else { return Ok(()) };
        let mut tail = Tail::new(first);
        loop {
            let piece = tail.read(&self.session, self.name, 0).await?;
            if piece.bytes.is_empty() {
                return Ok(());
            }
            self.show_log(&piece)?;
        }
    }

    /// Reads on, redrawing the line meanwhile and waiting for a server that is away.
    async fn read(&mut self, tails: &mut Tails, running: bool) -> Done<(From, Piece)> {
        loop {
            let answer = {
                let reading = tails.read(&self.session, self.name, running);
                tokio::pin!(reading);
                loop {
                    tokio::select! {
                        answer = &mut reading => break answer,
                        () = tokio::time::sleep(REDRAW) => self.line.redraw(),
                    }
                }
            };
            match answer {
                Ok(piece) => {
                    if self.away_since.take().is_some() {
                        self.line.say("the server is back");
                    }
                    return Ok(piece);
                }
                Err(error @ ClientError::Unreachable { .. }) => self.away(error).await?,
                Err(ClientError::Refused { status: 404, .. }) => return Err(unknown(&self.session, self.name)),
                Err(error) => return Err(Failure::from(error).doing(format!("cannot follow job `{}`", self.name))),
            }
        }
    }

    /// Waits a little and looks where the server is now; a restarted one may have another address.
    async fn away(&mut self, error: ClientError) -> Done {
        let since = *self.away_since.get_or_insert_with(|| {
            self.line.say("notice: the server does not answer; waiting for it, the job goes on meanwhile");
            Instant::now()
        });
        if since.elapsed() > PATIENCE {
            let back = format!("run `peregrine job stream -n {}` once it is back", self.name);
            return Err(Failure::from(error).doing(format!("lost the log of job `{}`", self.name)).hint(back));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        if let Ok(client) = local::connect(&self.session.context.config, false).await {
            self.session.client = client;
        }
        Ok(())
    }
}

fn log_name(job: &Value) -> String {
    let folder = job["properties"]["peregrine"]["logs"].as_str().unwrap_or("user_logs");
    match job["properties"]["distribution"].is_object() {
        true => format!("{folder}/std_log_process_0.txt"),
        false => format!("{folder}/std_log.txt"),
    }
}

fn phase(job: &Value) -> &str {
    job["properties"]["peregrine"]["phase"].as_str().unwrap_or_default()
}

fn note(job: &Value) -> &str {
    job["properties"]["peregrine"]["note"].as_str().unwrap_or_default()
}

fn detached(output: &Output, name: &JobName) -> ExitCode {
    output.always(&format!("\ndetached; job `{name}` goes on"));
    output.always(&format!(
        "hint: come back with `peregrine job stream -n {name}`, stop it with `peregrine job cancel -n {name}`"
    ));
    ExitCode::from(Exit::Interrupted as u8)
}

/// The last words about a job, and the exit code they deserve.
fn farewell(output: &Output, name: &JobName, job: &Value) -> ExitCode {
    let properties = &job["properties"];
    let details = &properties["peregrine"];
    let took = duration_between(&details["startedAt"], &details["endedAt"], outside::now());
    let took = if took.is_empty() { String::new() } else { format!(" after {took}") };
    let status = view::status(job);
    if status == "Completed" {
        output.note(&format!("\njob `{name}` completed{took}"));
        let outputs: Vec<&str> =
            properties["outputs"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        if !outputs.is_empty() {
            output.note(&format!("  outputs: {}", outputs.join(", ")));
        }
        output.note(&format!("hint: `peregrine job download -n {name} --all` fetches logs and outputs"));
        return ExitCode::SUCCESS;
    }
    let word = if status == "Canceled" { "was canceled" } else { "failed" };
    output.always(&format!("\nerror: job `{name}` {word}{took}"));
    if let Some(reason) = details["failure"]["message"]
        .as_str()
        .or(details["reason"].as_str())
        .or(details["note"].as_str())
        .filter(|text| !text.is_empty())
    {
        output.always(&format!("  because: {}", reason.replace('\n', "\n    ")));
    }
    // On a terminal the log has just gone by; elsewhere its end is worth repeating beside the error.
    let last =
        details["failure"]["lastLines"].as_str().or(details["failure"]["last_lines"].as_str()).unwrap_or_default();
    if !output.stdout_is_terminal() && !last.trim().is_empty() {
        output.always("  last lines:");
        last.trim_end().lines().for_each(|line| output.always(&format!("    {line}")));
    }
    output.always(&format!("hint: run `peregrine job why -n {name}`"));
    ExitCode::from(Exit::JobFailed as u8)
}
