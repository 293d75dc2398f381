//! What the routes of our own answer with: nobody else says what is in these bodies, so they are described whole, and the
//! studio's types are made from the description.

use serde_json::{Value, json};

/// Routes by their ids, and what each answers with.
pub(super) const REPLIES: &[(&str, &str)] = &[("queue", "Queue"), ("usage", "UsageOf"), ("teams", "Teams")];

/// What a route answers with; anything where that is not ours to say.
pub(super) fn reply(id: &str) -> Value {
    let known = REPLIES.iter().find(|(own, _)| *own == id);
    known.map_or_else(|| json!({}), |(_, name)| json!({"$ref": format!("#/components/schemas/{name}")}))
}

/// The schemas of those answers, by their names.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let (text, number, whole, flag) =
        (json!({"type": "string"}), json!({"type": "number"}), json!({"type": "integer"}), json!({"type": "boolean"}));
    let list = |name: &str| json!({"type": "array", "items": {"$ref": format!("#/components/schemas/{name}")}});
    let texts = json!({"type": "array", "items": text});
    let used = |whose: &'static str| {
        let amounts = [("jobs", &whole), ("cpus", &number), ("memoryBytes", &whole), ("gpus", &whole)];
        let fields = [(whose, &text)].into_iter().chain(amounts).chain([("coreHours", &number)]);
        object(&fields.collect::<Vec<_>>(), &[])
    };
    vec![
        (
            "Waiting",
            object(
                &[
                    ("name", &text),
                    ("displayName", &text),
                    ("user", &text),
                    ("target", &text),
                    ("since", &text),
                    ("note", &text),
                    ("ahead", &whole),
                    ("expected", &json!({"type": ["string", "null"]})),
                ],
                &[],
            ),
        ),
        ("Queue", object(&[("value", &list("Waiting")), ("more", &flag)], &[])),
        ("PersonUse", used("user")),
        ("WorkspaceUse", used("workspace")),
        ("UsageOf", object(&[("value", &list("PersonUse"))], &[("workspaces", &list("WorkspaceUse"))])),
        ("Team", object(&[("name", &text), ("people", &texts)], &[])),
        ("Teams", object(&[("value", &list("Team"))], &[])),
    ]
}

/// An object with fields that are always there, and fields that may be.
fn object(must: &[(&str, &Value)], may: &[(&str, &Value)]) -> Value {
    let required: Vec<&str> = must.iter().map(|(name, _)| *name).collect();
    let all = must.iter().chain(may).map(|(name, schema)| ((*name).to_owned(), (*schema).clone()));
    json!({"type": "object", "required": required, "properties": all.collect::<serde_json::Map<_, _>>()})
}
