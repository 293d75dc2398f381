//! The long-lived roles of the binary: server, router, keeper, agent. Each is wired here and nowhere else.

use crate::{
    args::machine,
    commands::Context as Command,
    config::Config,
    failure::{Done, Exit, Failure},
    local, serving, sites, spec_file,
};
use agent::{
    Settings,
    doors::{self, Door, Doors, Taken},
    keeper,
    outpost::Posting,
};
use anyhow::Context as _;
use controller::Context;
use domain::spec::shape::Noun;
use server::{Certificates, Routers};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use store::Store;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// A log larger than this is put aside at the next start.
const LOG_BYTES: u64 = 64 << 20;
/// A client that neither sends nor takes a byte for this long is given up.
const IDLE: Duration = Duration::from_secs(60);

/// Runs the server in this process until it is told to stop. `detached`: in a session of its own, logging to a file.
pub(crate) fn server_foreground(config: &Config, detached: bool) -> Done<ExitCode> {
    let home = &config.home;
    prepare_home(home)?;
    let Some(lock) = local::wait_for_lock(home)? else {
        let message = format!("a server for `{}` is already running", home.display());
        return Err(Failure::input(message).hint("`peregrine server status` shows it, `peregrine server stop` ends it"));
    };
    if detached {
        let _ = rustix::process::setsid();
    }
    log_to(detached.then(|| home.join("logs").join("server.log")).as_deref())?;
    provide_crypto();
    let runtime = Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let served = runtime.block_on(serve(config));
    // The address must not outlive the lock it stands for.
    let _ = fs::remove_file(agent::server::address_file(home));
    runtime.shutdown_timeout(Duration::from_secs(2));
    if config.postgres.is_none() {
        // Only tidiness: the next start would do it too.
        let _ = store::fold_log(home);
    }
    drop(lock);
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(config: &Config) -> Done {
    let home = config.home.clone();
    let keys = home.join("keys");
    let store = Store::open_at(&home, &config.database()?).map_err(|error| store_failure(&error))?;
    let certificates = match (&config.tls_cert, &config.tls_key) {
        (Some(certificate), Some(key)) => {
            Certificates::Given { certificate: certificate.clone(), key: key.clone(), keys: keys.clone() }
        }
        _ => Certificates::Own { keys: keys.clone() },
    };
    let keeper = doors::of_server(&home);
    let mut kept = doors::take(&keeper);
    let listening = listen(config, &certificates, &mut kept).await?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let authority =
        fs::read_to_string(agent::server::authority_file(&home)).context("cannot read our own authority")?;
    let authority_pem = authority_of(config, &certificates)?;
    // Jobs here call this machine's own door, and may call the other.
    let both = if authority_pem == authority { authority.clone() } else { format!("{authority}\n{authority_pem}") };
    let bundle = server::write_bundle(&keys, Some(both.as_bytes())).context("cannot write the file of authorities")?;
    let routers = Routers::with_keys(store.clone(), &keys, server::clock::now);
    let (_, table) = routers.current(store::HERE).await.map_err(|error| store_failure(&error))?;
    let own = serving::start(config, &certificates, &table, &mut kept)?;
    let counted = own.routes.clone();
    routers.stand_at(serving::loopback());
    routers.show_metrics(move || counted.metrics());
    let known = serving::Known {
        routers: routers.clone(),
        store: store.clone(),
        url: Some(own.url.clone()),
        authority: Some(authority_pem.clone().into_bytes()).filter(|pem| !pem.is_empty()),
        given: matches!(certificates, Certificates::Given { .. }),
    };
    let settings = server::Settings {
        version: version.clone(),
        subscription: config.subscription.clone(),
        resource_group: config.resource_group.clone(),
        workspace: config.workspace.clone(),
        public_url: config.public_url.clone(),
        authority: authority_pem.clone(),
        bundle: Some(bundle),
        instance_types: config.instance_types.clone(),
        isolation_required: config.isolation_required,
        max_retries: config.max_retries,
        storage_quota: config.storage_quota,
        half_life: config.half_life,
        idle: IDLE,
        rate_limit: config.rate_limit,
        private_webhooks: config.private_webhooks,
        keep_deleted: config.keep_deleted,
        node_certificate: config.node_certificate,
        scoring_url: Some(own.url.clone()),
        routers: Some(routers.clone()),
        clock: server::clock::now,
    };
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let driver = compute::LocalDriver::new(program.clone(), home.clone());
    let stewards = sites::Sites {
        store: store.clone(),
        home: home.clone(),
        program,
        url: listening.local_url.clone(),
        authority,
        outside: (listening.url.clone(), authority_pem),
    };
    let (stop_sender, stop) = watch::channel(false);
    let context = Context {
        store: store.clone(),
        drivers: Arc::new(vec![Box::new(driver)]),
        keep_deleted: config.keep_deleted,
        routers: Arc::new(known),
        register: server::register_outputs,
        clock: server::clock::now,
        sharing: controller::Sharing {
            half_life_ms: i64::try_from(config.half_life.as_millis()).unwrap_or(i64::MAX),
            preempt: config.preempt,
        },
    };
    let address = agent::server::Address {
        pid: std::process::id(),
        url: listening.url.clone(),
        local_url: Some(listening.local_url.clone()).filter(|local| *local != listening.url),
        version,
        home: home.clone(),
    };
    let url = listening.url.clone();
    let sockets = listening.sockets().context("cannot copy a socket")?;
    let sockets = sockets.into_iter().chain(own.sockets.into_iter().map(|socket| ("router", socket)));
    let doors: Vec<Door> = sockets.map(|(name, socket)| Door { name, socket }).collect();
    let served = server::serve(listening, store, settings, &keys, stop.clone());
    local::announce(&address)?;
    tracing::info!(url, home = %home.display(), "serving");
    let name = format!("server-{}", std::process::id());
    let ask = async |news| Ok(routers.exchange(store::HERE, news, serving::EXCHANGE).await?);
    let following = async { tokio::join!(serving::follow(&own.routes, &name, ask), doors::leave(&keeper, &doors)) };
    let work = async { tokio::join!(served, controller::run(context, stop), until_told(stop_sender)) };
    // The router and stewards need nobody to finish what they have begun.
    let (served, (), ()) = tokio::select! {
        done = work => done,
        _ = following => unreachable!("it has no end"),
        () = stewards.run() => unreachable!("it has no end"),
    };
    drop(doors);
    own.running.stop();
    let _ = tokio::task::spawn_blocking(|| own.running.join()).await;
    served.context("the server stopped")?;
    tracing::info!("stopped");
    Ok(())
}

/// Listens where the last server did, if its sockets are kept: whoever has called since waits there.
async fn listen(config: &Config, certificates: &Certificates, kept: &mut Taken) -> Done<server::Listening> {
    let any_port = !config.listen_chosen;
    let port = if any_port { 0 } else { config.listen.port() };
    let kept = server::Kept {
        https: kept.claim("https", SocketAddr::new(config.listen.ip(), port)).pop(),
        http: config.http.and_then(|address| kept.claim("http", address).pop()),
        inner: kept.claim("inner", SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).pop(),
    };
    let listening = server::listen(config.listen, any_port, config.http, certificates, kept).await;
    listening.map_err(|error| listen_failure(&error))
}

/// The authority that others are to trust: our own, or the one the operator says has signed the given certificate.
fn authority_of(config: &Config, certificates: &Certificates) -> Done<String> {
    let file = match certificates {
        Certificates::Own { .. } => Some(agent::server::authority_file(&config.home)),
        Certificates::Given { .. } => config.authority_file.clone(),
    };
    let Some(file) = file else { return Ok(String::new()) };
    Ok(fs::read_to_string(&file).with_context(|| format!("cannot read the authority `{}`", file.display()))?)
}

/// Turns `stop` true on the first polite signal.
pub(crate) async fn until_told(stop: watch::Sender<bool>) {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    if let (Ok(mut terminate), Ok(mut interrupt)) = signals {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    }
    stop.send_replace(true);
}

/// Runs a router by a file of routes, until it is told to stop and its last request is answered.
pub(crate) fn router(command: &Command, args: machine::Router) -> Done<ExitCode> {
    log_to(None)?;
    provide_crypto();
    raise_open_files();
    let runtime = small_runtime()?;
    let (name, server, home) = (router_name(), serving::Server::new(&command.config), &command.config.home);
    let routes_file = args.routes.as_deref().map(router::RoutesFile::now);
    let table = match &args.routes {
        Some(file) => {
            let (tree, _) = spec_file::tree(Noun::Routes, file, &[])?;
            serde_json::from_value(tree).context("a checked table of routes can be read")?
        }
        // Whoever calls before there are routes would be told that there is nothing.
        None => runtime.block_on(server.first(&name))?,
    };
    let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
    let workers = args.workers.or_else(|| std::thread::available_parallelism().ok());
    let settings = router::Settings {
        listen: args.listen,
        workers: workers.map_or(1, Into::into),
        tls: args.tls_cert.zip(args.tls_key).map(|(certificate, key)| router::TlsFiles { certificate, key }),
        http2: args.http2 == "on",
        admin: args.admin,
        access_log: args.access_log,
        routes_file,
        share_port: args.share_port,
        drain: Some(Duration::from_secs(args.drain_seconds)),
        limits: router::Limits::default(),
        clock: server::clock::now,
    };
    let routes = router::Routes::new(&table);
    let mut sockets = match settings.share_port {
        true => doors::take(&doors::of_router(home, settings.listen.port())).claim("router", settings.listen),
        false => Vec::new(),
    };
    if sockets.is_empty() {
        sockets = router::bind_all(&settings).map_err(|error| router_failure(&error))?;
    }
    let doors = hand_on(home, &sockets);
    let running = router::start_on(sockets, settings, routes.clone()).map_err(|error| router_failure(&error))?;
    command.output.note(&format!("the router answers at {scheme}://{}", running.address));
    let (stop, _) = watch::channel(false);
    runtime.block_on(async {
        let ask = async |news| server.ask(&news).await;
        tokio::select! {
            () = until_told(stop.clone()) => {}
            () = serving::follow(&routes, &name, ask), if args.server => {}
        }
    });
    command.output.note("stopping; requests that run are finished");
    if let Some(doors) = doors {
        doors.put(Vec::new());
    }
    running.stop();
    // Whoever asks a second time does not want to wait.
    runtime.block_on(async {
        tokio::select! {
            _ = tokio::task::spawn_blocking(|| running.join()) => {}
            () = until_told(stop) => {}
        }
    });
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Offers a router's sockets to its successor. Where that cannot be, they can still listen at the same port.
fn hand_on(home: &Path, sockets: &[TcpListener]) -> Option<Doors> {
    let port = sockets.first()?.local_addr().ok()?.port();
    prepare_home(home).ok()?;
    let doors = Doors::open(&doors::of_router(home, port)).ok()?;
    let copy = |socket: &TcpListener| Some(("router".to_owned(), socket.try_clone().ok()?.into()));
    doors.put(sockets.iter().filter_map(copy).collect());
    Some(doors)
}

/// Runs the agent of this machine, or of a node of a managed cluster, a child of its keeper.
pub(crate) fn agent(config: &Config) -> anyhow::Result<ExitCode> {
    log_to(None)?;
    provide_crypto();
    let (settings, posting) = (agent_settings(config), Posting::of(&config.home));
    let settings =
        Settings { node: posting.as_ref().map_or(settings.node, |posting| posting.name.clone()), ..settings };
    let outpost = posting.map(|posting| posting.outpost(&config.home));
    let runtime = small_runtime()?;
    let left = runtime.block_on(agent::run(settings, outpost)).context("the agent stopped")?;
    runtime.shutdown_timeout(Duration::from_millis(200));
    Ok(if left { ExitCode::SUCCESS } else { ExitCode::from(Exit::Ours as u8) })
}

pub(crate) fn agent_settings(config: &Config) -> Settings {
    Settings {
        home: config.home.clone(),
        node: node_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        grace: Duration::from_secs(config.grace_seconds),
        cpus_milli: config.slots.cpu_milli,
        memory_bytes: config.slots.memory_bytes,
        gpus: config.slots.gpus,
        cache_bytes: config.cache.of(disk_bytes(&config.home)),
        clock: server::clock::now,
    }
}

/// All that the disk of a folder has.
fn disk_bytes(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize))
}

