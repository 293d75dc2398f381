//! Nodes, when they were last heard of, and how loaded they were.

use crate::{Error, Tx, tables::jobs::json};
use domain::{
    Timestamp,
    report::{NodeFacts, Sample},
};

#[derive(Debug, Clone)]
pub struct NodeRow {
    pub facts: NodeFacts,
    pub seen_at: Timestamp,
}

impl Tx<'_> {
    /// Notes that a node was heard of; the facts it had before.
    pub fn see_node(&mut self, facts: &NodeFacts, now: Timestamp) -> Result<Option<NodeFacts>, Error> {
        let before = self.node(&facts.node)?;
        self.exec(
            "insert into nodes (name, boot_id, facts, seen_at) values (?1, ?2, ?3, ?4) \
             on conflict (name) do update set boot_id = ?2, facts = ?3, seen_at = ?4",
            &[facts.node.as_str().into(), facts.boot_id.as_str().into(), json(facts)?.into(), now.into()],
        )?;
        Ok(before.map(|row| row.facts))
    }

    pub fn node(&mut self, name: &str) -> Result<Option<NodeRow>, Error> {
        let row = self.fetch_one("select facts, seen_at from nodes where name = ?1", &[name.into()])?;
        row.map(|mut row| Ok(NodeRow { facts: row.json(0)?, seen_at: Timestamp(row.int(1)?) })).transpose()
    }

    pub fn nodes(&mut self) -> Result<Vec<NodeRow>, Error> {
        let rows = self.fetch("select facts, seen_at from nodes order by name", &[])?;
        rows.into_iter().map(|mut row| Ok(NodeRow { facts: row.json(0)?, seen_at: Timestamp(row.int(1)?) })).collect()
    }

    /// Adds readings and lets go of those older than `keep_from`.
    pub fn add_samples(&mut self, node: &str, samples: &[Sample], keep_from: Timestamp) -> Result<(), Error> {
        for sample in samples {
            self.exec(
                "insert into samples (node, at, body) values (?1, ?2, ?3) on conflict do nothing",
                &[node.into(), sample.at.into(), json(sample)?.into()],
            )?;
        }
        self.exec("delete from samples where node = ?1 and at < ?2", &[node.into(), keep_from.into()])?;
        Ok(())
    }

    /// Lets go of every reading older than `keep_from`.
    pub fn drop_samples(&mut self, keep_from: Timestamp) -> Result<(), Error> {
        self.exec("delete from samples where at < ?1", &[keep_from.into()])?;
        Ok(())
    }

    /// Readings between two instants, oldest first.
    pub fn samples(&mut self, node: &str, from: Timestamp, to: Timestamp) -> Result<Vec<Sample>, Error> {
        let rows = self.fetch(
            "select body from samples where node = ?1 and at >= ?2 and at <= ?3 order by at limit 20000",
            &[node.into(), from.into(), to.into()],
        )?;
        rows.into_iter().map(|mut row| row.json(0)).collect()
    }
}
