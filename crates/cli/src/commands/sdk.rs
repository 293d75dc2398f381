//! `peregrine sdk …`: what the Python SDK and MLflow need to talk to this server.
//!
//! Invariant: a remembered secret lies in a file of its own that only its owner can read.

use super::{Context, Session, principal};
use crate::{
    args::identity::{Env, Login, SdkVerb, Shell},
    failure::{Done, Exit, Failure},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fs, path::PathBuf, process::ExitCode};

/// A client id and its secret, for one server and workspace.
#[derive(Serialize, Deserialize)]
struct Remembered {
    url: String,
    client_id: String,
    client_secret: String,
}

pub(super) async fn run(context: &Context, verb: SdkVerb) -> Done<ExitCode> {
    let session = context.session().await?;
    match verb {
        SdkVerb::Env(args) => {
            let variables = variables(&session).await?;
            context.output.text(&printed(&args, &variables))?;
        }
        SdkVerb::Login(args) => {
            let login = log_in(&session, &args).await?;
            context.output.note(&format!(
                "made client `{}`, kept in `{}`; `eval \"$(peregrine sdk env)\"` sets the variables",
                login.client_id,
                file(&session).display()
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Registers a client and remembers it.
async fn log_in(session: &Session<'_>, args: &Login) -> Done<Remembered> {
    let made = principal::create(session, args).await?;
    let text = |key: &str| made[key].as_str().unwrap_or_default().to_owned();
    let login = Remembered {
        url: session.client.url().to_owned(),
        client_id: text("clientId"),
        client_secret: text("clientSecret"),
    };
    let path = file(session);
    let cannot = |error: &std::io::Error| Failure::file(format!("cannot write `{}`", path.display()), error);
    fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|error| cannot(&error))?;
    let json = serde_json::to_vec(&login).expect("a login is plain data");
    store::secrets::write_owner_only(&path, &json).map_err(|error| cannot(&error))?;
    Ok(login)
}

fn file(session: &Session<'_>) -> PathBuf {
    session.context.config.home.join("sdk").join(format!("{}.json", session.scope.workspace))
}

/// The client that was remembered, if it still opens the workspace.
async fn remembered(session: &Session<'_>) -> Option<Remembered> {
    let login: Remembered = serde_json::from_slice(&fs::read(file(session)).ok()?).ok()?;
    // This machine's own server may take another port at its next start; another server is another server.
    if session.context.config.url.is_some() && login.url != session.client.url() {
        return None;
    }
    let client = session.client.with_token(format!("pgn.{}.{}", login.client_id, login.client_secret));
    client.get::<Value>(&session.scope.path()).await.ok().map(|_| login)
}

/// A client for the variables: the token this command was given, the one remembered, or a new one.
async fn login(session: &Session<'_>) -> Done<Remembered> {
    let config = &session.context.config;
    let given = config.token_file.as_deref().and_then(|path| fs::read_to_string(path).ok());
    if let Some((id, secret)) = given.as_deref().and_then(|token| token.trim().strip_prefix("pgn.")?.split_once('.')) {
        let url = session.client.url().to_owned();
        return Ok(Remembered { url, client_id: id.to_owned(), client_secret: secret.to_owned() });
    }
    match remembered(session).await {
        Some(login) => Ok(login),
        None => {
            let args = Login { name: None, role: "contributor".into(), everywhere: false, expires_days: 365.0 };
            let login = log_in(session, &args).await?;
            session.output().note(&format!("made client `{}` for this workspace", login.client_id));
            Ok(login)
        }
    }
}

async fn variables(session: &Session<'_>) -> Done<Vec<(&'static str, String)>> {
    let metadata: Value = session.client.get("/metadata/endpoints").await?;
    let url = metadata[0]["resourceManager"].as_str().map(|url| url.trim_end_matches('/').to_owned());
    let url = url.ok_or_else(|| Failure::new(Exit::Ours, "the server does not say how clients reach it"))?;
    let workspace: Value = session.client.get(&session.scope.path()).await?;
    let scope = scope_of(&workspace).unwrap_or_else(|| session.scope.clone());
    let login = login(session).await?;
    let mut all = vec![
        ("ARM_CLOUD_METADATA_URL", format!("{url}/metadata/endpoints?api-version=2019-05-01")),
        ("AZUREML_CURRENT_CLOUD", metadata[0]["name"].as_str().unwrap_or_default().to_owned()),
    ];
    if let Some(bundle) = bundle(session)? {
        all.push(("REQUESTS_CA_BUNDLE", bundle.display().to_string()));
    }
    all.extend([
        ("AZURE_AUTHORITY_HOST", url.clone()),
        ("AZURE_TENANT_ID", "adfs".to_owned()),
        ("AZURE_CLIENT_ID", login.client_id.clone()),
        ("AZURE_CLIENT_SECRET", login.client_secret.clone()),
        ("REGISTRY_DISCOVERY_ENDPOINT_URL", format!("{url}/")),
        ("MLFLOW_TRACKING_URI", format!("{url}/mlflow/v1.0{}", scope.path())),
        ("MLFLOW_TRACKING_TOKEN", format!("pgn.{}.{}", login.client_id, login.client_secret)),
        ("PEREGRINE_SUBSCRIPTION", scope.subscription),
        ("PEREGRINE_RESOURCE_GROUP", scope.group),
        ("PEREGRINE_WORKSPACE", scope.workspace),
    ]);
    Ok(all)
}

/// Where the workspace stands, which its own id says.
fn scope_of(workspace: &Value) -> Option<api::arm::Scope> {
    let parts: Vec<&str> = workspace["id"].as_str()?.split('/').collect();
    let [_, _, subscription, _, group, _, _, _, workspace] = parts[..] else { return None };
    Some(api::arm::Scope { subscription: subscription.into(), group: group.into(), workspace: workspace.into() })
}

/// The file of authorities: the system's and those that signed the server's certificates.
fn bundle(session: &Session<'_>) -> Done<Option<PathBuf>> {
    let config = &session.context.config;
    if config.url.is_some() && config.authority_file.is_none() {
        return Ok(None);
    }
    // This machine's server is called by a certificate of its own authority, whatever it shows to others.
    let own = config.url.is_none().then(|| agent::server::authority_file(&config.home));
    let files = own.into_iter().chain(config.authority_file.clone());
    let authorities: Vec<Vec<u8>> = files.filter_map(|file| fs::read(file).ok()).collect();
    let folder = config.home.join("sdk");
    let written =
        fs::create_dir_all(&folder).and_then(|()| server::write_bundle(&folder, Some(&authorities.join(&b'\n'))));
    written.map(Some).map_err(|error| Failure::file(format!("cannot write to `{}`", folder.display()), &error))
}

fn printed(args: &Env, variables: &[(&'static str, String)]) -> String {
    let line = |(name, value): &(&'static str, String)| match args.shell {
        _ if args.python => format!("    {}: {},\n", python(name), python(value)),
        _ if args.dotenv => format!("{name}=\"{}\"\n", value.replace('\\', "\\\\").replace('"', "\\\"")),
        Shell::Bash => format!("export {name}='{}'\n", value.replace('\'', "'\\''")),
        Shell::Fish => format!("set -gx {name} '{}'\n", value.replace('\\', "\\\\").replace('\'', "\\'")),
        Shell::Powershell => format!("$Env:{name} = '{}'\n", value.replace('\'', "''")),
    };
    let lines: String = variables.iter().map(line).collect();
    if !args.python {
        return lines;
    }
    format!(
        "import os\n\n# Before azure.ai.ml is imported: it reads them then.\nos.environ.update({{\n{lines}}})\n\n\
         from azure.ai.ml import MLClient\nfrom azure.identity import DefaultAzureCredential\n\n\
         ml_client = MLClient(\n    DefaultAzureCredential(),\n    os.environ[\"PEREGRINE_SUBSCRIPTION\"],\n    \
         os.environ[\"PEREGRINE_RESOURCE_GROUP\"],\n    os.environ[\"PEREGRINE_WORKSPACE\"],\n)\n"
    )
}

/// A Python string, which JSON's is.
fn python(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_value_it_reads_back_as_it_was() {
        let odd = [("NAME", "it's \"so\" \\ $HOME".to_owned())];
        let shown = |shell, python, dotenv| printed(&Env { shell, python, dotenv }, &odd);
        assert_eq!(shown(Shell::Bash, false, false), "export NAME='it'\\''s \"so\" \\ $HOME'\n");
        assert_eq!(shown(Shell::Fish, false, false), "set -gx NAME 'it\\'s \"so\" \\\\ $HOME'\n");
        assert_eq!(shown(Shell::Powershell, false, false), "$Env:NAME = 'it''s \"so\" \\ $HOME'\n");
        assert_eq!(shown(Shell::Bash, false, true), "NAME=\"it's \\\"so\\\" \\\\ $HOME\"\n");
        assert!(shown(Shell::Bash, true, false).contains("    \"NAME\": \"it's \\\"so\\\" \\\\ $HOME\",\n"));
    }
}
