//! Who is known to this server, kept at hand so that no request waits for the database to learn who calls.
//!
//! Invariant: a change is in the table before the answer to it is sent; whoever is revoked is refused from then on.

use domain::{Role, Timestamp, access::EVERYWHERE};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, RwLock},
};
use store::{PrincipalRow, Store};

/// Everyone, by id.
#[derive(Default)]
pub(crate) struct Principals(RwLock<HashMap<String, Arc<PrincipalRow>>>);

/// What someone may do where.
pub(crate) type Roles = BTreeMap<String, Role>;

impl Principals {
    /// Reads everyone anew.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), store::Error> {
        let all = store.look(|tx| tx.principals()).await?;
        let by_id = all.into_iter().map(|row| (row.id.clone(), Arc::new(row))).collect();
        *self.0.write().expect("nothing panics while it holds the table") = by_id;
        Ok(())
    }

    /// Someone whose access has neither ended nor been taken away.
    pub(crate) fn active(&self, id: &str, now: Timestamp) -> Option<Arc<PrincipalRow>> {
        let all = self.0.read().expect("nothing panics while it holds the table");
        all.get(id).filter(|row| !is_over(row, now)).cloned()
    }

    /// Whether there are people of this name, none of whom may submit work to a workspace now.
    pub(crate) fn have_lost(&self, name: &str, workspace: &str, now: Timestamp) -> bool {
        let all = self.0.read().expect("nothing panics while it holds the table");
        let mut named = all.values().filter(|row| row.name == name).peekable();
        let lost = |row: &Arc<PrincipalRow>| is_over(row, now) || !allow(&row.roles, workspace, Role::Contributor);
        named.peek().is_some() && named.all(lost)
    }

    /// The one whose id and secret these are.
    pub(crate) fn with_secret(&self, id: &str, secret: &str, now: Timestamp) -> Option<Arc<PrincipalRow>> {
        let row = self.active(id, now)?;
        (row.digest == digest(secret)).then_some(row)
    }
}

fn is_over(row: &PrincipalRow, now: Timestamp) -> bool {
    row.revoked_at.is_some() || row.expires_at.is_some_and(|at| at <= now)
}

/// What is kept of a secret. Secrets are long and random, so a plain digest cannot be searched; digests are compared,
/// so how far a wrong one matches cannot be measured.
pub(crate) fn digest(secret: &str) -> String {
    store::secrets::hex(ring::digest::digest(&ring::digest::SHA256, secret.as_bytes()).as_ref())
}

/// Whether `roles` hold `wanted` in `workspace`.
pub(crate) fn allow(roles: &Roles, workspace: &str, wanted: Role) -> bool {
    let here = |(name, role): (&String, &Role)| {
        (name == EVERYWHERE || name.eq_ignore_ascii_case(workspace)) && *role >= wanted
    };
    roles.iter().any(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_holds_in_its_workspace_and_a_role_everywhere_in_all() {
        let roles = |pairs: &[(&str, Role)]| pairs.iter().map(|(w, r)| ((*w).to_owned(), *r)).collect::<Roles>();
        let team = roles(&[("team", Role::Contributor), ("other", Role::Reader)]);
        assert!(allow(&team, "TEAM", Role::Contributor) && allow(&team, "team", Role::Reader));
        assert!(!allow(&team, "team", Role::Owner) && !allow(&team, "other", Role::Contributor));
        assert!(!allow(&team, "third", Role::Reader) && !allow(&team, EVERYWHERE, Role::Reader));
        assert!(allow(&roles(&[(EVERYWHERE, Role::Owner)]), "third", Role::Owner));
    }
}
