//! Sharing: a copy of a workspace's asset, and of everything it is made of, in a registry.
//!
//! Invariants: the copy lives on when its source goes; files are there before the asset that names them.

use super::{container_path, may_change, owner};
use crate::{
    app::{App, is_here},
    auth::Caller,
    http::{
        At, Body, assets,
        change::{self, Shown},
        operations::{self, Ticket},
    },
    problem::Problem,
    resolve,
};
use api::arm::{AssetRef, VersionRef};
use axum::{
    Extension,
    extract::{Path, State},
};
use domain::{
    Place, Role,
    names::{AssetName, Version},
};
use serde_json::{Value, json};
use std::{pin::Pin, sync::Arc};
use store::{AssetKey, AssetRow, WorkspaceRow};

const KINDS: [&str; 5] = ["models", "environments", "data", "components", "codes"];

/// Copies an asset of a workspace into a registry.
pub(crate) async fn import(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let registry = app.owner(&at.owner()).await?;
    may_change(&at)?;
    let asked = &body["properties"];
    let source = Source::parse(asked["sourceAssetId"].as_str().unwrap_or_default())?;
    let from = source.workspace(&app).await?;
    if !caller.may(&from.name, Role::Reader) {
        return Err(Problem::forbidden(format!("you may not read from workspace `{}`", from.name)));
    }
    let word = |key: &str, usual: &str| asked[key].as_str().filter(|t| !t.is_empty()).unwrap_or(usual).to_owned();
    let to = (word("destinationName", &source.name), word("destinationVersion", &source.version));
    AssetName::parse(&to.0).and(Version::parse(&to.1).map(drop)).map_err(|bad| Problem::bad(bad.to_string()))?;
    let copy = Copy { app: &app, from: &from, registry: &at.registry, by: &caller.name };
    if copy.there(&source.kind, &to).await? {
        let noun = assets::noun(&source.kind);
        let message = format!("{noun} `{}:{}` is in registry `{}` already", to.0, to.1, at.registry);
        return Err(Problem::conflict(message));
    }
    copy.asset(&source.kind, (&source.name, &source.version), &to).await?;
    let ticket = Ticket::new(&app, &registry.subscription);
    let (done, now) = (ticket.clone(), app.now());
    app.store.write(move |tx| done.done(tx, &registry.name, &to.0, now)).await?;
    Ok(Shown::accepted().tracked(operations::LOCATION, &ticket.result_url()))
}

/// What is to be copied: `azureml://locations/L/workspaces/<id>/<kind>/<name>/versions/<version>`, or a resource id.
struct Source {
    workspace: String,
    kind: String,
    name: String,
    version: String,
}

impl Source {
    fn parse(id: &str) -> Result<Source, Problem> {
        let parts: Vec<&str> = id.split('/').collect();
        let at = parts.iter().position(|part| part.eq_ignore_ascii_case("workspaces"));
        match at.and_then(|at| parts.get(at + 1..)) {
            Some([workspace, kind, name, versions, version])
                if versions.eq_ignore_ascii_case("versions") && KINDS.iter().any(|k| k.eq_ignore_ascii_case(kind)) =>
            {
                let text = |part: &&str| (*part).to_owned();
                let kind = kind.to_lowercase();
                Ok(Source { workspace: text(workspace), kind, name: text(name), version: text(version) })
            }
            _ => Err(Problem::bad(format!(
                "`sourceAssetId` is `{id}`, which does not name a version of an asset of a workspace; it is one of {}",
                KINDS.join(", ")
            ))),
        }
    }

    /// By its id, which clients send, or by its name.
    async fn workspace(&self, app: &App) -> Result<Arc<WorkspaceRow>, Problem> {
        let wanted = self.workspace.clone();
        let all = app.store.read(|tx| tx.workspaces()).await?;
        match all.into_iter().find(|row| row.id.eq_ignore_ascii_case(&wanted)) {
            Some(row) => Ok(Arc::new(row)),
            None => app.workspace(&wanted).await,
        }
    }
}

/// A copy in the making.
struct Copy<'a> {
    app: &'a App,
    from: &'a WorkspaceRow,
    registry: &'a str,
    by: &'a str,
}

type Later<'f, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'f>>;

