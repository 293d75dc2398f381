//! Whether what a record refers to is there. A name that is not is told with those that are.

use crate::{
    app::is_here,
    http::{computes, registries},
};
use api::arm::{self, AssetRef, VersionRef};
use domain::{curated, spec::Mistake};
use store::{AssetKey, Tx};

/// What is looked up, and what was found wrong.
pub(crate) struct References<'t, 'c> {
    pub(crate) tx: &'t mut Tx<'c>,
    pub(crate) workspace: &'t str,
    pub(crate) bad: Vec<Mistake>,
}

impl References<'_, '_> {
    pub(crate) fn mistake(&mut self, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.bad.push(Mistake::new(key, message, fix));
    }

    /// An asset by id or short form. Addresses of plain data are taken as they are.
    pub(crate) fn asset(&mut self, at: &str, kind: &str, reference: &str) -> Result<(), store::Error> {
        if reference.contains("://") && !reference.contains("://registries/") {
            return Ok(());
        }
        let Some(parsed) = AssetRef::parse(kind, reference) else {
            let message = format!("`{reference}` is not a reference to one of the {kind}");
            self.mistake(at, message, "write a resource id, or `azureml:name:version`");
            return Ok(());
        };
        let (owner, name, version) = match &parsed {
            AssetRef::Here { workspace: named, name, version } => {
                let here = self.tx.workspace(self.workspace)?;
                if here.is_some_and(|row| !is_here(&row, named.as_deref())) {
                    let message = format!("`{reference}` is not of workspace `{}`", self.workspace);
                    self.mistake(at, message, "use what this workspace has, or what is shared in a registry");
                    return Ok(());
                }
                (self.workspace.to_owned(), name, version)
            }
            AssetRef::Registry { registry, name, version } => (registries::owner(registry), name, version),
        };
        let found = match version {
            VersionRef::Version(version) => {
                let key = AssetKey {
                    workspace: owner.clone(),
                    kind: kind.to_owned(),
                    name: name.clone(),
                    version: version.clone(),
                };
                self.tx.asset(&key)?.is_some()
            }
            VersionRef::Label(_) => self.tx.latest_asset(&owner, kind, name)?.is_some(),
        };
        let shipped = kind == "environments" && (curated::find(reference).or_else(|| curated::find(name))).is_some();
        if !found && !shipped {
            let known = self.known(&owner, kind, name)?;
            let noun = kind.strip_suffix('s').unwrap_or(kind);
            self.mistake(
                at,
                format!("there is no {noun} `{parsed}`{known}"),
                "create it first, or correct the reference",
            );
        }
        Ok(())
    }

    /// A compute target of any kind.
    pub(crate) fn compute(&mut self, at: &str, reference: &str) -> Result<(), store::Error> {
        let name = arm::reference::compute_name(reference);
        if name.eq_ignore_ascii_case(computes::LOCAL) || self.tx.compute(self.workspace, &name)?.is_some() {
            return Ok(());
        }
        let names = self.tx.computes(self.workspace)?.into_iter().map(|row| row.name).collect();
        let known = computes::with_local(names).join(", ");
        self.mistake(at, format!("there is no compute target `{name}` (there are: {known})"), "name one of these");
        Ok(())
    }

    /// What there is instead: versions of that name, or the names.
    fn known(&mut self, owner: &str, kind: &str, name: &str) -> Result<String, store::Error> {
        let versions = self.tx.version_names(owner, kind, name, 10)?;
        if !versions.is_empty() {
            return Ok(format!("; `{name}` has versions {}", versions.join(", ")));
        }
        let mut names = self.tx.asset_names(owner, kind)?;
        names.truncate(20);
        Ok(if names.is_empty() { String::new() } else { format!(" (there are: {})", names.join(", ")) })
    }
}
