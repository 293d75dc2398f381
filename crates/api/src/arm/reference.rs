//! Resource ids and the short forms users write for them.

use std::fmt;

/// Whose resources: the head of every resource path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub subscription: String,
    pub group: String,
    pub workspace: String,
}

/// A reference to an asset of a known kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssetRef {
    /// In a workspace: the one it names, or else the one it is read in.
    Here { workspace: Option<String>, name: String, version: VersionRef },
    /// In a registry, shared between workspaces.
    Registry { registry: String, name: String, version: VersionRef },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionRef {
    Version(String),
    /// `latest`, or another label.
    Label(String),
}

/// Where data lies, as an `azureml://` address says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataUri {
    /// In the workspace it names, or else the one it is read in.
    Datastore {
        workspace: Option<String>,
        datastore: String,
        path: String,
    },
    JobOutput {
        job: String,
        output: String,
        path: String,
    },
    /// `http`, `s3`, `wasbs`, ...: used as it is.
    Other(String),
}

impl Scope {
    /// `/subscriptions/S/resourceGroups/G/providers/P/workspaces/W`, or `…/registries/R` where the owner is `@R`.
    pub fn path(&self) -> String {
        let (home, name) = match self.workspace.strip_prefix('@') {
            Some(registry) => ("registries", registry),
            None => ("workspaces", self.workspace.as_str()),
        };
        let (subscription, group) = (&self.subscription, &self.group);
        format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{}/{home}/{name}", super::PROVIDER)
    }

    /// The type of what stands in it: `P/workspaces/<kind>` or `P/registries/<kind>`.
    pub fn type_of(&self, kind: &str) -> String {
        let home = if self.workspace.starts_with('@') { "registries" } else { "workspaces" };
        format!("{}/{home}/{kind}", super::PROVIDER)
    }

    /// The id of a version of an asset.
    pub fn asset(&self, kind: &str, name: &str, version: &str) -> String {
        format!("{}/versions/{version}", self.asset_name(kind, name))
    }

    /// The id of a name of assets. Those of registries are known without their subscription and group.
    pub fn asset_name(&self, kind: &str, name: &str) -> String {
        match self.workspace.strip_prefix('@') {
            Some(registry) => format!("azureml://registries/{registry}/{kind}/{name}"),
            None => format!("{}/{kind}/{name}", self.path()),
        }
    }

    /// A reference to an asset as the id it stands for. Labels stay as they are: only the server knows what is latest.
    pub fn resolve(&self, kind: &str, text: &str) -> String {
        let rest = text.strip_prefix("azureml:").unwrap_or(text);
        match rest.split_once(':') {
            _ if rest.starts_with("//") => text.to_owned(),
            _ if rest.starts_with('/') => rest.to_owned(),
            Some((name, version)) if text.starts_with("azureml:") && !version.contains('/') => {
                self.asset(kind, name, version)
            }
            _ => text.to_owned(),
        }
    }

    /// A compute target or datastore by name, as its id. Bindings stay bindings.
    pub fn named(&self, kind: &str, text: &str) -> String {
        let rest = text.strip_prefix("azureml:").unwrap_or(text);
        if rest.starts_with('/') || rest.contains("${{") {
            return rest.to_owned();
        }
        format!("{}/{kind}/{rest}", self.path())
    }

    /// An address in a datastore with the workspace written out.
    pub fn long_address(&self, short: &str) -> String {
        match short.strip_prefix("azureml://datastores/") {
            Some(rest) => format!(
                "azureml://subscriptions/{}/resourcegroups/{}/workspaces/{}/datastores/{rest}",
                self.subscription, self.group, self.workspace
            ),
            None => short.to_owned(),
        }
    }
}

