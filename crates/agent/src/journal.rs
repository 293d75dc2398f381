//! The agent's memory: what it has accepted, begun and ended, in one file that only grows at its end.
//!
//! A line is written before the step it stands for is taken, so an agent that comes back knows how far the last one got.
//! One file and no file per attempt, because making a file costs more than running a small job. A crash can tear only the
//! last line, and a torn line is one that was never acted on. Invariant: an outcome, once written, never changes.

use crate::{
    attempt::{AllEnded, OverMark, RunMark},
    data::SERVER,
};
use domain::{Assignment, AttemptId};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The file is rewritten with what still matters when it has grown past this.
const REWRITE_BYTES: u64 = 32 << 20;

/// One attempt, as far as it got.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) assignment: Arc<Assignment>,
    pub(crate) run: Option<Arc<RunMark>>,
    /// How its processes ended; its files may still be on their way.
    pub(crate) exit: Option<Arc<AllEnded>>,
    pub(crate) over: Option<Arc<OverMark>>,
}

/// A line of the file: borrowed when written, owned when read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<A, R, E, O> {
    Accepted(A),
    Running(AttemptId, R),
    Exited(AttemptId, E),
    Over(AttemptId, O),
    Gone(AttemptId),
}

type Kept = Line<Arc<Assignment>, Arc<RunMark>, Arc<AllEnded>, Arc<OverMark>>;

/// Cheap to clone; all clones write to one file.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    file: fs::File,
    bytes: u64,
    lives: HashMap<AttemptId, Life>,
}

impl Journal {
    /// Reads what an earlier agent left and goes on from there.
    pub(crate) fn open(path: &Path) -> io::Result<Journal> {
        let mut lives = HashMap::new();
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        for line in text.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
            apply(&mut lives, owned(line));
        }
        let (file, bytes) = rewrite(path, &lives)?;
        Ok(Journal(Arc::new(Mutex::new(Inner { path: path.to_owned(), file, bytes, lives }))))
    }

    pub(crate) fn life(&self, attempt: &AttemptId) -> Option<Life> {
        self.lock().lives.get(attempt).cloned()
    }

    pub(crate) fn lives(&self) -> Vec<Life> {
        self.lock().lives.values().cloned().collect()
    }

    pub(crate) fn accept(&self, assignment: Arc<Assignment>) -> io::Result<()> {
        self.write(Line::Accepted(assignment))
    }

    pub(crate) fn begin(&self, attempt: &AttemptId, run: Arc<RunMark>) -> io::Result<()> {
        self.write(Line::Running(attempt.clone(), run))
    }

    pub(crate) fn exit(&self, attempt: &AttemptId, ended: Arc<AllEnded>) -> io::Result<()> {
        self.write(Line::Exited(attempt.clone(), ended))
    }

    pub(crate) fn end(&self, attempt: &AttemptId, over: OverMark) -> io::Result<()> {
        self.write(Line::Over(attempt.clone(), Arc::new(over)))
    }

    pub(crate) fn forget(&self, attempt: &AttemptId) -> io::Result<()> {
        self.write(Line::Gone(attempt.clone()))
    }

    fn write(&self, line: Kept) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(&borrowed(&line))?;
        bytes.push(b'\n');
        let mut inner = self.lock();
        if let Err(error) = inner.file.write_all(&bytes) {
            // Half a line must not spoil the next one.
            let _ = inner.file.write_all(b"\n");
            return Err(error);
        }
        inner.bytes += bytes.len() as u64;
        // Credentials stay in the file no longer than the attempt that needs them; those for the server end with it anyway.
        let secret = matches!(&line, Line::Gone(attempt)
            if inner.lives.get(attempt).is_some_and(|life| life.assignment.secrets.keys().any(|of| of != SERVER)));
        apply(&mut inner.lives, line);
        if secret || inner.bytes > REWRITE_BYTES {
            let (file, bytes) = rewrite(&inner.path, &inner.lives)?;
            (inner.file, inner.bytes) = (file, bytes);
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("nothing panics while it holds the journal")
    }
}

