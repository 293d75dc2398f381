//! Assets: code, data, models, environments and components, by name and version.
//!
//! Invariant: a version's content never changes; only its tags, description, properties and archive mark do.

use crate::{Error, Row, Tx};
use domain::Timestamp;

/// Where an asset stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetKey {
    pub workspace: String,
    /// The collection in the resource tree: `codes`, `data`, `models`, `environments`, `components`.
    pub kind: String,
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone)]
pub struct AssetRow {
    pub seq: i64,
    pub key: AssetKey,
    pub body: String,
    pub archived: bool,
    pub created_by: String,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

/// Which versions of a name, and from where.
#[derive(Debug, Clone)]
pub struct VersionFilter {
    pub archived: Option<bool>,
    pub oldest_first: bool,
    /// The `seq` of the last row seen.
    pub after: Option<i64>,
    pub limit: i64,
}

impl AssetRow {
    /// Made for one job, and not to be listed.
    pub fn anonymous(&self) -> bool {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        body.get("isAnonymous").and_then(serde_json::Value::as_bool).unwrap_or(false)
    }
}

const ROW: &str = "seq, workspace, kind, name, version, body, archived, created_by, created_at, changed_at";

impl Tx<'_> {
    /// Adds a version; `Exists` when it is there already.
    pub fn insert_asset(
        &mut self,
        key: &AssetKey,
        body: &str,
        hash: Option<&str>,
        by: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.exec(
            "insert into assets (workspace, kind, name, version, body, hash, created_by, created_at, changed_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)",
            &[
                key.workspace.as_str().into(),
                key.kind.as_str().into(),
                key.name.as_str().into(),
                key.version.as_str().into(),
                body.into(),
                hash.into(),
                by.into(),
                now.into(),
            ],
        )?;
        self.tell_asset_added(key, body, now)
    }

