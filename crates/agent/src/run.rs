//! The agent's main loops: ask for work, tell what happened, watch the node.

use crate::{
    attempt::Stop,
    context::{self, Context, Settings},
    data::Data,
    environment::Environments,
    folders::Folders,
    journal::Journal,
    keeper::{self, Link},
    outpost::Outpost,
    pod::Silence,
    report::Reporter,
    sample::Sampler,
    server::Server,
    supervisor::{Holds, Message, Supervisor},
    tasks::detach,
};
use domain::{
    AttemptId,
    report::{NodeFacts, Poll, PollAnswer},
};
use std::{fs, io, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// With nothing to do and no server for this long, an agent leaves.
const LEAVE_AFTER: Duration = Duration::from_secs(20);
const ABOUT_TO_GO: &str = "its node was asked to leave (resize, repair or preemption)";
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// An agent at work, apart from asking for more.
pub(crate) struct Working {
    pub(crate) cx: Arc<Context>,
    pub(crate) facts: NodeFacts,
    pub(crate) messages: mpsc::UnboundedSender<Message>,
    /// Attempts whose end is on the server's record.
    pub(crate) recorded: mpsc::UnboundedReceiver<AttemptId>,
}

/// Runs until there is neither work nor a server, or the keeper goes away; on a node elsewhere, until it is told to leave too, and
/// not for the sake of ends that nobody hears of.
/// `Ok(true)`: left in good order.
pub async fn run(settings: Settings, outpost: Option<Outpost>) -> io::Result<bool> {
    let Working { cx, facts, messages, mut recorded } = start(settings, outpost, None).await?;
    let forward = messages.clone();
    detach("recorded", async move {
        while let Some(attempt) = recorded.recv().await {
            let _ = forward.send(Message::Recorded(attempt));
        }
    });
    tokio::select! {
        () = ask_for_work(&cx, facts, &messages) => {
            leave(&cx.link).await;
            Ok(true)
        }
        () = cx.link.gone() => Ok(false),
    }
}

/// Takes over what an earlier agent left and sets everything going.
pub(crate) async fn start(settings: Settings, outpost: Option<Outpost>, part: Option<u32>) -> io::Result<Working> {
    let home = settings.home.clone();
    let lock = fs::File::create(home.join("agent").join("agent.lock"))?;
    // The last agent of this node must be gone before this one touches its attempts.
    let lock = tokio::task::spawn_blocking(move || {
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).map(|()| lock)
    });
    // Let go by the end of the process and not before: until then, threads of ours may still copy or remove files.
    std::mem::forget(lock.await.map_err(io::Error::other)??);
    fs::create_dir_all(context::attempts(&home))?;
    let link = Link::connect(&keeper::socket(&home)).await?;
    let mut facts = context::facts(&settings);
    let devices = context::devices(outpost.as_ref(), facts.capacity.gpus);
    facts.capacity.gpus = u32::try_from(devices.len()).unwrap_or(u32::MAX);
    let reporter = Reporter::default();
    let agent = home.join("agent");
    let contained = outpost.as_ref().is_some_and(|outpost| outpost.contained);
    let shared = outpost.as_ref().and_then(|outpost| outpost.shared.as_deref());
    let server = Arc::new(outpost.as_ref().map_or_else(|| Server::of_home(&home), Server::elsewhere));
    let cx = Arc::new(Context {
        journal: Journal::open(&agent.join("journal"))?,
        folders: Folders::open(&agent)?,
        environments: Environments::new(shared.unwrap_or(&home)).inside_image(contained),
        data: Data::new(&home, settings.cache_bytes).near(&home, outpost.as_ref(), &server),
        link,
        reporter: reporter.clone(),
        server,
        outpost,
        settings,
    });
    // What builds of an earlier agent left half-made is of no use to anyone.
    cx.environments.sweep();
    let (messages, inbox) = mpsc::unbounded_channel();
    let mut supervisor = Supervisor::new(Arc::clone(&cx), &facts, messages.clone());
    supervisor.recover();
    detach("supervisor", supervisor.run(inbox));
    let (done, recorded) = mpsc::unbounded_channel();
    detach("reporter", reporter.run(Arc::clone(&cx.server), facts.clone(), part, cx.settings.clock, done));
    detach("sampler", sample(Arc::clone(&cx)));
    Ok(Working { cx, facts, messages, recorded })
}

pub(crate) async fn leave(link: &Link) {
    link.leave();
    // Let the word out before the process ends.
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Polls the server for ever; returns when there is no reason to stay.
async fn ask_for_work(cx: &Context, facts: NodeFacts, messages: &mpsc::UnboundedSender<Message>) {
    let patience = cx.outpost.as_ref().map_or(LEAVE_AFTER, |outpost| outpost.away);
    let mut silence = Silence::default();
    loop {
        let Holds { all: holds, stopping, runs } = held(messages).await;
        let going = holds.iter().filter(|attempt| !stopping.contains(attempt)).cloned().collect::<Vec<_>>();
        let idle = holds.is_empty();
        let poll = Poll { facts: facts.clone(), holds, stopping, joining: None };
        match cx.server.post::<PollAnswer>("/agent/v1/poll", &poll).await {
            Ok(answer) => {
                silence = Silence::default();
                let leave = answer.leave;
                take(answer, messages);
                if leave && idle {
                    return;
                }
                if leave {
                    end_all(messages, going, &Stop::Leave(ABOUT_TO_GO.into()));
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
            Err(error) => {
                let over = silence.goes_on(&error, patience);
                // Whom the server knows no more has nothing to wait for.
                let unknown =
                    cx.outpost.is_some() && error.refused().is_some_and(|status| [401, 403, 410].contains(&status));
                match over {
                    _ if idle && unknown => return,
                    Some(_) if idle => return,
                    // What has ended is on disk, for whoever is started here again to tell; a node is not kept for it.
                    Some(_) if !runs && cx.outpost.is_some() => return,
                    Some(why) if unknown => end_all(messages, going, &Stop::Asked(why)),
                    _ => {}
                }
                tokio::time::sleep(cx.server.pause(silence.tries)).await;
            }
        }
    }
}

fn end_all(messages: &mpsc::UnboundedSender<Message>, attempts: Vec<AttemptId>, stop: &Stop) {
    for attempt in attempts {
        let _ = messages.send(Message::Stop(attempt, stop.clone()));
    }
}

pub(crate) fn take(answer: PollAnswer, messages: &mpsc::UnboundedSender<Message>) {
    for assignment in answer.assignments {
        let _ = messages.send(Message::Assign(Arc::new(assignment)));
    }
    for tunnel in answer.tunnels {
        let _ = messages.send(Message::Open(tunnel));
    }
    for attempt in answer.stop {
        let _ = messages.send(Message::Stop(attempt, Stop::Asked("asked to stop".into())));
    }
    for attempt in answer.unknown {
        tracing::warn!(attempt.id = %attempt, "the server knows nothing of an attempt held here; stopping it");
        let why = "the server does not know this attempt";
        let _ = messages.send(Message::Stop(attempt, Stop::Asked(why.into())));
    }
}

pub(crate) async fn held(messages: &mpsc::UnboundedSender<Message>) -> Holds {
    let (ask, answer) = oneshot::channel();
    let _ = messages.send(Message::Holds(ask));
    answer.await.unwrap_or_default()
}

async fn sample(cx: Arc<Context>) {
    let mut sampler = if cx.is_contained() { Sampler::of_container() } else { Sampler::new() };
    let mut every = tokio::time::interval(SAMPLE_EVERY);
    loop {
        every.tick().await;
        cx.reporter.sample(sampler.sample(cx.now()));
    }
}
