//! Machines reached by SSH: what opens them, and who vouches for their key.

use super::kubernetes;
use crate::{
    args::place::ComputeCreate,
    commands::{Session, settle},
    failure::{Doing, Done, Failure},
};
use domain::{names::ComputeName, spec::Compute};
use serde_json::{Map, Value, json};
use std::{
    fs,
    io::{IsTerminal, Write, stderr, stdin},
    path::{Path, PathBuf},
};

/// Targets that are reached from the server, as files spell them.
pub(super) const KINDS: [&str; 2] = ["virtualmachine", "slurm"];

/// Adds what flags say, and the private key that a file names.
pub(super) fn complete(spec: &mut Compute, args: &ComputeCreate) -> Done {
    let plain = [
        ("address", args.address.as_ref().map(|text| json!(text))),
        ("host_key", args.host_key.as_ref().map(|text| json!(text))),
        ("jump_host", args.jump_host.as_ref().map(|text| json!(text))),
        ("slots", args.slots.map(|count| json!(count))),
    ];
    spec.settings.extend(plain.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    let mut ssh = match spec.settings.get("ssh_settings") {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    if let Some(port) = args.port.map(|port| json!(port)).or_else(|| spec.settings.remove("ssh_port")) {
        ssh.insert("ssh_port".into(), port);
    }
    if let Some(user) = &args.user {
        ssh.insert("admin_username".into(), json!(user));
    }
    let named = args.private_key.clone().or_else(|| Some(ssh.get("ssh_private_key_file")?.as_str()?.into()));
    ssh.shift_remove("ssh_private_key_file");
    if let Some(file) = named {
        let base = args.common.file.file.as_deref().filter(|_| args.private_key.is_none());
        ssh.insert("ssh_private_key".into(), json!(private_key(&beside(base, &file))?));
    }
    if !ssh.is_empty() {
        spec.settings.insert("ssh_settings".into(), Value::Object(ssh));
    }
    Ok(())
}

/// Reads what opens the machines of a managed cluster: a private key, or a kubeconfig.
pub(super) fn complete_provider(spec: &mut Compute, file: Option<&Path>) -> Done {
    let Some(Value::Object(provider)) = spec.settings.get_mut("provider") else { return Ok(()) };
    if let Some(named) = provider.shift_remove("private_key_file") {
        let key = private_key(&beside(file, Path::new(named.as_str().unwrap_or_default())))?;
        provider.insert("private_key".into(), json!(key));
    }
    if let Some(named) = provider.shift_remove("kubeconfig_file") {
        let context = provider.get("context").and_then(Value::as_str).map(str::to_owned);
        let config = kubeconfig(&beside(file, Path::new(named.as_str().unwrap_or_default())), context.as_deref())?;
        provider.insert("kubeconfig".into(), json!(config));
    }
    Ok(())
}

/// What the server needs of a kubeconfig, with everything that it names in it.
#[cfg(feature = "kubernetes")]
fn kubeconfig(file: &Path, context: Option<&str>) -> Done<String> {
    ::kubernetes::connect::portable(file, context).map_err(|error| {
        let shown = format!("the kubeconfig `{}` cannot be used", file.display());
        let failure =
            error.reasons().into_iter().fold(Failure::input(shown).because(error.to_string()), Failure::because);
        match error {
            ::kubernetes::connect::Error::NotPortable { .. } => failure.hint(error.next_step()),
            _ => failure.hint("`kubectl config get-contexts` lists what there is; name one with `context`"),
        }
    })
}

#[cfg(not(feature = "kubernetes"))]
fn kubeconfig(_: &Path, _: Option<&str>) -> Done<String> {
    Err(Failure::input("`kubeconfig_file` is for programs that know Kubernetes")
        .hint("this one was built without the feature `kubernetes`"))
}

/// A file that another names: below one's home, or beside that other.
fn beside(other: Option<&Path>, file: &Path) -> PathBuf {
    let of_home = |rest| Some(PathBuf::from(std::env::var_os("HOME")?).join(rest));
    let file = file.strip_prefix("~").ok().and_then(of_home).unwrap_or_else(|| file.to_owned());
    other.and_then(Path::parent).unwrap_or(Path::new("")).join(file)
}

fn private_key(file: &Path) -> Done<String> {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::file(format!("cannot read the private key `{}`", file.display()), &error))?;
    match text.contains("PRIVATE KEY-----") {
        true => Ok(text),
        false => Err(Failure::input(format!("`{}` is not a private key", file.display()))
            .hint("name the file without `.pub`, in OpenSSH's or PEM's form")),
    }
}

/// Waits for the checks. Where nobody vouches for the machine's key yet, asks whoever sits here.
pub(super) async fn follow(
    session: &Session<'_>,
    name: &ComputeName,
    (mut body, made): (Value, Value),
    wait: bool,
) -> Done {
    let first = match wait {
        true => kubernetes::settled(session, name, made).await?,
        false => made,
    };
    let Some(key) = unknown_key(&first).filter(|_| stdin().is_terminal() && stderr().is_terminal()) else {
        return kubernetes::follow(session, name, first, wait).await;
    };
    let host = first["properties"]["properties"]["address"].as_str().unwrap_or(name.as_str()).to_owned();
    session.context.output.note(&format!("nobody has vouched for `{host}` yet; it shows the key {key}"));
    eprint!("trust this key? (yes/no) ");
    let _ = stderr().flush();
    let mut said = String::new();
    let _ = stdin().read_line(&mut said);
    if !["y", "yes"].contains(&said.trim().to_lowercase().as_str()) {
        return kubernetes::follow(session, name, first, wait).await;
    }
    body["properties"]["properties"]["hostKey"] = json!(key);
    let again = settle::put(session, &super::at(session, name), &body, false).await;
    let again = again.doing(|| format!("cannot change compute target `{name}`"))?;
    kubernetes::follow(session, name, again, wait).await
}

/// The key that a machine shows and nobody has vouched for.
fn unknown_key(target: &Value) -> Option<String> {
    let checks = target["properties"]["properties"]["checks"].as_array()?;
    let failed = checks.iter().find(|check| check["check"] == "host key" && check["passed"] == json!(false))?;
    let detail = failed["detail"].as_str().filter(|detail| detail.contains("nobody has vouched"))?;
    let word = detail.split_whitespace().find(|word| word.starts_with("SHA256:"))?;
    Some(word.trim_end_matches([';', ',', '`']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_nobody_vouches_for_is_found_in_what_the_check_says() {
        let target = |passed, detail: &str| {
            json!({"properties": {"properties": {"checks": [
                {"check": "host key", "passed": passed, "detail": detail},
            ]}}})
        };
        let said = "nobody has vouched for `box`, which shows the key SHA256:abc+/1; compare it";
        assert_eq!(unknown_key(&target(false, said)).as_deref(), Some("SHA256:abc+/1"));
        assert_eq!(unknown_key(&target(true, said)), None);
        assert_eq!(unknown_key(&target(false, "`box` shows the key SHA256:x and not SHA256:y")), None);
    }
}
