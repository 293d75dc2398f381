//! Staging: code, environment, inputs and places for outputs, made ready before the first process starts.
//!
//! Staging may be repeated from the start: whatever an earlier try left is removed first.

use super::{
    Halt, Stopped, command, disk,
    logs::Logs,
    mounts,
    parallel::{self, Batches},
    process::Process,
    serve::{Replica, Start},
    share, spread, variables,
};
use crate::{
    cgroup::Cgroup,
    container,
    context::Context,
    data::{Data, Eval},
    environment::{self, Ready},
};
use domain::{
    Assignment, EnvironmentPlan, Place, PlannedInput, PlannedOutput,
    assignment::{InputMode, OutputMode},
    job::Failure,
    report::What,
    resources::humane_bytes,
};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::Instant;

/// What a replica waits for before it starts, in the words of its user's tools: the log of its storage initializer.
const STAGING_LOG: &str = "storage-initializer.log";
/// How often it is said how far fetching has come.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

pub(super) struct Staged {
    pub(super) processes: Vec<Process>,
    pub(super) isolation: &'static str,
    pub(super) cgroup: Option<String>,
    /// Where a replica will listen.
    pub(super) address: Option<SocketAddr>,
}

pub(super) async fn stage(
    cx: &Context,
    assignment: &Assignment,
    gpus: &[u32],
    logs: &Logs,
    stopped: &mut Stopped,
) -> Result<Staged, Halt> {
    let staging = prepare(cx, assignment, gpus, logs);
    tokio::select! {
        staged = staging => Ok(staged?),
        stop = super::process::asked_to_stop(stopped) => Err(Halt::Stopped(stop)),
    }
}

async fn prepare(cx: &Context, assignment: &Assignment, gpus: &[u32], logs: &Logs) -> Result<Staged, Failure> {
    let folder = cx.folder(&assignment.attempt);
    let plan = &assignment.plan;
    let work = folder.join("work");
    cx.folders.make(&folder).map_err(disk)?;
    let data = cx.data.counted(&assignment.attempt);
    if let Some(code) = &plan.code {
        say(cx, assignment, logs, "copies the code");
        data.copy(code, &assignment.secrets, &work).await.map_err(|e| data_failure("code", &e))?;
    }
    let inputs = stage_inputs(cx, &data, assignment, &folder, logs).await?;
    tell_moved(cx, &data, assignment);
    let outputs = stage_outputs(assignment, &folder)?;
    bring_back(cx, assignment, &folder, logs).await;
    let replica = Replica::of(assignment, &folder, &inputs)?;
    let so_far = parallel::Staged { folder: &folder, inputs: &inputs, outputs: &outputs, logs };
    let batches = Batches::of(cx, assignment, &so_far).await?;
    let asked = match (&replica, &batches) {
        (Some(replica), _) => replica.environment(cx).await?,
        (None, Some(batches)) => batches.environment()?,
        (None, None) => plan.environment.clone(),
    };
    let ready = software(cx, assignment, &asked, &folder, logs).await?;
    for notice in &ready.notices {
        cx.reporter.say(&assignment.attempt, cx.now(), What::Notice { text: notice.clone() });
    }
    let start = replica.map(|replica| replica.start(cx, assignment, &ready)).transpose()?;
    let argv = match &start {
        None if let Some(batches) = &batches => batches.argv.clone(),
        Some(start) if !start.argv.is_empty() => start.argv.clone(),
        // What the image was made to start.
        Some(_) if plan.command.trim().is_empty() && ready.image.is_some() => Vec::new(),
        _ => command::arguments(assignment, &inputs, &outputs)?,
    };
    // In a pod the limits are the pod's.
    let cgroup = if !cx.is_contained() { limit(assignment, &folder, logs) } else { None };
    let mut environment = ready.variables.clone();
    environment.extend(cx.outpost.iter().flat_map(|outpost| outpost.variables()));
    environment.extend(start.iter().flat_map(|start| start.variables.clone()));
    environment.extend(batches.iter().flat_map(|batches| batches.variables.clone()));
    let paths = variables::Paths {
        folder: &folder,
        work: &work,
        inputs: &inputs,
        outputs: &outputs,
        first_on_path: &ready.path_first,
        environment: &environment,
        mounts: batches.as_ref().map_or(&[], |batches| &batches.mounts),
        // What a pod has is its job's, and what of it a library sees is the runtime's doing.
        gpus: (!cx.is_contained()).then_some(gpus),
    };
    let mpirun = if ready.image.is_none() { spread::mpirun(assignment, &ready.path_first) } else { None };
    if let Some(mpirun) = &mpirun {
        logs.system("lifecycle.log", &format!("`{}` starts all ranks", mpirun.display()));
    }
    let argv = if ready.image.is_some() { command::in_image(&argv) } else { argv };
    let ranks = if mpirun.is_some() { vec![0] } else { share::own(assignment) };
    let processes = ranks.into_iter().map(|rank| {
        let mut variables = variables::of_rank(assignment, &paths, rank);
        let argv = match &mpirun {
            Some(mpirun) => {
                variables.retain(|(name, _)| !name.starts_with("OMPI_COMM_WORLD_"));
                variables.extend(spread::FOR_MPIRUN.map(|(name, value)| (name.into(), Some(value.into()))));
                spread::by_mpirun(assignment, mpirun, &logs.draft_of_any(), &resolve(&argv, &ready))
            }
            None => spread::of_rank(assignment, argv.clone(), rank),
        };
        let argv = in_container(assignment, &ready, (&argv, start.as_ref()), &variables, &paths, rank)
            .unwrap_or_else(|| resolve(&argv, &ready));
        Process {
            argv,
            variables,
            folder: work.clone(),
            output: logs.draft(rank),
            cgroups: cgroup.as_ref().map_or_else(Vec::new, Cgroup::join_files),
        }
    });
    Ok(Staged {
        processes: processes.collect(),
        isolation: ready.isolation,
        cgroup: cgroup.is_some().then(|| super::process::name_on_machine(&folder)),
        address: start.map(|start| start.address),
    })
}

