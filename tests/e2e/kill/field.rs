//! The field of the kill test: a home, its processes, and the jobs submitted to it.

use super::chance::Chance;
use crate::harness::{Home, Said, said};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
};
use tokio::runtime::Runtime;

/// Jobs that are kept open: more than an agent is handed at a time, so that some always wait at the server.
const OPEN: usize = 132;
/// Jobs that fit into this machine at a time.
pub(super) const AT_ONCE: usize = 3;
const JOBS: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default/providers\
                    /Microsoft.MachineLearningServices/workspaces/default/jobs";
/// What the server adds to a job's body.
const SERVERS: [&str; 4] = ["status", "isArchived", "services", "peregrine"];
/// Files of the big input; copying them takes a moment.
const INPUTS: u32 = 300;

/// Says when it starts and when it is done, and writes down if another run of its job is still alive then.
/// Arguments: the file of runs, seconds, number of files, `deaf` to polite signals or not, folder of the named output.
const SCRIPT: &str = r#"
if [ -s "$1" ]; then
  while read -r word who pid when; do
    if [ "$word" = start ] && grep -qsz "^AZUREML_RUN_ID=$AZUREML_RUN_ID\$" "/proc/$pid/environ"; then
      echo "overlap $PEREGRINE_ATTEMPT_ID $pid" >> "$1"
    fi
  done < "$1"
fi
read -r now idle < /proc/uptime
echo "start $PEREGRINE_ATTEMPT_ID $$ $now" >> "$1"
echo "begin"
[ "$4" = deaf ] && trap '' TERM
sleep "$2"
i=0
while [ $i -lt "$3" ]; do
  echo "line $i"
  echo "file $i is whole" > outputs/$i
  [ -n "$5" ] && echo "file $i is whole" > "$5/$i"
  i=$((i+1))
done
echo "last line"
read -r now idle < /proc/uptime
echo "end $PEREGRINE_ATTEMPT_ID $$ $now" >> "$1"
"#;

/// What the test knows of a job it submitted.
#[derive(Debug, Clone)]
pub(super) struct Submitted {
    pub(super) files: u32,
    pub(super) named_output: bool,
    /// The server has said so.
    pub(super) accepted: bool,
    pub(super) cancel_asked: bool,
}

/// A job about to be submitted.
pub(super) struct New {
    pub(super) name: String,
    body: Value,
    pub(super) job: Submitted,
}

pub(super) struct Field {
    pub(super) home: Home,
    runtime: Runtime,
    client: Option<api::Client>,
    small: Value,
    big: Value,
    pub(super) jobs: BTreeMap<String, Submitted>,
    /// Jobs that were open when a keeper was killed.
    pub(super) suspects: BTreeSet<String>,
}

