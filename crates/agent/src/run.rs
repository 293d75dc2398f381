//! The agent's main loops: ask for work, tell what happened, watch the node.

use crate::{
    context::{self, Context, Settings},
    data::Data,
    environment::Environments,
    folders::Folders,
    journal::Journal,
    keeper::{self, Link},
    report::Reporter,
    sample::Sampler,
    server::Server,
    supervisor::{Holds, Message, Supervisor},
    tasks::detach,
};
use domain::report::{NodeFacts, Poll, PollAnswer};
use std::{fs, io, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// With nothing to do and no server for this long, an agent leaves.
const LEAVE_AFTER: Duration = Duration::from_secs(20);
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// Runs until there is neither work nor a server, or the keeper goes away. `Ok(true)`: left in good order.
pub async fn run(settings: Settings) -> io::Result<bool> {
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
    let facts = context::facts(&settings);
    let reporter = Reporter::default();
    let agent = home.join("agent");
    let cx = Arc::new(Context {
        journal: Journal::open(&agent.join("journal"))?,
        folders: Folders::open(&agent)?,
        environments: Environments::new(&home),
        data: Data::new(&home, settings.cache_bytes),
        link: link.clone(),
        reporter: reporter.clone(),
        settings,
    });
    // What builds of an earlier agent left half-made is of no use to anyone.
    cx.environments.sweep();
    let (messages, inbox) = mpsc::unbounded_channel();
    let server = Arc::new(Server::new(&home));
    let mut supervisor = Supervisor::new(Arc::clone(&cx), &facts, messages.clone());
    supervisor.recover();
    detach("supervisor", supervisor.run(inbox));
    let (recorded, mut done) = mpsc::unbounded_channel();
    detach("reporter", reporter.clone().run(Arc::clone(&server), facts.clone(), recorded));
    let forward = messages.clone();
    detach("recorded", async move {
        while let Some(attempt) = done.recv().await {
            let _ = forward.send(Message::Recorded(attempt));
        }
    });
    detach("sampler", sample(Arc::clone(&cx)));
    tokio::select! {
        () = ask_for_work(&server, facts, &messages) => {
            link.leave();
            // Let the word out before the process ends.
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(true)
        }
        () = link.gone() => Ok(false),
    }
}

/// Polls the server for ever; returns when there is no reason to stay.
async fn ask_for_work(server: &Server, facts: NodeFacts, messages: &mpsc::UnboundedSender<Message>) {
    let mut away_since: Option<Instant> = None;
    loop {
        let Holds { all: holds, stopping } = held(messages).await;
        let idle = holds.is_empty();
        let poll = Poll { facts: facts.clone(), holds, stopping, joining: None };
        let answer = match server.client() {
            Some(client) => client.post::<PollAnswer>("/agent/v1/poll", &poll).await.ok(),
            None => None,
        };
        match answer {
            Some(answer) => {
                away_since = None;
                let leave = answer.leave;
                take(answer, messages);
                if leave && idle {
                    return;
                }
                if leave {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
            None => {
                let since = *away_since.get_or_insert_with(Instant::now);
                if idle && since.elapsed() > LEAVE_AFTER {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

fn take(answer: PollAnswer, messages: &mpsc::UnboundedSender<Message>) {
    for assignment in answer.assignments {
        let _ = messages.send(Message::Assign(Arc::new(assignment)));
    }
    for attempt in answer.stop {
        let _ = messages.send(Message::Stop(attempt, "canceled by its user".into()));
    }
    for attempt in answer.unknown {
        tracing::warn!(attempt.id = %attempt, "the server knows nothing of an attempt held here; stopping it");
        let _ = messages.send(Message::Stop(attempt, "the server does not know this attempt".into()));
    }
}

async fn held(messages: &mpsc::UnboundedSender<Message>) -> Holds {
    let (ask, answer) = oneshot::channel();
    let _ = messages.send(Message::Holds(ask));
    answer.await.unwrap_or_default()
}

async fn sample(cx: Arc<Context>) {
    let mut sampler = Sampler::new();
    let mut every = tokio::time::interval(SAMPLE_EVERY);
    loop {
        every.tick().await;
        cx.reporter.sample(sampler.sample(cx.now()));
    }
}
