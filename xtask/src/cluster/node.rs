//! The settings of the real node's parts, and of Volcano's scheduler.
//!
//! Each unusual line is there because this kind of machine (no `CAP_SYS_RESOURCE`, perhaps cgroup v1, no registry)
//! needs it; the reason stands beside it.

use std::fs;

use super::place::Place;
use crate::image;
use crate::shell::Failed;

/// The name of the real node.
pub(super) const NAME: &str = "real";

/// Writes all of them.
pub(super) fn write(place: &Place) -> Result<(), Failed> {
    let files = [
        ("node/containerd.toml", containerd(place)),
        ("node/kubelet.yaml", kubelet(place)),
        ("node/cni/peregrine.conflist", network(place)),
        ("node/volcano.yaml", VOLCANO.to_owned()),
    ];
    for (name, text) in files {
        let path = place.file(name);
        let folder = path.parent().expect("a file below the cluster's folder");
        fs::create_dir_all(folder).map_err(Failed::at(folder))?;
        fs::write(&path, text).map_err(Failed::at(&path))?;
    }
    Ok(())
}

/// `restrict_oom_score_adj`: without `CAP_SYS_RESOURCE` runc may not lower it and would die.
fn containerd(place: &Place) -> String {
    let (root, node) = (place.file("containerd"), place.file("node"));
    format!(
        "version = 2
root = '{}'
[plugins.'io.containerd.grpc.v1.cri']
sandbox_image = '{}'
restrict_oom_score_adj = true
[plugins.'io.containerd.grpc.v1.cri'.cni]
bin_dir = '/usr/lib/cni'
conf_dir = '{}/cni'
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
SystemdCgroup = false
",
        root.display(),
        image::MINIMAL,
        node.display()
    )
}

/// Images are imported, not pulled: one that is collected as garbage could not be had again.
fn kubelet(place: &Place) -> String {
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: true}}
  x509: {{clientCAFile: '{}'}}
authorization: {{mode: Webhook}}
cgroupDriver: cgroupfs
cgroupRoot: {}
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
podLogsDir: '{}'
volumePluginDir: /run/kubelet-plugins
evictionHard: {{memory.available: 50Mi, nodefs.available: 200Mi, imagefs.available: 200Mi}}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
oomScoreAdj: 0
nodeStatusUpdateFrequency: 5s
",
        place.file("secrets/ca.crt").display(),
        place.cgroup(),
        place.file("pod-logs").display()
    )
}

fn network(place: &Place) -> String {
    let ipam = format!(
        r#"{{"type": "host-local", "ranges": [[{{"subnet": "{}"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}}"#,
        place.pods()
    );
    format!(
        r#"{{"cniVersion": "0.4.0", "name": "peregrine", "plugins": [
  {{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true, "ipam": {ipam}}},
  {{"type": "portmap", "capabilities": {{"portMappings": true}}}}
]}}
"#
    )
}

/// What Volcano's own chart installs.
const VOLCANO: &str = "actions: 'enqueue, allocate, backfill'
tiers:
- plugins:
  - name: priority
  - {name: gang, enablePreemptable: false}
  - name: conformance
- plugins:
  - name: overcommit
  - {name: drf, enablePreemptable: false}
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
";
