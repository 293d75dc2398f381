//! Installing, upgrading and removing the extension, from outside the cluster.
//!
//! Everything is applied by server-side apply under one field manager, so that doing it twice changes nothing. Invariant: an
//! installation that fails leaves the cluster as it was; what it had made is removed, what it had changed is put back.

mod apply;
mod kinds;
mod look;
mod remove;
mod wait;

pub use apply::{Applied, apply, remove_one, roll_back};
pub use look::{look, report, uid};
pub use remove::{Left, Removal, instance_types, leftovers, release_memory, remove, running_attempts};
pub use wait::until_ready;

use crate::{
    connect::{Cluster, Error},
    names::OPERATOR,
    settings::Raw,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;

/// What an extension that is installed was installed with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    pub cluster: String,
    pub image: String,
    pub server: String,
    pub proxy: [String; 3],
    pub plain: Raw,
    /// The release, where Helm installed it.
    pub helm: Option<String>,
    pub wanted: i32,
    pub ready: i32,
}

/// The extension in this namespace; `None` where there is none.
pub async fn installed(cluster: &Cluster, namespace: &str) -> Result<Option<Installed>, Error> {
    let api: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespace);
    let found =
        api.get_opt(OPERATOR).await.map_err(|error| cluster.told("look at the operator's deployment", error))?;
    Ok(found.as_ref().map(Installed::of))
}

impl Installed {
    /// Read off the deployment itself: nothing else remembers.
    fn of(deployment: &Deployment) -> Installed {
        let spec = deployment.spec.as_ref();
        let container = spec.and_then(|spec| spec.template.spec.as_ref()?.containers.first());
        let variable = |name: &str| {
            let all = container.and_then(|container| container.env.as_ref()).into_iter().flatten();
            all.into_iter().find(|one| one.name == name).and_then(|one| one.value.clone()).unwrap_or_default()
        };
        let settings = serde_json::from_str(&variable("PEREGRINE_SETTINGS")).unwrap_or_default();
        let annotations = deployment.metadata.annotations.as_ref();
        let status = deployment.status.as_ref();
        Installed {
            cluster: variable("PEREGRINE_CLUSTER"),
            image: container.and_then(|container| container.image.clone()).unwrap_or_default(),
            server: variable("PEREGRINE_SERVER"),
            proxy: ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"].map(variable),
            plain: crate::settings::from_json(&settings).unwrap_or_default(),
            helm: annotations.and_then(|all| all.get("meta.helm.sh/release-name")).cloned(),
            wanted: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            ready: status.and_then(|status| status.ready_replicas).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::{self, Install};
    use crate::settings;

    #[test]
    fn an_installation_can_be_read_off_its_deployment() {
        let plain = Raw::from([("enableTraining".into(), "True".into()), ("nodeSelector.a".into(), "b".into())]);
        let install = Install {
            cluster: "lab".into(),
            namespace: "peregrine".into(),
            image: "ours:2".into(),
            server: "https://s".into(),
            proxy: ["http://p:3128".into(), String::new(), "10.0.0.0/8".into()],
            settings: settings::check(&plain, &Raw::new()).unwrap().settings,
            plain: plain.clone(),
            ..Install::default()
        };
        let object = manifests::objects(&install).pop().unwrap();
        let read = Installed::of(&serde_json::from_value(object).unwrap());
        assert_eq!((read.cluster.as_str(), read.image.as_str(), read.server.as_str()), ("lab", "ours:2", "https://s"));
        assert_eq!((read.proxy, read.plain, read.helm, read.wanted), (install.proxy, plain, None, 1));
    }
}
