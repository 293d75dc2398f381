//! The software a command needs, made ready on this machine.
//!
//! Packages become a virtual environment (or a conda prefix) that is built once and named by its content; an image
//! becomes a container where an engine works. Invariants: a folder is used only if its `ok` file is there, and that
//! is written last; of all who want one environment at a time one builds and the others wait; a failed or abandoned
//! build leaves nothing that could be taken for a finished one.

mod build;
mod conda;
pub(crate) mod host;
mod image;
mod indexes;
pub(crate) mod lock;
pub(crate) mod process;
mod python;
pub(crate) mod request;
mod shared;
mod uv;
mod versions;

use crate::{
    container::{self, Engine, Image},
    gpu,
};
use build::Built;
use domain::EnvironmentPlan;
use host::Host;
use request::Request;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::OnceCell;

/// Hears a build line by line, as it is made.
pub trait Log: Send + Sync {
    fn line(&self, text: &str);
}

/// An environment that can be used now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ready {
    /// To be put before the `PATH`, in this order.
    pub path_first: Vec<PathBuf>,
    pub variables: BTreeMap<String, String>,
    /// Run the command in this image instead of on the host.
    pub image: Option<Image>,
    /// How far the command is kept from the host: `none`, `venv` or `container`.
    pub isolation: &'static str,
    /// What the user should know: where this differs from what was asked.
    pub notices: Vec<String>,
}

/// Why an environment cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the conda file cannot be read: {reason} (next step: correct `conda_file`)")]
    BadConda { reason: String },
    #[error("`{asked}` is no Python version (next step: write one such as `3.10` or `>=3.8,<3.11`)")]
    BadPython { asked: String },
    #[error(
        "conda packages `{packages}` need conda, which is not on this machine (next step: move them to `pip:`, or install micromamba)"
    )]
    CondaPackages { packages: String },
    #[error("no Python {asked} on this machine (next step: install Python 3, or put it on the PATH of the agent)")]
    NoPython { asked: String },
    #[error("environment `{label}` cannot be built")]
    Build {
        label: String,
        #[source]
        source: Box<process::Failed>,
    },
    #[error(
        "no container engine works on this machine, and the compute target has `isolation: required` (next step: install podman)"
    )]
    NoEngine,
    #[error(
        "environment `{label}` names no image, and the compute target has `isolation: required` (next step: set `image:`)"
    )]
    NoImage { label: String },
    #[error("the image of environment `{label}` cannot be had")]
    Image {
        label: String,
        #[source]
        source: Box<container::Error>,
    },
    #[error("`{}` cannot be written", .path.display())]
    Disk {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The build that this one waited for failed.
    #[error(transparent)]
    Shared(Arc<Error>),
}

/// The environments under one agent's home. Clones share everything.
#[derive(Debug, Clone)]
pub struct Environments(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    tools: PathBuf,
    host: Host,
    building: shared::Building,
    settings: OnceCell<uv::Settings>,
    /// Fixed by tests; found out when needed otherwise.
    engine: Option<Option<Engine>>,
    inside_image: bool,
}

impl Environments {
    /// Environments go to `<home>/environments`, tools to `<home>/tools`.
    pub fn new(home: &Path) -> Environments {
        let managed = home.join("tools/python");
        let host = Host::observe(managed.canonicalize().unwrap_or(managed));
        Environments::with(home, host, None)
    }

    /// The same where this process itself runs in the image that plans ask for, so that only packages are to be added.
    pub(crate) fn inside_image(self, inside: bool) -> Environments {
        let inner = Arc::into_inner(self.0).expect("nobody has a clone yet");
        Environments(Arc::new(Inner { inside_image: inside, ..inner }))
    }

    /// The same with another search path and a fixed engine in place of what this machine has.
    pub fn with_host(home: &Path, path: std::ffi::OsString, engine: Option<Engine>) -> Environments {
        Environments::with(home, Host { path, python_roots: Vec::new() }, Some(engine))
    }

