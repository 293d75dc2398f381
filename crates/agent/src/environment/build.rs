//! Building an environment into its folder: a virtual environment by uv or venv, or a conda prefix.
//!
//! Invariant: nothing outside the folder changes, apart from the tools' own caches.

use super::{
    Environments, Error, Log,
    lock::Lock,
    process,
    python::{self, Fetch},
    request::{CondaFile, Request},
};
use domain::time::humane;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{process::Command, time::Instant};

/// What a build left: enough to use it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Built {
    pub path_first: Vec<PathBuf>,
    pub variables: BTreeMap<String, String>,
    pub notices: Vec<String>,
}

/// One build on its way: where, for what, under which lock, heard by whom.
pub(crate) struct Site<'a> {
    pub folder: &'a Path,
    pub request: &'a Request,
    pub lock: &'a Lock,
    pub log: &'a dyn Log,
}

/// The index of CPU builds should answer at once or not be used.
const TORCH_LIMIT: Duration = Duration::from_secs(30);
const CONDA_TOOLS: [&str; 3] = ["micromamba", "mamba", "conda"];

impl Environments {
    pub(crate) async fn build(&self, site: &Site<'_>) -> Result<Built, Error> {
        let since = Instant::now();
        site.log.line(&format!("building `{}`", site.request.label));
        let built = match &site.request.conda {
            Some(file) => self.build_conda(site, file).await?,
            None => self.build_venv(site).await?,
        };
        site.log.line(&format!("built `{}` in {}", site.request.label, humane(since.elapsed())));
        Ok(built)
    }

    async fn build_venv(&self, site: &Site<'_>) -> Result<Built, Error> {
        let uv = self.uv(site.log).await;
        let managed = self.tools().join("python");
        let fetch = Fetch { uv: uv.as_deref(), to: &managed };
        let choice = python::choose(self.host(), site.request.python.as_deref(), fetch, site.log).await?;
        site.log.line(&format!("using Python {}", super::versions::humane(choice.interpreter.version)));
        let venv = site.folder.join("venv");
        let requirements = site.requirements(&site.request.pip)?;
        match uv {
            Some(uv) => self.by_uv(site, &uv, &choice.interpreter.program, requirements.as_deref()).await?,
            None => by_pip(site, &choice.interpreter.program, requirements.as_deref()).await?,
        }
        let variables = BTreeMap::from([("VIRTUAL_ENV".to_owned(), venv.display().to_string())]);
        Ok(Built { path_first: vec![venv.join("bin")], variables, notices: choice.notice.into_iter().collect() })
    }

    async fn by_uv(&self, site: &Site<'_>, uv: &Path, python: &Path, requirements: Option<&Path>) -> Result<(), Error> {
        let venv = site.folder.join("venv");
        let mut make = self.uv_command(uv, site).await?;
        // Commands run `pip install` of their own; without a pip here they would change the host's Python.
        make.args(["venv", "--quiet", "--seed", "--python"]).arg(python).arg(&venv);
        site.run(make).await?;
        let Some(requirements) = requirements else { return Ok(()) };
        let mut install = self.uv_command(uv, site).await?;
        install
            .args(["pip", "install", "--python"])
            .arg(venv.join("bin/python"))
            .arg("--requirement")
            .arg(requirements);
        if self.settings().await.no_index {
            install.arg("--no-index");
        }
        if self.offers_cpu_torch(site, uv, requirements).await {
            site.log.line("no GPU here: taking the CPU build of PyTorch");
            install.arg("--torch-backend=cpu");
        }
        site.run(install).await
    }

    /// Whether PyTorch is wanted, CUDA is of no use, and the index of CPU builds can be reached. The plain wheel does
    /// not import without the CUDA libraries it names, so there is no third way.
    async fn offers_cpu_torch(&self, site: &Site<'_>, uv: &Path, requirements: &Path) -> bool {
        if !(site.request.cpu_only && site.request.has_torch() && self.settings().await.public) {
            return false;
        }
        let Ok(mut ask) = self.uv_command(uv, site).await else { return false };
        ask.args(["pip", "install", "--dry-run", "--quiet", "--torch-backend=cpu", "--python"]);
        ask.arg(site.folder.join("venv/bin/python")).arg("--requirement").arg(requirements).env("UV_HTTP_RETRIES", "0");
        let offered = process::ask(&mut ask, TORCH_LIMIT).await.is_some();
        if !offered {
            site.log.line("no CPU build of PyTorch in reach: taking the usual one, with its CUDA libraries");
        }
        offered
    }

