//! What a webhook may be told of: events of the model registry, in MLflow's words.
//!
//! An event is a kind of thing and what became of it, and only some pairs exist. Prompts are registered models that
//! carry a mark, and have events of their own.

use super::Bad;
use serde_json::{Value, json};

/// An event of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookEvent {
    ModelCreated,
    VersionCreated,
    VersionTagSet,
    VersionTagDeleted,
    AliasCreated,
    AliasDeleted,
    PromptCreated,
    PromptVersionCreated,
    PromptTagSet,
    PromptTagDeleted,
    PromptVersionTagSet,
    PromptVersionTagDeleted,
    PromptAliasCreated,
    PromptAliasDeleted,
}

use WebhookEvent::*;

/// Every event: of what, and what happened to it.
const TABLE: [(WebhookEvent, &str, &str); 14] = [
    (ModelCreated, "registered_model", "created"),
    (VersionCreated, "model_version", "created"),
    (VersionTagSet, "model_version_tag", "set"),
    (VersionTagDeleted, "model_version_tag", "deleted"),
    (AliasCreated, "model_version_alias", "created"),
    (AliasDeleted, "model_version_alias", "deleted"),
    (PromptCreated, "prompt", "created"),
    (PromptVersionCreated, "prompt_version", "created"),
    (PromptTagSet, "prompt_tag", "set"),
    (PromptTagDeleted, "prompt_tag", "deleted"),
    (PromptVersionTagSet, "prompt_version_tag", "set"),
    (PromptVersionTagDeleted, "prompt_version_tag", "deleted"),
    (PromptAliasCreated, "prompt_alias", "created"),
    (PromptAliasDeleted, "prompt_alias", "deleted"),
];

impl WebhookEvent {
    /// Reads `{"entity": "MODEL_VERSION", "action": "CREATED"}`.
    pub fn of_json(event: &Value) -> Result<WebhookEvent, Bad> {
        let word = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
        let (entity, action) = (word("entity"), word("action"));
        if let Some((known, ..)) = TABLE.iter().find(|(_, of, what)| *of == entity && *what == action) {
            return Ok(*known);
        }
        let actions: Vec<&str> = TABLE.iter().filter(|(_, of, _)| *of == entity).map(|(.., what)| *what).collect();
        Err(Bad::value(match actions.is_empty() {
            true => format!("Invalid entity '{entity}' of a webhook event: nothing here has such events"),
            false => format!("Invalid action '{action}' for entity '{entity}'. Valid actions are: {actions:?}"),
        }))
    }

    pub fn to_json(self) -> Value {
        json!({"entity": self.entity().to_uppercase(), "action": self.action().to_uppercase()})
    }

    pub fn entity(self) -> &'static str {
        self.row().1
    }

    pub fn action(self) -> &'static str {
        self.row().2
    }

    /// The same event of a prompt. Models have no events where their own tags change; prompts do.
    pub fn of_prompt(self) -> WebhookEvent {
        match self {
            ModelCreated => PromptCreated,
            VersionCreated => PromptVersionCreated,
            VersionTagSet => PromptVersionTagSet,
            VersionTagDeleted => PromptVersionTagDeleted,
            AliasCreated => PromptAliasCreated,
            AliasDeleted => PromptAliasDeleted,
            own => own,
        }
    }

    fn row(self) -> &'static (WebhookEvent, &'static str, &'static str) {
        TABLE.iter().find(|(event, ..)| *event == self).expect("the table has a row for each event")
    }

    /// What a test of a webhook sends in the place of what happened.
    pub fn example(self) -> Value {
        let name = if self.entity().starts_with("prompt") { "example_prompt" } else { "example_model" };
        let (key, tags) = ("example_key", json!({"example_key": "example_value"}));
        match self {
            ModelCreated | PromptCreated => json!({"name": name, "tags": tags, "description": "An example"}),
            VersionCreated => json!({
                "name": name, "version": "1", "source": "models:/123", "run_id": "abcd1234abcd5678", "tags": tags,
                "description": "An example version",
            }),
            PromptVersionCreated => json!({
                "name": name, "version": "1", "template": "Hello {{name}}!", "tags": tags,
                "description": "An example version",
            }),
            PromptTagSet => json!({"name": name, "key": key, "value": "example_value"}),
            PromptTagDeleted => json!({"name": name, "key": key}),
            VersionTagSet | PromptVersionTagSet => {
                json!({"name": name, "version": "1", "key": key, "value": "example_value"})
            }
            VersionTagDeleted | PromptVersionTagDeleted => json!({"name": name, "version": "1", "key": key}),
            AliasCreated | PromptAliasCreated => json!({"name": name, "alias": "example_alias", "version": "1"}),
            AliasDeleted | PromptAliasDeleted => json!({"name": name, "alias": "example_alias"}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_read_as_it_is_written() {
        for (event, ..) in TABLE {
            assert_eq!(WebhookEvent::of_json(&event.to_json()), Ok(event));
            assert!(event.example()["name"].is_string());
        }
    }

    #[test]
    fn a_pair_that_does_not_exist_is_refused_with_those_that_do() {
        let refused = |entity: &str, action: &str| {
            WebhookEvent::of_json(&json!({"entity": entity, "action": action})).unwrap_err().message
        };
        assert!(refused("REGISTERED_MODEL", "DELETED").contains(r#"["created"]"#));
        assert!(refused("BUDGET_POLICY", "EXCEEDED").contains("nothing here"));
        assert!(WebhookEvent::of_json(&json!("MODEL_VERSION")).is_err());
    }
}
