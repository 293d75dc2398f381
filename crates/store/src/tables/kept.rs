//! Data near compute: how much was moved for jobs, and what nodes keep of it.

use crate::{Error, Row, Tx};
use domain::{
    AttemptId,
    kept::{Kept, Moved},
};

/// A node that keeps something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    pub cluster: String,
    pub node: String,
    pub bytes: u64,
    pub digest: String,
}

impl Tx<'_> {
    /// Writes down what a part of an attempt was given; false if it was told before.
    pub fn add_moved(&mut self, attempt: &AttemptId, part: u32, moved: &Moved) -> Result<bool, Error> {
        let Some((seq, number)) = attempt.parts() else { return Ok(false) };
        let count = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX).into();
        let added = self.exec(
            "insert into data_moved (job_seq, attempt, part, from_store, from_peers, from_cache) \
             values (?1, ?2, ?3, ?4, ?5, ?6) on conflict (job_seq, attempt, part) do nothing",
            &[
                seq.into(),
                i64::from(number).into(),
                i64::from(part).into(),
                count(moved.store),
                count(moved.peers),
                count(moved.cache),
            ],
        )?;
        Ok(added > 0)
    }

    /// What all attempts of a job were given.
    pub fn moved(&mut self, seq: i64) -> Result<Moved, Error> {
        let sql = "select from_store, from_peers, from_cache from data_moved where job_seq = ?1";
        let mut all = Moved::default();
        for mut row in self.fetch(sql, &[seq.into()])? {
            let one = Moved { store: bytes(&mut row, 0)?, peers: bytes(&mut row, 1)?, cache: bytes(&mut row, 2)? };
            all.add(&one);
        }
        Ok(all)
    }

    /// What a node keeps now, in place of what it told before.
    pub fn put_kept(&mut self, cluster: &str, node: &str, kept: &[Kept]) -> Result<(), Error> {
        self.drop_kept(cluster, node)?;
        for one in kept {
            self.exec(
                "insert into data_kept (cluster, node, entry, source, bytes, digest) values (?1, ?2, ?3, ?4, ?5, ?6) \
                 on conflict (cluster, node, entry) do nothing",
                &[
                    cluster.into(),
                    node.into(),
                    one.key.as_str().into(),
                    one.source.as_str().into(),
                    i64::try_from(one.bytes).unwrap_or(i64::MAX).into(),
                    one.sum.as_str().into(),
                ],
            )?;
        }
        Ok(())
    }

    pub fn drop_kept(&mut self, cluster: &str, node: &str) -> Result<(), Error> {
        self.exec("delete from data_kept where cluster = ?1 and node = ?2", &[cluster.into(), node.into()])?;
        Ok(())
    }

    /// Nodes of a cluster that keep an entry.
    pub fn keepers(&mut self, cluster: &str, entry: &str) -> Result<Vec<Keeper>, Error> {
        let sql = "select cluster, node, bytes, digest from data_kept where cluster = ?1 and entry = ?2 order by node";
        self.fetch(sql, &[cluster.into(), entry.into()])?.into_iter().map(keeper).collect()
    }

    /// Nodes of any cluster that keep what was fetched from an address.
    pub fn keepers_of(&mut self, source: &str) -> Result<Vec<Keeper>, Error> {
        let sql = "select cluster, node, bytes, digest from data_kept where source = ?1 order by cluster, node";
        self.fetch(sql, &[source.into()])?.into_iter().map(keeper).collect()
    }

    /// Everything that a cluster's nodes keep: node and entry.
    pub fn kept_on(&mut self, cluster: &str) -> Result<Vec<(String, Kept)>, Error> {
        let sql =
            "select node, entry, source, bytes, digest from data_kept where cluster = ?1 order by node, source, entry";
        let one = |mut row: Row| {
            let kept = Kept { key: row.text(1)?, source: row.text(2)?, bytes: bytes(&mut row, 3)?, sum: row.text(4)? };
            Ok((row.text(0)?, kept))
        };
        self.fetch(sql, &[cluster.into()])?.into_iter().map(one).collect()
    }
}

fn keeper(mut row: Row) -> Result<Keeper, Error> {
    Ok(Keeper { cluster: row.text(0)?, node: row.text(1)?, bytes: bytes(&mut row, 2)?, digest: row.text(3)? })
}

fn bytes(row: &mut Row, at: usize) -> Result<u64, Error> {
    Ok(u64::try_from(row.int(at)?).unwrap_or(0))
}
