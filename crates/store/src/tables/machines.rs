//! Nodes of managed clusters, and the parts of attempts that belong to them.
//!
//! Invariants: a row is there before its machine is ordered, and goes after the machine is gone; the parts of an attempt are
//! given to machines all at once.

use crate::{Bell, Error, Row, Tx, tables::jobs::json};
use domain::{
    AttemptId, Resources, Timestamp,
    machine::{MachineFacts, PartFate, Standing},
};

#[derive(Debug, Clone, PartialEq)]
pub struct MachineRow {
    pub cluster: String,
    pub name: String,
    pub standing: Standing,
    pub reason: String,
    pub ordered: Resources,
    pub facts: MachineFacts,
    /// Empty until it has joined.
    pub joined: String,
    pub created_at: Timestamp,
    pub since: Timestamp,
    /// `None` before it was first heard of.
    pub seen_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MachinePart {
    pub machine: String,
    pub attempt: AttemptId,
    pub part: u32,
    /// `None` until its machine has told of it.
    pub fate: Option<PartFate>,
}

const MACHINE: &str = "cluster, name, standing, reason, ordered, facts, joined, created_at, since, seen_at";

impl Tx<'_> {
    pub fn machines(&mut self, cluster: &str) -> Result<Vec<MachineRow>, Error> {
        let sql = format!("select {MACHINE} from machines where cluster = ?1 order by created_at, name");
        self.fetch(&sql, &[cluster.into()])?.into_iter().map(machine_of).collect()
    }

    pub fn machine(&mut self, cluster: &str, name: &str) -> Result<Option<MachineRow>, Error> {
        let sql = format!("select {MACHINE} from machines where cluster = ?1 and name = ?2");
        self.fetch_one(&sql, &[cluster.into(), name.into()])?.map(machine_of).transpose()
    }

    /// Writes a machine down as it is now.
    pub fn put_machine(&mut self, row: &MachineRow) -> Result<(), Error> {
        self.exec(
            "insert into machines (cluster, name, standing, reason, ordered, facts, joined, created_at, since, seen_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) on conflict (cluster, name) do update set \
             standing = ?3, reason = ?4, facts = ?6, joined = ?7, since = ?9, seen_at = ?10",
            &[
                row.cluster.as_str().into(),
                row.name.as_str().into(),
                row.standing.as_str().into(),
                row.reason.as_str().into(),
                json(&row.ordered)?.into(),
                json(&row.facts)?.into(),
                row.joined.as_str().into(),
                row.created_at.into(),
                row.since.into(),
                row.seen_at.unwrap_or(Timestamp(0)).into(),
            ],
        )?;
        self.ring(Bell::Machines);
        Ok(())
    }

