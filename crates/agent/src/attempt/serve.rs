//! A replica of a deployment: an attempt whose command answers requests until it is stopped.
//!
//! Here is what it needs beyond any other command: a port of its own, the model where scripts look for it, and the public
//! inference server where the deployment brings a script or an MLflow model instead of a program. `probe` asks it how it
//! is, `watch` judges the answers, `explain` reads what it left in its log. Invariant: on a node it is reached through
//! loopback only, so that nobody passes by the router; in a pod through the pod's own address.

mod explain;
pub(super) mod model;
mod probe;
mod watch;

use crate::{context::Context, environment::Ready};
use domain::{Assignment, EnvironmentPlan, Plan, PlannedInput, Serving, ServingKind, job::Failure};
pub(super) use explain::explain;
use model::Model;
use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    path::{Component, Path, PathBuf},
};
pub(super) use watch::{let_go, watch};

/// The package that puts a script behind HTTP.
const SERVER_PACKAGE: &str = "azureml-inference-server-http";
/// Where free ports are looked for: below those that the kernel hands out for connections, and below those of gangs.
const PORTS: std::ops::Range<u16> = 10_000..20_000;

/// The script that answers for an MLflow model, and its name in the working folder.
const MLFLOW_SCRIPT: &str = include_str!("serve/mlflow_score.py");
const MLFLOW_ENTRY: &str = "mlflow_score.py";

/// A replica on its way.
pub(super) struct Replica<'a> {
    serving: &'a Serving,
    plan: &'a Plan,
    work: PathBuf,
    model: Option<Model>,
}

/// All that is needed to start one.
pub(super) struct Start {
    pub(super) address: SocketAddr,
    /// Empty where the image starts by itself what it was made for.
    pub(super) argv: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    /// Paths of this machine and where they are seen in the container.
    pub(super) mounts: Vec<(PathBuf, String)>,
    /// The container's own port, where it is not the one of the address.
    pub(super) publish: Option<u16>,
}

impl<'a> Replica<'a> {
    /// The replica that a plan asks for, with its model where it will look for it.
    pub(super) fn of(
        assignment: &'a Assignment,
        folder: &Path,
        inputs: &BTreeMap<String, String>,
    ) -> Result<Option<Replica<'a>>, Failure> {
        let plan = &assignment.plan;
        let Some(serving) = &plan.serve else { return Ok(None) };
        let model = match (plan.inputs.get("model"), inputs.get("model")) {
            (Some(PlannedInput::Data { place, .. }), Some(staged)) => {
                let inside = serving.model_mount.as_deref();
                Some(Model::put(folder, place, Path::new(staged), inside).map_err(super::disk)?)
            }
            _ => None,
        };
        let replica = Replica { serving, plan, work: folder.join("work"), model };
        replica.check_entry()?;
        Ok(Some(replica))
    }

    /// A script that is not there is found out before anything is built for it.
    fn check_entry(&self) -> Result<(), Failure> {
        let ServingKind::ScoringScript { entry } = &self.serving.kind else { return Ok(()) };
        let plain = Path::new(entry).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if plain && self.work.join(entry).is_file() {
            return Ok(());
        }
        let text = format!(
            "the scoring script `{entry}` is not in the code folder (next step: correct `code_configuration.scoring_script`)"
        );
        Err(Failure::new("UserScriptNotFound", text))
    }

    /// The software it needs: what the plan or the model asks for, and the inference server where that is ours to add.
    pub(super) async fn environment(&self, cx: &Context) -> Result<EnvironmentPlan, Failure> {
        let mut environment = self.plan.environment.clone();
        if environment.label.is_empty() {
            environment.label = format!("of deployment {}/{}", self.serving.endpoint, self.serving.deployment);
        }
        let image = environment.image.is_some() || environment.build.is_some();
        let packages = environment.conda.is_some() || !environment.pip.is_empty();
        let has_engine = image && cx.outpost.is_none() && cx.environments.engine().await.is_some();
        match self.serving.kind {
            ServingKind::Container if image && !has_engine && cx.outpost.is_none() => return Err(self.without_engine()),
            ServingKind::Container => return Ok(environment),
            ServingKind::MlflowModel if !image && !packages => {
                let model = self.mlflow_folder()?;
                model::environment(&mut environment, &model).map_err(super::disk)?;
                add(&mut environment, "mlflow");
            }
            ServingKind::MlflowModel | ServingKind::ScoringScript { .. } => {}
        }
        // An image that brings all of its packages brings the server too.
        let in_image = has_engine || (cx.outpost.is_some() && cx.environments.host().which("azmlinfsrv").is_some());
        if !in_image || packages {
            add(&mut environment, SERVER_PACKAGE);
        }
        Ok(environment)
    }

    pub(super) fn start(&self, cx: &Context, assignment: &Assignment, ready: &Ready) -> Result<Start, Failure> {
        let own_port = ready.image.is_some() && matches!(self.serving.kind, ServingKind::Container);
        let publish = self.serving.port.filter(|_| own_port);
        let address = self.address(cx, assignment, publish)?;
        let mut variables = BTreeMap::from([
            ("AML_APP_ROOT".to_owned(), self.work.display().to_string()),
            ("SERVICE_NAME".to_owned(), self.serving.endpoint.clone()),
            ("SERVER_PORT".to_owned(), publish.unwrap_or(address.port()).to_string()),
        ]);
        let mut mounts = Vec::new();
        if let Some(model) = &self.model {
            let inside = ready.image.is_some();
            variables.insert("AZUREML_MODEL_DIR".to_owned(), model.folder(inside));
            mounts.extend(inside.then(|| model.mount()));
        }
        let argv = match &self.serving.kind {
            ServingKind::ScoringScript { entry } => {
                variables.insert("AZUREML_ENTRY_SCRIPT".to_owned(), entry.clone());
                self.inference_server(cx, entry, address)
            }
            ServingKind::MlflowModel => {
                let folder = self.mlflow_folder()?.display().to_string();
                variables.insert("PEREGRINE_MLFLOW_MODEL".to_owned(), folder);
                fs::write(self.work.join(MLFLOW_ENTRY), MLFLOW_SCRIPT).map_err(super::disk)?;
                self.inference_server(cx, MLFLOW_ENTRY, address)
            }
            ServingKind::Container => Vec::new(),
        };
        Ok(Start { address, argv, variables, mounts, publish })
    }

    /// The inference server itself listens on every address there is; on a node, that would be a way around the router.
    fn inference_server(&self, cx: &Context, entry: &str, address: SocketAddr) -> Vec<String> {
        let host = if cx.outpost.is_some() { "0.0.0.0" } else { "127.0.0.1" };
        let launch = format!(
            "from azureml_inference_server_http import amlserver\namlserver.DEFAULT_HOST = '{host}'\namlserver.run()"
        );
        let (entry, port) = (self.work.join(entry).display().to_string(), address.port().to_string());
        ["python", "-c", &launch, "--entry_script", &entry, "--port", &port].map(str::to_owned).to_vec()
    }

    fn address(&self, cx: &Context, assignment: &Assignment, publish: Option<u16>) -> Result<SocketAddr, Failure> {
        let asked = self.serving.port;
        if let Some(outpost) = &cx.outpost {
            let host: IpAddr = outpost.address.parse().map_err(|_| {
                Failure::new("ReplicaWithoutAddress", format!("`{}` is no address of a pod", outpost.address))
            })?;
            return Ok((host, self.serving.own_port()).into());
        }
        let host = Ipv4Addr::LOCALHOST;
        if let (ServingKind::Container, None, Some(port)) = (&self.serving.kind, publish, asked) {
            return Ok((host, port).into());
        }
        let lives = cx.journal.lives();
        let held: Vec<u16> = lives.iter().filter_map(|life| Some(life.run.as_ref()?.address?.port())).collect();
        let (seq, number) = assignment.attempt.parts().unwrap_or((0, 0));
        // Attempts that are staged at the same time, here and by agents of other homes, begin at other places.
        let begin = super::process::hash_of(&cx.attempts())
            .wrapping_add_signed(seq.wrapping_mul(31))
            .wrapping_add(u64::from(number));
        free_port(begin, &held)
            .map(|port| (host, port).into())
            .ok_or_else(|| Failure::new("NoFreePort", "no port is free on the node for another replica"))
    }

    fn mlflow_folder(&self) -> Result<PathBuf, Failure> {
        self.model.as_ref().and_then(Model::mlflow_folder).ok_or_else(|| {
            let text = "there is no `MLmodel` file in the model (next step: register the folder that `mlflow` saved, or add `code_configuration` with a scoring script)";
            Failure::new("UserError.NotAnMlflowModel", text)
        })
    }

    fn without_engine(&self) -> Failure {
        let text = format!(
            "deployment `{}` is a custom container, and no container engine works on this machine (next step: install podman or docker, or deploy to a cluster)",
            self.serving.deployment
        );
        Failure::new("NoContainerEngine", text)
    }
}

