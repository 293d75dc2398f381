//! Puts the studio into the binary: builds it where Node is there, and says why where it is not.
//!
//! Nothing is written into the source tree. Packages and finished builds lie in the cache of the user, under a digest of
//! what they were made from, so that another target folder or another clone builds nothing anew.

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash, Hasher},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Says `off` to leave the studio out and `on` to insist on it.
const SWITCH: &str = "PEREGRINE_STUDIO";
const PACKAGES: [&str; 2] = ["package.json", "package-lock.json"];
const SOURCES: [&str; 4] = ["index.html", "vite.config.ts", "tsconfig.json", "src"];

fn main() {
    // From the folder of the crate, and file by file: a new clone has other paths and new folders, and neither is a reason to build again.
    let studio = Path::new("../../studio");
    for (name, _) in [read(studio, &PACKAGES), read(studio, &SOURCES)].into_iter().flatten().flatten() {
        println!("cargo:rerun-if-changed={}", studio.join(name).display());
    }
    println!("cargo:rerun-if-env-changed={SWITCH}");
    let switch = env::var(SWITCH).unwrap_or_default();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to build"));
    let built = match switch.as_str() {
        "off" => Err(format!("`{SWITCH}` was `off`")),
        _ => build(studio, &out),
    };
    if let (Err(reason), "on") = (&built, switch.as_str()) {
        panic!("cannot build the studio: {reason}");
    }
    if let (Err(reason), "") = (&built, switch.as_str()) {
        println!("cargo:warning=the studio is left out: {reason}");
    }
    fs::write(out.join("studio.rs"), table(&built)).expect("the build folder can be written to");
}

/// The folder of the finished pages.
fn build(studio: &Path, out: &Path) -> Result<PathBuf, String> {
    let packages = read(studio, &PACKAGES).map_err(|error| format!("its sources cannot be read ({error})"))?;
    let sources = read(studio, &SOURCES).map_err(|error| format!("its sources cannot be read ({error})"))?;
    let cache = env::var_os("HOME").map_or_else(|| out.to_owned(), |home| Path::new(&home).join(".cache/peregrine"));
    let modules = cache.join(format!("studio/packages-{}", digest(&packages)));
    let done = cache.join(format!("studio/pages-{}", digest(&[packages.clone(), sources.clone()].concat())));
    if !done.is_dir() {
        let work = out.join("studio-work");
        let _none = fs::remove_dir_all(&work);
        install(&modules, &packages, out)?;
        let laid = lay_out(&work, &packages).and_then(|()| lay_out(&work, &sources));
        laid.and_then(|()| std::os::unix::fs::symlink(modules.join("node_modules"), work.join("node_modules")))
            .map_err(|error| format!("cannot copy its sources to `{}` ({error})", work.display()))?;
        run(Command::new("node").args(["node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"]), &work)?;
        keep(&work.join("dist"), &done)?;
    }
    let own = out.join("studio");
    let _none = fs::remove_dir_all(&own);
    let pages = read(&done, &["."]).and_then(|pages| lay_out(&own, &pages));
    pages.map(|()| own).map_err(|error| format!("cannot copy `{}` ({error})", done.display()))
}

fn install(modules: &Path, packages: &[(String, Vec<u8>)], out: &Path) -> Result<(), String> {
    if modules.is_dir() {
        return Ok(());
    }
    let fresh = out.join("studio-packages");
    let _none = fs::remove_dir_all(&fresh);
    lay_out(&fresh, packages).map_err(|error| format!("cannot write to `{}` ({error})", fresh.display()))?;
    run(Command::new("node").arg("--version"), &fresh)?;
    // Not `ci`: that fails where a registry has not the parts for other systems than this one.
    let flags =
        ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
    run(Command::new("npm").args(flags), &fresh)?;
    keep(&fresh, modules)
}

/// Moves a folder to its place in the cache; whoever was there first is as good.
fn keep(fresh: &Path, place: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot keep `{}` ({error})", place.display());
    fs::create_dir_all(place.parent().unwrap_or(place)).map_err(cannot)?;
    let moved = fs::rename(fresh, place).or_else(|_| {
        // Another file system: a copy beside the place, then the same.
        let beside = place.with_extension(std::process::id().to_string());
        let copied = Command::new("cp").arg("-a").arg(fresh).arg(&beside).status();
        copied.and_then(|_| fs::rename(&beside, place)).inspect_err(|_| drop(fs::remove_dir_all(&beside)))
    });
    if place.is_dir() { Ok(()) } else { moved.map_err(cannot) }
}

fn run(command: &mut Command, folder: &Path) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.current_dir(folder).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{name}` cannot be started ({error})"))?;
    let said: String = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " | ").chars().take(400).collect();
    if output.status.success() { Ok(()) } else { Err(format!("`{name}` failed: {said}")) }
}

/// Every file below some paths with its content, in order.
fn read(folder: &Path, parts: &[&str]) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = parts.iter().map(|part| folder.join(part)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        } else {
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().trim_start_matches("./").to_owned();
            found.push((name, fs::read(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

fn lay_out(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

fn digest(files: &[(String, Vec<u8>)]) -> String {
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The files as Rust, each with its compressed twin.
fn table(built: &Result<PathBuf, String>) -> String {
    let (rows, missing) = match built {
        Ok(folder) => (rows(folder), String::new()),
        Err(reason) => (String::new(), reason.clone()),
    };
    format!("const FILES: &[File] = &[{rows}];\nconst MISSING: &str = {missing:?};\n")
}

fn rows(folder: &Path) -> String {
    let files = read(folder, &["."]).unwrap_or_default();
    let bytes = |name: &str| format!("include_bytes!({:?})", folder.join(name));
    let plain = files.iter().filter(|(name, _)| !name.ends_with(".br"));
    let row = |(name, _): &(String, Vec<u8>)| {
        let twin = format!("{name}.br");
        let brotli =
            if files.iter().any(|(name, _)| *name == twin) { format!("Some({})", bytes(&twin)) } else { "None".into() };
        format!("File {{ path: {name:?}, plain: {}, brotli: {brotli} }},\n", bytes(name))
    };
    plain.map(row).collect()
}
