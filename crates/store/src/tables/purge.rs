//! Removing for good what was deleted long ago: runs, logged models, experiments, and which folders go with them.
//!
//! Invariants: jobs and their runs are never removed; nothing is removed whose files an asset refers to; a row and the
//! note that its folder is to go are one transaction, so that no crash leaves a folder nobody knows of.

use crate::{Error, Tx};
use domain::Timestamp;
use std::collections::HashSet;

/// How many runs, and how many models, are removed in one transaction.
const AT_ONCE: i64 = 200;
/// Folders of the artifact container: of a run, of a logged model.
pub(super) const RUN_FOLDER: &str = "ExperimentRun/dcid.";
const MODEL_FOLDER: &str = "LoggedModels/";

/// What one pass removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    pub experiments: usize,
    pub runs: usize,
    pub models: usize,
    /// Left alone because an asset refers to their files.
    pub kept: usize,
}

impl Purged {
    pub(crate) fn add(&mut self, more: Purged) {
        self.experiments += more.experiments;
        self.runs += more.runs;
        self.models += more.models;
        self.kept += more.kept;
    }
}

/// Where a pass goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    run: i64,
    model: i64,
}

/// What has a row and a folder.
struct Kind {
    folder: &'static str,
    /// Sequence number, workspace and name of those deleted before ?1 that come after ?2, ?3 at most.
    deleted: &'static str,
    remove: fn(&mut Tx<'_>, i64) -> Result<(), Error>,
}

const RUNS: Kind = Kind {
    folder: RUN_FOLDER,
    deleted: "select seq, workspace, run_id from runs \
              where deleted_at <= ?1 and job_seq is null and seq > ?2 order by seq limit ?3",
    remove: |tx, run| tx.purge_run(run),
};

/// Models that were deleted themselves, and those of experiments that were.
const MODELS: Kind = Kind {
    folder: MODEL_FOLDER,
    deleted: "select m.seq, m.workspace, m.model_id from logged_models m join experiments e on e.seq = m.experiment \
              where ((m.deleted = 1 and m.changed_at <= ?1) or (e.deleted = 1 and e.changed_at <= ?1)) \
              and m.seq > ?2 order by m.seq limit ?3",
    remove: |tx, model| {
        tx.exec("delete from model_points where model = ?1", &[model.into()])?;
        tx.exec("delete from logged_models where seq = ?1", &[model.into()]).map(drop)
    },
};

impl Tx<'_> {
    /// Removes some of what was deleted before `before`; where to go on, if there may be more.
    pub(crate) fn purge_some(
        &mut self,
        before: Timestamp,
        from: Place,
        purged: &mut Purged,
    ) -> Result<Option<Place>, Error> {
        let referred = self.referred_folders()?;
        let (run, runs, gone) = self.purge_each(&RUNS, (before, from.run), &referred, purged)?;
        purged.runs += gone;
        let (model, models, gone) = self.purge_each(&MODELS, (before, from.model), &referred, purged)?;
        purged.models += gone;
        if runs == AT_ONCE || models == AT_ONCE {
            return Ok(Some(Place { run, model }));
        }
        self.purge_experiments(before, purged)?;
        Ok(None)
    }

    /// Removes some of a kind; the last row looked at, and how many were looked at and removed.
    fn purge_each(
        &mut self,
        kind: &Kind,
        (before, after): (Timestamp, i64),
        referred: &HashSet<String>,
        purged: &mut Purged,
    ) -> Result<(i64, i64, usize), Error> {
        let (mut last, mut count, mut gone) = (after, 0, 0);
        for mut row in self.fetch(kind.deleted, &[before.into(), after.into(), AT_ONCE.into()])? {
            (last, count) = (row.int(0)?, count + 1);
            let (workspace, folder) = (row.text(1)?, format!("{}{}", kind.folder, row.text(2)?));
            if referred.contains(&format!("{workspace}/{folder}")) {
                purged.kept += 1;
                continue;
            }
            (kind.remove)(self, last)?;
            self.leave(&workspace, &folder)?;
            gone += 1;
        }
        Ok((last, count, gone))
    }

    /// Experiments that hold nothing any more. Their numbers stay spent.
    fn purge_experiments(&mut self, before: Timestamp, purged: &mut Purged) -> Result<(), Error> {
        let sql = "select seq, workspace, number from experiments e where deleted = 1 and changed_at <= ?1 \
                   and not exists (select 1 from runs where experiment = e.seq) \
                   and not exists (select 1 from logged_models where experiment = e.seq)";
        for mut row in self.fetch(sql, &[before.into()])? {
            let (seq, workspace, number) = (row.int(0)?, row.text(1)?, row.int(2)?);
            self.exec("delete from experiment_tags where experiment = ?1", &[seq.into()])?;
            self.exec("delete from experiments where seq = ?1", &[seq.into()])?;
            self.exec(
                "insert into spent_numbers (workspace, number) values (?1, ?2) on conflict (workspace) do update \
                 set number = case when spent_numbers.number < ?2 then ?2 else spent_numbers.number end",
                &[workspace.into(), number.into()],
            )?;
            purged.experiments += 1;
        }
        Ok(())
    }

    /// Folders of runs and logged models that an asset refers to, as `workspace/folder`.
    fn referred_folders(&mut self) -> Result<HashSet<String>, Error> {
        let mut referred = HashSet::new();
        for folder in [RUN_FOLDER, MODEL_FOLDER] {
            let sql = "select workspace, body from assets where body like ?1";
            for mut row in self.fetch(sql, &[format!("%{folder}%").into()])? {
                let workspace = row.text(0)?;
                referred.extend(names_after(folder, &row.text(1)?).map(|name| format!("{workspace}/{folder}{name}")));
            }
        }
        Ok(referred)
    }

    pub(super) fn leave(&mut self, workspace: &str, path: &str) -> Result<(), Error> {
        self.exec(
            "insert into leftovers (workspace, path) values (?1, ?2) on conflict do nothing",
            &[workspace.into(), path.into()],
        )?;
        Ok(())
    }

    /// Folders that are still to go from the artifact container, as workspace and path; not those of a run that was
    /// brought in again under its old id.
    pub(crate) fn leftovers(&mut self) -> Result<Vec<(String, String)>, Error> {
        let sql = "select workspace, path from leftovers l where not exists \
                   (select 1 from runs r where r.workspace = l.workspace and r.run_id = substr(l.path, ?1)) \
                   order by workspace, path";
        let id_at = i64::try_from(RUN_FOLDER.len() + 1).unwrap_or(i64::MAX);
        let rows = self.fetch(sql, &[id_at.into()])?;
        rows.into_iter().map(|mut row| Ok((row.text(0)?, row.text(1)?))).collect()
    }

    /// Notes that a folder is gone, and forgets what was noted of its files.
    pub(crate) fn delete_leftover(&mut self, workspace: &str, path: &str) -> Result<(), Error> {
        self.exec(
            "delete from blob_metadata where workspace = ?1 and container = ?2 and substr(path, 1, length(?3)) = ?3",
            &[workspace.into(), crate::files::ARTIFACT_CONTAINER.into(), format!("{path}/").into()],
        )?;
        self.exec("delete from leftovers where workspace = ?1 and path = ?2", &[workspace.into(), path.into()])?;
        Ok(())
    }
}

/// The names that follow a folder in a text.
fn names_after<'t>(folder: &'t str, text: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(folder).map(move |(at, _)| {
        let rest = &text[at + folder.len()..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
        &rest[..end]
    })
}