/// Adds a package unless a line or the conda file names it already, in whatever version.
pub(super) fn add(environment: &mut EnvironmentPlan, package: &str) {
    let conda = environment.conda.iter().flat_map(|text| text.lines());
    let named = |line: &str| line.trim_start_matches([' ', '-', '"', '\'']).replace('_', "-").starts_with(package);
    if !conda.chain(environment.pip.iter().map(String::as_str)).any(named) {
        environment.pip.push(package.to_owned());
    }
}

/// A port that nobody listens on and no other replica was given, the search begun at a place of its own.
fn free_port(begin: u64, held: &[u16]) -> Option<u16> {
    let count = PORTS.len() as u64;
    let at = |step: u64| PORTS.start + u16::try_from(begin.wrapping_add(step) % count).unwrap_or(0);
    (0..count).map(at).filter(|port| !held.contains(port)).find(|port| {
        // A wildcard socket is in the way of one on loopback, and the reverse.
        TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_and_not_another_replicas() {
        let first = free_port(5, &[]).unwrap();
        assert!(PORTS.contains(&first));
        let second = free_port(5, &[first]).unwrap();
        assert_ne!(first, second);
        let _listener = TcpListener::bind(("0.0.0.0", first)).unwrap();
        assert_ne!(free_port(5, &[]), Some(first));
        assert!(free_port(u64::MAX, &[]).is_some_and(|port| PORTS.contains(&port)));
    }

    #[test]
    fn a_package_is_added_once() {
        let conda = "dependencies:\n- python=3.10\n- pip:\n  - azureml_inference_server_http~=0.8\n";
        for (conda, pip, added) in [
            (None, vec![], true),
            (None, vec!["six"], true),
            (None, vec!["azureml-inference-server-http==1.0"], false),
            (Some(conda), vec![], false),
            (Some("dependencies: [python]"), vec![], true),
        ] {
            let pip: Vec<String> = pip.into_iter().map(str::to_owned).collect();
            let before = pip.len();
            let mut plan = EnvironmentPlan { conda: conda.map(str::to_owned), pip, ..EnvironmentPlan::default() };
            add(&mut plan, SERVER_PACKAGE);
            assert_eq!(plan.pip.len() > before, added, "{plan:?}");
        }
    }
}
