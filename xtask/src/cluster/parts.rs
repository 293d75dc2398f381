//! The programs that make up a cluster, each a script of one command that can be stopped and started alone.
//!
//! Pids are those of the cluster's own process namespace, so stopping a part can never reach beyond the cluster.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::Options;
use super::node;
use super::place::Place;
use crate::shell::{Failed, Shell};

/// How long a part may take until it answers.
const PATIENCE: Duration = Duration::from_secs(90);

/// Range of the addresses of services.
const SERVICES: &str = "10.96.0.0/16";

/// One program: its command line, and the question that it answers once it is ready.
pub(super) struct Part {
    name: &'static str,
    /// Lines of shell that are run before each start.
    first: String,
    command: String,
    ready: Ready,
}

enum Ready {
    /// Others wait for it themselves.
    AtOnce,
    /// kubectl succeeds with these words.
    Kubectl(&'static [&'static str]),
    /// A line of shell inside the cluster succeeds.
    Inside(&'static str),
}

/// The parts that the options ask for, in the order in which they start.
pub(super) fn all(sh: &Shell, place: &Place, kube: &Path, options: &Options) -> Vec<Part> {
    let mut parts = control_plane(place, &kube.join("kube").display().to_string());
    if options.volcano {
        parts.extend(volcano(place, &kube.join("volcano").display().to_string()));
    }
    if options.node {
        parts.extend(real_node(place, &kube.join("kube").display().to_string()));
    }
    if options.fake_nodes + options.autoscale > 0 {
        parts.push(fake_nodes(sh, place, options));
    }
    parts
}

fn control_plane(place: &Place, bin: &str) -> Vec<Part> {
    let (folder, inside) = (place.file(""), place.inside());
    let secrets = place.file("secrets").display().to_string();
    let folder = folder.display();
    vec![
        Part::new(
            "etcd",
            format!(
                "{bin}/server --data-dir {folder}/etcd --unsafe-no-fsync --quota-backend-bytes 4294967296 --log-level warn"
            ),
            Ready::AtOnce,
        ),
        Part::new(
            "apiserver",
            format!(
                "{bin}/kube-apiserver --etcd-servers=http://127.0.0.1:2379 --advertise-address={inside} --bind-address=0.0.0.0 \
                 --tls-cert-file={secrets}/server.crt --tls-private-key-file={secrets}/server.key --client-ca-file={secrets}/ca.crt \
                 --token-auth-file={secrets}/tokens.csv --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
                 --service-account-issuer=https://kubernetes.default.svc --service-account-key-file={secrets}/accounts.pub \
                 --service-account-signing-key-file={secrets}/accounts.key --service-cluster-ip-range={SERVICES} \
                 --kubelet-client-certificate={secrets}/to-kubelet.crt --kubelet-client-key={secrets}/to-kubelet.key \
                 --kubelet-preferred-address-types=InternalIP --allow-privileged \
                 --max-requests-inflight=2000 --max-mutating-requests-inflight=1000"
            ),
            Ready::Kubectl(&["get", "--raw", "/readyz"]),
        ),
        Part::new(
            "controller-manager",
            format!(
                "{bin}/kube-controller-manager --kubeconfig={secrets}/controller-manager.kubeconfig --leader-elect=false \
                 --use-service-account-credentials --service-account-private-key-file={secrets}/accounts.key \
                 --root-ca-file={secrets}/ca.crt --kube-api-qps=500 --kube-api-burst=1000"
            ),
            Ready::Kubectl(&["get", "serviceaccount", "default"]),
        ),
        Part::new(
            "scheduler",
            format!(
                "{bin}/kube-scheduler --kubeconfig={secrets}/scheduler.kubeconfig --leader-elect=false \
                 --kube-api-qps=500 --kube-api-burst=1000"
            ),
            Ready::AtOnce,
        ),
    ]
}

fn volcano(place: &Place, bin: &str) -> Vec<Part> {
    let config = place.kubeconfig("admin").display().to_string();
    let rules = place.file("node/volcano.yaml").display().to_string();
    let kubectl = place.file("bin/kubectl").display().to_string();
    let flags = format!("--kubeconfig={config} --leader-elect=false --kube-api-qps=500 --kube-api-burst=1000");
    let crds = format!("{kubectl} --kubeconfig={config} apply --server-side -f {bin}/crds > /dev/null\n");
    vec![
        Part {
            first: crds,
            ..Part::new("volcano-controller", format!("{bin}/controller-manager {flags}"), Ready::AtOnce)
        },
        Part::new(
            "volcano-scheduler",
            format!("{bin}/scheduler {flags} --scheduler-conf={rules} --schedule-period=200ms"),
            Ready::Kubectl(&["get", "queues.scheduling.volcano.sh", "default"]),
        ),
    ]
}

