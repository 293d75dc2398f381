//! `peregrine job connect` and `connect-ssh`: services of a job that runs, through a port of this machine.
//!
//! Every connection to the port becomes a stream to the server, which joins it with one that the job's agent dials. The
//! port is on loopback, for as long as the command runs.

use super::{fetch, parse_name};
use crate::{
    args::job::{Connect, ConnectSsh},
    commands::{Context, Session},
    failure::{Doing, Done, Failure},
};
use api::ClientError;
use domain::{JobName, spec::Service};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::{collections::BTreeMap, net::Ipv4Addr, process::ExitCode};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinSet,
};

pub(super) async fn connect(context: &Context, args: &Connect) -> Done {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    let services = services_of(&session, &name).await?;
    let service = chosen(&services, args.service.as_deref(), |_| true, &name)?;
    let door = Door::open(&session, &name, service, args.node_index, args.port).await?;
    // Who can tell at once that it does not work should; what is slow to start is started.
    door.stream().await.doing(|| format!("cannot reach service `{service}` of job `{name}`"))?;
    context.output.show(&json!({"service": service, "address": format!("127.0.0.1:{}", door.port)}))?;
    context.output.note("connections to that address go there; Ctrl-C ends it");
    tokio::select! {
        never = door.serve() => match never {},
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

pub(super) async fn connect_ssh(context: &Context, args: &ConnectSsh) -> Done<ExitCode> {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    let services = services_of(&session, &name).await?;
    let is_ssh = |service: &Service| service.kind.as_deref() == Some("ssh");
    let service = chosen(&services, args.service.as_deref(), is_ssh, &name)?;
    let door = Door::open(&session, &name, service, args.node_index, 0).await?;
    door.stream().await.doing(|| format!("cannot reach service `{service}` of job `{name}`"))?;
    let mut ssh = Command::new("ssh");
    // The host's key is made for the attempt; that it is the right host is vouched for by the server.
    for option in ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"] {
        ssh.args(["-o", option]);
    }
    if let Some(key) = &args.private_key_file_path {
        ssh.args(["-o", "IdentitiesOnly=yes", "-i"]).arg(key);
    }
    ssh.args(["-p", &door.port.to_string(), "-l", &args.user, "127.0.0.1"]).args(&args.command);
    let status = tokio::select! {
        never = door.serve() => match never {},
        status = ssh.status() => status,
    };
    let status = status.map_err(|error| Failure::file("cannot run `ssh`", &error))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

async fn services_of(session: &Session<'_>, name: &JobName) -> Done<BTreeMap<String, Service>> {
    let job: Value = fetch(session, name).await?;
    Ok(api::arm::job::services(&job["properties"]))
}

/// The service that is meant: the one that is named, or the only one that fits.
fn chosen<'a>(
    services: &'a BTreeMap<String, Service>,
    named: Option<&str>,
    fits: impl Fn(&Service) -> bool,
    job: &JobName,
) -> Done<&'a str> {
    let there: Vec<&str> =
        services.iter().filter(|(_, service)| fits(service)).map(|(name, _)| name.as_str()).collect();
    let found = match named {
        Some(named) => there.iter().find(|name| **name == named).copied(),
        None => there.first().filter(|_| there.len() == 1).copied(),
    };
    found.ok_or_else(|| {
        let failure = match named {
            Some(named) => Failure::input(format!("job `{job}` has no such service `{named}`")),
            None => Failure::input(format!("job `{job}` has {} services of that kind", there.len())),
        };
        match there.is_empty() {
            true => failure.hint("name some under `services` in the job's file"),
            false => failure.hint(format!("choose with `--service`: {}", there.join(", "))),
        }
    })
}

/// A port of this machine that leads to a service.
struct Door<'a> {
    session: &'a Session<'a>,
    path: String,
    listener: TcpListener,
    port: u16,
}

impl<'a> Door<'a> {
    async fn open(session: &'a Session<'a>, job: &JobName, service: &str, node: u32, port: u16) -> Done<Door<'a>> {
        let taken = |error: &std::io::Error| Failure::file(format!("cannot listen on 127.0.0.1:{port}"), error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| taken(&error))?;
        let port = listener.local_addr().map_err(|error| taken(&error))?.port();
        let service = utf8_percent_encode(service, NON_ALPHANUMERIC);
        let path = session.path(&format!("jobs/{job}/services/{service}/connect?node={node}"));
        Ok(Door { session, path, listener, port })
    }

    async fn stream(&self) -> Result<reqwest::Upgraded, ClientError> {
        self.session.client.stream(&self.path).await
    }

    /// Carries what comes, for ever.
    async fn serve(&self) -> std::convert::Infallible {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                Ok((near, _)) = self.listener.accept() => match self.stream().await {
                    Ok(far) => drop(open.spawn(carry(near, far))),
                    Err(error) => self.session.output().note(&format!("a connection was closed: {error}")),
                },
                Some(_) = open.join_next(), if !open.is_empty() => {}
            }
        }
    }
}

async fn carry(mut near: TcpStream, mut far: reqwest::Upgraded) {
    // Either end may break it off; that is how most of them end.
    let _ = copy_bidirectional(&mut near, &mut far).await;
}
