//! Where control groups are mounted, and where in them this process is.
//!
//! Invariant: only folders that exist are offered, so a namespace that hides our real place falls back to
//! the top of what is visible.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The place new groups are made in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// Folders to try in turn: our own group first, then its ancestors.
    V2 { candidates: Vec<PathBuf> },
    /// Our own group of each controller; equal where both are mounted together.
    V1 { cpu: PathBuf, memory: PathBuf },
}

impl Hierarchy {
    /// Version 1 wins where its controllers are mounted: a controller belongs to one version at a time.
    /// Looked up once: reading what is mounted costs a small job more than making its group.
    pub(super) fn own() -> Option<&'static Hierarchy> {
        static OWN: LazyLock<Option<Hierarchy>> = LazyLock::new(|| {
            let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
            let places = fs::read_to_string("/proc/self/cgroup").ok()?;
            locate(&mounts, &places, |path| path.is_dir())
        });
        OWN.as_ref()
    }
}

fn locate(mounts: &str, places: &str, exists: impl Fn(&Path) -> bool) -> Option<Hierarchy> {
    let v1 = |controller: &str| {
        let top = mounts.lines().filter_map(Mount::parse).find(|m| m.kind == "cgroup" && m.has(controller))?.at;
        let own = top.join(place_of(places, controller).trim_start_matches('/'));
        Some(if exists(&own) { own } else { top })
    };
    if let (Some(cpu), Some(memory)) = (v1("cpu"), v1("memory")) {
        return Some(Hierarchy::V1 { cpu, memory });
    }
    let top = mounts.lines().filter_map(Mount::parse).find(|m| m.kind == "cgroup2")?.at;
    let own = top.join(place_of(places, "").trim_start_matches('/'));
    let candidates: Vec<PathBuf> = own
        .ancestors()
        .take_while(|path| path.starts_with(&top))
        .filter(|path| exists(path))
        .map(Path::to_owned)
        .collect();
    (!candidates.is_empty()).then_some(Hierarchy::V2 { candidates })
}

struct Mount<'t> {
    at: PathBuf,
    kind: &'t str,
    options: &'t str,
}

impl<'t> Mount<'t> {
    /// `32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu`: optional fields end at the lone dash.
    fn parse(line: &'t str) -> Option<Mount<'t>> {
        let (before, after) = line.split_once(" - ")?;
        let mut tail = after.split(' ');
        let kind = tail.next()?;
        Some(Mount { at: before.split(' ').nth(4)?.into(), kind, options: tail.nth(1)? })
    }

    fn has(&self, controller: &str) -> bool {
        self.options.split(',').any(|option| option == controller)
    }
}

/// `4:memory:/some/group`; version 2 has the empty controller list.
fn place_of<'t>(places: &'t str, controller: &str) -> &'t str {
    let place = |line: &'t str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers.split(',').any(|name| name == controller).then(|| parts.next()).flatten()
    };
    places.lines().find_map(place).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEMD: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const SPLIT: &str = "32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                         35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n\
                         41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn version_2_offers_our_group_and_then_its_ancestors() {
        let found = locate(SYSTEMD, "0::/user.slice/app.slice/a.service\n", |path| !path.ends_with("user.slice"));
        let candidates =
            ["/sys/fs/cgroup/user.slice/app.slice/a.service", "/sys/fs/cgroup/user.slice/app.slice", "/sys/fs/cgroup"];
        assert_eq!(found, Some(Hierarchy::V2 { candidates: candidates.map(PathBuf::from).to_vec() }));
    }

    #[test]
    fn version_1_wins_where_its_controllers_are_mounted() {
        let found = locate(SPLIT, "4:memory:/a/b\n1:cpu,cpuacct:/hidden\n0::/\n", |path| !path.ends_with("hidden"));
        assert_eq!(found, Some(Hierarchy::V1 { cpu: "/cg/cpu,cpuacct".into(), memory: "/cg/memory/a/b".into() }));
    }

    #[test]
    fn a_machine_without_control_groups_has_none() {
        assert_eq!(locate("22 1 0:20 / /proc rw - proc proc rw\n", "", |_| true), None);
    }
}
