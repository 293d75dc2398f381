//! The agent's end of the line to its keeper.

use super::{Ask, Ended, Spawn, Tell};
use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    sync::{mpsc, watch},
};

/// What the keeper last said about a key.
#[derive(Debug, Clone, Default)]
struct Known {
    pid: Option<i32>,
    unstarted: Option<(bool, String)>,
    ended: Option<Ended>,
}

/// Speaks to the keeper; cheap to clone. Everything the keeper knew is known here from the start.
#[derive(Clone)]
pub struct Link {
    asks: mpsc::UnboundedSender<Ask>,
    known: Arc<Mutex<HashMap<String, watch::Sender<Known>>>>,
    instance: Arc<str>,
    gone: watch::Receiver<bool>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    #[error("the program was not found")]
    Missing,
    #[error("the process could not be started: {0}")]
    Unstarted(String),
    #[error("the keeper has gone")]
    Gone,
}

impl Link {
    /// Connects, and returns once the keeper has told all it knows.
    pub async fn connect(path: &Path) -> io::Result<Link> {
        let stream = UnixStream::connect(path).await?;
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        let known: Arc<Mutex<HashMap<String, watch::Sender<Known>>>> = Arc::default();
        let instance = loop {
            let Some(line) = lines.next_line().await? else { return Err(io::ErrorKind::UnexpectedEof.into()) };
            match serde_json::from_str(&line)? {
                Tell::Ready { instance } => break instance,
                tell => note(&known, tell),
            }
        };
        let (asks, mut waiting) = mpsc::unbounded_channel::<Ask>();
        let (gone_sender, gone) = watch::channel(false);
        let notes = Arc::clone(&known);
        crate::tasks::detach("keeper-reader", async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(tell) = serde_json::from_str(&line) {
                    note(&notes, tell);
                }
            }
            gone_sender.send_replace(true);
        });
        crate::tasks::detach("keeper-writer", async move {
            while let Some(ask) = waiting.recv().await {
                let mut line = serde_json::to_vec(&ask).expect("what the agent asks is plain data");
                line.push(b'\n');
                if write.write_all(&line).await.is_err() {
                    return;
                }
            }
        });
        Ok(Link { asks, known, instance: instance.into(), gone })
    }

    /// Which keeper this is; another keeper knows nothing of this one's processes.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Whether the keeper has started this key.
    pub fn knows(&self, key: &str) -> bool {
        let known = self.known.lock().expect("nothing panics while it holds the table");
        known.get(key).is_some_and(|slot| slot.borrow().pid.is_some() || slot.borrow().ended.is_some())
    }

    /// Starts a process unless it was started before; its pid.
    pub async fn spawn(&self, spawn: Spawn) -> Result<i32, LinkError> {
        let mut slot = self.slot(&spawn.key);
        self.ask(Ask::Spawn(spawn))?;
        let mut gone = self.gone.clone();
        tokio::select! {
            known = slot.wait_for(|k| k.pid.is_some() || k.unstarted.is_some() || k.ended.is_some()) => {
                let known = known.map_err(|_| LinkError::Gone)?;
                match &known.unstarted {
                    Some((true, _)) => Err(LinkError::Missing),
                    Some((false, error)) => Err(LinkError::Unstarted(error.clone())),
                    None => Ok(known.pid.unwrap_or(0)),
                }
            }
            _ = gone.wait_for(|gone| *gone) => Err(LinkError::Gone),
        }
    }

    /// Waits for the end of a key.
    pub async fn ended(&self, key: &str) -> Result<Ended, LinkError> {
        let mut slot = self.slot(key);
        let mut gone = self.gone.clone();
        tokio::select! {
            known = slot.wait_for(|k| k.ended.is_some()) => {
                known.map_err(|_| LinkError::Gone)?.ended.clone().ok_or(LinkError::Gone)
            }
            _ = gone.wait_for(|gone| *gone) => Err(LinkError::Gone),
        }
    }

    pub fn signal(&self, key: &str, signal: i32) {
        let _ = self.ask(Ask::Signal { key: key.to_owned(), signal });
    }

    pub fn sweep(&self, marker: &str) {
        let _ = self.ask(Ask::Sweep { marker: marker.to_owned() });
    }

    pub fn forget(&self, key: &str) {
        let _ = self.ask(Ask::Forget { key: key.to_owned() });
        self.known.lock().expect("nothing panics while it holds the table").remove(key);
    }

    pub fn leave(&self) {
        let _ = self.ask(Ask::Leave);
    }

    /// Resolves when the keeper is no longer there.
    pub async fn gone(&self) {
        let _ = self.gone.clone().wait_for(|gone| *gone).await;
    }

    fn ask(&self, ask: Ask) -> Result<(), LinkError> {
        self.asks.send(ask).map_err(|_| LinkError::Gone)
    }

    fn slot(&self, key: &str) -> watch::Receiver<Known> {
        let mut known = self.known.lock().expect("nothing panics while it holds the table");
        known.entry(key.to_owned()).or_default().subscribe()
    }
}

fn note(known: &Mutex<HashMap<String, watch::Sender<Known>>>, tell: Tell) {
    let (Tell::Running { key, .. } | Tell::Unstarted { key, .. } | Tell::Ended { key, .. }) = &tell else { return };
    let mut known = known.lock().expect("nothing panics while it holds the table");
    known.entry(key.clone()).or_default().send_modify(|slot| match tell {
        Tell::Running { pid, .. } => slot.pid = Some(pid),
        Tell::Unstarted { missing, error, .. } => slot.unstarted = Some((missing, error)),
        Tell::Ended { ended, .. } => slot.ended = Some(ended),
        Tell::Ready { .. } => {}
    });
}
