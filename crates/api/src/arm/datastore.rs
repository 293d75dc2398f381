//! Datastores: Azure's kinds under Azure's names, and our own (`s3`, `gcs`, `local`, `nfs`) in the same envelope.

use super::{put, text};
use domain::{Place, spec::Datastore};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::PathBuf};

const KINDS: &[(&str, &str)] = &[
    ("azure_blob", "AzureBlob"),
    ("azure_file", "AzureFile"),
    ("azure_data_lake_gen1", "AzureDataLakeGen1"),
    ("azure_data_lake_gen2", "AzureDataLakeGen2"),
    ("one_lake", "OneLake"),
    ("s3", "S3"),
    ("gcs", "Gcs"),
    ("local", "Local"),
    ("nfs", "Nfs"),
];

/// The kinds of datastores, as they travel.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(_, wire)| *wire)
}

/// The body to send, credentials included.
pub fn body(spec: &Datastore) -> Value {
    let mut p = Map::new();
    let wire = KINDS.iter().find(|(ours, _)| *ours == spec.kind).map_or(spec.kind.as_str(), |(_, wire)| wire);
    put(&mut p, "datastoreType", json!(wire));
    put(&mut p, "description", spec.description.clone().map(Value::from));
    put(&mut p, "tags", json!(spec.tags));
    for (key, value) in &spec.settings {
        put(&mut p, &camel(key), value.clone());
    }
    put(&mut p, "credentials", credentials_body(&spec.credentials));
    Value::Object(p)
}

/// What of a body's credentials is no secret and is shown again.
const SHOWN: [&str; 6] = ["credentialsType", "tenantId", "clientId", "authorityUrl", "resourceUrl", "thumbprint"];

/// What is wrong with a body's credentials: anything but what is known to be no secret must stand where secrets are sealed.
pub fn check_credentials(body: &Value) -> Result<(), String> {
    let credentials = match body.get("credentials") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(credentials)) => credentials,
        Some(_) => return Err("`credentials` is not an object".to_owned()),
    };
    for (key, value) in credentials {
        let fits = match key.as_str() {
            "secrets" => value.is_object() || value.is_null(),
            key => SHOWN.contains(&key) && (value.is_string() || value.is_null()),
        };
        if !fits {
            let known = SHOWN.join(", ");
            return Err(format!(
                "`credentials` has `{}`, which is kept sealed nowhere; secrets stand as texts in `credentials.secrets`, and beside them \
                 only texts named {known}",
                key.escape_default()
            ));
        }
    }
    Ok(())
}

/// Takes the secrets out of a body: what is kept sealed, and what may be shown.
pub fn split_secrets(body: &mut Value) -> BTreeMap<String, String> {
    let Some(credentials) = body.get_mut("credentials").and_then(Value::as_object_mut) else { return BTreeMap::new() };
    let secrets = credentials.remove("secrets").unwrap_or(Value::Null);
    let mut kept: BTreeMap<String, String> = BTreeMap::new();
    if let Value::Object(map) = secrets {
        for (key, value) in map {
            if let (Value::String(value), true) = (value, key != "secretsType") {
                kept.insert(snake(&key), value);
            }
        }
    }
    credentials.retain(|key, value| SHOWN.contains(&key.as_str()) && value.is_string());
    for key in ["tenantId", "clientId"] {
        if let Some(Value::String(value)) = credentials.get(key) {
            kept.insert(snake(key), value.clone());
        }
    }
    kept
}

/// A datastore resource in the words of its YAML file. Never has secrets.
pub fn show(resource: &Value) -> Value {
    let p = resource.get("properties").unwrap_or(&Value::Null);
    let wire = text(p, "datastoreType").unwrap_or_default();
    let mut out = Map::new();
    put(&mut out, "name", text(resource, "name").map(Value::from));
    put(&mut out, "type", json!(KINDS.iter().find(|(_, w)| *w == wire).map_or(wire.as_str(), |(ours, _)| ours)));
    if let Value::Object(map) = p {
        for (key, value) in map {
            let shown = !matches!(
                key.as_str(),
                "datastoreType" | "credentials" | "tags" | "properties" | "serviceDataAccessAuthIdentity"
            );
            if shown && !value.is_null() {
                put(&mut out, &snake(key), value.clone());
            }
        }
    }
    let kind = p.get("credentials").and_then(|c| text(c, "credentialsType"));
    put(&mut out, "credentials", kind.filter(|k| k != "None").map(|k| json!({"type": snake(&k)})));
    put(&mut out, "tags", p.get("tags").filter(|t| t.is_object()).cloned().unwrap_or_else(|| json!({})));
    put(&mut out, "id", text(resource, "id").map(Value::from));
    Value::Object(out)
}