    /// Notes that a machine was heard of, and nothing else.
    pub fn see_machine(&mut self, cluster: &str, name: &str, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "update machines set seen_at = ?3 where cluster = ?1 and name = ?2",
            &[cluster.into(), name.into(), now.into()],
        )?;
        Ok(())
    }

    pub fn drop_machine(&mut self, cluster: &str, name: &str) -> Result<(), Error> {
        self.exec("delete from machines where cluster = ?1 and name = ?2", &[cluster.into(), name.into()])?;
        self.drop_kept(cluster, name)?;
        self.ring(Bell::Machines);
        Ok(())
    }

    /// The parts of attempts on a cluster's machines.
    pub fn machine_parts(&mut self, cluster: &str) -> Result<Vec<MachinePart>, Error> {
        let sql = "select machine, attempt, part, fate from machine_parts where cluster = ?1 order by attempt, part";
        self.fetch(sql, &[cluster.into()])?.into_iter().map(part_of).collect()
    }

    /// The same of one machine.
    pub fn parts_of_machine(&mut self, cluster: &str, machine: &str) -> Result<Vec<MachinePart>, Error> {
        let sql = "select machine, attempt, part, fate from machine_parts where cluster = ?1 and machine = ?2 \
                   order by attempt, part";
        self.fetch(sql, &[cluster.into(), machine.into()])?.into_iter().map(part_of).collect()
    }

    /// Gives the parts of an attempt to machines, from 0 on.
    pub fn assign_parts(&mut self, cluster: &str, attempt: &AttemptId, machines: &[String]) -> Result<(), Error> {
        for (part, machine) in (0_i64..).zip(machines) {
            self.exec(
                "insert into machine_parts (cluster, machine, attempt, part) values (?1, ?2, ?3, ?4)",
                &[cluster.into(), machine.as_str().into(), attempt.as_str().into(), part.into()],
            )?;
        }
        self.ring(Bell::Machines);
        Ok(())
    }

    /// Gives an attempt to a machine whose own agent runs it. Rings for nobody: whoever gives it knows who waits.
    pub fn give_whole(&mut self, cluster: &str, attempt: &AttemptId, machine: &str) -> Result<(), Error> {
        self.exec(
            "insert into machine_parts (cluster, machine, attempt, part, fate) values (?1, ?2, ?3, 0, ?4)",
            &[cluster.into(), machine.into(), attempt.as_str().into(), json(&PartFate::Own)?.into()],
        )
        .map(drop)
    }

    /// Takes one from the machine that had it so. Rings for nobody.
    pub fn take_whole(&mut self, attempt: &AttemptId) -> Result<(), Error> {
        self.exec("delete from machine_parts where attempt = ?1 and part = 0", &[attempt.as_str().into()]).map(drop)
    }

    /// Whether a machine's own agent has an attempt, or is about to.
    pub fn is_given_whole(&mut self, attempt: &AttemptId) -> Result<bool, Error> {
        let sql = "select 1 from machine_parts where attempt = ?1 and part = 0 and fate = ?2";
        Ok(self.fetch_one(sql, &[attempt.as_str().into(), json(&PartFate::Own)?.into()])?.is_some())
    }

    /// Writes down what became of a part. What has left or gone stays so.
    pub fn put_fate(&mut self, attempt: &AttemptId, part: u32, fate: &PartFate) -> Result<(), Error> {
        self.exec(
            "update machine_parts set fate = ?3 where attempt = ?1 and part = ?2 \
             and (fate is null or (fate not like '{\"is\":\"left\"%' and fate not like '{\"is\":\"gone\"%'))",
            &[attempt.as_str().into(), i64::from(part).into(), json(fate)?.into()],
        )?;
        self.ring(Bell::Machines);
        Ok(())
    }

    pub fn drop_parts(&mut self, cluster: &str, attempt: &AttemptId) -> Result<(), Error> {
        self.exec(
            "delete from machine_parts where cluster = ?1 and attempt = ?2",
            &[cluster.into(), attempt.as_str().into()],
        )?;
        self.ring(Bell::Machines);
        Ok(())
    }
}

fn machine_of(mut row: Row) -> Result<MachineRow, Error> {
    let standing = row.text(2)?;
    let seen_at = row.int(9)?;
    Ok(MachineRow {
        cluster: row.text(0)?,
        name: row.text(1)?,
        standing: Standing::parse(&standing)
            .ok_or_else(|| Error::Decode(format!("`{standing}` is not the standing of a machine")))?,
        reason: row.text(3)?,
        ordered: row.json(4)?,
        facts: row.json(5)?,
        joined: row.text(6)?,
        created_at: Timestamp(row.int(7)?),
        since: Timestamp(row.int(8)?),
        seen_at: (seen_at > 0).then_some(Timestamp(seen_at)),
    })
}

fn part_of(mut row: Row) -> Result<MachinePart, Error> {
    let fate = row.maybe_text(3)?;
    Ok(MachinePart {
        machine: row.text(0)?,
        attempt: AttemptId::parse(&row.text(1)?).map_err(|error| Error::Decode(error.to_string()))?,
        part: u32::try_from(row.int(2)?).unwrap_or(0),
        fate: fate
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| Error::Decode(error.to_string()))?,
    })
}
