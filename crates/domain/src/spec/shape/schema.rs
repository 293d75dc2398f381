//! The table as a JSON Schema, for completion in editors.

use super::{Kind, Noun, Object, Unknown, Variant, compare::may_be_empty};
use serde_json::{Map, Value, json};

/// The schema of a noun's file, draft 7. Keys of every `type` are allowed; which go together is checked elsewhere.
/// Maps inside it are definitions of their own, so that each is written once.
pub fn json_schema(noun: Noun) -> Value {
    let mut writer = Writer { known: Vec::new(), definitions: Map::new() };
    let mut schema = writer.object(noun.object());
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!(format!("Peregrine {noun}"));
    if !writer.definitions.is_empty() {
        schema["definitions"] = Value::Object(writer.definitions);
    }
    schema
}

struct Writer {
    /// Maps that have a definition, and its name.
    known: Vec<(&'static Object, String)>,
    definitions: Map<String, Value>,
}

impl Writer {
    fn object(&mut self, object: &'static Object) -> Value {
        let required: Vec<_> = object.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
        let open = object.unknown != Unknown::Refused;
        let properties = self.properties(object);
        let mut schema = json!({
            "type": "object", "description": object.doc, "properties": properties, "additionalProperties": open
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        let rules: Vec<Value> = object.variants.iter().filter_map(|variant| rule(object, variant)).collect();
        if !rules.is_empty() {
            schema["allOf"] = json!(rules);
        }
        schema
    }

    /// Points at the map's definition, which is written at its first use.
    fn pointer(&mut self, object: &'static Object) -> Value {
        let place = |name: &str| json!({ "$ref": format!("#/definitions/{name}") });
        if let Some((_, name)) = self.known.iter().find(|(known, _)| std::ptr::eq(*known, object)) {
            return place(name);
        }
        let plain: String = object.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let same = self.known.iter().filter(|(known, _)| known.name == object.name).count();
        let name = if same == 0 { plain } else { format!("{plain}_{}", same + 1) };
        self.known.push((object, name.clone()));
        let definition = self.object(object);
        self.definitions.insert(name.clone(), definition);
        place(&name)
    }

    /// Every key of every variant; one that means several things may be any of them.
    fn properties(&mut self, object: &'static Object) -> Map<String, Value> {
        let mut properties = Map::new();
        for key in object.all_keys() {
            let mut schema = self.kind(&key.kind);
            schema["description"] = json!(key.doc);
            if !key.default.is_empty() {
                schema["default"] = json!(key.default);
            }
            let Some(known) = properties.get_mut(key.name) else {
                properties.insert(key.name.to_owned(), schema);
                continue;
            };
            // A key's own description tells one meaning from a list of several.
            match known.get("description").is_some() {
                true if *known == schema => {}
                true => *known = json!({ "anyOf": [known.take(), schema] }),
                false => known["anyOf"].as_array_mut().expect("several meanings are a list").push(schema),
            }
        }
        properties
    }

    fn kind(&mut self, kind: &'static Kind) -> Value {
        match kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Label | Kind::Scalar => json!({ "type": ["string", "number", "boolean"] }),
            Kind::Int { min: i64::MIN, max: i64::MAX } => json!({ "type": "integer" }),
            Kind::Int { min, max: i64::MAX } => json!({ "type": "integer", "minimum": min }),
            Kind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Kind::Number => json!({ "type": "number" }),
            Kind::Any | Kind::Shown => json!({}),
            Kind::Reference { .. } => {
                json!({ "type": "string", "pattern": "^(azureml:|file:|/subscriptions/).+|^serverless$" })
            }
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Words(words) => json!({ "enum": words }),
            Kind::Labels => {
                json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "null"] } })
            }
            Kind::Arguments => {
                json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
            }
            Kind::Map => json!({ "type": "object" }),
            Kind::Object(inner) => self.pointer(inner),
            Kind::MapOf(inner) => json!({ "type": "object", "additionalProperties": or_null(self.kind(inner), inner) }),
            Kind::List(inner) => json!({ "type": "array", "items": self.kind(inner) }),
            Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(|kind| self.kind(kind)).collect::<Vec<_>>() }),
        }
    }
}

/// What a variant needs beside the rest.
fn rule(object: &Object, variant: &Variant) -> Option<Value> {
    let required: Vec<_> = variant.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    if required.is_empty() {
        return None;
    }
    let named = json!({ "properties": { "type": { "const": variant.word } }, "required": ["type"] });
    let condition = match object.otherwise == Some(variant.word) {
        true => json!({ "anyOf": [named, { "not": { "required": ["type"] } }] }),
        false => named,
    };
    Some(json!({ "if": condition, "then": { "required": required } }))
}

/// A name with nothing after it stands for the defaults, where every key has one.
fn or_null(schema: Value, kind: &Kind) -> Value {
    match may_be_empty(kind) {
        true => json!({ "anyOf": [schema, { "type": "null" }] }),
        false => schema,
    }
}
