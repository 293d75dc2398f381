//! Who may do what in the cluster: a certificate authority, a token for each part, a kubeconfig for each token.
//!
//! Made anew for every cluster and removed with it. Each part has the identity that Kubernetes' own roles expect, so
//! what a test sees of RBAC is what a real cluster shows.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::place::Place;
use crate::shell::{Failed, Shell};

/// Kubeconfig, user, groups.
const USERS: &[(&str, &str, &str)] = &[
    ("admin", "admin", "system:masters"),
    ("controller-manager", "system:kube-controller-manager", ""),
    ("scheduler", "system:kube-scheduler", ""),
    ("proxy", "system:kube-proxy", ""),
    ("kubelet", "system:node:real", "system:nodes"),
];

/// Writes keys, tokens and kubeconfigs unless they are there, and a link to the binaries.
pub(super) fn write(sh: &Shell, place: &Place, kube: &Path) -> Result<(), Failed> {
    let folder = place.file("secrets");
    if folder.is_dir() {
        return Ok(());
    }
    let link = place.file("bin");
    std::os::unix::fs::symlink(kube.join("kube"), &link).map_err(Failed::at(&link))?;
    let partial = place.file("secrets.partial");
    fs::create_dir_all(&partial).map_err(Failed::at(&partial))?;
    fs::set_permissions(&partial, fs::Permissions::from_mode(0o700)).map_err(Failed::at(&partial))?;
    sh.quiet("sh", &["-c", &certificates(place, &partial)])?;
    let mut tokens = String::new();
    for (name, user, groups) in USERS {
        let token = sh.output("openssl", &["rand", "-hex", "16"]).ok_or_else(|| no_secret(name))?;
        tokens += &format!("{token},{user},{user},\"{groups}\"\n");
        put(&partial.join(format!("{name}.token")), &token)?;
        put(&partial.join(format!("{name}.kubeconfig")), &kubeconfig(sh, place, &partial, &token)?)?;
    }
    put(&partial.join("tokens.csv"), &tokens)?;
    fs::rename(&partial, &folder).map_err(Failed::at(&folder))
}

fn no_secret(name: &str) -> Failed {
    Failed::Check(format!("cannot write the secrets of `{name}`"))
}

fn put(path: &Path, text: &str) -> Result<(), Failed> {
    fs::write(path, text).map_err(Failed::at(path))
}

fn certificates(place: &Place, folder: &Path) -> String {
    let names = format!("IP:{},IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc", place.inside());
    format!(
        "set -eu; cd {}
new='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $new -keyout ca.key -out ca.crt -days 3650 -subj /CN=peregrine-test-cluster
sign() {{ openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile $1.ext -out $1.crt; }}
printf 'subjectAltName={names}\\nextendedKeyUsage=serverAuth\\n' > server.ext
printf 'extendedKeyUsage=clientAuth\\n' > to-kubelet.ext
openssl req $new -keyout server.key -subj /CN=kube-apiserver | sign server
openssl req $new -keyout to-kubelet.key -subj /O=system:masters/CN=kube-apiserver | sign to-kubelet
openssl ecparam -name prime256v1 -genkey -noout -out accounts.key
openssl ec -in accounts.key -pubout -out accounts.pub",
        folder.display()
    )
}

/// The authority's certificate is inside, so the file can be taken elsewhere.
fn kubeconfig(sh: &Shell, place: &Place, folder: &Path, token: &str) -> Result<String, Failed> {
    let path = folder.join("ca.crt").display().to_string();
    let authority = sh.output("base64", &["--wrap=0", &path]).ok_or_else(|| no_secret("the certificate authority"))?;
    Ok(format!(
        "apiVersion: v1
kind: Config
clusters:
- name: peregrine
  cluster: {{server: 'https://{}:6443', certificate-authority-data: {authority}}}
users:
- name: peregrine
  user: {{token: {token}}}
contexts:
- name: peregrine
  context: {{cluster: peregrine, user: peregrine}}
current-context: peregrine
",
        place.inside()
    ))
}
