//! Virtual environments with a package, made once per version and kept between runs.
//!
//! Invariant: an environment is used only if the mark of its completion is there; anything else is made anew.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
};

/// What the tests use beside the SDK.
const BESIDE: [&str; 5] = ["azure-identity", "azure-storage-blob", "PyJWT", "requests", "mlflow-skinny"];

/// The Python of an environment with this version of azure-ai-ml; `None` where none can be had.
pub(crate) fn with_sdk(version: &str) -> Option<PathBuf> {
    with("azure-ai-ml", version, &BESIDE)
}

/// The Python of an environment with this version of a package; `None` where none can be had.
pub(crate) fn with(package: &str, version: &str, beside: &[&str]) -> Option<PathBuf> {
    // Two tests may want the same one at once.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = kept().join(format!("{package}-{version}"));
    let (python, mark) = (folder.join("bin/python"), folder.join("complete"));
    if !mark.is_file() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(kept()).unwrap();
        make(&folder, &format!("{package}=={version}"), beside)?;
        fs::write(mark, version).unwrap();
    }
    Some(python)
}

/// A folder with exactly these packages, for use beside an environment that has what they need.
pub(crate) fn folder_with(name: &str, packages: &[&str]) -> Option<PathBuf> {
    let folder = kept().join(name);
    if !folder.join("complete").is_file() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(kept()).unwrap();
        let target = folder.display().to_string();
        let mut install = vec!["-m", "pip", "install", "--quiet", "--no-deps", "--target", &target];
        install.extend(packages);
        run("python3", &install)?;
        fs::write(folder.join("complete"), packages.join(" ")).unwrap();
    }
    Some(folder)
}

fn kept() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    cache.join("peregrine/tools")
}

/// Installs through uv, whose resolver copes with what the SDK asks for where older releases of pip give up.
fn make(folder: &Path, package: &str, beside: &[&str]) -> Option<()> {
    let python = folder.join("bin/python");
    let path = |path: &Path| path.display().to_string();
    run("python3", &["-m", "venv", &path(folder)])?;
    run(&path(&python), &["-m", "pip", "install", "--quiet", "uv"])?;
    let here = path(&python);
    let mut install = vec!["-m", "uv", "pip", "install", "--quiet", "--python", here.as_str(), package];
    install.extend(beside);
    run(&here, &install)
}

fn run(program: &str, args: &[&str]) -> Option<()> {
    let status = Command::new("timeout").args(["300", program]).args(args).status().ok()?;
    status.success().then_some(())
}