    async fn uv_command(&self, uv: &Path, site: &Site<'_>) -> Result<Command, Error> {
        let mut command = Command::new(uv);
        command.envs(&self.settings().await.variables);
        command.env("UV_PYTHON_DOWNLOADS", "never").env("UV_NO_PROGRESS", "1").env("NO_COLOR", "1");
        site.settle(&mut command)?;
        Ok(command)
    }

    async fn build_conda(&self, site: &Site<'_>, file: &CondaFile) -> Result<Built, Error> {
        let tool = CONDA_TOOLS.iter().find_map(|name| Some((*name, self.host().which(name)?)));
        let (name, program) = tool.ok_or_else(|| Error::CondaPackages { packages: file.packages.join("`, `") })?;
        let (spec, prefix) = (site.folder.join("conda.yml"), site.folder.join("conda"));
        site.write(&spec, &file.text)?;
        let mut create = Command::new(program);
        match name {
            "micromamba" => create.args(["create", "--yes"]),
            _ => create.args(["env", "create"]),
        };
        create.arg("--prefix").arg(&prefix).arg("--file").arg(&spec);
        if std::env::var_os("MAMBA_ROOT_PREFIX").is_none() && name == "micromamba" {
            create.env("MAMBA_ROOT_PREFIX", self.tools().join("micromamba"));
        }
        site.settle(&mut create)?;
        site.run(create).await?;
        if let Some(requirements) = site.requirements(&site.request.pip)? {
            site.run(pip_install(site, &prefix.join("bin/python"), &requirements)?).await?;
        }
        let variables =
            ["CONDA_PREFIX", "CONDA_DEFAULT_ENV"].map(|name| (name.to_owned(), prefix.display().to_string()));
        Ok(Built { path_first: vec![prefix.join("bin")], variables: variables.into(), notices: Vec::new() })
    }
}

async fn by_pip(site: &Site<'_>, python: &Path, requirements: Option<&Path>) -> Result<(), Error> {
    let venv = site.folder.join("venv");
    let mut make = Command::new(python);
    make.args(["-m", "venv"]).arg(&venv);
    site.settle(&mut make)?;
    site.run(make).await?;
    match requirements {
        Some(requirements) => site.run(pip_install(site, &venv.join("bin/python"), requirements)?).await,
        None => Ok(()),
    }
}

fn pip_install(site: &Site<'_>, python: &Path, requirements: &Path) -> Result<Command, Error> {
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--no-input", "--progress-bar", "off", "--disable-pip-version-check", "-r"]);
    install.arg(requirements).env("PIP_ROOT_USER_ACTION", "ignore");
    site.settle(&mut install)?;
    Ok(install)
}

impl Site<'_> {
    /// Away from the agent's own folder and virtual environment, and holding the lock.
    fn settle(&self, command: &mut Command) -> Result<(), Error> {
        let stdin = self.lock.as_stdin().map_err(|source| self.disk(source))?;
        command
            .current_dir(self.folder)
            .env_remove("VIRTUAL_ENV")
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME")
            .stdin(stdin);
        Ok(())
    }

    async fn run(&self, command: Command) -> Result<(), Error> {
        let label = &self.request.label;
        process::run(command, self.log)
            .await
            .map_err(|source| Error::Build { label: label.clone(), source: Box::new(source) })
    }

    /// The lines as a file, if there are any.
    fn requirements(&self, lines: &[String]) -> Result<Option<PathBuf>, Error> {
        if lines.is_empty() {
            return Ok(None);
        }
        let path = self.folder.join("requirements.txt");
        self.write(&path, &(lines.join("\n") + "\n"))?;
        Ok(Some(path))
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), Error> {
        fs::write(path, text).map_err(|source| self.disk(source))
    }

    fn disk(&self, source: io::Error) -> Error {
        Error::Disk { path: self.folder.to_owned(), source }
    }
}
