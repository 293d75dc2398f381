//! Registered models and their versions as filters and orders see them.

use super::{Model, Version};
use domain::tracking::{Entity, Field, Fields};

/// A registered model as filters and orders see it.
pub(in crate::http::mlflow) struct SeenModel<'a>(pub(in crate::http::mlflow) &'a Model);

impl Fields for SeenModel<'_> {
    fn any(&self, entity: Entity, key: &str, test: &mut dyn FnMut(Field<'_>) -> bool) -> bool {
        match (entity, key) {
            (Entity::Attribute, "name") => test(Field::Text(self.0.name())),
            (Entity::Attribute, "last_updated_timestamp") => test(Field::Integer(self.0.row.changed_at.0)),
            (Entity::Tag, key) => self.0.tags().get(key).is_some_and(|value| test(Field::Text(value))),
            _ => false,
        }
    }
}

/// A version as filters and orders see it.
pub(in crate::http::mlflow) struct SeenVersion<'a>(pub(in crate::http::mlflow) &'a Version);

impl Fields for SeenVersion<'_> {
    fn any(&self, entity: Entity, key: &str, test: &mut dyn FnMut(Field<'_>) -> bool) -> bool {
        let row = &self.0.row;
        match (entity, key) {
            (Entity::Attribute, "name") => test(Field::Text(&row.key.name)),
            (Entity::Attribute, "version_number") => {
                row.key.version.parse().is_ok_and(|number| test(Field::Integer(number)))
            }
            (Entity::Attribute, "run_id") => self.0.run_id().is_some_and(|id| test(Field::Text(&id))),
            (Entity::Attribute, "source_path") => test(Field::Text(&self.0.source())),
            (Entity::Attribute, "creation_timestamp") => test(Field::Integer(row.created_at.0)),
            (Entity::Attribute, "last_updated_timestamp") => test(Field::Integer(row.changed_at.0)),
            (Entity::Tag, key) => self.0.tags().get(key).is_some_and(|value| test(Field::Text(value))),
            _ => false,
        }
    }
}
