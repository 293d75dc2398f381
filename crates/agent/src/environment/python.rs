//! Choosing the interpreter for an environment.
//!
//! Order: the host's `python3` if it is accepted, else the newest accepted one on this machine, else the same minor
//! release, else one that uv can fetch quickly, else the host's own with a notice. Invariant: what is chosen has
//! been run, so a stand-in that only prints an error is never chosen.

use super::{
    Error, Log,
    host::Host,
    process,
    versions::{self, Version, Versions},
};
use futures_util::future::join_all;
use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::process::Command;

/// A Python that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interpreter {
    pub program: PathBuf,
    pub version: Version,
}

/// The interpreter to use, and what to tell the user where it is not the one asked for.
pub(crate) struct Choice {
    pub interpreter: Interpreter,
    pub notice: Option<String>,
}

const PROBE: &str = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";
const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// Fetching an interpreter takes seconds where it works at all.
const FETCH_LIMIT: Duration = Duration::from_secs(120);

/// Where uv may fetch an interpreter to, and by what.
pub(crate) struct Fetch<'a> {
    pub uv: Option<&'a Path>,
    pub to: &'a Path,
}

/// Finds an interpreter for `asked`.
pub(crate) async fn choose(host: &Host, asked: Option<&str>, fetch: Fetch<'_>, log: &dyn Log) -> Result<Choice, Error> {
    let own = own(host).await;
    let Some(asked) = asked else {
        return plain(own.ok_or(Error::NoPython { asked: "3".to_owned() })?);
    };
    let wanted = Versions::parse(asked).ok_or_else(|| Error::BadPython { asked: asked.to_owned() })?;
    if let Some(own) = own.as_ref().filter(|own| wanted.accepts(own.version)) {
        return plain(own.clone());
    }
    let all = all(host).await;
    if let Some(found) = newest(&all, &wanted) {
        return plain(found);
    }
    let loose = wanted.loosened();
    if let Some(found) = newest(&all, &loose).filter(|_| wanted.is_exact()) {
        return instead(asked, found);
    }
    if let Some(found) = fetched(&wanted, fetch, log).await {
        return plain(found);
    }
    instead(
        asked,
        own.or_else(|| newest(&all, &Versions::parse("3")?)).ok_or(Error::NoPython { asked: asked.to_owned() })?,
    )
}

fn plain(interpreter: Interpreter) -> Result<Choice, Error> {
    Ok(Choice { interpreter, notice: None })
}

fn instead(asked: &str, interpreter: Interpreter) -> Result<Choice, Error> {
    let using = versions::humane(interpreter.version);
    let notice = format!("asked for Python {asked}, which is not on this machine; using {using}");
    Ok(Choice { interpreter, notice: Some(notice) })
}

/// The Python a shell on this machine starts.
pub(crate) async fn own(host: &Host) -> Option<Interpreter> {
    for name in ["python3", "python"] {
        let Some(program) = host.which(name) else { continue };
        if let Some(found) = probe(&program).await {
            return Some(found);
        }
    }
    None
}

async fn all(host: &Host) -> Vec<Interpreter> {
    let programs = host.pythons();
    join_all(programs.iter().map(|program| probe(program))).await.into_iter().flatten().collect()
}

fn newest(all: &[Interpreter], wanted: &Versions) -> Option<Interpreter> {
    all.iter().filter(|found| wanted.accepts(found.version)).max_by_key(|found| found.version).cloned()
}

/// Asks the program itself, since names on the path lie. Python 2 does not know `-I` and so falls out.
async fn probe(program: &Path) -> Option<Interpreter> {
    let answer = process::ask(Command::new(program).args(["-I", "-c", PROBE]), PROBE_LIMIT).await?;
    let mut lines = answer.lines();
    let version = versions::parse_version(lines.next()?)?;
    let real = PathBuf::from(lines.next()?.trim());
    Some(Interpreter { program: if real.is_absolute() { real } else { program.to_owned() }, version })
}

async fn fetched(wanted: &Versions, fetch: Fetch<'_>, log: &dyn Log) -> Option<Interpreter> {
    let uv = fetch.uv?;
    let spelled = wanted.for_uv();
    log.line(&format!("looking for a Python {spelled} to fetch"));
    let mut install = Command::new(uv);
    install.args(["python", "install", "--no-bin", "--no-progress", &spelled]);
    // A machine without a way out should notice at once.
    install
        .env("UV_HTTP_RETRIES", "0")
        .env("UV_PYTHON_INSTALL_DIR", fetch.to)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    if !matches!(tokio::time::timeout(FETCH_LIMIT, process::run(install, &Quiet)).await, Ok(Ok(()))) {
        log.line("none can be fetched");
        return None;
    }
    let here = Host { path: Default::default(), python_roots: vec![fetch.to.to_owned()] };
    newest(&all(&here).await, wanted)
}

struct Quiet;
impl Log for Quiet {
    fn line(&self, _text: &str) {}
}