impl AssetRef {
    /// Reads `azureml:n:v`, `azureml:n@label`, `n:v`, `n@label`, a lone `n` (its latest), a resource id, and a registry address.
    pub fn parse(kind: &str, text: &str) -> Option<AssetRef> {
        let text = text.trim();
        let rest = text.strip_prefix("azureml:").unwrap_or(text);
        if let Some(path) = rest.strip_prefix("//registries/") {
            return registry(kind, path);
        }
        if rest.starts_with('/') {
            return by_id(kind, rest);
        }
        if rest.contains('/') {
            return None;
        }
        let (name, version) = match (rest.split_once(':'), rest.split_once('@')) {
            (Some((name, version)), _) => (name, VersionRef::Version(version.to_owned())),
            (None, Some((name, label))) => (name, VersionRef::Label(label.to_owned())),
            (None, None) => (rest, VersionRef::Label("latest".to_owned())),
        };
        (!name.is_empty()).then(|| AssetRef::Here { workspace: None, name: name.to_owned(), version })
    }
}

/// The last part of a compute reference: `azureml:lab`, `lab` or a resource id.
pub fn compute_name(text: &str) -> String {
    let rest = text.strip_prefix("azureml:").unwrap_or(text);
    rest.rsplit('/').next().unwrap_or(rest).to_owned()
}

/// Reads every form a data path takes, except local paths and asset references.
pub fn data_uri(text: &str) -> DataUri {
    let text = text.strip_prefix("azureml:").filter(|rest| !rest.starts_with("//")).unwrap_or(text);
    let other = || DataUri::Other(text.to_owned());
    let Some(path) = text.strip_prefix("azureml://") else { return other() };
    let parts: Vec<&str> = path.split('/').collect();
    if let Some(at) = parts.iter().position(|part| *part == "datastores") {
        let Some(datastore) = parts.get(at + 1).filter(|name| !name.is_empty()) else { return other() };
        let tail = parts.get(at + 2..).unwrap_or_default();
        let tail = tail.strip_prefix(&["paths"]).unwrap_or(tail);
        let workspace = named_after(&parts[..at], "workspaces");
        return DataUri::Datastore { workspace, datastore: (*datastore).to_owned(), path: tail.join("/") };
    }
    match parts.as_slice() {
        ["jobs", job, "outputs", output, tail @ ..] => DataUri::JobOutput {
            job: (*job).to_owned(),
            output: (*output).to_owned(),
            path: tail.strip_prefix(&["paths"]).unwrap_or(tail).join("/"),
        },
        _ => other(),
    }
}

/// Whether a path names something that is not a local file.
pub fn is_remote(path: &str) -> bool {
    path.contains("://")
        || path.starts_with("azureml:")
        || path.starts_with("/subscriptions/")
        || path.starts_with("runs:/")
        || path.starts_with("git+")
}

fn registry(kind: &str, path: &str) -> Option<AssetRef> {
    let parts: Vec<&str> = path.split('/').collect();
    let (registry, name, version) = match parts.as_slice() {
        [_, other, ..] if !other.eq_ignore_ascii_case(kind) => return None,
        [registry, _, name, "versions", version] => (registry, name, VersionRef::Version((*version).to_owned())),
        [registry, _, name, "labels", label] => (registry, name, VersionRef::Label((*label).to_owned())),
        [registry, _, name] => (registry, name, VersionRef::Label("latest".to_owned())),
        _ => return None,
    };
    Some(AssetRef::Registry { registry: (*registry).to_owned(), name: (*name).to_owned(), version })
}

fn by_id(kind: &str, id: &str) -> Option<AssetRef> {
    let parts: Vec<&str> = id.split('/').collect();
    let at = parts.iter().rposition(|part| part.eq_ignore_ascii_case(kind))?;
    let (name, version) = by_name(parts.get(at + 1..)?)?;
    Some(match named_after(&parts[..at], "registries") {
        Some(registry) => AssetRef::Registry { registry, name, version },
        None => AssetRef::Here { workspace: named_after(&parts[..at], "workspaces"), name, version },
    })
}

/// What stands after a word in the head of a path.
fn named_after(head: &[&str], word: &str) -> Option<String> {
    let at = head.iter().rposition(|part| part.eq_ignore_ascii_case(word))?;
    head.get(at + 1).map(|name| (*name).to_owned())
}

fn by_name(parts: &[&str]) -> Option<(String, VersionRef)> {
    match parts {
        [name, versions, version] if versions.eq_ignore_ascii_case("versions") => {
            Some(((*name).to_owned(), VersionRef::Version((*version).to_owned())))
        }
        [name, labels, label] if labels.eq_ignore_ascii_case("labels") => {
            Some(((*name).to_owned(), VersionRef::Label((*label).to_owned())))
        }
        [name] => Some(((*name).to_owned(), VersionRef::Label("latest".to_owned()))),
        _ => None,
    }
}

