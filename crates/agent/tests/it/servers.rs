//! Servers that tests talk to. Those that have to be installed first go to `~/.cache/peregrine/tools/<name>-<version>`;
//! where that fails the test says aloud that it is skipped.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
};

/// A running server; it ends with this value.
pub(crate) struct Server {
    child: Child,
    /// The address of its bucket, or of itself.
    pub bucket: String,
    pub options: BTreeMap<String, String>,
    pub secrets: BTreeMap<String, String>,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

const MOTO: &str = "5.1.22";
const AZURITE: &str = "3.35.0";
/// The account every copy of this emulator has; its key is printed in its manual.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// An S3 server with the empty bucket `bucket`.
pub(crate) fn moto() -> Option<Server> {
    let tool = installed("moto", MOTO, |folder| {
        run("python3", &["-m", "venv", text(folder)])?;
        run(text(&folder.join("bin/pip")), &["install", "--quiet", &format!("moto[server,s3]=={MOTO}")])
    })?;
    let mut command = Command::new(tool.join("bin/moto_server"));
    command.args(["-H", "127.0.0.1", "-p", "0"]);
    let (child, url, folder) = started(command, "http://127.0.0.1:");
    let created = Command::new("curl")
        .args(["-sf", "-X", "PUT", &format!("{url}/bucket")])
        .output()
        .expect("curl is part of the test machine");
    assert!(created.status.success(), "{created:?}");
    let options = map(&[("endpoint", &url), ("region", "us-east-1")]);
    let secrets = map(&[("access_key_id", "key"), ("secret_access_key", "secret")]);
    Some(Server { child, bucket: "s3://bucket".to_owned(), options, secrets, _folder: folder })
}

/// An Azure Blob server with the empty container `bucket`.
pub(crate) fn azurite() -> Option<Server> {
    let tool = installed("azurite", AZURITE, |folder| {
        run(
            "npm",
            &[
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--prefix",
                text(folder),
                &format!("azurite@{AZURITE}"),
            ],
        )
    })?;
    let mut command = Command::new(tool.join("node_modules/.bin/azurite-blob"));
    command.args([
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        "0",
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]);
    let (child, url, folder) = started(command, "http://127.0.0.1:");
    run("node", &["-e", MAKE_CONTAINER, &url, ACCOUNT, ACCOUNT_KEY]).expect("the container can be made");
    let options = map(&[("endpoint", &format!("{url}/{ACCOUNT}")), ("account_name", ACCOUNT)]);
    Some(Server {
        child,
        bucket: "az://bucket".to_owned(),
        options,
        secrets: map(&[("account_key", ACCOUNT_KEY)]),
        _folder: folder,
    })
}

/// A request signed with the account's key, as the protocol asks for.
const MAKE_CONTAINER: &str = r#"
const [url, account, key] = process.argv.slice(1);
const date = new Date().toUTCString(), version = '2021-08-06';
const text = 'PUT' + '\n'.repeat(12) + `x-ms-date:${date}\nx-ms-version:${version}\n/${account}/${account}/bucket\nrestype:container`;
const sum = require('crypto').createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
const headers = { 'x-ms-date': date, 'x-ms-version': version, authorization: `SharedKey ${account}:${sum}`, 'content-length': 0 };
const options = { method: 'PUT', headers };
require('http').request(`${url}/${account}/bucket?restype=container`, options, (a) => process.exit(a.statusCode === 201 ? 0 : 1)).end();
"#;

/// A web server for the files of a folder.
pub(crate) fn web(folder: &Path) -> Server {
    let mut command = Command::new("python3");
    command.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", text(folder)]);
    let (child, bucket, folder) = started(command, "http://127.0.0.1:");
    Server { child, bucket, options: BTreeMap::new(), secrets: BTreeMap::new(), _folder: folder }
}

/// A web server that gives these answers, one to each connection, and then is gone.
pub(crate) fn answering_once(answers: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _asked = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

/// Starts a server and waits until it has printed its address.
fn started(mut command: Command, prefix: &str) -> (Child, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let child = command.spawn().unwrap();
    drop(command);
    let mut lines = BufReader::new(reader).lines();
    let address = |line: &str| {
        let start = line.find(prefix)?;
        let digits: String = line[start + prefix.len()..].chars().take_while(char::is_ascii_digit).collect();
        Some(format!("{prefix}{digits}"))
    };
    let url = lines.by_ref().find_map(|line| address(&line.unwrap())).expect("the server prints its address");
    // Nobody reads on, so that a full pipe does not stop it.
    std::thread::spawn(move || lines.for_each(drop));
    (child, url, folder)
}

/// Made whole under another name first, so that a broken install is not taken for one.
#[expect(clippy::print_stderr, reason = "a skipped test says so aloud")]
fn installed(name: &str, version: &str, install: impl FnOnce(&Path) -> Result<(), String>) -> Option<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = PathBuf::from(std::env::var_os("HOME")?).join(format!(".cache/peregrine/tools/{name}-{version}"));
    let done = folder.join("installed");
    if done.exists() {
        return Some(folder);
    }
    let _broken = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    match install(&folder) {
        Ok(()) => {
            fs::write(done, "").unwrap();
            Some(folder)
        }
        Err(reason) => {
            eprintln!("SKIPPED: {name} {version} cannot be installed: {reason}");
            None
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
