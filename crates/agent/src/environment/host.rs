//! The programs this machine has, found as a shell would find them.
//!
//! Invariant: the search path is fixed when the agent starts, so two builds of one process see the same tools.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Where to look for tools and interpreters.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub path: OsString,
    /// Folders whose children are whole Python installations, such as `~/.pyenv/versions`.
    pub python_roots: Vec<PathBuf>,
}

impl Host {
    /// This process's own view. `managed` is where uv keeps the interpreters it fetches for us.
    pub(crate) fn observe(managed: PathBuf) -> Host {
        let home = env::var_os("HOME").map(PathBuf::from);
        let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".pyenv")));
        let uv = home.map(|home| home.join(".local/share/uv/python"));
        let python_roots = pyenv.map(|root| root.join("versions")).into_iter().chain(uv).chain([managed]).collect();
        Host { path: env::var_os("PATH").unwrap_or_default(), python_roots }
    }

    /// The first program of that name on the path.
    pub(crate) fn which(&self, name: &str) -> Option<PathBuf> {
        which(&self.path, name)
    }

    /// Every program that may be a Python 3, best known first. Not all of them need to work: version managers
    /// leave stand-ins on the path for versions that are not switched on.
    pub(crate) fn pythons(&self) -> Vec<PathBuf> {
        let names = ["python3".to_owned(), "python".to_owned()]
            .into_iter()
            .chain((6..=20).rev().map(|n| format!("python3.{n}")));
        let on_path = names.filter_map(|name| self.which(&name));
        let children = self.python_roots.iter().filter_map(|root| root.read_dir().ok()).flatten().flatten();
        let installed = children.map(|child| child.path().join("bin/python3")).filter(|path| is_program(path));
        on_path.chain(installed).collect()
    }
}

/// The first program of that name in `path`.
pub(crate) fn which(path: &OsStr, name: &str) -> Option<PathBuf> {
    env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