impl Copy<'_> {
    async fn there(&self, kind: &str, to: &(String, String)) -> Result<bool, Problem> {
        let key = key(&owner(self.registry), kind, &to.0, &to.1);
        Ok(self.app.store.read(move |tx| tx.asset(&key)).await?.is_some())
    }

    /// Copies one version, what it is made of first. Boxed, as a component brings its code and environment along.
    fn asset<'f>(&'f self, kind: &'f str, from: (&'f str, &'f str), to: &'f (String, String)) -> Later<'f, ()> {
        Box::pin(async move {
            let row = self.source(kind, from).await?;
            let mut body: Value = serde_json::from_str(&row.body).unwrap_or_default();
            match kind {
                "models" => self.moved(&mut body, "/modelUri").await?,
                "data" => self.moved(&mut body, "/dataUri").await?,
                "codes" => self.moved(&mut body, "/codeUri").await?,
                "environments" => self.moved(&mut body, "/build/contextUri").await?,
                _ => {
                    for (place, kind) in [
                        ("/componentSpec/code", "codes"),
                        ("/componentSpec/environment", "environments"),
                        ("/componentSpec/task/code", "codes"),
                        ("/componentSpec/task/environment", "environments"),
                    ] {
                        self.brought(&mut body, place, kind).await?;
                    }
                }
            }
            let (key, by, now) = (key(&owner(self.registry), kind, &to.0, &to.1), self.by.to_owned(), self.app.now());
            change::change(self.app, move |tx| {
                if tx.asset(&key)?.is_some() {
                    let message = format!("`{}:{}` is in the registry already", key.name, key.version);
                    return Err(Problem::conflict(message).into());
                }
                Ok(assets::insert(tx, &key, &body, &by, now)?)
            })
            .await
        })
    }

    async fn source(&self, kind: &str, (name, version): (&str, &str)) -> Result<AssetRow, Problem> {
        let wanted = key(&self.from.name, kind, name, version);
        let row = self.app.store.read(move |tx| tx.asset(&wanted)).await?;
        let called = format!("{name}:{version}");
        row.ok_or_else(|| {
            Problem::not_found(&format!("{} in workspace `{}`", assets::noun(kind), self.from.name), &called)
        })
    }

    /// Copies the files behind an address, and writes down where the copy is.
    async fn moved(&self, body: &mut Value, place: &str) -> Result<(), Problem> {
        let Some(uri) = body.pointer(place).and_then(Value::as_str).map(str::to_owned) else { return Ok(()) };
        let (app, from, asked) = (self.app.clone(), self.from.clone(), uri.clone());
        let found = self.app.store.read(move |tx| resolve::place_to_share(&app, &from, tx, &asked)).await?;
        let path = match found {
            Ok(Place::Folder { path }) => path,
            // What lies elsewhere is read from there by everyone.
            Ok(_) => return Ok(()),
            Err(mistakes) => return Err(Problem::mistakes(&format!("the files at `{uri}`"), &mistakes)),
        };
        let container = format!("shared-{}", store::secrets::hex(&self.app.store.keyring().random::<8>()));
        let leaf = uri.trim_end_matches('/').rsplit('/').next().unwrap_or("files").to_owned();
        let to = self.app.files.blob(&owner(self.registry), &container, &leaf)?;
        let files = self.app.files.clone();
        let unique = container.clone();
        let copied =
            tokio::task::spawn_blocking(move || files.copy(&path, &to, &unique).and_then(|()| files.sync())).await;
        copied.map_err(|_| store::Error::Closed)??;
        if let Some(at) = body.pointer_mut(place) {
            *at = json!(format!("{}{}/{leaf}", self.app.outside, container_path(self.registry, &container)));
        }
        Ok(())
    }

    /// Brings along an asset that another one is made of, and refers to the copy.
    async fn brought(&self, body: &mut Value, place: &str, kind: &str) -> Result<(), Problem> {
        let Some(reference) = body.pointer(place).and_then(Value::as_str) else { return Ok(()) };
        let Some(AssetRef::Here { workspace, name, version: VersionRef::Version(version) }) =
            AssetRef::parse(kind, reference)
        else {
            return Ok(());
        };
        if !is_here(self.from, workspace.as_deref()) {
            let message = format!(
                "`{reference}` is not of workspace `{}`, whose asset is to be shared; share that one first",
                self.from.name
            );
            return Err(Problem::bad(message));
        }
        let to = (name.clone(), version.clone());
        if !self.there(kind, &to).await? {
            match self.asset(kind, (&name, &version), &to).await {
                // Shipped environments are everywhere.
                Err(problem) if problem.status == 404 && domain::curated::find(&name).is_some() => return Ok(()),
                other => other?,
            }
        }
        if let Some(at) = body.pointer_mut(place) {
            *at = json!(format!("azureml://registries/{}/{kind}/{name}/versions/{version}", self.registry));
        }
        Ok(())
    }
}

fn key(owner: &str, kind: &str, name: &str, version: &str) -> AssetKey {
    AssetKey { workspace: owner.into(), kind: kind.into(), name: name.into(), version: version.into() }
}
