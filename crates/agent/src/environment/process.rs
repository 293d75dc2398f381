//! Running one build step: a child whose output becomes log lines as it is made.
//!
//! Invariants: the child leads its own process group, which is gone when `run` returns or its future is dropped;
//! a line is at most [`LONGEST_LINE`] bytes, so no output can fill memory.

use super::Log;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{collections::VecDeque, ffi::OsStr, io, process::Stdio, time::Duration};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    process::{Child, Command},
    time::timeout,
};

const LONGEST_LINE: usize = 8 << 10;
/// How many last lines a failure carries.
const TAIL_LINES: usize = 15;
/// How long output may still arrive after the child and its group are gone.
const DRAIN: Duration = Duration::from_secs(2);

/// A step that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    #[error("`{program}` cannot be started")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("`{program}` ended with {status}:\n{tail}")]
    Status { program: String, status: String, tail: String },
}

/// Runs the command to its end, both outputs going to `log` line by line.
pub(crate) async fn run(mut command: Command, log: &dyn Log) -> Result<(), Failed> {
    let program = name_of(&command);
    let start = |source| Failed::Start { program: program.clone(), source };
    let (reader, writer) = io::pipe().map_err(start)?;
    let mut output = pipe::Receiver::from_owned_fd(reader.into()).map_err(start)?;
    command.stdout(writer.try_clone().map_err(start)?).stderr(writer);
    let mut child = Group::start(&mut command).map_err(start)?;
    // The command keeps its copies of the pipe's end; without dropping them the output would never end.
    drop(command);

    let mut lines = Lines::new(log);
    let status = loop {
        tokio::select! {
            status = child.leader.wait() => break status.map_err(start)?,
            read = lines.read(&mut output) => if read.map_err(start)? == 0 { break child.leader.wait().await.map_err(start)? },
        }
    };
    drop(child);
    let _unread = timeout(DRAIN, async { while matches!(lines.read(&mut output).await, Ok(n) if n > 0) {} }).await;
    lines.finish();
    match status.success() {
        true => Ok(()),
        false => Err(Failed::Status { program, status: in_words(status), tail: lines.tail() }),
    }
}

/// Runs the command and gives its standard output; `None` if it failed or took longer than `limit`.
pub(crate) async fn ask(command: &mut Command, limit: Duration) -> Option<String> {
    command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = Group::start(command).ok()?;
    let mut stdout = child.leader.stdout.take()?;
    let answer = async {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).await.ok()?;
        let status = child.leader.wait().await.ok()?;
        status.success().then(|| String::from_utf8_lossy(&text).into_owned())
    };
    timeout(limit, answer).await.ok().flatten()
}

/// A child and whatever it starts; dropping it kills them all.
struct Group {
    leader: Child,
    id: Option<Pid>,
}

impl Group {
    fn start(command: &mut Command) -> io::Result<Group> {
        let leader = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Group { leader, id })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group outlives its leader only while it has members, and its number is not given out again before that.
        if let Some(id) = self.id {
            let _nobody_left = kill_process_group(id, Signal::KILL);
        }
    }
}

/// Cuts a stream of bytes into lines, remembering the last few.
struct Lines<'l> {
    log: &'l dyn Log,
    partial: Vec<u8>,
    last: VecDeque<String>,
    buffer: Box<[u8]>,
}

impl<'l> Lines<'l> {
    fn new(log: &'l dyn Log) -> Lines<'l> {
        Lines { log, partial: Vec::new(), last: VecDeque::new(), buffer: vec![0; 16 << 10].into() }
    }

    async fn read(&mut self, from: &mut pipe::Receiver) -> io::Result<usize> {
        let n = from.read(&mut self.buffer).await?;
        let bytes = std::mem::take(&mut self.buffer);
        for byte in &bytes[..n] {
            match byte {
                b'\n' | b'\r' => self.finish(),
                byte => self.partial.push(*byte),
            }
            if self.partial.len() >= LONGEST_LINE {
                self.finish();
            }
        }
        self.buffer = bytes;
        Ok(n)
    }

    fn finish(&mut self) {
        let line = String::from_utf8_lossy(&self.partial).trim_end().to_owned();
        self.partial.clear();
        if line.is_empty() {
            return;
        }
        self.log.line(&line);
        if self.last.len() == TAIL_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    fn tail(&self) -> String {
        self.last.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// The program's file name and its first argument, such as `uv pip`.
fn name_of(command: &Command) -> String {
    let command = command.as_std();
    let file = std::path::Path::new(command.get_program()).file_name().unwrap_or_else(|| command.get_program());
    let first = command.get_args().next().filter(|arg| !arg.as_encoded_bytes().starts_with(b"-"));
    let parts: Vec<_> = std::iter::once(file).chain(first).map(OsStr::to_string_lossy).collect();
    parts.join(" ")
}

fn in_words(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);
    impl Log for Heard {
        fn line(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).stdin(Stdio::null());
        command
    }

    #[tokio::test]
    async fn both_outputs_are_heard_in_order_and_a_failure_carries_the_last_lines() {
        let heard = Heard::default();
        let error = run(shell("echo a; echo b >&2; printf 'c\\rd'; exit 3"), &heard).await.unwrap_err();
        assert_eq!(*heard.0.lock().unwrap(), ["a", "b", "c", "d"]);
        assert_eq!(error.to_string(), "`sh` ended with exit code 3:\na\nb\nc\nd");
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut() {
        let heard = Heard::default();
        run(shell("head -c 100000 /dev/zero | tr '\\0' x"), &heard).await.unwrap();
        let lines = heard.0.lock().unwrap();
        assert_eq!((lines.len(), lines[0].len()), (13, LONGEST_LINE));
    }

    #[tokio::test]
    async fn a_grandchild_does_not_outlive_the_step() {
        let heard = Heard::default();
        run(shell("sleep 600 & echo $!"), &heard).await.unwrap();
        let pid = heard.0.lock().unwrap()[0].clone();
        // It has been killed; only its last moments are left to wait for.
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z ") {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_program_that_is_missing_is_named() {
        let error = run(Command::new("/no/such/uv"), &Heard::default()).await.unwrap_err();
        assert_eq!(error.to_string(), "`uv` cannot be started");
    }

    #[tokio::test]
    async fn an_answer_that_takes_too_long_is_none() {
        assert_eq!(ask(&mut shell("echo hi"), Duration::from_secs(5)).await.as_deref(), Some("hi\n"));
        assert_eq!(ask(&mut shell("sleep 600"), Duration::from_millis(20)).await, None);
        assert_eq!(ask(&mut shell("exit 1"), Duration::from_secs(5)).await, None);
    }
}