impl fmt::Display for AssetRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, name, version) = match self {
            AssetRef::Here { name, version, .. } => (String::new(), name, version),
            AssetRef::Registry { registry, name, version } => (format!("{registry}/"), name, version),
        };
        match version {
            VersionRef::Version(version) => write!(f, "{head}{name}:{version}"),
            VersionRef::Label(label) => write!(f, "{head}{name}@{label}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_asset_reference_is_read() {
        let shown = |text: &str| AssetRef::parse("environments", text).map(|r| r.to_string());
        for (text, expect) in [
            ("azureml:env:1", "env:1"),
            ("azureml:env@latest", "env@latest"),
            ("env", "env@latest"),
            ("azureml://registries/azureml/environments/sklearn-1.5/labels/latest", "azureml/sklearn-1.5@latest"),
            ("azureml://registries/r/environments/e/versions/3", "r/e:3"),
            ("/subscriptions/s/resourceGroups/g/providers/p/registries/r/environments/e/versions/3", "r/e:3"),
            ("/subscriptions/s/resourceGroups/g/providers/p/workspaces/w/environments/env1/versions/1", "env1:1"),
            (
                "azureml:/subscriptions/s/resourcegroups/g/providers/p/workspaces/w/Environments/env1/versions/1",
                "env1:1",
            ),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expect), "{text}");
        }
        assert_eq!(shown("./env.yml"), None);
    }

    #[test]
    fn an_id_keeps_the_workspace_it_names() {
        for (text, expect) in [
            ("azureml:d:1", None),
            ("/subscriptions/s/resourceGroups/g/providers/p/workspaces/w/data/d/versions/1", Some("w")),
            ("azureml:/subscriptions/s/resourcegroups/g/providers/p/Workspaces/data/Data/d", Some("data")),
            ("azureml://locations/l/workspaces/0-1/data/d/versions/1", Some("0-1")),
        ] {
            let Some(AssetRef::Here { workspace, .. }) = AssetRef::parse("data", text) else { panic!("{text}") };
            assert_eq!(workspace.as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn a_name_and_version_become_an_id_and_a_label_stays() {
        let scope = Scope { subscription: "s".into(), group: "g".into(), workspace: "w".into() };
        let head = scope.path();
        for (text, expect) in [
            ("azureml:e:1", format!("{head}/environments/e/versions/1")),
            ("azureml:e@latest", "azureml:e@latest".to_owned()),
            ("azureml:/subscriptions/x", "/subscriptions/x".to_owned()),
            (
                "azureml://registries/r/environments/e/versions/1",
                "azureml://registries/r/environments/e/versions/1".to_owned(),
            ),
            ("https://x/y:z", "https://x/y:z".to_owned()),
        ] {
            assert_eq!(scope.resolve("environments", text), expect);
        }
        assert_eq!(scope.named("computes", "azureml:c"), format!("{head}/computes/c"));
        assert_eq!(scope.named("computes", "${{parent.inputs.c}}"), "${{parent.inputs.c}}");
    }

    #[test]
    fn data_addresses_name_their_datastore_or_job() {
        let path = |workspace: Option<&str>, path: &str| DataUri::Datastore {
            workspace: workspace.map(str::to_owned),
            datastore: "d".into(),
            path: path.into(),
        };
        assert_eq!(data_uri("azureml://datastores/d/paths/a/b.csv"), path(None, "a/b.csv"));
        let long = "azureml://subscriptions/s/resourcegroups/g/workspaces/w/datastores/d/paths/a/";
        assert_eq!(data_uri(long), path(Some("w"), "a/"));
        let output = DataUri::JobOutput { job: "j".into(), output: "o".into(), path: "m".into() };
        assert_eq!(data_uri("azureml://jobs/j/outputs/o/paths/m"), output);
        assert_eq!(data_uri("azureml:https://x/y"), DataUri::Other("https://x/y".into()));
    }
}
