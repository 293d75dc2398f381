//! `peregrine principal …`: who may call the server, and as what.

use super::{Context, Session};
use crate::{
    args::identity::{Login, PrincipalVerb},
    failure::{Done, Failure},
    output::Column,
};
use api::arm::{PROVIDER, Scope, datastore::snake};
use domain::Role;
use serde_json::{Value, json};
use std::process::ExitCode;

const PRINCIPALS: &str = "/admin/v1/principals";

const COLUMNS: &[Column] = &[
    Column::new("CLIENT ID", |item| text(item, "client_id")).whole(),
    Column::new("NAME", |item| text(item, "name")),
    Column::new("ROLES", roles),
    Column::new("STATE", |item| text(item, "state")),
    Column::new("EXPIRES", |item| text(item, "expires_at")),
];

pub(super) async fn run(context: &Context, verb: PrincipalVerb) -> Done<ExitCode> {
    let session = context.session().await?;
    match verb {
        PrincipalVerb::Create(args) => {
            let made = create(&session, &args).await?;
            context.output.note("keep the secret: it is not shown again");
            context.output.show(&shown(&made))?;
        }
        PrincipalVerb::List => {
            let found: Value = session.client.get(PRINCIPALS).await?;
            let items = found["value"].as_array().into_iter().flatten().map(shown).collect();
            context.output.list(items, COLUMNS)?;
        }
        PrincipalVerb::Grant(args) => {
            let role = role(&args.role)?;
            let path = role_path(&session.scope, &args.id);
            let granted: Value = session.client.put(&path, &json!({"role": role})).await?;
            context.output.show(&shown(&granted))?;
        }
        PrincipalVerb::Ungrant(args) => {
            let path = role_path(&session.scope, &args.id);
            session.client.delete(&path).await?;
        }
        PrincipalVerb::Revoke(args) => {
            let path = format!("{PRINCIPALS}/{}", args.id);
            session.client.delete(&path).await?;
            context
                .output
                .note(&format!("`{}` may not call any more; tokens it holds are refused from now on", args.id));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A role in the workspace or registry in use. Both stand under workspaces here, registries with their `@`.
fn role_path(scope: &Scope, id: &str) -> String {
    let Scope { subscription, group, workspace } = scope;
    format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/{PROVIDER}/workspaces/{workspace}/roles/{id}"
    )
}

/// Registers someone; the answer holds the secret.
pub(super) async fn create(session: &Session<'_>, args: &Login) -> Done<Value> {
    let user = std::env::var("USER").unwrap_or_else(|_| "user".into());
    let mut body = json!({
        "name": args.name.clone().unwrap_or(user), "role": role(&args.role)?, "expiresInDays": args.expires_days,
    });
    if !args.everywhere {
        body["workspace"] = json!(session.scope.workspace);
    }
    Ok(session.client.post(PRINCIPALS, &body).await?)
}

/// A principal in the words of our files.
fn shown(principal: &Value) -> Value {
    principal.as_object().into_iter().flatten().map(|(key, value)| (snake(key), value.clone())).collect()
}

fn role(word: &str) -> Done<Role> {
    Role::parse(word)
        .ok_or_else(|| Failure::input(format!("`{word}` is not a role")).hint("use `reader`, `contributor` or `owner`"))
}

fn text(item: &Value, key: &str) -> String {
    api::arm::text(item, key).unwrap_or_default()
}

fn roles(item: &Value) -> String {
    let all = item["roles"].as_object().into_iter().flatten();
    let shown = all.map(|(place, role)| match place.as_str() {
        domain::access::EVERYWHERE => format!("{} everywhere", role.as_str().unwrap_or_default()),
        place => format!("{} of {place}", role.as_str().unwrap_or_default()),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_in_a_registry_stands_under_its_name_with_the_at_sign() {
        let scope =
            |workspace: &str| Scope { subscription: "s".into(), group: "g".into(), workspace: workspace.into() };
        for name in ["team-a", "@shared"] {
            let path = role_path(&scope(name), "i");
            assert!(path.ends_with(&format!("/workspaces/{name}/roles/i")), "{path}");
        }
    }
}