    fn with(home: &Path, host: Host, engine: Option<Option<Engine>>) -> Environments {
        // A build holds absolute paths, so a folder kept elsewhere is known by its own name and not by a link's.
        let real = |folder: PathBuf| folder.canonicalize().unwrap_or(folder);
        let (root, tools) = (real(home.join("environments")), real(home.join("tools")));
        let building = shared::Building::default();
        let settings = OnceCell::new();
        Environments(Arc::new(Inner { root, tools, host, building, settings, engine, inside_image: false }))
    }

    /// Makes what `plan` asks for, or finds it made. `context` is the staged Docker build context, where the plan has
    /// one. Dropping the future ends the build and leaves nothing usable behind.
    pub async fn prepare(
        &self,
        plan: &EnvironmentPlan,
        context: Option<&Path>,
        isolation_required: bool,
        log: &dyn Log,
    ) -> Result<Ready, Error> {
        if self.0.inside_image {
            return Ok(Ready { isolation: "container", ..self.packages(plan, log).await? });
        }
        let wants_image = plan.image.is_some() || plan.build.is_some();
        if isolation_required && !wants_image {
            return Err(Error::NoImage { label: plan.label.clone() });
        }
        let mut notices = Vec::new();
        if wants_image {
            match self.engine().await {
                Some(engine) => return self.in_container(engine, plan, context, log).await,
                None if isolation_required => return Err(Error::NoEngine),
                None => notices.push(without_engine(plan)),
            }
        }
        let mut ready = self.packages(plan, log).await?;
        notices.append(&mut ready.notices);
        Ok(Ready { notices, ..ready })
    }

    /// The packages a plan asks for, without its image.
    async fn packages(&self, plan: &EnvironmentPlan, log: &dyn Log) -> Result<Ready, Error> {
        Ok(match Request::of(plan, gpu::detect().is_empty())? {
            Some(request) => of_built(self.shared(&request, log).await?),
            None => self.plain().await,
        })
    }

    /// The engine that images run in here, if there is one.
    pub(crate) async fn engine(&self) -> Option<Engine> {
        match &self.0.engine {
            Some(fixed) => fixed.clone(),
            None => tokio::task::spawn_blocking(container::engine).await.ok().flatten(),
        }
    }

    /// The host's own environment. Scripts say `python` where some machines only have `python3`.
    async fn plain(&self) -> Ready {
        let path_first = match (self.host().which("python"), self.host().which("python3")) {
            (None, Some(python3)) => self.alias(&python3).into_iter().collect(),
            _ => Vec::new(),
        };
        Ready { path_first, isolation: "none", ..Ready::default() }
    }

    fn alias(&self, python3: &Path) -> Option<PathBuf> {
        let folder = self.tools().join("alias");
        std::fs::create_dir_all(&folder).ok()?;
        let link = folder.join("python");
        match std::os::unix::fs::symlink(python3, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => None,
            _ => Some(folder),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0.root
    }

    pub(crate) fn tools(&self) -> &Path {
        &self.0.tools
    }

    pub(crate) fn host(&self) -> &Host {
        &self.0.host
    }

    pub(crate) fn settings_cell(&self) -> &OnceCell<uv::Settings> {
        &self.0.settings
    }

    pub(crate) fn building(&self) -> &shared::Building {
        &self.0.building
    }
}

fn of_built(built: Built) -> Ready {
    let Built { path_first, variables, notices } = built;
    Ready { path_first, variables, image: None, isolation: "venv", notices }
}

/// What to say when an image was asked for and cannot run. Azure's base images hold little but Python.
fn without_engine(plan: &EnvironmentPlan) -> String {
    let has_packages = plan.conda.is_some() || !plan.pip.is_empty();
    match &plan.image {
        Some(image) if image.starts_with("mcr.microsoft.com/azureml/") => {
            format!("no container engine works on this machine; `{image}` stands for plain Python")
        }
        Some(image) if has_packages => {
            format!("no container engine works on this machine; leaving out image `{image}` and using its packages alone")
        }
        Some(_) => "no container engine works on this machine; running `image` jobs in the host environment (isolation: none)".to_owned(),
        None => "no container engine works on this machine; leaving out the Docker build and running in the host environment (isolation: none)".to_owned(),
    }
}