impl Field {
    pub(super) fn new() -> Field {
        let home = Home::new();
        home.file("code/job.sh", SCRIPT);
        (0..60).for_each(|n| drop(home.file(&format!("code/part/{n}.txt"), "some code")));
        (0..INPUTS).for_each(|n| drop(home.file(&format!("input/{n}.txt"), "some data")));
        fs::create_dir_all(home.path().join("runs")).unwrap();
        // Container engines that do not work: every job runs on the host, whatever this machine has.
        for engine in ["podman", "docker"] {
            let path = home.file(&format!("bin/{engine}"), "#!/bin/sh\nexit 1\n");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        home.file("small.yml", "command: sh job.sh /dev/null 0 1\ncode: code\nenvironment: {image: any}\n");
        let data = "inputs: {data: {type: uri_folder, path: input, mode: download}}\n";
        let more = "outputs: {more: {type: uri_folder, mode: upload}}\n";
        let big = format!("command: echo ${{{{outputs.more}}}}\ncode: code\nenvironment: {{image: any}}\n{data}{more}");
        home.file("big.yml", &big);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (small, big) = (Value::Null, Value::Null);
        let (jobs, suspects) = (BTreeMap::new(), BTreeSet::new());
        let mut field = Field { home, runtime, client: None, small, big, jobs, suspects };
        field.small = field.template("small");
        field.big = field.template("big");
        field
    }

    /// Submits a job file the way a person does; its body, to be submitted again under other names.
    fn template(&mut self, name: &str) -> Value {
        let said = self.cli(&["job", "create", "-f", &format!("{name}.yml"), "-n", name, "-o", "json"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        self.connect();
        let mut body = self.get(&format!("/{name}")).unwrap()["properties"].take();
        SERVERS.iter().for_each(|key| drop(body.as_object_mut().unwrap().remove(*key)));
        // Each job writes to a place of its own.
        if let Some(more) = body["outputs"]["more"].as_object_mut() {
            more.remove("uri");
        }
        body
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        let path = format!("{}:{}", self.home.path().join("bin").display(), std::env::var("PATH").unwrap());
        command
            .env("PATH", path)
            .env("PEREGRINE_LOCAL_CPUS", AT_ONCE.to_string())
            .env("PEREGRINE_LOCAL_GRACE_SECONDS", "1");
        command
    }

    pub(super) fn cli(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    /// Any command finds no server and starts one; it must always succeed.
    pub(super) fn revive(&mut self) {
        let said = self.cli(&["job", "list", "-r", "1", "-o", "none"]);
        assert_eq!(said.code, Some(0), "no server could be started\n{}", said.err);
        self.connect();
    }

    fn connect(&mut self) {
        self.client = agent::server::connect(&self.home.home(), "user");
    }

    pub(super) fn client(&self) -> api::Client {
        self.client.clone().unwrap()
    }

    fn get(&self, path: &str) -> Option<Value> {
        self.runtime.block_on(self.client().get(&format!("{JOBS}{path}"))).ok()
    }

    /// Name and phase of every job that has not ended.
    pub(super) fn open(&self) -> Vec<(String, String)> {
        let listed = self.get("?$top=200").unwrap_or_default();
        let rows = listed["value"].as_array().cloned().unwrap_or_default();
        let all = rows.iter().map(|row| {
            let phase = &row["properties"]["peregrine"]["phase"];
            (row["name"].as_str().unwrap().to_owned(), phase.as_str().unwrap().to_owned())
        });
        all.filter(|(_, phase)| phase != "ended").collect()
    }

    /// Every job there is.
    pub(super) fn all(&self) -> Vec<Value> {
        self.runtime.block_on(self.client().list(&format!("{JOBS}?$top=1000"), usize::MAX)).unwrap()
    }

    pub(super) fn phase(&self, name: &str) -> Option<String> {
        let job = self.get(&format!("/{name}"))?;
        job["properties"]["peregrine"]["phase"].as_str().map(str::to_owned)
    }

    /// Draws a job: mostly short and light, some slow to stage and to collect, some deaf.
    pub(super) fn draw(&self, chance: &mut Chance) -> New {
        let name = format!("job-{}-{}", self.jobs.len(), chance.below(1 << 32));
        let big = chance.one_in(4);
        let files = if big { 50 } else { u32::try_from(chance.below(12)).unwrap() };
        let command = self.job_command(&name, files, big, chance);
        let mut body = if big { self.big.clone() } else { self.small.clone() };
        body["command"] = json!(command);
        let job = Submitted { files, named_output: big, accepted: false, cancel_asked: false };
        New { name, body: json!({ "properties": body }), job }
    }

    fn job_command(&self, name: &str, files: u32, big: bool, chance: &mut Chance) -> String {
        let seconds = 50 + chance.below(350);
        let ears = if chance.one_in(6) { "deaf" } else { "polite" };
        let named = if big { "${{outputs.more}}" } else { "" };
        format!("sh job.sh {} 0.{seconds:03} {files} {ears} {named}", self.runs(name).display())
    }

    pub(super) fn runs(&self, name: &str) -> PathBuf {
        self.home.path().join("runs").join(name)
    }

    /// Submits over the API; whether the server has accepted it.
    pub(super) fn put(&self, new: &New) -> bool {
        let path = format!("{JOBS}/{}", new.name);
        self.runtime.block_on(self.client().put::<Value>(&path, &new.body)).is_ok()
    }

    /// A job file with code of its own, so that its submit has something to upload.
    pub(super) fn draw_file(&self, chance: &mut Chance) -> (New, PathBuf) {
        let mut new = self.draw(chance);
        (new.job.files, new.job.named_output) = (5, false);
        let command = self.job_command(&new.name, 5, false, chance);
        let folder = format!("late/{}", new.name);
        self.home.file(&format!("{folder}/code/job.sh"), SCRIPT);
        self.home.file(&format!("{folder}/code/unique.txt"), &new.name);
        let text = format!("command: {command}\ncode: code\nenvironment: {{image: any}}\n");
        let file = self.home.file(&format!("{folder}/job.yml"), &text);
        (new, file)
    }

    pub(super) fn note(&mut self, new: New, accepted: bool) {
        self.jobs.insert(new.name, Submitted { accepted, ..new.job });
    }

    /// Sees to it that there is always more to do than can be done.
    pub(super) fn top_up(&mut self, chance: &mut Chance) {
        let missing = OPEN.saturating_sub(self.open().len());
        for _ in 0..missing {
            let new = self.draw(chance);
            let accepted = self.put(&new);
            assert!(accepted, "a server that runs refused `{}`", new.name);
            self.note(new, accepted);
        }
    }

    pub(super) fn cancel(&mut self, name: &str) {
        let Some(job) = self.jobs.get_mut(name) else { return };
        job.cancel_asked = true;
        let _asked: Result<Value, _> =
            self.runtime.block_on(self.client().post(&format!("{JOBS}/{name}/cancel"), &json!({})));
    }
}
