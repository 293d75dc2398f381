//! The OpenAPI document: the route table in other words.
//!
//! Bodies of other dialects are described by their envelope only: what a client sends beyond what this version knows is kept
//! and given back, so a closed description would be wrong. Those of our own are described whole (`own`).

mod own;

use crate::routes::{self, Access, Route};
use serde_json::{Map, Value, json};

/// Routes that answer with a page of things.
const LISTS: &[&str] = &[
    "workspaces_all",
    "workspaces",
    "jobs",
    "job_artifacts",
    "job_samples",
    "run_children",
    "computes",
    "datastores",
    "assets",
    "asset_versions",
    "principals",
    "roles",
    "audit",
    "workspace_audit",
];

/// Routes that answer with one resource.
const RESOURCES: &[&str] = &[
    "workspace_get",
    "workspace_put",
    "workspace_patch",
    "job_get",
    "job_put",
    "compute_get",
    "compute_put",
    "datastore_get",
    "datastore_put",
    "asset_container",
    "asset_get",
    "asset_put",
];

/// The OpenAPI document of a server of this version.
pub fn openapi(version: &str) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all() {
        let at = paths.entry(route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        at[route.method.to_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Peregrine", "version": version,
            "description": "Machine learning on any compute: Azure's resource paths and bodies, blobs, run history, and a few routes of our own.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "signature": {"type": "apiKey", "in": "query", "name": "sig"},
            },
            "schemas": schemas(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> = names
        .map(|name| {
            let schema = json!({"type": "string", "minLength": 1});
            json!({"name": name.trim_start_matches('*'), "in": "path", "required": true, "schema": schema})
        })
        .collect();
    let security = match route.access {
        Access::Open => json!([]),
        Access::Signed => json!([{"bearer": []}, {"signature": []}]),
        _ => json!([{"bearer": []}]),
    };
    let mut operation = json!({
        "operationId": name(route), "summary": route.about, "parameters": parameters, "security": security,
        "responses": {"2XX": success(route), "4XX": refusal(route)},
    });
    // What sends for something that is full or going away; clients wait and try again.
    operation["responses"]["503"] = refusal(route);
    if is_page(route) {
        operation["responses"]["3XX"] = json!({"description": "where to go instead"});
    }
    if let Some(body) = request_body(route) {
        operation["requestBody"] = body;
    }
    operation
}

/// The operation's name; MLflow's calls stand under several prefixes, and a name must be one operation's alone.
pub fn name(route: &Route) -> String {
    match route.path.strip_prefix("/mlflow/") {
        Some(rest) => format!("{}_{}", route.id, rest.split('/').next().unwrap_or_default().replace('.', "_")),
        None => route.id.to_owned(),
    }
}

fn is_blob(route: &Route) -> bool {
    route.id.starts_with("blob_")
}

/// Pages are for people; programs are told nothing but that.
fn is_page(route: &Route) -> bool {
    matches!(route.id, "home" | "studio" | "studio_page" | "studio_file")
}

/// What a route that changes a resource is sent.
fn request_body(route: &Route) -> Option<Value> {
    let kind = match route.id {
        "token" => "application/x-www-form-urlencoded",
        _ if is_blob(route) && route.method == "PUT" => "application/octet-stream",
        _ if matches!(route.method, "PUT" | "PATCH") => "application/json",
        _ => return None,
    };
    let schema = if kind == "application/octet-stream" {
        json!({"type": "string", "format": "binary"})
    } else {
        json!({"type": "object"})
    };
    let mut content = Map::new();
    content.insert(kind.to_owned(), json!({"schema": schema}));
    Some(json!({"required": route.method != "POST", "content": content}))
}

fn success(route: &Route) -> Value {
    let schema = match route.id {
        _ if is_page(route) => return json!({"description": "something for a browser"}),
        _ if is_blob(route)
            || matches!(
                route.id,
                "health" | "health_alias" | "ready" | "metrics" | "job_artifact" | "online_endpoint_counters"
            ) =>
        {
            return json!({"description": "the bytes, or nothing"});
        }
        id if LISTS.contains(&id) => json!({"$ref": "#/components/schemas/Page"}),
        id if RESOURCES.contains(&id) => json!({"$ref": "#/components/schemas/Resource"}),
        _ if route.method == "DELETE" => return json!({"description": "gone, or on its way"}),
        id => own::reply(id),
    };
    json!({"description": "what was asked for", "content": {"application/json": {"schema": schema}}})
}

fn refusal(route: &Route) -> Value {
    let (kind, schema) = match route.id {
        _ if is_page(route) => return json!({"description": "why there is no page"}),
        _ if route.method == "HEAD" => return json!({"description": "the code is in `x-ms-error-code`"}),
        _ if is_blob(route) => ("application/xml", json!({"type": "object"})),
        "token" => ("application/json", json!({"$ref": "#/components/schemas/OAuthError"})),
        id if id.starts_with("mlflow_") => ("application/json", json!({"$ref": "#/components/schemas/MlflowError"})),
        _ => ("application/json", json!({"$ref": "#/components/schemas/Error"})),
    };
    let mut content = Map::new();
    content.insert(kind.to_owned(), json!({"schema": schema}));
    json!({"description": "why not", "content": content})
}

fn schemas() -> Value {
    let text = json!({"type": "string"});
    let mut all = json!({
        "Resource": {
            "type": "object", "required": ["id", "name", "type", "properties"],
            "properties": {"id": text, "name": text, "type": text, "properties": {"type": "object"}},
        },
        "Page": {
            "type": "object", "required": ["value"],
            "properties": {"value": {"type": "array"}, "nextLink": {"type": ["string", "null"]}},
        },
        "Error": {
            "type": "object", "required": ["error"],
            "properties": {"error": {
                "type": "object", "required": ["code", "message", "details"],
                "properties": {"code": text, "message": text, "details": {"type": "array"}},
            }},
        },
        "MlflowError": {
            "type": "object", "required": ["error_code", "message"], "properties": {"error_code": text, "message": text},
        },
        "OAuthError": {
            "type": "object", "required": ["error", "error_description"],
            "properties": {"error": text, "error_description": text},
        },
    });
    own::schemas().into_iter().for_each(|(name, schema)| all[name] = schema);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_once_and_every_name_above_is_a_route() {
        let described = openapi("1");
        let count: usize = described["paths"].as_object().unwrap().values().map(|p| p.as_object().unwrap().len()).sum();
        assert_eq!(count, routes::all().count());
        for id in LISTS.iter().chain(RESOURCES).chain(own::REPLIES.iter().map(|(id, _)| id)) {
            assert!(routes::all().any(|route| route.id == *id), "{id}");
        }
    }
}
