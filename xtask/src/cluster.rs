//! `cargo xtask cluster`: a real Kubernetes on this machine for tests, without Docker and without a registry.
//!
//! A cluster lives in network, process and mount namespaces of its own, held by one process. Ending that process ends
//! all of it, whatever else went wrong: nothing is found by name or pattern, and clusters of different names do not
//! meet. What remains (cgroups, the name of the network namespace, the state folder) carries the cluster's name.

mod binaries;
mod node;
mod parts;
mod place;
mod secrets;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::shell::{Failed, Shell, say};
use crate::{ci, image};
use place::Place;

/// The cluster of a run of `cargo xtask ci`.
const CI: &str = "ci";

/// What `up` is asked for.
#[derive(Debug, PartialEq)]
struct Options {
    name: String,
    fake_nodes: usize,
    autoscale: usize,
    volcano: bool,
    node: bool,
    /// The `peregrine` that is put into our image; without one, the cluster has no image of ours.
    binary: Option<PathBuf>,
}

/// Carries out one line of `cargo xtask cluster ...`.
pub(crate) fn run(sh: &Shell, words: &[&str]) -> Result<(), Failed> {
    match words {
        ["up", rest @ ..] => up(sh, &options(rest)?),
        ["down", rest @ ..] => down(sh, &Place::named(&options(rest)?.name)),
        ["status", "--json", rest @ ..] => status_json(sh, &Place::named(&options(rest)?.name)),
        ["status", rest @ ..] => status(sh, &Place::named(&options(rest)?.name)),
        ["stop", part, rest @ ..] => parts::stop(sh, &running(&options(rest)?.name)?, part),
        ["start", part, rest @ ..] => parts::start(sh, &running(&options(rest)?.name)?, part),
        _ => Err(Failed::Usage(
            "`cluster` wants `up`, `down`, `status [--json]`, `stop PART` or `start PART`, then options".to_owned(),
        )),
    }
}

/// The cluster of `cargo xtask ci`, made afresh. Where none can be had, that is said and tests skip what needs one.
pub(crate) fn begin_ci(sh: &Shell) -> Result<(), Failed> {
    if let Err(failed) = possible(sh).and_then(|()| binaries::ready(sh, true)) {
        return ci::skip(&format!("no Kubernetes ({failed})"));
    }
    down(sh, &Place::named(CI))?;
    let binary = Some(image::build(sh)?);
    up(sh, &Options { name: CI.to_owned(), fake_nodes: 20, autoscale: 10, volcano: true, node: true, binary })
}

/// Where tests find the cluster of `ci`, if it is up.
pub(crate) fn ci_env() -> PathBuf {
    Place::named(CI).file("env")
}

/// Takes the cluster of `ci` down; what is left of it is removed by the next one.
pub(crate) fn end_ci(sh: &Shell) {
    if let Err(failed) = down(sh, &Place::named(CI)) {
        say(&format!("cluster: {failed}"));
    }
}

/// A cluster for as long as some work takes, which finds it in `PEREGRINE_TEST_CLUSTER`; gone whatever came of it.
pub(crate) fn during(
    sh: &Shell,
    name: &str,
    words: &[&str],
    work: impl FnOnce(&Shell) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let place = Place::named(name);
    let done = up(sh, &Options { name: name.to_owned(), ..options(words)? })
        .and_then(|()| work(&sh.with("PEREGRINE_TEST_CLUSTER", place.file("env"))));
    done.and(down(sh, &place))
}

fn options(words: &[&str]) -> Result<Options, Failed> {
    let mut found =
        Options { name: "test".to_owned(), fake_nodes: 0, autoscale: 0, volcano: true, node: true, binary: None };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| Failed::Usage(format!("`{word}` wants a value")));
        match *word {
            "--name" => found.name = place::name(value()?)?,
            "--fake-nodes" => found.fake_nodes = count(value()?)?,
            "--autoscale" => found.autoscale = count(value()?)?,
            "--binary" => found.binary = Some(value()?.into()),
            "--no-volcano" => found.volcano = false,
            "--no-node" => found.node = false,
            other => return Err(Failed::Usage(format!("`{other}` is not an option of `cluster`"))),
        }
    }
    Ok(found)
}

