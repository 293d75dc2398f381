//! A real Postgres for tests: one server a test run, one database a test.
//!
//! The server is the one that `PEREGRINE_TEST_POSTGRES` names, else one of our own in a folder of its own, started with
//! what the system has installed. Its locale sorts as people do, so that a text compared by it and not by us would be
//! noticed. Invariant: it ends with the process that started it.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Names a server on which databases may be made: the folder of its socket.
pub(crate) const VARIABLE: &str = "PEREGRINE_TEST_POSTGRES";

/// Says which engine the fixtures of other suites use.
pub(crate) const ENGINE: &str = "PEREGRINE_TEST_ENGINE";

/// A server that runs until it is dropped.
pub(crate) struct Server {
    folder: PathBuf,
    process: Option<Child>,
}

/// A database that goes when it is dropped.
pub(crate) struct Database {
    name: String,
    sockets: PathBuf,
}

/// A database on the server of this test run; why not, where none can be had.
pub(crate) fn database() -> Result<Database, String> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    let sockets = match std::env::var_os(VARIABLE) {
        Some(folder) => PathBuf::from(folder),
        None => SERVER.get_or_init(|| Server::start(&["fsync=off"])).as_ref().map_err(String::clone)?.folder.clone(),
    };
    let name = format!("t{}_{}", std::process::id(), next());
    ask(&sockets, &format!("create database {name} template template0")).expect("the server that was found answers");
    Ok(Database { name, sockets })
}

/// The database of a fixture, where `PEREGRINE_TEST_ENGINE=postgres` asks for one; there it must be had.
pub(crate) fn wanted() -> Option<Database> {
    let asked = std::env::var(ENGINE).is_ok_and(|engine| engine == "postgres");
    asked.then(|| database().unwrap_or_else(|reason| panic!("Postgres was asked for and cannot be had: {reason}")))
}

/// A database; says aloud where none can be had.
pub(crate) fn database_or_skip() -> Option<Database> {
    match database() {
        Ok(database) => Some(database),
        Err(reason) => {
            eprintln!("skipped: Postgres ({reason})");
            None
        }
    }
}

impl Database {
    /// Where it is, as `store.url` says it.
    pub(crate) fn url(&self) -> String {
        format!("postgresql://postgres@/{}?host={}", self.name, self.sockets.display())
    }

    /// Runs a statement on it, past everything of ours.
    pub(crate) fn ask(&self, sql: &str) -> String {
        psql(&self.sockets, &self.name, sql).expect("the test's own statement is right")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = ask(&self.sockets, &format!("drop database if exists {} with (force)", self.name));
    }
}