/// Where `path` in this datastore lies. `Err` says in words why nobody can tell.
pub fn place(name: &str, body: &Value, path: &str) -> Result<Place, String> {
    let need = |key: &str| text(body, key).ok_or_else(|| format!("datastore `{name}` has no `{}`", snake(key)));
    let mut options = BTreeMap::new();
    for (wire, option) in
        [("endpoint", "endpoint"), ("region", "region"), ("accountName", "account_name"), ("allowHttp", "allow_http")]
    {
        if let Some(value) = text(body, wire) {
            options.insert(option.to_owned(), value);
        }
    }
    let object = |scheme: &str, bucket: String| {
        let url = format!("{scheme}://{bucket}/{}", path.trim_start_matches('/'));
        Place::Object { url, datastore: name.to_owned(), options: options.clone() }
    };
    match text(body, "datastoreType").unwrap_or_default().as_str() {
        "Local" | "Nfs" => Ok(Place::Folder { path: PathBuf::from(need("path")?).join(path.trim_start_matches('/')) }),
        "S3" => Ok(object("s3", need("bucket")?)),
        "Gcs" => Ok(object("gs", need("bucket")?)),
        "AzureBlob" => Ok(object("az", need("containerName")?)),
        "AzureDataLakeGen2" => Ok(object("az", need("filesystem")?)),
        other => Err(format!("datastore `{name}` is of type `{other}`, which jobs cannot read yet")),
    }
}

fn credentials_body(credentials: &BTreeMap<String, String>) -> Value {
    let has = |key: &str| credentials.contains_key(key);
    let kind = match () {
        () if has("account_key") => "AccountKey",
        () if has("sas_token") => "Sas",
        () if has("client_secret") => "ServicePrincipal",
        () if has("certificate") => "Certificate",
        () if credentials.is_empty() => "None",
        () => "Keys",
    };
    let mut secrets = Map::from_iter([("secretsType".to_owned(), json!(kind))]);
    let mut out = Map::from_iter([("credentialsType".to_owned(), json!(kind))]);
    for (key, value) in credentials {
        match key.as_str() {
            "account_key" => put(&mut secrets, "key", json!(value)),
            "tenant_id" | "client_id" | "authority_url" | "resource_url" | "thumbprint" => {
                put(&mut out, &camel(key), json!(value))
            }
            other => put(&mut secrets, &camel(other), json!(value)),
        }
    }
    if kind != "None" {
        put(&mut out, "secrets", Value::Object(secrets));
    }
    Value::Object(out)
}

/// `account_name` to `accountName`.
pub fn camel(text: &str) -> String {
    let mut out = String::new();
    let mut up = false;
    for c in text.chars() {
        match c {
            '_' => up = true,
            c if up => {
                out.extend(c.to_uppercase());
                up = false;
            }
            c => out.push(c),
        }
    }
    out
}

/// `accountName` to `account_name`.
pub fn snake(text: &str) -> String {
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        if c.is_uppercase() && at > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_leave_the_body() {
        let mut spec = Datastore { kind: "azure_blob".into(), ..Datastore::default() };
        spec.credentials.insert("account_key".into(), "s3cr3t".into());
        let mut sent = body(&spec);
        assert_eq!(sent["credentials"]["secrets"]["key"], "s3cr3t");
        let kept = split_secrets(&mut sent);
        assert_eq!(kept["key"], "s3cr3t");
        assert!(!sent.to_string().contains("s3cr3t"));
    }

    #[test]
    fn nothing_unknown_is_shown_of_credentials() {
        for (credentials, fits) in [
            (json!({"credentialsType": "Sas", "secrets": {"sasToken": "s3cr3t"}, "tenantId": null}), true),
            (json!({"credentialsType": "ServicePrincipal", "clientId": "c", "thumbprint": "t"}), true),
            (json!(null), true),
            (json!({"credentialsType": "AccountKey", "accountKey": "s3cr3t"}), false),
            (json!({"credentialsType": "AccountKey", "Secrets": {"key": "s3cr3t"}}), false),
            (json!({"clientId": {"key": "s3cr3t"}}), false),
            (json!({"secrets": "s3cr3t"}), false),
            (json!("s3cr3t"), false),
        ] {
            let mut body = json!({"datastoreType": "AzureBlob", "credentials": credentials});
            let checked = check_credentials(&body);
            assert_eq!(checked.is_ok(), fits, "{credentials}");
            assert!(!format!("{checked:?}").contains("s3cr3t"));
            if credentials.is_object() {
                split_secrets(&mut body);
                assert!(!body.to_string().contains("s3cr3t"), "{body}");
            }
        }
    }

    #[test]
    fn a_place_names_its_bucket_and_endpoint() {
        let body = json!({"datastoreType": "S3", "bucket": "b", "endpoint": "http://127.0.0.1:9"});
        let Ok(Place::Object { url, options, .. }) = place("lake", &body, "/a/b") else { panic!() };
        assert_eq!((url.as_str(), options["endpoint"].as_str()), ("s3://b/a/b", "http://127.0.0.1:9"));
        assert!(place("lake", &json!({"datastoreType": "S3"}), "a").unwrap_err().contains("`bucket`"));
    }
}
