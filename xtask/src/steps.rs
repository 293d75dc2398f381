//! The commands that mostly hand over to cargo: check, test, postgres, e2e, dev, bench, soak.
//!
//! Unit and integration tests (`test`) and the tests of the real binary (`e2e`) never overlap: the first leaves out
//! the target `e2e`, the second runs only that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::shell::{Failed, Shell, say};
use crate::{again, ci, cluster, image, postgres, tidy};

const CLI: &str = "peregrine-cli";
const AT_ONCE: &str = "3";

/// Format, clippy, tidy.
pub(crate) fn check(sh: &Shell) -> Result<(), Failed> {
    fmt(sh)?;
    clippy(sh)?;
    tidy::run(sh)
}

/// Fails if rustfmt would change a file.
pub(crate) fn fmt(sh: &Shell) -> Result<(), Failed> {
    sh.cargo(&["fmt", "--all", "--check"])
}

/// Clippy over everything, warnings as errors.
pub(crate) fn clippy(sh: &Shell) -> Result<(), Failed> {
    sh.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

/// Unit and integration tests of the whole workspace.
pub(crate) fn test_all(sh: &Shell) -> Result<(), Failed> {
    if has_nextest(sh) {
        return sh.cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]);
    }
    let names: BTreeSet<String> = list(&sh.root.join("crates")).iter().flat_map(|dir| test_targets(dir)).collect();
    // A run is long: all that fails is worth knowing at its end.
    let mut args = vec!["test", "--workspace", "--no-fail-fast", "--lib", "--bins"];
    args.extend(names.iter().flat_map(|name| ["--test", name.as_str()]));
    again::suite(sh, &args)
}

/// Unit and integration tests of one crate, named by its folder (`store`) or its package (`peregrine-store`).
pub(crate) fn test_one(sh: &Shell, name: &str) -> Result<(), Failed> {
    let folder = name.strip_prefix("peregrine-").unwrap_or(name);
    let (dir, package) = match folder {
        "xtask" => (sh.root.join("xtask"), "xtask".to_owned()),
        _ => (sh.root.join("crates").join(folder), format!("peregrine-{folder}")),
    };
    if !dir.join("Cargo.toml").is_file() {
        return Err(Failed::Usage(format!("there is no crate `{folder}` under crates/")));
    }
    if has_nextest(sh) {
        return sh.cargo(&["nextest", "run", "--package", &package]);
    }
    let mut args = vec!["test", "--package", package.as_str()];
    args.push(if dir.join("src/lib.rs").is_file() { "--lib" } else { "--bins" });
    let names = test_targets(&dir);
    args.extend(names.iter().flat_map(|name| ["--test", name.as_str()]));
    sh.cargo(&args)
}

/// The suites of server and controller with their records in Postgres; the store's own suite runs on both engines.
pub(crate) fn postgres(sh: &Shell) -> Result<(), Failed> {
    let server = match postgres::Server::start(&["fsync=off"]) {
        Ok(server) => server,
        Err(reason) => return ci::skip(&format!("Postgres ({reason})")),
    };
    let sh = sh.with(postgres::VARIABLE, server.sockets()).with(postgres::ENGINE, "postgres").with("SIM_SEEDS", "20");
    let packages = ["--package", "peregrine-server", "--package", "peregrine-controller"];
    again::suite(&sh, &[&["test", "--no-fail-fast", "--test", "it"], &packages[..]].concat())
}

/// The tests of the built binary; `filter` keeps those whose name contains it.
pub(crate) fn e2e(sh: &Shell, filter: Option<&str>) -> Result<(), Failed> {
    let sh = with_binary(sh)?;
    let mut args = vec!["test", "--package", CLI, "--test", "e2e"];
    args.extend(filter);
    // What the tests counted and measured is worth reading also when all is well. They wait more than they compute, so more of them run
    // at once than there are processors.
    args.extend(["--", "--show-output", "--test-threads", AT_ONCE]);
    again::suite(&sh, &args)
}

/// A server in the foreground, its state under `.dev/`.
pub(crate) fn dev(sh: &Shell) -> Result<(), Failed> {
    let home = sh.root.join(".dev");
    say(&format!("state is kept in {}; ctrl-c stops the server", home.display()));
    sh.with("PEREGRINE_HOME", home).cargo(&[
        "run",
        "--package",
        CLI,
        "--bin",
        "peregrine",
        "--",
        "server",
        "start",
        "--foreground",
    ])
}