impl Server {
    /// Makes a server with these settings and starts it.
    pub(crate) fn start(settings: &[&str]) -> Result<Server, String> {
        let programs = programs()?;
        let folder = std::env::temp_dir().join(format!("peregrine-postgres-{}-{}", std::process::id(), next()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(told)?;
        let mut server = Server { folder, process: None };
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&server.folder))?;
        }
        let data = server.folder.join("data");
        let mut make = as_postgres(&programs.join("initdb"));
        make.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync"]);
        make.args(["--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8", "-D"]).arg(&data);
        run(&mut make)?;
        let own = format!(
            "unix_socket_directories = '{}'\nlisten_addresses = ''\nmax_connections = 400\n",
            server.folder.display()
        );
        let lines: Vec<String> = settings.iter().map(|line| format!("{line}\n")).collect();
        fs::write(data.join("postgresql.auto.conf"), own + &lines.concat()).map_err(told)?;
        server.resume()?;
        Ok(server)
    }

    /// Starts it, or starts it again after [`Server::kill`].
    pub(crate) fn resume(&mut self) -> Result<(), String> {
        // The shell outlives its parent, whose end it sees in the end of its input, just long enough to clean up.
        let words = "cd \"$0\"; \"$@\" & pid=$!; echo $pid > pid; cat > /dev/null; kill -QUIT $pid; wait $pid; \
                     test -e killed || rm -rf \"$0\"";
        let _ = fs::remove_file(self.folder.join("killed"));
        let program = as_postgres(&programs()?.join("postgres"));
        let mut shell = Command::new("sh");
        shell.args(["-c", words]).arg(&self.folder).arg(program.get_program()).args(program.get_args());
        shell.arg("-D").arg(self.folder.join("data"));
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log")).map_err(told)?;
        let errors = log.try_clone().map_err(told)?;
        self.process = Some(shell.stdin(Stdio::piped()).stdout(log).stderr(errors).spawn().map_err(told)?);
        for _ in 0..600 {
            if ask(&self.folder, "select 1").is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("it did not start: {}", fs::read_to_string(self.folder.join("log")).unwrap_or_default()))
    }

    /// Kills it as a crash would, with all that work for it.
    pub(crate) fn kill(&mut self) {
        let _ = fs::write(self.folder.join("killed"), "");
        let pid = fs::read_to_string(self.folder.join("pid")).unwrap_or_default();
        let _ = run(Command::new("sh").args(["-c", "kill -9 $0 $(cat /proc/$0/task/*/children)", pid.trim()]));
        self.stop();
    }

    /// The folder of its socket.
    pub(crate) fn sockets(&self) -> &Path {
        &self.folder
    }

    /// Runs a statement on it, as one who may do everything.
    pub(crate) fn ask(&self, sql: &str) -> Result<String, String> {
        ask(&self.folder, sql)
    }

    /// Puts a file into its folder, readable by it alone; where it is.
    pub(crate) fn give(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).expect("the folder is ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("the file is ours");
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&path)).expect("root may give files away");
        }
        path
    }

    /// A database of this server, which the test names and the server takes with it.
    pub(crate) fn make(&self, name: &str) -> Result<String, String> {
        ask(&self.folder, &format!("create database {name} template template0"))?;
        Ok(format!("postgresql://postgres@/{name}?host={}", self.folder.display()))
    }

    fn stop(&mut self) {
        if let Some(mut shell) = self.process.take() {
            drop(shell.stdin.take());
            let _ = shell.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder of the newest Postgres there is.
fn programs() -> Result<PathBuf, String> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path());
    let with_server = versions.map(|version| version.join("bin")).filter(|bin| bin.join("initdb").is_file());
    with_server.max().ok_or_else(|| "not installed; `cargo xtask setup` installs it".to_owned())
}

/// A program run by a user who may run Postgres, which root may not.
fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

/// The port that the socket in this folder is named after.
fn port(sockets: &Path) -> String {
    let names = fs::read_dir(sockets).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut ports = names.filter_map(|name| name.to_str()?.strip_prefix(".s.PGSQL.").map(str::to_owned));
    ports.find(|port| !port.ends_with(".lock")).unwrap_or_else(|| "5432".to_owned())
}

/// A number nobody else in this process has.
fn next() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|said| said.stdout.starts_with(b"0"))
}

fn ask(sockets: &Path, sql: &str) -> Result<String, String> {
    psql(sockets, "postgres", sql)
}

pub(crate) fn psql(sockets: &Path, database: &str, sql: &str) -> Result<String, String> {
    let mut command = Command::new(programs()?.join("psql"));
    command.env("PGPORT", port(sockets)).args([
        "-X",
        "-q",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-U",
        "postgres",
        "-d",
        database,
        "-h",
    ]);
    let said = run(command.arg(sockets).args(["-c", sql]))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn run(command: &mut Command) -> Result<Output, String> {
    let said = command.current_dir("/").stdin(Stdio::null()).output().map_err(told)?;
    match said.status.success() {
        true => Ok(said),
        false => Err(String::from_utf8_lossy(&said.stderr).trim().to_owned()),
    }
}

fn told(error: io::Error) -> String {
    error.to_string()
}
