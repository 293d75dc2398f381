//! Kubeconfigs that travel: from the machine of whoever attaches something to the server that will use it.
//!
//! A kubeconfig can name files and programs. Of the sender's machine they mean nothing to the server, and of the server's
//! machine they are not the sender's to name. Invariant: one that was sent holds everything in itself and starts nothing.

use super::Error;
use k8s_openapi::ByteString;
use kube::config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError};
use std::{fs, path::Path};

/// The text of a kubeconfig with one context and all that belongs to it; files that it names are part of the text.
pub fn portable(file: &Path, context: Option<&str>) -> Result<String, Error> {
    let read = Kubeconfig::read_from(file).map_err(Error::Kubeconfig)?;
    let mut one = minified(read, context)?;
    for cluster in one.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        enclose_cluster(cluster)?;
    }
    for user in one.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        enclose_user(user)?;
    }
    is(&one)?;
    Ok(serde_json::to_string(&one).expect("a kubeconfig that was read can be written"))
}

/// Whether it holds everything in itself.
pub(super) fn is(config: &Kubeconfig) -> Result<(), Error> {
    let not = |why: String| Err(Error::NotPortable { why });
    for named in &config.clusters {
        if named.cluster.as_ref().is_some_and(|cluster| cluster.certificate_authority.is_some()) {
            return not(format!("cluster `{}` names a file for its authority", named.name));
        }
    }
    for named in &config.auth_infos {
        let Some(user) = &named.auth_info else { continue };
        if let Some(exec) = &user.exec {
            let program = exec.command.as_deref().unwrap_or_default();
            return not(format!("user `{}` signs in with the program `{program}`", named.name));
        }
        if let Some(provider) = &user.auth_provider {
            return not(format!("user `{}` signs in with the provider `{}`", named.name, provider.name));
        }
        if user.token_file.is_some() || user.client_certificate.is_some() || user.client_key.is_some() {
            return not(format!("user `{}` names a file", named.name));
        }
    }
    Ok(())
}

/// Only what one context needs: the rest is nobody else's business.
fn minified(mut config: Kubeconfig, context: Option<&str>) -> Result<Kubeconfig, Error> {
    let current = context.map(str::to_owned).or(config.current_context.take());
    let current = current.ok_or(Error::Kubeconfig(KubeconfigError::CurrentContextNotSet))?;
    config.contexts.retain(|named| named.name == current);
    let Some(chosen) = config.contexts.first().and_then(|named| named.context.clone()) else {
        return Err(Error::Kubeconfig(KubeconfigError::LoadContext(current)));
    };
    config.clusters.retain(|named| named.name == chosen.cluster);
    config.auth_infos.retain(|named| Some(&named.name) == chosen.user.as_ref());
    config.current_context = Some(current);
    (config.extensions, config.preferences) = (None, None);
    Ok(config)
}

fn enclose_cluster(cluster: &mut Cluster) -> Result<(), Error> {
    if let Some(file) = cluster.certificate_authority.take() {
        cluster.certificate_authority_data = Some(encoded(&read(&file)?));
    }
    Ok(())
}

fn enclose_user(user: &mut AuthInfo) -> Result<(), Error> {
    if let Some(file) = user.client_certificate.take() {
        user.client_certificate_data = Some(encoded(&read(&file)?));
    }
    if let Some(file) = user.client_key.take() {
        user.client_key_data = Some(encoded(&read(&file)?).into());
    }
    if let Some(file) = user.token_file.take() {
        user.token = Some(String::from_utf8_lossy(&read(&file)?).trim().to_owned().into());
    }
    Ok(())
}

fn read(file: &str) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|error| Error::Kubeconfig(KubeconfigError::ReadConfig(error, file.into())))
}

/// As bytes stand in a kubeconfig.
fn encoded(bytes: &[u8]) -> String {
    let value = serde_json::to_value(ByteString(bytes.to_vec())).expect("bytes can be written");
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "
apiVersion: v1
kind: Config
current-context: lab
clusters:
- {name: lab, cluster: {server: 'https://lab:6443', certificate-authority: ca.pem}}
- {name: other, cluster: {server: 'https://other:6443'}}
users:
- {name: ada, user: {tokenFile: token}}
- {name: eve, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}}}
contexts:
- {name: lab, context: {cluster: lab, user: ada}}
- {name: away, context: {cluster: other, user: eve}}
";

    #[test]
    fn what_is_sent_has_one_context_and_its_files_in_it() {
        let folder = std::env::temp_dir().join(format!("peregrine-portable-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("config");
        fs::write(&file, TWO).unwrap();
        fs::write(folder.join("ca.pem"), "pem").unwrap();
        fs::write(folder.join("token"), "secret\n").unwrap();
        let text = portable(&file, None).unwrap();
        assert!(text.contains("cGVt") && text.contains("\"secret\"") && !text.contains("other"), "{text}");
        is(&Kubeconfig::from_yaml(&text).unwrap()).unwrap();
        let refused = portable(&file, Some("away")).unwrap_err();
        assert!(refused.to_string().contains("user `eve` signs in with the program `aws`"), "{refused}");
        let none = portable(&file, Some("nowhere")).unwrap_err();
        assert!(none.reasons().join(" ").contains("nowhere"), "{none:?}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn one_that_would_read_files_or_start_programs_of_the_server_is_refused() {
        for (config, why) in [
            ("users: [{name: u, user: {exec: {command: touch}}}]", "the program `touch`"),
            ("users: [{name: u, user: {auth-provider: {name: gcp, config: {cmd-path: touch}}}}]", "the provider `gcp`"),
            ("users: [{name: u, user: {tokenFile: /etc/shadow}}]", "user `u` names a file"),
            ("users: [{name: u, user: {client-key: /etc/shadow}}]", "user `u` names a file"),
            (
                "clusters: [{name: c, cluster: {server: 'https://c', certificate-authority: /etc/shadow}}]",
                "its authority",
            ),
        ] {
            let refused = is(&Kubeconfig::from_yaml(config).unwrap()).unwrap_err().to_string();
            assert!(refused.contains(why), "{config}: {refused}");
        }
    }
}