/// Removes what staging made and the command wrote.
pub(super) fn clean(folder: &Path) -> io::Result<()> {
    for part in ["work", "inputs", "results"] {
        match fs::remove_dir_all(folder.join(part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

async fn software(
    cx: &Context,
    assignment: &Assignment,
    plan: &EnvironmentPlan,
    folder: &Path,
    logs: &Logs,
) -> Result<Ready, Failure> {
    let asks = plan.image.is_some() || plan.conda.is_some() || plan.build.is_some() || !plan.pip.is_empty();
    if asks {
        say(cx, assignment, logs, &format!("prepares environment `{}`", plan.label));
    }
    let context = match &plan.build {
        Some((place, _)) => {
            let to = folder.join("inputs").join("build-context");
            cx.data.copy(place, &assignment.secrets, &to).await.map_err(|e| data_failure("the build context", &e))?;
            Some(to)
        }
        None => None,
    };
    let ready = cx.environments.prepare(plan, context.as_deref(), assignment.plan.isolation_required, logs).await;
    ready.map_err(|error| environment_failure(&plan.label, &error))
}

/// How much of what it reads came from where.
fn tell_moved(cx: &Context, data: &Data, assignment: &Assignment) {
    for text in data.tally().notices() {
        cx.reporter.say(&assignment.attempt, cx.now(), What::Notice { text });
    }
    let moved = data.tally().moved();
    if !moved.is_nothing() {
        let keeps = data.keeps();
        cx.reporter.say(&assignment.attempt, cx.now(), What::Staged { moved, keeps });
    }
}

async fn stage_inputs(
    cx: &Context,
    data: &Data,
    assignment: &Assignment,
    folder: &Path,
    logs: &Logs,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut values = BTreeMap::new();
    // Mini-batches are made of files, however the input is asked for.
    let is_cut_up =
        |name: &String| assignment.plan.parallel.as_ref().is_some_and(|parallel| parallel.inputs.contains(name));
    for (name, input) in &assignment.plan.inputs {
        let value = match input {
            PlannedInput::Literal { value } => value.clone(),
            PlannedInput::Data { uri, mode: InputMode::Direct, .. } if !is_cut_up(name) => uri.clone(),
            PlannedInput::Data { place, mode, .. } => {
                let what = format!("input `{name}`");
                say(cx, assignment, logs, &format!("fetches {what}"));
                let since = Instant::now();
                let to = folder.join("inputs").join(name);
                let path = tokio::select! {
                    path = stage_data(data, assignment, (place, *mode), &to, logs) => path,
                    never = tell_progress(cx, data, assignment, &what) => match never {},
                };
                let path = path.map_err(|error| data_failure(&what, &error))?;
                if assignment.plan.serve.is_some() {
                    tell_speed(logs, &what, &path, since.elapsed()).await;
                }
                path.display().to_string()
            }
        };
        values.insert(name.clone(), value);
    }
    Ok(values)
}

/// Says now and then how far fetching has come.
async fn tell_progress(cx: &Context, data: &Data, assignment: &Assignment, what: &str) -> Infallible {
    let since = Instant::now();
    loop {
        tokio::time::sleep(PROGRESS_EVERY).await;
        if let Some(progress) = data.tally().progress(since.elapsed()) {
            let text = format!("fetches {what}: {progress}");
            cx.reporter.say(&assignment.attempt, cx.now(), What::Note { text });
        }
    }
}

/// How much there was and how long it took, for whoever waits for a replica.
async fn tell_speed(logs: &Logs, what: &str, path: &Path, took: Duration) {
    let at = path.to_owned();
    let walked = tokio::task::spawn_blocking(move || crate::data::walk(&at)).await;
    let Ok(Ok(tree)) = walked else { return };
    let bytes: u64 = tree.entries.iter().map(|entry| entry.bytes).sum();
    let rate = bytes as f64 / took.as_secs_f64().max(0.001);
    let (size, rate) = (humane_bytes(bytes), humane_bytes(rate as u64));
    logs.system(STAGING_LOG, &format!("{what} is there: {size} in {} ({rate} a second)", domain::time::humane(took)));
}

async fn stage_data(
    data: &Data,
    assignment: &Assignment,
    (place, mode): (&Place, InputMode),
    to: &Path,
    logs: &Logs,
) -> Result<PathBuf, crate::data::Error> {
    let (secrets, holder) = (&assignment.secrets, assignment.attempt.as_str());
    match mode {
        InputMode::Download => data.copy(place, secrets, to).await,
        // What is kept for others is not written to.
        InputMode::RwMount if !matches!(place, Place::Folder { .. }) => data.copy(place, secrets, to).await,
        InputMode::EvalMount | InputMode::EvalDownload => {
            let table = data.view(place, secrets, holder).await?;
            let eval = Eval { copies: mode == InputMode::EvalDownload, secrets, holder };
            let evaluated = data.mltable(&table, to, &eval).await?;
            for notice in evaluated.notices {
                logs.system("lifecycle.log", &notice);
            }
            Ok(evaluated.folder)
        }
        InputMode::RoMount | InputMode::RwMount | InputMode::Direct => data.view(place, secrets, holder).await,
    }
}

/// Where the command is to write each output. Straight to its place where that is a folder here and it asked for it.
fn stage_outputs(assignment: &Assignment, folder: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let mut values = BTreeMap::new();
    for (name, output) in &assignment.plan.outputs {
        let value = match output.mode {
            OutputMode::Direct => output.uri.clone(),
            OutputMode::RwMount | OutputMode::Upload => {
                let path = written_to(output, name, folder);
                let make = if output.file { path.parent().map(Path::to_owned) } else { Some(path.clone()) };
                make.map_or(Ok(()), fs::create_dir_all).map_err(disk)?;
                path.display().to_string()
            }
        };
        values.insert(name.clone(), value);
    }
    Ok(values)
}

/// Brings what an earlier attempt has left in mounted outputs, such as its last checkpoint, so that the command can go on from
/// there. Where there is nothing, or it cannot be had, the command begins anew.
async fn bring_back(cx: &Context, assignment: &Assignment, folder: &Path, logs: &Logs) {
    for (name, output) in &assignment.plan.outputs {
        let away = !matches!(output.place, Place::Folder { .. }) && output.mode == OutputMode::RwMount;
        if assignment.number == 0 || !away || output.file {
            continue;
        }
        let brought = cx.data.copy(&output.place, &assignment.secrets, &written_to(output, name, folder)).await;
        match brought {
            Ok(_) => logs.system(STAGING_LOG, &format!("output `{name}` is as the last attempt left it")),
            Err(error) => logs.system(STAGING_LOG, &format!("output `{name}` is empty: {error}")),
        }
    }
}

/// The path a command writes an output to on this node.
pub(super) fn written_to(output: &PlannedOutput, name: &str, folder: &Path) -> PathBuf {
    match (&output.place, output.mode) {
        (Place::Folder { path }, OutputMode::RwMount) => path.clone(),
        _ => folder.join("results").join(name),
    }
}

fn limit(assignment: &Assignment, folder: &Path, logs: &Logs) -> Option<Cgroup> {
    let limits = assignment.plan.limits.as_ref()?;
    match Cgroup::create(&super::process::name_on_machine(folder), limits) {
        Ok(cgroup) => Some(cgroup),
        Err(error) => {
            logs.system("lifecycle.log", &format!("limits are not enforced: {error}"));
            None
        }
    }
}

/// A program by its full path: the environment's own first. The keeper looks names up with its own `PATH`.
fn resolve(argv: &[String], ready: &Ready) -> Vec<String> {
    let mut argv = argv.to_vec();
    if let Some(first) = argv.first_mut()
        && !first.contains('/')
        && let Some(found) = ready.path_first.iter().map(|folder| folder.join(&*first)).find(|path| path.is_file())
    {
        *first = found.display().to_string();
    }
    argv
}

fn in_container(
    assignment: &Assignment,
    ready: &Ready,
    (argv, start): (&[String], Option<&Start>),
    variables: &[(String, Option<String>)],
    paths: &variables::Paths<'_>,
    rank: u32,
) -> Option<Vec<String>> {
    let image = ready.image.as_ref()?;
    let named = |name: &str| variables.iter().find(|(n, _)| n == name).and_then(|(_, value)| value.clone());
    // The authorities a client inside is told to trust lie on this machine.
    let authorities = named("REQUESTS_CA_BUNDLE").map(PathBuf::from).filter(|path| path.is_file());
    let folders = [paths.work.to_owned()].into_iter().chain(paths.mounts.iter().cloned()).chain(authorities);
    let mounts = mounts::of(&assignment.plan, folders, paths.inputs, paths.outputs);
    let asked: BTreeMap<String, String> = variables
        .iter()
        .filter(|(name, _)| name != "PATH")
        .filter_map(|(n, v)| Some((n.clone(), v.clone()?)))
        .collect();
    Some(container::wrap(&container::Run {
        image,
        argv,
        mounts: &mounts,
        variables: &asked,
        folder: paths.work,
        gpus: paths.gpus.unwrap_or_default(),
        limits: assignment.plan.limits.as_ref(),
        shm_bytes: assignment.plan.shm_bytes,
        extra: &assignment.plan.docker_args,
        name: &super::process::container_name(paths.folder, rank),
        placed: start.map_or(&[], |start| &start.mounts),
        publish: start.and_then(|start| Some((start.address.port(), start.publish?))),
    }))
}

fn say(cx: &Context, assignment: &Assignment, logs: &Logs, text: &str) {
    if assignment.plan.serve.is_some() {
        logs.system(STAGING_LOG, text);
    }
    cx.reporter.say(&assignment.attempt, cx.now(), What::Note { text: text.to_owned() });
}

fn environment_failure(label: &str, error: &environment::Error) -> Failure {
    Failure::new(
        "EnvironmentBuildFailed",
        format!("environment `{label}` cannot be made: {}", domain::causes::in_one_line(error)),
    )
}

pub(super) fn data_failure(what: &str, error: &crate::data::Error) -> Failure {
    Failure::new("DataAccessError", format!("{what} cannot be had: {}", domain::causes::in_one_line(error)))
}
