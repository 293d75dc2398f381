//! Registries: assets that workspaces share.

/// The owner under which a registry's assets are kept; no workspace can have such a name.
pub(crate) fn owner(registry: &str) -> String {
    format!("@{registry}")
}