fn count(text: &str) -> Result<usize, Failed> {
    text.parse().map_err(|_| Failed::Usage(format!("`{text}` is not a number of nodes")))
}

/// Brings up what is missing of the cluster; one that is already as asked is left as it is.
fn up(sh: &Shell, options: &Options) -> Result<(), Failed> {
    possible(sh)?;
    let kube = binaries::ready(sh, options.volcano)?;
    let place = Place::named(&options.name);
    let _alone = place.lock()?;
    if place.holder().is_none() {
        clear(sh, &place)?;
        found(sh, &place)?;
    }
    secrets::write(sh, &place, &kube)?;
    node::write(&place)?;
    for part in parts::all(sh, &place, &kube, options) {
        parts::bring(sh, &place, &part)?;
    }
    if options.node {
        images(sh, &place, options)?;
    }
    wait_for_nodes(sh, &place, options)?;
    fs::write(place.file("env"), env_file(&place)).map_err(Failed::at(&place.file("env")))?;
    status(sh, &place)
}

/// Ends everything of the cluster and removes its traces. A cluster that is not there is no failure.
fn down(sh: &Shell, place: &Place) -> Result<(), Failed> {
    let _alone = place.lock()?;
    clear(sh, place)?;
    say(&format!("cluster `{}` is gone", place.name));
    Ok(())
}

/// Why no cluster can be had here, in words for a test's `skipped:` line.
fn possible(sh: &Shell) -> Result<(), Failed> {
    if sh.output("id", &["-u"]).as_deref() != Some("0") {
        return Err(Failed::Check("a cluster needs root: it makes namespaces, mounts and cgroups".to_owned()));
    }
    sh.quiet("unshare", &["--net", "--pid", "--mount", "--fork", "--mount-proc", "true"])
}

