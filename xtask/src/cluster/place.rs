//! Where a cluster of some name lives: its folder, its addresses, the process that holds its namespaces.
//!
//! Everything here follows from the name alone, so `down` finds what a crashed `up` has left. Invariant: a process is
//! ended only if it is the holder, which its command line proves by naming this cluster's folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::shell::{self, Failed, Shell};

/// A cluster's name and all that follows from it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) name: String,
    folder: PathBuf,
}

/// A name that can stand in a path, a cgroup and a network namespace.
pub(super) fn name(text: &str) -> Result<String, Failed> {
    let fits = !text.is_empty() && text.len() <= 32;
    if fits && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return Ok(text.to_owned());
    }
    Err(Failed::Usage(format!("`{text}` is no name for a cluster: 1 to 32 of a-z, 0-9 and `-`")))
}

impl Place {
    pub(super) fn named(name: &str) -> Place {
        Place { name: name.to_owned(), folder: shell::cache_dir().join("cluster").join(name) }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.file(&format!("secrets/{user}.kubeconfig"))
    }

    /// This machine's end of the link.
    pub(super) fn host(&self) -> String {
        self.address(192, 1)
    }

    /// The cluster's end of the link, where its API server listens.
    pub(super) fn inside(&self) -> String {
        self.address(192, 2)
    }

    /// The range pods get their addresses from; this machine has a route to it.
    pub(super) fn pods(&self) -> String {
        format!("{}/24", self.address(208, 0))
    }

    fn address(&self, block: u32, last: u32) -> String {
        let hash = self.hash();
        format!("10.{}.{}.{last}", block + (hash >> 8) % 16, hash % 256)
    }

    pub(super) fn link(&self) -> String {
        format!("pg{:08x}", self.hash())
    }

    pub(super) fn netns(&self) -> String {
        format!("peregrine-{}", self.name)
    }

    pub(super) fn cgroup(&self) -> String {
        format!("/peregrine-{}", self.name)
    }

