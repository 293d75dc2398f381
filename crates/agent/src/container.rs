//! Container engines: finding one that works, getting images, and the command line that runs one.
//!
//! Invariants: an engine is used only after it has answered; nothing a user wrote passes through a shell; values of
//! variables stay off the command line, where every user of the machine could read them.

mod run;

use crate::environment::{Log, host, process, request::hex};
use ring::digest;
pub use run::{Run, wrap};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Mutex,
    time::Duration,
};
use tokio::{process::Command, time::Instant};

/// Which command line an engine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Podman,
    Docker,
}

/// An engine that has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    pub kind: Kind,
    pub program: PathBuf,
}

/// An image an engine has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub engine: Engine,
    pub reference: String,
}

/// Why an image cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("image `{reference}` cannot be pulled (next step: check its name and the login of the container engine)")]
    Pull {
        reference: String,
        #[source]
        source: process::Failed,
    },
    #[error("`{dockerfile}` cannot be built (next step: see the build log)")]
    Build {
        dockerfile: String,
        #[source]
        source: process::Failed,
    },
    #[error("`{0}` is no name for an image")]
    BadReference(String),
    #[error("the build context `{}` cannot be read", .path.display())]
    Context {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

const ANSWER_TICKS: u32 = 250;
const TICK: Duration = Duration::from_millis(20);
/// A daemon that is down may be started later; asking again costs little.
const ASK_AGAIN: Duration = Duration::from_secs(60);
const INSPECT_LIMIT: Duration = Duration::from_secs(30);

/// The engine of this machine, podman before docker; `None` when neither answers within five seconds. Blocks for that
/// long at most twice; a working engine is remembered for good, its absence for a minute.
pub fn engine() -> Option<Engine> {
    static KNOWN: Mutex<Option<(Instant, Option<Engine>)>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((asked_at, engine)) = &*known
        && (engine.is_some() || asked_at.elapsed() < ASK_AGAIN)
    {
        return engine.clone();
    }
    let found = find(&std::env::var_os("PATH").unwrap_or_default());
    *known = Some((Instant::now(), found.clone()));
    found
}

/// The first engine in `path` that answers.
pub fn find(path: &OsStr) -> Option<Engine> {
    let known = [("podman", Kind::Podman), ("docker", Kind::Docker)];
    let here = known.into_iter().filter_map(|(name, kind)| Some(Engine { kind, program: host::which(path, name)? }));
    here.into_iter().find(answers)
}

/// A client without its daemon prints an error and, with some versions, still exits well without a server part.
fn answers(engine: &Engine) -> bool {
    let mut info = std::process::Command::new(&engine.program);
    info.arg("info").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = info.spawn() else { return false };
    for _ in 0..ANSWER_TICKS {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(TICK),
            Err(_) => break,
        }
    }
    let _ended = child.kill().and_then(|()| child.wait());
    false
}

/// Makes sure the engine has the image.
pub async fn pull(engine: &Engine, reference: &str, log: &dyn Log) -> Result<Image, Error> {
    // A name that starts with a dash would be read as an option.
    if reference.is_empty() || reference.starts_with('-') || reference.contains(char::is_whitespace) {
        return Err(Error::BadReference(reference.to_owned()));
    }
    let image = Image { engine: engine.clone(), reference: reference.to_owned() };
    if has(&image).await {
        return Ok(image);
    }
    log.line(&format!("pulling image `{reference}`"));
    let mut pull = Command::new(&engine.program);
    pull.args(["pull", reference]).stdin(Stdio::null());
    let failed = |source| Error::Pull { reference: reference.to_owned(), source };
    process::run(pull, log).await.map_err(failed)?;
    Ok(image)
}

/// Builds the context into an image, unless one of the same content is there.
pub async fn build(engine: &Engine, context: &Path, dockerfile: &str, log: &dyn Log) -> Result<Image, Error> {
    let unreadable = |source| Error::Context { path: context.to_owned(), source };
    let key = digest_of(context, dockerfile).map_err(unreadable)?;
    let image = Image { engine: engine.clone(), reference: format!("localhost/peregrine/environment:{}", &key[..32]) };
    if has(&image).await {
        return Ok(image);
    }
    log.line(&format!("building image from `{dockerfile}`"));
    let mut build = Command::new(&engine.program);
    build.args(["build", "--tag", &image.reference, "--file"]).arg(context.join(dockerfile)).arg(context);
    build.stdin(Stdio::null());
    let failed = |source| Error::Build { dockerfile: dockerfile.to_owned(), source };
    process::run(build, log).await.map_err(failed)?;
    Ok(image)
}

/// Ends and removes a container by its name. The client that started it may be gone long since.
pub async fn remove(engine: &Engine, name: &str) {
    let _not_there = process::ask(Command::new(&engine.program).args(["rm", "--force", name]), INSPECT_LIMIT).await;
}

async fn has(image: &Image) -> bool {
    let mut inspect = Command::new(&image.engine.program);
    inspect.args(["image", "inspect", &image.reference]);
    process::ask(&mut inspect, INSPECT_LIMIT).await.is_some()
}

/// Names and contents of a build context, and which file in it leads.
fn digest_of(context: &Path, dockerfile: &str) -> io::Result<String> {
    let mut sum = digest::Context::new(&digest::SHA256);
    sum.update(dockerfile.as_bytes());
    let mut folders = vec![context.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&folder)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
        entries.sort();
        for path in entries {
            let kind = path.symlink_metadata()?.file_type();
            sum.update(b"\0");
            sum.update(path.strip_prefix(context).unwrap_or(&path).as_os_str().as_encoded_bytes());
            sum.update(b"\0");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                sum.update(fs::read_link(&path)?.as_os_str().as_encoded_bytes());
            } else if kind.is_file() {
                sum.update(digest::digest(&digest::SHA256, &fs::read(&path)?).as_ref());
            }
        }
    }
    Ok(hex(sum.finish().as_ref()))
}

#[cfg(test)]
mod tests;