/// Whole-system measurements; all of them, or the named ones.
pub(crate) fn bench(sh: &Shell, names: &[&str]) -> Result<(), Failed> {
    let mut args = vec!["bench/run.py"];
    args.extend(names);
    with_binary(sh)?.run("python3", &args)
}

/// The long runs: the kill test with ten times its kills, the cluster's storms, then the benches with their long settings.
pub(crate) fn soak(sh: &Shell) -> Result<(), Failed> {
    let long = sh.with("PEREGRINE_KILLS", "2000").with("PEREGRINE_BENCH_LONG", "1");
    e2e(&long, Some("kill"))?;
    let seeds = sh.with("SIM_SEEDS", "5000").with("SWEEP_SEEDS", "20000");
    seeds.cargo(&["test", "--package", "peregrine-planner", "keep", "--", "--show-output"])?;
    seeds.cargo(&["test", "--package", "peregrine-controller", "--test", "it", "keep", "--", "--show-output"])?;
    let fuzz = ["test", "--package", "peregrine-router", "--test", "it", "odd", "--", "--show-output"];
    sh.with("PEREGRINE_FUZZ", "200000").cargo(&fuzz)?;
    for part in ["torch", "corpus", "openapi", "network", "ssh", "slurm"] {
        e2e(&sh.with("PEREGRINE_LONG", "1"), Some(part))?;
    }
    soak_kubernetes(&long)?;
    bench(&long, &[])
}

/// A thousand fake nodes: storms of two minutes, 5,000 jobs at once, the benches; then ten minutes cut off on a real node.
pub(crate) fn soak_kubernetes(sh: &Shell) -> Result<(), Failed> {
    let sh = &with_binary(sh)?;
    cluster::during(sh, "soak", &["--fake-nodes", "1000", "--autoscale", "100", "--no-node"], |sh| {
        let sh = &sh.with("PEREGRINE_STORM_SECONDS", "120").with("PEREGRINE_BURST", "5000");
        let sh = &sh.with("PEREGRINE_AWAY_SECONDS", "300");
        let tests =
            ["test", "--package", "peregrine-kubernetes", "--test", "it", "--", "storm", "away", "--show-output"];
        sh.cargo(&tests)?;
        sh.run("python3", &["bench/kubernetes.py", "launch", "ends", "gang", "idle"])
    })?;
    let binary = image::build(sh)?.display().to_string();
    cluster::during(sh, "soak", &["--fake-nodes", "20", "--binary", &binary], |sh| {
        let sh = &sh.with("PEREGRINE_CUT_SECONDS", "600");
        sh.cargo(&["test", "--package", CLI, "--test", "e2e", "from_install_to_uninstall", "--", "--show-output"])?;
        sh.run("python3", &["bench/kubernetes.py", "install"])
    })
}

/// The same shell with the built `peregrine` for those who look for it.
pub(crate) fn with_binary(sh: &Shell) -> Result<Shell, Failed> {
    Ok(sh.with("PEREGRINE_BIN", image::build(sh)?))
}

fn has_nextest(sh: &Shell) -> bool {
    sh.succeeds("cargo", &["nextest", "--version"])
}

/// The integration tests of a crate by name, found as cargo finds them, without those of the built binary.
fn test_targets(dir: &Path) -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(dir.join("Cargo.toml")).unwrap_or_default();
    let mut names = declared_tests(&manifest);
    for path in list(&dir.join("tests")) {
        let is_target = path.join("main.rs").is_file() || path.extension().is_some_and(|end| end == "rs");
        names.extend(path.file_stem().filter(|_| is_target).map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.remove("e2e");
    names
}

/// The names in the `[[test]]` tables of a manifest.
fn declared_tests(manifest: &str) -> BTreeSet<String> {
    let tables = manifest.split("[[test]]").skip(1).map(|rest| rest.split("\n[").next().unwrap_or_default());
    let name = |table: &str| {
        let line = table.lines().find(|line| line.trim_start().starts_with("name"))?;
        line.split('"').nth(1).map(str::to_owned)
    };
    tables.filter_map(name).collect()
}

fn list(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).map(|entries| entries.flatten().map(|e| e.path()).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_tests_are_found_whatever_stands_around_them() {
        let manifest = "[package]\nname = \"a\"\n\n[[test]]\nname = \"it\"\npath = \"x.rs\"\n\n[[bin]]\nname = \"b\"\n\n[[test]]\npath = \"y.rs\"\nname = \"e2e\"\n";
        assert_eq!(declared_tests(manifest), BTreeSet::from(["it".to_owned(), "e2e".to_owned()]));
    }
}