fn borrowed(line: &Kept) -> Line<&Assignment, &RunMark, &AllEnded, &OverMark> {
    match line {
        Line::Accepted(assignment) => Line::Accepted(assignment),
        Line::Running(attempt, run) => Line::Running(attempt.clone(), run),
        Line::Exited(attempt, ended) => Line::Exited(attempt.clone(), ended),
        Line::Over(attempt, over) => Line::Over(attempt.clone(), over),
        Line::Gone(attempt) => Line::Gone(attempt.clone()),
    }
}

fn owned(line: Line<Assignment, RunMark, AllEnded, OverMark>) -> Kept {
    match line {
        Line::Accepted(assignment) => Line::Accepted(Arc::new(assignment)),
        Line::Running(attempt, run) => Line::Running(attempt, Arc::new(run)),
        Line::Exited(attempt, ended) => Line::Exited(attempt, Arc::new(ended)),
        Line::Over(attempt, over) => Line::Over(attempt, Arc::new(over)),
        Line::Gone(attempt) => Line::Gone(attempt),
    }
}

fn apply(lives: &mut HashMap<AttemptId, Life>, line: Kept) {
    match line {
        Line::Accepted(assignment) => {
            lives.insert(assignment.attempt.clone(), Life { assignment, run: None, exit: None, over: None });
        }
        Line::Running(attempt, run) => drop(lives.get_mut(&attempt).map(|life| life.run = Some(run))),
        Line::Exited(attempt, ended) => drop(lives.get_mut(&attempt).map(|life| life.exit = Some(ended))),
        Line::Over(attempt, over) => drop(lives.get_mut(&attempt).map(|life| life.over.get_or_insert(over).clone())),
        Line::Gone(attempt) => drop(lives.remove(&attempt)),
    }
}

/// A new file with only what still matters, put in place of the old one whole.
fn rewrite(path: &Path, lives: &HashMap<AttemptId, Life>) -> io::Result<(fs::File, u64)> {
    let draft = path.with_extension("draft");
    // It holds datastore credentials: its owner's alone.
    let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&draft)?;
    file.set_len(0)?;
    let mut bytes = Vec::new();
    for (attempt, life) in lives {
        let lines = [
            Some(Line::Accepted(Arc::clone(&life.assignment))),
            life.run.clone().map(|run| Line::Running(attempt.clone(), run)),
            life.exit.clone().map(|ended| Line::Exited(attempt.clone(), ended)),
            life.over.clone().map(|over| Line::Over(attempt.clone(), over)),
        ];
        for line in lines.into_iter().flatten() {
            serde_json::to_writer(&mut bytes, &borrowed(&line))?;
            bytes.push(b'\n');
        }
    }
    file.write_all(&bytes)?;
    fs::rename(&draft, path)?;
    Ok((file, bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{JobName, Outcome, Plan};

    fn assignment(seq: i64) -> Arc<Assignment> {
        Arc::new(Assignment {
            attempt: AttemptId::of(seq, 0),
            number: 0,
            workspace: "w".into(),
            job: JobName::parse("j").unwrap(),
            priority: 1,
            turn: 0,
            plan: Plan::default(),
            part: None,
            secrets: Default::default(),
            server_variables: Default::default(),
        })
    }

    #[test]
    fn what_was_written_is_known_again_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::open(&path).unwrap();
        for seq in 1..=3 {
            journal.accept(assignment(seq)).unwrap();
        }
        let over = OverMark { outcome: Outcome::Completed, isolation: "none".into() };
        journal.end(&AttemptId::of(1, 0), over).unwrap();
        journal.forget(&AttemptId::of(2, 0)).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"gone\":\"att_1").unwrap();
        let again = Journal::open(&path).unwrap();
        assert!(again.life(&AttemptId::of(1, 0)).unwrap().over.is_some());
        assert!(again.life(&AttemptId::of(2, 0)).is_none());
        assert!(again.life(&AttemptId::of(3, 0)).unwrap().over.is_none());
        assert_eq!(again.lives().len(), 2);
    }
}
