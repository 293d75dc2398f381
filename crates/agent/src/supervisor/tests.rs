//! A supervisor with a keeper that only says it is there: enough for whatever never starts a process.

use super::*;
use crate::{
    data::Data, environment::Environments, folders::Folders, journal::Journal, keeper::Link, report::Reporter,
    server::Server,
};
use domain::{JobName, Place, Plan};
use std::path::Path;
use tokio::{io::AsyncWriteExt, net::UnixListener, time::Instant};

async fn context(home: &Path) -> Arc<Context> {
    let agent = home.join("agent");
    fs::create_dir_all(crate::context::attempts(home)).unwrap();
    let socket = home.join("keeper.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let greet = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"{\"ready\":{\"instance\":\"k\"}}\n").await.unwrap();
        stream
    };
    let (link, stream) = tokio::join!(Link::connect(&socket), greet);
    crate::tasks::detach("keeper", async move {
        let _open = stream;
        std::future::pending().await
    });
    Arc::new(Context {
        journal: Journal::open(&agent.join("journal")).unwrap(),
        folders: Folders::open(&agent).unwrap(),
        environments: Environments::new(home),
        data: Data::new(home, 1 << 20),
        link: link.unwrap(),
        reporter: Reporter::default(),
        server: Arc::new(Server::of_home(home)),
        outpost: None,
        settings: crate::Settings {
            home: home.to_owned(),
            node: "n".into(),
            version: "v".into(),
            grace: Duration::ZERO,
            cpus_milli: None,
            memory_bytes: None,
            gpus: None,
            cache_bytes: 0,
            clock: || domain::Timestamp(0),
        },
    })
}

fn with_code(code: &Path) -> Arc<Assignment> {
    let plan = Plan { command: "true".into(), code: Some(Place::Folder { path: code.into() }), ..Plan::default() };
    Arc::new(Assignment {
        attempt: AttemptId::of(7, 0),
        number: 0,
        workspace: "w".into(),
        job: JobName::parse("j").unwrap(),
        priority: 0,
        turn: 0,
        plan,
        part: None,
        secrets: Default::default(),
        server_variables: Default::default(),
    })
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The one thread for file work is kept busy, so that the copy is asked for and cancelled before its first byte.
#[test]
fn an_attempt_stopped_while_its_code_is_copied_leaves_no_folder() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let home = tempfile::tempdir().unwrap();
        let code = home.path().join("code");
        fs::create_dir_all(code.join("deep")).unwrap();
        fs::write(code.join("deep/a.py"), "x").unwrap();
        let cx = context(home.path()).await;
        let (messages, inbox) = mpsc::unbounded_channel();
        let facts = crate::facts(&cx.settings);
        let supervisor = Supervisor::new(Arc::clone(&cx), &facts, messages.clone());
        crate::tasks::detach("supervisor", supervisor.run(inbox));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let blocker = tokio::task::spawn_blocking(move || held.recv());

        let assignment = with_code(&code);
        let (attempt, folder) = (assignment.attempt.clone(), cx.folder(&assignment.attempt));
        messages.send(Message::Assign(assignment)).unwrap_or_else(|_| panic!("the supervisor is there"));
        until("the copy is asked for", || cx.data.writes_below(&folder)).await;
        messages.send(Message::Stop(attempt.clone(), Stop::Asked("enough".into()))).unwrap_or_else(|_| panic!("still"));
        until("the attempt is over", || cx.journal.life(&attempt).is_some_and(|life| life.over.is_some())).await;
        messages.send(Message::Recorded(attempt.clone())).unwrap_or_else(|_| panic!("still"));
        until("the attempt is forgotten", || cx.journal.life(&attempt).is_none()).await;

        release.send(()).unwrap();
        blocker.await.unwrap().unwrap();
        // There is one thread, so what was asked for before this has been done by now.
        tokio::task::spawn_blocking(|| ()).await.unwrap();
        until("the folder is gone", || !folder.exists()).await;
        let spare = home.path().join("agent/spare").join(attempt.as_str());
        assert!(!spare.join("work/deep").exists(), "a folder that is kept for another job is as good as new");
    });
}