fn real_node(place: &Place, bin: &str) -> Vec<Part> {
    let secrets = place.file("secrets").display().to_string();
    let node = place.file("node").display().to_string();
    let (folder, inside, pods) = (place.file("kubelet"), place.inside(), place.pods());
    let folder = folder.display();
    vec![
        Part::new("containerd", format!("containerd --config {node}/containerd.toml"), Ready::Inside("ctr version")),
        Part::new(
            "kubelet",
            format!(
                "{bin}/kubelet --kubeconfig={secrets}/kubelet.kubeconfig --config={node}/kubelet.yaml --root-dir={folder} \
                 --hostname-override={} --node-ip={inside} --node-labels=peregrine.test/node=real",
                node::NAME
            ),
            Ready::AtOnce,
        ),
        Part::new(
            "proxy",
            format!(
                "{bin}/kube-proxy --kubeconfig={secrets}/proxy.kubeconfig --proxy-mode=iptables --cluster-cidr={pods} \
                 --hostname-override={} --oom-score-adj=0 --conntrack-max-per-core=0 \
                 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0",
                node::NAME
            ),
            Ready::AtOnce,
        ),
    ]
}

/// Where there is also a real node, a pod must ask for a fake one by tolerating its taint.
fn fake_nodes(sh: &Shell, place: &Place, options: &Options) -> Part {
    let secrets = place.file("secrets").display().to_string();
    let script = sh.root.join("tests/cluster/fake_kubelet.py").display().to_string();
    let taint = if options.node { " --taint" } else { "" };
    Part::new(
        "fake-kubelet",
        format!(
            "python3 {script} --server https://{}:6443 --ca {secrets}/ca.crt --token-file {secrets}/admin.token \
             --nodes {} --autoscale {}{taint}",
            place.inside(),
            options.fake_nodes,
            options.autoscale
        ),
        Ready::AtOnce,
    )
}

impl Part {
    fn new(name: &'static str, command: String, ready: Ready) -> Part {
        Part { name, first: String::new(), command, ready }
    }

    fn script(&self, place: &Place) -> String {
        format!(
            "set -e\necho $$ > {}\nexec >> {} 2>&1 < /dev/null\n{}exec {}\n",
            place.file("pids").join(self.name).display(),
            place.file("logs").join(format!("{}.log", self.name)).display(),
            self.first,
            self.command
        )
    }
}

/// Starts a part and waits for it, unless it already runs with this very command.
pub(super) fn bring(sh: &Shell, place: &Place, part: &Part) -> Result<(), Failed> {
    let path = place.file("parts").join(part.name);
    let script = part.script(place);
    if fs::read_to_string(&path).is_ok_and(|old| old != script) {
        stop(sh, place, part.name)?;
    }
    fs::write(&path, script).map_err(Failed::at(&path))?;
    start(sh, place, part.name)?;
    place.until(&format!("answer from `{}`", part.name), PATIENCE, || match part.ready {
        Ready::AtOnce => true,
        Ready::Kubectl(words) => place.kubectl(sh, words).is_some(),
        Ready::Inside(line) => place.enter(sh, line).is_ok(),
    })
}

/// Starts a part that does not run.
pub(super) fn start(sh: &Shell, place: &Place, name: &str) -> Result<(), Failed> {
    let path = place.file("parts").join(name);
    if !path.is_file() {
        return Err(Failed::Usage(format!("no part `{name}`; there are {}", known(place).join(", "))));
    }
    if runs(sh, place, name) {
        return Ok(());
    }
    place.enter(sh, &format!("setsid --fork sh {} > /dev/null 2>&1", path.display()))?;
    let pid = place.file("pids").join(name);
    place.until(&format!("start of `{name}`"), PATIENCE, || pid.is_file())
}

/// Kills a part, as a crash would, and waits until it is gone.
pub(super) fn stop(sh: &Shell, place: &Place, name: &str) -> Result<(), Failed> {
    let pid = place.file("pids").join(name);
    if runs(sh, place, name) {
        place.enter(sh, &format!("kill -KILL $(cat {})", pid.display()))?;
        place.until(&format!("end of `{name}`"), PATIENCE, || !runs(sh, place, name))?;
    }
    match fs::remove_file(&pid) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failed::at(&pid)(error)),
        _ => Ok(()),
    }
}

/// The parts that this cluster was started with.
pub(super) fn known(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.file("parts")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Whether a part's process is there; one that has ended and waits to be reaped is not.
pub(super) fn runs(sh: &Shell, place: &Place, name: &str) -> bool {
    let pid = place.file("pids").join(name);
    let alive = format!("grep -q '^State:.[^ZX]' /proc/$(cat {})/status", pid.display());
    pid.is_file() && place.enter(sh, &alive).is_ok()
}