    /// FNV-1a: the same on every machine and in every release.
    fn hash(&self) -> u32 {
        self.name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// One `up` or `down` at a time. The lock lies beside the folder, which comes and goes.
    pub(super) fn lock(&self) -> Result<File, Failed> {
        fs::create_dir_all(&self.folder).map_err(Failed::at(&self.folder))?;
        let path = self.folder.with_extension("lock");
        let file = File::create(&path).map_err(Failed::at(&path))?;
        file.lock().map_err(Failed::at(&path))?;
        Ok(file)
    }

    /// What the first process of the namespaces does: hide this machine's state from the cluster, then reap.
    pub(super) fn init_script(&self) -> String {
        let (folder, cgroup) = (self.folder.display(), self.cgroup());
        format!(
            "set -eu
mount --make-rshared /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log
mkdir -p {folder}/var-lib {folder}/var-lib.work {folder}/etcd
mount -t overlay overlay -o lowerdir=/var/lib,upperdir={folder}/var-lib,workdir={folder}/var-lib.work /var/lib
echo 1 > /proc/sys/net/ipv4/ip_forward
for hierarchy in /sys/fs/cgroup/*/; do mkdir -p \"$hierarchy{cgroup}\"; done
[ ! -e /sys/fs/cgroup/cpuset{cgroup} ] || for file in cpuset.cpus cpuset.mems; do
    cat /sys/fs/cgroup/cpuset/$file > /sys/fs/cgroup/cpuset{cgroup}/$file
done
touch {folder}/born
while :; do sleep 3600 & wait; done
"
        )
    }

    /// Starts the process that holds the namespaces and waits until they are furnished.
    pub(super) fn hold(&self) -> Result<(), Failed> {
        let log = File::create(self.file("logs/init.log")).map_err(Failed::at(&self.folder))?;
        let copy = log.try_clone().map_err(Failed::at(&self.folder))?;
        let child = Command::new("setsid")
            .args(["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"])
            .args(["--propagation", "slave", "sh"])
            .arg(self.file("init.sh"))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(copy)
            .spawn()
            .map_err(|error| Failed::Check(format!("cannot make namespaces: {error}")))?;
        fs::write(self.file("pid"), child.id().to_string()).map_err(Failed::at(&self.folder))?;
        self.until("its namespaces", Duration::from_secs(20), || self.file("born").exists())
    }

    /// The other clusters that run on this machine.
    pub(super) fn neighbours(&self) -> Vec<Place> {
        let entries = self.folder.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten().flatten();
        let places = entries.map(|entry| Place::named(&entry.file_name().to_string_lossy()));
        places.filter(|place| place.name != self.name && place.holder().is_some()).collect()
    }

    /// The pid of the process that holds the namespaces, while it is there.
    pub(super) fn holder(&self) -> Option<u32> {
        let pid = fs::read_to_string(self.file("pid")).ok()?.trim().parse().ok()?;
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let script = self.file("init.sh").display().to_string();
        line.split(|byte| *byte == 0).any(|word| word == script.as_bytes()).then_some(pid)
    }

    /// Ends the holder; the kernel then ends every process of its namespace.
    pub(super) fn end(&self) -> Result<(), Failed> {
        let Some(pid) = self.holder() else { return Ok(()) };
        let _ends_with_its_parent = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        self.until("its end", Duration::from_secs(60), || self.holder().is_none())
    }

    /// Runs a line of shell inside the cluster's namespaces.
    pub(super) fn enter(&self, sh: &Shell, line: &str) -> Result<(), Failed> {
        let args = self.entrance()?;
        let mut words: Vec<&str> = args.iter().map(String::as_str).collect();
        words.extend(["sh", "-c", line]);
        sh.quiet("nsenter", &words)
    }

    fn entrance(&self) -> Result<[String; 3], Failed> {
        let pid = self.holder().ok_or_else(|| Failed::Check(format!("cluster `{}` has ended", self.name)))?;
        let at = |kind: &str, file: &str| format!("--{kind}=/proc/{pid}/ns/{file}");
        Ok([at("net", "net"), at("mount", "mnt"), at("pid", "pid_for_children")])
    }

    /// What kubectl prints as the administrator, if it succeeds.
    pub(super) fn kubectl(&self, sh: &Shell, args: &[&str]) -> Option<String> {
        let config = format!("--kubeconfig={}", self.kubeconfig("admin").display());
        let mut words = vec![config.as_str()];
        words.extend(args);
        sh.output(&self.file("bin/kubectl").display().to_string(), &words)
    }

    pub(super) fn has_image(&self, sh: &Shell, name: &str) -> bool {
        self.enter(sh, &format!("ctr -n k8s.io images ls -q name=={name} | grep -q .")).is_ok()
    }

    pub(super) fn import(&self, sh: &Shell, archive: &Path) -> Result<(), Failed> {
        self.enter(sh, &format!("ctr -n k8s.io images import {} > /dev/null", archive.display()))
    }

    /// Waits for something outside; its logs say more than a failure can.
    #[expect(clippy::disallowed_methods, reason = "waits for real processes by the real clock")]
    pub(super) fn until(&self, what: &str, patience: Duration, mut so: impl FnMut() -> bool) -> Result<(), Failed> {
        let deadline = Instant::now() + patience;
        while !so() {
            if Instant::now() > deadline {
                let logs = self.file("logs");
                return Err(Failed::Check(format!(
                    "cluster `{}`: no {what} after {} s; see {}",
                    self.name,
                    patience.as_secs(),
                    logs.display()
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Pods' cgroups outlive their processes; the deepest go first.
    pub(super) fn remove_cgroups(&self) -> Result<(), Failed> {
        for hierarchy in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            let path = hierarchy.path().join(self.cgroup().trim_start_matches('/'));
            if path.is_dir() {
                let gone = || remove_tree(&path).is_ok();
                self.until("end of its cgroups", Duration::from_secs(20), gone)?;
            }
        }
        Ok(())
    }

    pub(super) fn remove_files(&self) -> Result<(), Failed> {
        // The last processes may still be on their way out.
        self.until("end of its files", Duration::from_secs(20), || {
            let _once_more = fs::remove_dir_all(&self.folder);
            !self.folder.exists()
        })
    }
}

/// Folders only: the files of a cgroup belong to the kernel.
fn remove_tree(path: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(path)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_different_names_do_not_meet() {
        let (a, b) = (Place::named("dev"), Place::named("ci"));
        for pair in [(a.host(), b.host()), (a.pods(), b.pods()), (a.link(), b.link()), (a.cgroup(), b.cgroup())] {
            assert_ne!(pair.0, pair.1);
        }
        assert!(a.link().len() <= 15, "the kernel's limit for the name of a link");
    }

    #[test]
    fn a_process_that_does_not_name_the_folder_is_nobodys_holder() {
        let place =
            Place { name: "x".to_owned(), folder: std::env::temp_dir().join(format!("pg-{}", std::process::id())) };
        fs::create_dir_all(&place.folder).unwrap();
        fs::write(place.file("pid"), std::process::id().to_string()).unwrap();
        assert_eq!(place.holder(), None);
        fs::remove_dir_all(&place.folder).unwrap();
    }
}
