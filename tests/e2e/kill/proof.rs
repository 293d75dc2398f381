//! After the last kill: every job has ended, once, whole, and its record says what happened.

use super::field::{AT_ONCE, Field, Submitted};
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path};

/// All that is wrong, one line each, and how many jobs ended in which way.
#[derive(Default)]
pub(super) struct Proof {
    pub(super) wrong: Vec<String>,
    pub(super) ends: BTreeMap<String, u64>,
    /// When commands started and ended: a moment, and how many more run from then on.
    spans: Vec<(String, isize)>,
}

impl Proof {
    pub(super) fn of(field: &Field) -> Proof {
        let mut proof = Proof::default();
        let listed: BTreeMap<String, Value> = field
            .all()
            .into_iter()
            .map(|mut job| (job["name"].as_str().unwrap().to_owned(), job["properties"].take()))
            .collect();
        for (name, job) in &field.jobs {
            match listed.get(name) {
                Some(record) => proof.one(field, name, job, record),
                None if job.accepted => proof.wrong.push(format!("{name}: was accepted and is gone")),
                None => {}
            }
        }
        proof.never_too_many();
        proof.nothing_left(field);
        proof
    }

    fn one(&mut self, field: &Field, name: &str, job: &Submitted, record: &Value) {
        let details = &record["peregrine"];
        let status = record["status"].as_str().unwrap();
        let failure = &details["failure"];
        let code = failure["code"].as_str().unwrap_or_default();
        *self.ends.entry(format!("{status} {code}").trim_end().to_owned()).or_default() += 1;
        let mut say = |text: String| self.wrong.push(format!("{name}: {text}; its record: {details}"));
        if details["attempts"].as_u64().unwrap() > 1 {
            say("was tried more than once, though no attempt of it can have been lost".into());
        }
        match status {
            "Completed" => {}
            "Canceled" if job.cancel_asked && details["reason"].as_str().is_some_and(|reason| !reason.is_empty()) => {}
            "Failed" if code == "ExitCodeLost" && field.suspects.contains(name) => {}
            other => say(format!("ended as {other}, for no reason of this test")),
        }
        let runs = Runs::read(&field.runs(name));
        runs.check(&mut say);
        self.spans.extend(runs.span());
        let mut say = |text: String| self.wrong.push(format!("{name}: {text}; its record: {details}"));
        let artifacts = field.home.artifacts(name);
        if status == "Completed" {
            if runs.starts != 1 || runs.ends != 1 {
                say(format!("is completed after {} starts and {} ends of its command", runs.starts, runs.ends));
            }
            whole_log(&artifacts.join("user_logs/std_log.txt"), job.files, &mut say);
            whole_files(&artifacts.join("outputs"), job.files, &mut say);
        }
        let named = named_output(field, name);
        if status == "Completed" && job.named_output {
            whole_files(&named, job.files, &mut say);
        }
        no_torn_file(&artifacts, &mut say);
        no_torn_file(&named, &mut say);
    }

    /// What ran together did fit into the machine, whoever was killed meanwhile.
    fn never_too_many(&mut self) {
        let mut moments: Vec<(f64, isize)> = self.spans.iter().map(|(at, more)| (at.parse().unwrap(), *more)).collect();
        // Of two things in one moment, the end comes first.
        moments.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut running = 0;
        let most = moments.iter().map(|(_, more)| {
            running += more;
            running
        });
        let most = most.max().unwrap_or(0);
        if most > isize::try_from(AT_ONCE).unwrap() {
            self.wrong.push(format!("{most} commands ran at once where {AT_ONCE} fit"));
        }
    }

    /// The agent has let go of everything, and no process of a job is left.
    fn nothing_left(&mut self, field: &Field) {
        let attempts = field.home.home().join("agent/attempts");
        let held = || fs::read_dir(&attempts).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
        let mut looks = 400;
        while !held().is_empty() && looks > 0 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            looks -= 1;
        }
        for folder in held() {
            let marks: Vec<_> =
                fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
            self.wrong.push(format!("the agent still holds `{}` with {marks:?}", folder.display()));
        }
        let runs = field.home.path().join("runs").display().to_string();
        for (pid, line) in crate::harness::processes_with(&runs) {
            self.wrong.push(format!("process {pid} is still there: {line}"));
        }
    }
}

/// What a job's command wrote down about its own runs.
#[derive(Default)]
struct Runs {
    starts: usize,
    ends: usize,
    text: String,
}

impl Runs {
    fn read(path: &Path) -> Runs {
        let text = fs::read_to_string(path).unwrap_or_default();
        let count = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
        Runs { starts: count("start "), ends: count("end "), text }
    }

    /// Start and end of a run that has both.
    fn span(&self) -> Vec<(String, isize)> {
        let at =
            |word: &str| Some(self.text.lines().find(|line| line.starts_with(word))?.rsplit(' ').next()?.to_owned());
        match (at("start "), at("end ")) {
            (Some(start), Some(end)) => vec![(start, 1), (end, -1)],
            _ => Vec::new(),
        }
    }

    fn check(&self, say: &mut impl FnMut(String)) {
        if self.starts > 1 || self.ends > self.starts || self.text.contains("overlap") {
            say(format!("ran more than once: {:?}", self.text));
        }
    }
}

fn named_output(field: &Field, name: &str) -> std::path::PathBuf {
    let blobs = fs::read_dir(field.home.home().join("blobs/default")).unwrap().flatten();
    let store = blobs.map(|entry| entry.path()).find(|path| path.display().to_string().contains("azureml-blobstore"));
    store.unwrap().join("azureml").join(name).join("more")
}

fn whole_log(path: &Path, files: u32, say: &mut impl FnMut(String)) {
    let lines: String = (0..files).map(|n| format!("line {n}\n")).collect();
    let text = fs::read_to_string(path).unwrap_or_default();
    if text != format!("begin\n{lines}last line\n") {
        say(format!("its log is not whole: {text:?}"));
    }
}

fn whole_files(folder: &Path, files: u32, say: &mut impl FnMut(String)) {
    for n in 0..files {
        let text = fs::read_to_string(folder.join(n.to_string())).unwrap_or_default();
        if text != format!("file {n} is whole\n") {
            say(format!("file {n} in `{}` is not whole: {text:?}", folder.display()));
            return;
        }
    }
    let found = fs::read_dir(folder).map_or(0, Iterator::count);
    if found != usize::try_from(files).unwrap() {
        say(format!("{found} files in `{}` instead of {files}", folder.display()));
    }
}

/// Whatever the job's own end, the platform leaves no half-written copies behind.
fn no_torn_file(folder: &Path, say: &mut impl FnMut(String)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.contains(".partial") || name.contains(".draft") {
            say(format!("`{}` was left behind", entry.path().display()));
        }
        if entry.path().is_dir() {
            no_torn_file(&entry.path(), say);
        }
    }
}
