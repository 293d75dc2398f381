//! What each command does. One file per noun; this one hands out the work.

mod asset;
mod change;
mod component;
mod compute;
mod config;
mod data;
mod datastore;
mod deployment;
mod endpoint;
pub(crate) mod environment;
#[cfg(feature = "kubernetes")]
mod extension;
mod import;
mod job;
mod model;
mod principal;
mod record;
mod registry;
mod replicate;
mod schedule;
mod sdk;
mod server;
pub(crate) mod settle;
mod studio;
mod workspace;

pub(crate) use job::resolve_command;

#[cfg(feature = "kubernetes")]
use crate::operator;
use crate::{
    args::{self, Noun},
    config::Config,
    doctor,
    failure::{Done, Failure},
    gen_docs, local, node,
    output::Output,
    pod, roles,
    upload::Uploader,
};
use api::{Client, ClientError, arm::Scope};
use clap::CommandFactory;
use serde_json::{Value, json};
use std::{future::Future, io::IsTerminal, process::ExitCode};

/// What every command has at hand.
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) output: Output,
}

/// A server to talk to, and as whom.
pub(crate) struct Session<'a> {
    pub(crate) client: Client,
    pub(crate) scope: Scope,
    pub(crate) context: &'a Context,
}

impl Context {
    /// Finds the server, starting one on this machine where none runs.
    pub(crate) async fn session(&self) -> Done<Session<'_>> {
        let client = local::connect(&self.config, true).await?;
        Ok(Session { client, scope: self.config.scope(), context: self })
    }
}

impl<'a> Session<'a> {
    /// `{workspace}/rest`.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{}/{rest}", self.scope.path())
    }

    /// A resource, or `None` where there is none; a workspace that does not exist is a failure of its own.
    pub(crate) async fn find(&self, path: &str) -> Done<Option<Value>> {
        let missing = format!("there is no workspace `{}`", self.scope.workspace);
        match self.client.get(path).await {
            Ok(value) => Ok(Some(value)),
            Err(ClientError::Refused { status: 404, message, .. }) if message.starts_with(&missing) => {
                Err(Failure::input(missing)
                    .hint("run `peregrine workspace list`, or make it with `peregrine workspace create`"))
            }
            Err(ClientError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn output(&self) -> &'a Output {
        &self.context.output
    }

    pub(crate) fn uploader(&self) -> Uploader<'_> {
        Uploader { client: &self.client, scope: &self.scope, output: self.output() }
    }
}

/// Does what was asked.
pub(crate) fn run(context: &Context, noun: Noun) -> Done<ExitCode> {
    match noun {
        Noun::Job(verb) => wait(job::run(context, verb)),
        Noun::Environment(verb) => wait(environment::run(context, verb)),
        Noun::Data(verb) => wait(data::run(context, verb)),
        Noun::Model(verb) => wait(model::run(context, verb)),
        Noun::Component(verb) => wait(component::run(context, verb)),
        Noun::Registry(verb) => wait(registry::run(context, verb)),
        Noun::Schedule(verb) => wait(schedule::run(context, verb)),
        Noun::OnlineEndpoint(noun) => wait(endpoint::online(context, noun.verb)),
        Noun::OnlineDeployment(noun) => wait(deployment::online(context, noun.verb)),
        Noun::BatchEndpoint(verb) => wait(endpoint::batch(context, verb)),
        Noun::BatchDeployment(verb) => wait(deployment::batch(context, verb)),
        Noun::Datastore(verb) => wait(datastore::run(context, verb)),
        Noun::Compute(verb) => wait(compute::run(context, verb)),
        #[cfg(feature = "kubernetes")]
        Noun::Extension(verb) => wait(extension::run(context, verb)),
        Noun::Workspace(verb) => wait(workspace::run(context, verb)),
        Noun::Sdk(verb) => wait(sdk::run(context, verb)),
        Noun::Import(verb) => wait(import::run(context, verb)),
        Noun::Studio(args) => wait(studio::run(context, &args)),
        Noun::Principal(verb) => wait(principal::run(context, verb)),
        Noun::Server(verb) => server::run(context, verb),
        Noun::Router(args) => roles::router(context, args),
        Noun::Config(verb) => config::run(context, verb),
        Noun::Completion { shell } => completion(context, shell),
        Noun::Version => {
            let version = json!({"peregrine": env!("CARGO_PKG_VERSION"), "os": std::env::consts::OS, "arch": std::env::consts::ARCH});
            context.output.show(&version)?;
            Ok(ExitCode::SUCCESS)
        }
        Noun::Doctor => wait(doctor::run(context)),
        Noun::Agent(args::machine::AgentVerb::Run) => Ok(roles::agent(&context.config)?),
        Noun::Agent(args::machine::AgentVerb::Keep) => {
            roles::keeper(&context.config, agent::keeper::Of::Node)?;
            Ok(ExitCode::SUCCESS)
        }
        Noun::Agent(args::machine::AgentVerb::Pod) => pod::keep(&context.config),
        Noun::Agent(args::machine::AgentVerb::Part) => pod::run(&context.config),
        Noun::Agent(args::machine::AgentVerb::Node) => node::run(),
        Noun::Agent(args::machine::AgentVerb::Place { to }) => pod::place(&to),
        #[cfg(feature = "kubernetes")]
        Noun::Operator(args) => operator::run(args),
        Noun::Gen(args::machine::GenVerb::Docs { to }) => {
            gen_docs::write(&to)?;
            Ok(ExitCode::SUCCESS)
        }
        #[cfg(feature = "kubernetes")]
        Noun::Gen(args::machine::GenVerb::Deploy { to }) => {
            gen_docs::deploy(&to)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs to the end on this thread; a command line has no use for more.
pub(crate) fn wait<T>(work: impl Future<Output = Done<T>>) -> Done<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    // A read that nobody awaits any more must not hold up the exit.
    runtime.shutdown_background();
    result
}

/// Asks before something is lost; without a terminal, `--yes` is the only answer.
pub(crate) fn confirm(context: &Context, question: &str, yes: bool) -> Done {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::input(format!("{question} was not confirmed")).hint("add `--yes`"));
    }
    context.output.draw(&format!("{question}? [y/N] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::input("nothing was changed")),
    }
}

fn completion(context: &Context, shell: clap_complete::Shell) -> Done<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::Cli::command(), "peregrine", &mut script);
    context.output.bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}