    pub fn put_asset(&mut self, seq: i64, body: &str, archived: bool, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "update assets set body = ?2, archived = ?3, changed_at = ?4 where seq = ?1",
            &[seq.into(), body.into(), archived.into(), now.into()],
        )?;
        Ok(())
    }

    /// Gives all versions of a name another name, which must be free.
    pub fn rename_assets(
        &mut self,
        workspace: &str,
        kind: &str,
        from: &str,
        to: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.exec(
            "update assets set name = ?4, changed_at = ?5 where workspace = ?1 and kind = ?2 and name = ?3",
            &[workspace.into(), kind.into(), from.into(), to.into(), now.into()],
        )?;
        Ok(())
    }

    pub fn delete_asset(&mut self, seq: i64) -> Result<(), Error> {
        self.exec("delete from assets where seq = ?1", &[seq.into()])?;
        Ok(())
    }

    pub fn asset(&mut self, key: &AssetKey) -> Result<Option<AssetRow>, Error> {
        let sql = format!("select {ROW} from assets where workspace = ?1 and kind = ?2 and name = ?3 and version = ?4");
        let values = [&key.workspace, &key.kind, &key.name, &key.version].map(|text| text.as_str().into());
        self.fetch_one(&sql, &values)?.map(row_of).transpose()
    }

    /// The most recently created version that is not archived: what `@latest` means.
    pub fn latest_asset(&mut self, workspace: &str, kind: &str, name: &str) -> Result<Option<AssetRow>, Error> {
        let sql = format!(
            "select {ROW} from assets where workspace = ?1 and kind = ?2 and name = ?3 order by archived, seq desc limit 1"
        );
        self.fetch_one(&sql, &[workspace.into(), kind.into(), name.into()])?.map(row_of).transpose()
    }

    /// All versions of one name, newest first.
    pub fn versions(
        &mut self,
        workspace: &str,
        kind: &str,
        name: &str,
        archived: Option<bool>,
    ) -> Result<Vec<AssetRow>, Error> {
        let all = VersionFilter { archived, oldest_first: false, after: None, limit: i64::MAX };
        self.versions_page(workspace, kind, name, &all)
    }

    /// Versions of one name in the order they were made, from a place on.
    pub fn versions_page(
        &mut self,
        workspace: &str,
        kind: &str,
        name: &str,
        filter: &VersionFilter,
    ) -> Result<Vec<AssetRow>, Error> {
        let (beyond, order) = if filter.oldest_first { (">", "") } else { ("<", " desc") };
        let sql = format!(
            "select {ROW} from assets where workspace = ?1 and kind = ?2 and name = ?3 and (archived = ?4 or ?4 is null) \
             and (seq {beyond} ?5 or ?5 is null) order by seq{order} limit ?6"
        );
        let values = [
            workspace.into(),
            kind.into(),
            name.into(),
            filter.archived.into(),
            filter.after.into(),
            filter.limit.into(),
        ];
        self.fetch(&sql, &values)?.into_iter().map(row_of).collect()
    }

    /// The names of a kind after one of them, archived and anonymous ones too.
    pub fn names_page(&mut self, workspace: &str, kind: &str, after: &str, limit: i64) -> Result<Vec<String>, Error> {
        let sql =
            "select distinct name from assets where workspace = ?1 and kind = ?2 and name > ?3 order by name limit ?4";
        let rows = self.fetch(sql, &[workspace.into(), kind.into(), after.into(), limit.into()])?;
        rows.into_iter().map(|mut row| row.text(0)).collect()
    }

    /// The latest version of every name, by name. Anonymous assets stay out of sight.
    pub fn asset_heads(&mut self, workspace: &str, kind: &str, archived: Option<bool>) -> Result<Vec<AssetRow>, Error> {
        let mut heads = Vec::new();
        for name in self.names_page(workspace, kind, "", i64::MAX)? {
            let head = self.latest_asset(workspace, kind, &name)?;
            heads.extend(head.filter(|row| !row.anonymous() && archived.is_none_or(|wanted| row.archived == wanted)));
        }
        Ok(heads)
    }

    pub fn asset_by_hash(&mut self, workspace: &str, kind: &str, hash: &str) -> Result<Option<AssetRow>, Error> {
        let sql =
            format!("select {ROW} from assets where workspace = ?1 and kind = ?2 and hash = ?3 order by seq limit 1");
        self.fetch_one(&sql, &[workspace.into(), kind.into(), hash.into()])?.map(row_of).transpose()
    }

    /// The number after the highest whole-number version.
    pub fn next_version(&mut self, workspace: &str, kind: &str, name: &str) -> Result<i64, Error> {
        let versions = self.version_names(workspace, kind, name, i64::MAX)?;
        Ok(versions.iter().filter_map(|version| version.parse::<i64>().ok()).max().unwrap_or(0).saturating_add(1))
    }

    /// The versions of one name, newest first.
    pub fn version_names(&mut self, workspace: &str, kind: &str, name: &str, limit: i64) -> Result<Vec<String>, Error> {
        let sql =
            "select version from assets where workspace = ?1 and kind = ?2 and name = ?3 order by seq desc limit ?4";
        let rows = self.fetch(sql, &[workspace.into(), kind.into(), name.into(), limit.into()])?;
        rows.into_iter().map(|mut row| row.text(0)).collect()
    }

    pub fn asset_names(&mut self, workspace: &str, kind: &str) -> Result<Vec<String>, Error> {
        Ok(self.asset_heads(workspace, kind, Some(false))?.into_iter().map(|row| row.key.name).collect())
    }
}

fn row_of(mut row: Row) -> Result<AssetRow, Error> {
    Ok(AssetRow {
        seq: row.int(0)?,
        key: AssetKey { workspace: row.text(1)?, kind: row.text(2)?, name: row.text(3)?, version: row.text(4)? },
        body: row.text(5)?,
        archived: row.int(6)? != 0,
        created_by: row.text(7)?,
        created_at: Timestamp(row.int(8)?),
        changed_at: Timestamp(row.int(9)?),
    })
}