/// Runs the keeper: the parent of the agent and of every job's process. The exit code of the last agent.
pub(crate) fn keeper(config: &Config, of: keeper::Of) -> anyhow::Result<Option<i32>> {
    log_to(None)?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let keeper = keeper::Keeper { program, home: config.home.clone(), of };
    small_runtime()?.block_on(keeper::run(keeper)).context("the keeper stopped")
}

pub(crate) fn small_runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start the runtime")
}

/// The home belongs to its owner alone: it holds keys, logs and data.
pub(crate) fn prepare_home(home: &Path) -> Done {
    let fail = |error: &std::io::Error| {
        Failure::file(format!("cannot use `{}` as home", home.display()), error)
            .hint("set PEREGRINE_HOME to a folder you can write to")
    };
    fs::create_dir_all(home).map_err(|error| fail(&error))?;
    if fs::metadata(home).map_err(|error| fail(&error))?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(home, fs::Permissions::from_mode(0o700)).map_err(|error| fail(&error))?;
    }
    fs::create_dir_all(home.join("logs")).map_err(|error| fail(&error))
}

/// JSON lines, to a file or to standard error.
pub(crate) fn log_to(file: Option<&Path>) -> anyhow::Result<()> {
    use tracing_subscriber::{EnvFilter, fmt};
    let filter = EnvFilter::try_from_env("PEREGRINE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // Told of its own faults, the subscriber would print them, and printing to a full disk panics.
    let builder = fmt().json().flatten_event(true).with_env_filter(filter).log_internal_errors(false);
    let done = match file {
        Some(path) => {
            if fs::metadata(path).is_ok_and(|meta| meta.len() > LOG_BYTES) {
                let _ = fs::rename(path, path.with_extension("log.1"));
            }
            let log = fs::File::options().create(true).append(true).open(path);
            builder.with_writer(log.with_context(|| format!("cannot write the log `{}`", path.display()))?).try_init()
        }
        None => builder.with_writer(std::io::stderr).try_init(),
    };
    // With `--debug` a subscriber is there already.
    let _ = done;
    Ok(())
}

pub(crate) fn provide_crypto() {
    // Fails only when one is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn node_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let clean: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    if clean.is_empty() { "local".to_owned() } else { clean }
}

fn store_failure(error: &store::Error) -> Failure {
    use store::Error as E;
    let exit = match error {
        E::Corrupt { .. } | E::Newer { .. } | E::Full { .. } | E::Open { .. } | E::Taken { .. } => Exit::Input,
        E::Unreachable { .. } => Exit::Unreachable,
        _ => Exit::Ours,
    };
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let failure = Failure::new(exit, "cannot start the server");
    let failure = causes.fold(failure, |failure, cause| failure.because(cause.to_string()));
    match error {
        E::Unreachable { .. } => failure.hint("start that Postgres, or correct `store.url`"),
        E::Taken { .. } => failure.hint("stop the other server, or give this one a database of its own"),
        _ => failure,
    }
}

/// A name that no other router has.
fn router_name() -> String {
    format!("router-{}-{}", node_name(), std::process::id())
}

/// Every connection is an open file, and the usual limit is meant for other programs.
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With the old limit it serves as well, only fewer.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn router_failure(error: &router::StartError) -> Failure {
    let failure = Failure::input("cannot start the router").because(error.to_string());
    let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let failure = causes.by_ref().fold(failure, |failure, cause| failure.because(cause.to_string()));
    match error {
        router::StartError::Listen(..) => failure
            .hint("choose another address with `--listen`, or add `--share-port` to take over from a router there"),
        _ => failure,
    }
}

fn listen_failure(error: &server::StartError) -> Failure {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let failure = Failure::input("cannot start the server").because(error.to_string()).because(cause);
    match error {
        server::StartError::Listen(..) => failure.hint("choose another address with `--listen`, or stop what uses it"),
        _ => failure,
    }
}
