//! Users and programs that may call the server, and their roles.
//!
//! Invariant: a secret is kept as a digest; what was given out once cannot be read back.

use crate::{Bell, Error, Row, Tx};
use domain::{Role, Timestamp};
use std::collections::BTreeMap;

/// Someone who may call.
#[derive(Debug, Clone)]
pub struct PrincipalRow {
    pub id: String,
    pub name: String,
    /// SHA-256 of the secret, in hexadecimal.
    pub digest: String,
    pub created_by: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// By workspace; [`domain::access::EVERYWHERE`] for all.
    pub roles: BTreeMap<String, Role>,
}

impl Tx<'_> {
    /// Everyone, with their roles, in the order they came.
    pub fn principals(&mut self) -> Result<Vec<PrincipalRow>, Error> {
        let sql = "select id, name, secret, created_by, created_at, expires_at, revoked_at from principals order by created_at, id";
        let mut all: Vec<PrincipalRow> = self.fetch(sql, &[])?.into_iter().map(row_of).collect::<Result<_, _>>()?;
        for mut row in self.fetch("select principal, workspace, role from roles", &[])? {
            let (id, workspace, word) = (row.text(0)?, row.text(1)?, row.text(2)?);
            let role = Role::parse(&word).ok_or_else(|| Error::Decode(format!("role `{word}`")))?;
            if let Some(principal) = all.iter_mut().find(|principal| principal.id == id) {
                principal.roles.insert(workspace, role);
            }
        }
        Ok(all)
    }

    pub fn insert_principal(&mut self, row: &PrincipalRow) -> Result<(), Error> {
        self.exec(
            "insert into principals (id, name, secret, created_by, created_at, expires_at) values (?1, ?2, ?3, ?4, ?5, ?6)",
            &[
                row.id.as_str().into(),
                row.name.as_str().into(),
                row.digest.as_str().into(),
                row.created_by.as_str().into(),
                row.created_at.into(),
                row.expires_at.map(|at| at.0).into(),
            ],
        )?;
        for (workspace, role) in &row.roles {
            self.grant(&row.id, workspace, *role)?;
        }
        Ok(())
    }

    pub fn grant(&mut self, principal: &str, workspace: &str, role: Role) -> Result<(), Error> {
        self.exec(
            "insert into roles (principal, workspace, role) values (?1, ?2, ?3) \
             on conflict (principal, workspace) do update set role = ?3",
            &[principal.into(), workspace.into(), role.as_str().into()],
        )?;
        // Who may call an endpoint is part of its routes; so below.
        self.ring(Bell::Serving);
        Ok(())
    }

    /// Takes a role away; whether there was one.
    pub fn ungrant(&mut self, principal: &str, workspace: &str) -> Result<bool, Error> {
        let gone = self
            .exec("delete from roles where principal = ?1 and workspace = ?2", &[principal.into(), workspace.into()])?;
        self.ring(Bell::Serving);
        Ok(gone > 0)
    }

    /// Ends a principal's access for good; the record stays, for the audit.
    pub fn revoke_principal(&mut self, id: &str, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "update principals set revoked_at = ?2 where id = ?1 and revoked_at is null",
            &[id.into(), now.into()],
        )?;
        self.ring(Bell::Serving);
        Ok(())
    }
}

fn row_of(mut row: Row) -> Result<PrincipalRow, Error> {
    Ok(PrincipalRow {
        id: row.text(0)?,
        name: row.text(1)?,
        digest: row.text(2)?,
        created_by: row.text(3)?,
        created_at: Timestamp(row.int(4)?),
        expires_at: row.maybe_int(5)?.map(Timestamp),
        revoked_at: row.maybe_int(6)?.map(Timestamp),
        roles: BTreeMap::new(),
    })
}