/// Makes the namespaces and the link to this machine.
fn found(sh: &Shell, place: &Place) -> Result<(), Failed> {
    if let Some(other) = place.neighbours().into_iter().find(|other| other.host() == place.host()) {
        let names = format!("clusters `{}` and `{}` would have the same addresses", place.name, other.name);
        return Err(Failed::Check(format!("{names}; choose another name")));
    }
    for folder in ["logs", "pids", "parts", "node"] {
        fs::create_dir_all(place.file(folder)).map_err(Failed::at(&place.file(folder)))?;
    }
    fs::write(place.file("init.sh"), place.init_script()).map_err(Failed::at(&place.file("init.sh")))?;
    place.hold()?;
    let holder = place.holder().expect("`hold` returns when it is there").to_string();
    let (host, inside, pods) = (place.host(), place.inside(), place.pods());
    let link = place.link();
    let quietly = |args: &[&str]| sh.quiet("ip", args);
    quietly(&["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &holder])?;
    quietly(&["addr", "add", &format!("{host}/30"), "dev", &link])?;
    quietly(&["link", "set", &link, "up"])?;
    quietly(&["route", "add", &pods, "via", &inside, "dev", &link, "onlink"])?;
    quietly(&["netns", "attach", &place.netns(), &holder])?;
    place.enter(
        sh,
        &format!(
            "ip link set lo up && ip addr add {inside}/30 dev eth0 && ip link set eth0 up && ip route add default via {host}"
        ),
    )
}

/// Ends the holder, and with it every process, mount and address of the cluster; then what carries its name.
fn clear(sh: &Shell, place: &Place) -> Result<(), Failed> {
    place.end()?;
    let _gone_with_its_peer = sh.succeeds("ip", &["link", "del", &place.link()]);
    let _may_not_be_named = sh.succeeds("ip", &["netns", "del", &place.netns()]);
    place.remove_cgroups()?;
    place.remove_files()
}

fn images(sh: &Shell, place: &Place, options: &Options) -> Result<(), Failed> {
    for (name, archive) in image::for_tests(sh)? {
        if !place.has_image(sh, &name) {
            place.import(sh, &archive)?;
        }
    }
    let Some(binary) = &options.binary else { return Ok(()) };
    let archive = place.file("peregrine.tar");
    image::ours(sh, binary, &archive)?;
    place.import(sh, &archive)
}

fn wait_for_nodes(sh: &Shell, place: &Place, options: &Options) -> Result<(), Failed> {
    let wanted = options.fake_nodes + usize::from(options.node);
    place.until(&format!("{wanted} ready nodes"), Duration::from_secs(600), || {
        let nodes = place.kubectl(sh, &["get", "nodes", "--no-headers"]).unwrap_or_default();
        nodes.lines().filter(|line| line.split_whitespace().nth(1) == Some("Ready")).count() >= wanted
    })
}

fn running(name: &str) -> Result<Place, Failed> {
    let place = Place::named(name);
    match place.holder() {
        Some(_) => Ok(place),
        None => Err(Failed::Check(format!("cluster `{name}` does not run; `cargo xtask cluster up --name {name}`"))),
    }
}

/// What tests and people need to reach the cluster, as `NAME=value` lines.
fn env_file(place: &Place) -> String {
    facts(place).iter().map(|(name, value)| format!("{}={value}\n", name.to_uppercase())).collect()
}

fn facts(place: &Place) -> Vec<(&'static str, String)> {
    vec![
        ("kubeconfig", place.kubeconfig("admin").display().to_string()),
        ("kubectl", place.file("bin/kubectl").display().to_string()),
        ("xtask", std::env::current_exe().unwrap_or_default().display().to_string()),
        ("cluster_name", place.name.clone()),
        ("cluster_server", format!("https://{}:6443", place.inside())),
        ("cluster_address", place.inside()),
        ("host_address", place.host()),
        ("pod_cidr", place.pods()),
        ("network_namespace", place.netns()),
        ("peregrine_image", image::OURS.to_owned()),
        ("python_image", image::PYTHON.to_owned()),
        ("minimal_image", image::MINIMAL.to_owned()),
    ]
}

fn states(sh: &Shell, place: &Place) -> Vec<(String, &'static str)> {
    let word = |part: &String| if parts::runs(sh, place, part) { "running" } else { "stopped" };
    parts::known(place).into_iter().map(|part| (part.clone(), word(&part))).collect()
}

fn status(sh: &Shell, place: &Place) -> Result<(), Failed> {
    if place.holder().is_none() {
        say(&format!("cluster `{}` does not run", place.name));
        return Ok(());
    }
    say(&format!("cluster `{}` runs", place.name));
    for (name, value) in facts(place) {
        say(&format!("  {name:<20} {value}"));
    }
    for (part, word) in states(sh, place) {
        say(&format!("  {part:<20} {word}"));
    }
    say(&format!(
        "pods reach a server of this machine at {}; logs are in {}",
        place.host(),
        place.file("logs").display()
    ));
    say(&format!("for a shell: set -a; . {}; set +a", place.file("env").display()));
    Ok(())
}

fn status_json(sh: &Shell, place: &Place) -> Result<(), Failed> {
    let pair = |(name, value): (String, String)| format!("\"{name}\":\"{value}\"");
    let running = place.holder().is_some();
    let mut fields = vec![format!("\"running\":{running}")];
    if running {
        fields.extend(facts(place).into_iter().map(|(name, value)| pair((name.to_owned(), value))));
        let parts: Vec<String> =
            states(sh, place).into_iter().map(|(name, word)| pair((name, word.to_owned()))).collect();
        fields.push(format!("\"parts\":{{{}}}", parts.join(",")));
    }
    say(&format!("{{{}}}", fields.join(",")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_whole_or_refused() {
        let read = options(&["--name", "dev", "--fake-nodes", "1000", "--no-node"]).unwrap();
        assert_eq!((read.name.as_str(), read.fake_nodes, read.node, read.volcano), ("dev", 1000, false, true));
        for bad in [&["--name"][..], &["--name", "a/b"], &["--fake-nodes", "many"], &["--nodes", "3"]] {
            assert!(matches!(options(bad), Err(Failed::Usage(_))), "{bad:?}");
        }
    }
}
