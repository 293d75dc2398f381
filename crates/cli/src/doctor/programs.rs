//! Programs on the PATH, asked whether they really answer.

use super::Check;
use std::{path::Path, process::Stdio, time::Duration};
use tokio::process::Command;

/// A program that does not answer by then does not work.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn python() -> Check {
    let needed_for = "environments and most jobs";
    for program in ["python3", "python"] {
        if let Some(version) = ask(program, &["--version"]).await.filter(|text| text.starts_with("Python 3")) {
            return Check::ok("python", needed_for, version);
        }
    }
    Check::missing(
        "python",
        needed_for,
        "no Python 3 on the PATH",
        "install Python 3.9 or newer; uv can fetch one for environments where it may download",
    )
}

pub(super) async fn uv(home: &Path) -> Check {
    let needed_for = "fast environments";
    let own = home.join("tools/uv/bin/uv");
    for program in ["uv", own.to_str().unwrap_or("uv")] {
        if let Some(version) = ask(program, &["--version"]).await {
            return Check::ok("uv", needed_for, version);
        }
    }
    Check::missing(
        "uv",
        needed_for,
        "not on the PATH",
        "it is fetched from PyPI when first needed; without it `venv` and pip are used, which are slower",
    )
}

pub(super) async fn conda() -> Check {
    let needed_for = "conda packages other than Python";
    for program in ["micromamba", "mamba", "conda"] {
        if let Some(version) = ask(program, &["--version"]).await {
            return Check::ok("conda", needed_for, format!("{program} {}", version.trim_start_matches(program).trim()));
        }
    }
    Check::missing(
        "conda",
        needed_for,
        "no micromamba, mamba or conda on the PATH",
        "install micromamba if your conda files name more than Python and pip packages",
    )
}

pub(super) async fn containers() -> Check {
    let needed_for = "`image:` and `build:` environments";
    let mut found = Vec::new();
    for program in ["podman", "docker"] {
        if ask(program, &["--version"]).await.is_none() {
            continue;
        }
        match ask(program, &["info", "--format", "{{.Host.OCIRuntime.Name}}{{.ServerVersion}}"]).await {
            Some(_) => return Check::ok("containers", needed_for, format!("{program} answers")),
            None => match ask(program, &["info"]).await {
                Some(_) => return Check::ok("containers", needed_for, format!("{program} answers")),
                None => found.push(format!("{program} is installed but does not answer")),
            },
        }
    }
    let found = if found.is_empty() { "no podman and no docker on the PATH".to_owned() } else { found.join(", ") };
    let fix =
        "install or start podman or docker; until then jobs with an image run on the host, marked `isolation: none`";
    Check::missing("containers", needed_for, found, fix)
}

pub(super) async fn git() -> Check {
    let needed_for = "code given as a git address";
    match ask("git", &["--version"]).await {
        Some(version) => Check::ok("git", needed_for, version),
        None => {
            Check::missing("git", needed_for, "not on the PATH", "install git if your job files use `code: git+...`")
        }
    }
}

/// The first line a program prints, if it ends well in time.
async fn ask(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let answer = tokio::time::timeout(PATIENCE, command.output()).await.ok()?.ok()?;
    if !answer.status.success() {
        return None;
    }
    Some(String::from_utf8_lossy(&answer.stdout).lines().next().unwrap_or_default().trim().to_owned())
}
