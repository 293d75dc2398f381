//! The `uv` program: from the path, or installed once under the tools folder.
//!
//! Invariants: two agents never install at once; a half-made install is never used, since it becomes visible
//! by one rename.

use super::{Environments, Log, indexes, lock::Lock, process, python};
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::process::Command;

const ASK_LIMIT: Duration = Duration::from_secs(20);

/// What uv is told about packages besides its arguments.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub variables: BTreeMap<String, String>,
    pub no_index: bool,
    /// Packages come from the public index, so public CPU builds may be asked for.
    pub public: bool,
}

impl Environments {
    /// A uv that works; `None` where there is none and none can be installed.
    pub(crate) async fn uv(&self, log: &dyn Log) -> Option<PathBuf> {
        let installed = self.tools().join("uv/bin/uv");
        for program in self.host().which("uv").into_iter().chain([installed.clone()]) {
            if works(&program).await {
                return Some(program);
            }
        }
        match self.install_uv(log).await {
            Ok(()) if works(&installed).await => Some(installed),
            Ok(()) => None,
            Err(reason) => {
                log.line(&format!("uv cannot be installed ({reason}); using venv and pip"));
                None
            }
        }
    }

    async fn install_uv(&self, log: &dyn Log) -> Result<(), String> {
        let lock =
            Lock::acquire(&self.tools().join("uv.lock"), || log.line("waiting for another build to install uv")).await;
        let lock = lock.map_err(|error| error.to_string())?;
        let done = self.tools().join("uv");
        if done.join("bin/uv").exists() {
            return Ok(());
        }
        let python = python::own(self.host()).await.ok_or("no Python on this machine")?;
        log.line("installing uv, once");
        let partial = self.tools().join("uv.partial");
        let _absent = fs::remove_dir_all(&partial);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--target"];
        let mut command = Command::new(&python.program);
        command
            .args(pip)
            .arg(&partial)
            .arg("uv")
            .env("PIP_ROOT_USER_ACTION", "ignore")
            .stdin(lock.as_stdin().map_err(|error| error.to_string())?);
        let made = process::run(command, log).await.map_err(|error| error.to_string());
        let placed = made.and_then(|()| {
            let _broken = fs::remove_dir_all(&done);
            fs::rename(&partial, &done).map_err(|error| error.to_string())
        });
        let _moved = fs::remove_dir_all(&partial);
        lock.forget();
        placed
    }

    /// What the user has configured for pip, for uv; read once.
    pub(crate) async fn settings(&self) -> &Settings {
        let read = async {
            let program = python::own(self.host()).await.map_or_else(|| PathBuf::from("python3"), |own| own.program);
            let mut ask = Command::new(program);
            ask.args(["-m", "pip", "config", "list", "--disable-pip-version-check"]);
            let listing = process::ask(&mut ask, ASK_LIMIT).await.unwrap_or_default();
            let pip = indexes::read_pip_config(&listing);
            let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
            let variables = indexes::for_uv(&pip, is_set);
            let no_index = indexes::has_no_index(&pip);
            let public = !no_index && indexes::is_public(&variables, is_set);
            Settings { variables, no_index, public }
        };
        self.settings_cell().get_or_init(|| read).await
    }
}

async fn works(program: &Path) -> bool {
    let mut ask = Command::new(program);
    ask.arg("--version").stdin(Stdio::null());
    process::ask(&mut ask, ASK_LIMIT).await.is_some_and(|answer| answer.starts_with("uv "))
}
