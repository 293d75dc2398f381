//! Readings of the node's load for its charts: processors, memory, GPUs. In a pod, those of its container.
//!
//! Invariant: `cpu_percent` is the share of all processors that was busy between two readings, 0 to 100; the
//! first reading covers the time since boot.

use crate::{cgroup::Cgroup, gpu};
use domain::{Timestamp, report::Sample};
use std::fs;

/// Remembers the last processor times, since the kernel only counts up.
#[derive(Debug, Default)]
pub struct Sampler {
    last: Ticks,
    container: Option<Cgroup>,
}

/// Processor time since boot, in the kernel's ticks, over all processors.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Sampler {
    pub fn new() -> Sampler {
        Sampler::default()
    }

    /// Of the container that this process is in.
    pub fn of_container() -> Sampler {
        Sampler { container: Cgroup::own().filter(|own| own.usage().is_some()), ..Sampler::default() }
    }

    /// The load since the previous call. What cannot be read is zero.
    pub fn sample(&mut self, at: Timestamp) -> Sample {
        let (ticks, (memory_used_bytes, memory_total_bytes)) = match self.container.as_ref().and_then(in_container(at))
        {
            Some(read) => read,
            None => (fs::read_to_string("/proc/stat").ok().and_then(|text| read_ticks(&text)), memory()),
        };
        let ticks = ticks.unwrap_or(self.last);
        let cpu_percent = percent(self.last, ticks);
        self.last = ticks;
        Sample { at, cpu_percent, memory_used_bytes, memory_total_bytes, gpus: gpu::sample() }
    }
}

/// Used and total memory of this machine in bytes. Used is what could not be given to a new process.
pub fn memory() -> (u64, u64) {
    read_memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
}

/// Processor time and memory of a container, in microseconds of all processors it may use.
fn in_container(at: Timestamp) -> impl Fn(&Cgroup) -> Option<(Option<Ticks>, (u64, u64))> {
    move |group| {
        let (busy, used) = group.usage()?;
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let all = u64::try_from(at.0).unwrap_or(0).saturating_mul(1000).saturating_mul(processors);
        Some((Some(Ticks { busy, all }), (used, group.memory_limit().unwrap_or_else(|| memory().1))))
    }
}

fn read_ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let counts: Vec<u64> = line.split_whitespace().skip(1).map_while(|count| count.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time that follows is already within user.
    let all: u64 = counts.iter().take(8).sum();
    let idle = counts.get(3)? + counts.get(4)?;
    Some(Ticks { busy: all - idle, all })
}

fn percent(before: Ticks, after: Ticks) -> f64 {
    let all = after.all.saturating_sub(before.all);
    let busy = after.busy.saturating_sub(before.busy);
    if all == 0 { 0.0 } else { (busy as f64 * 100.0 / all as f64).min(100.0) }
}

fn read_memory(meminfo: &str) -> (u64, u64) {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    let total = field("MemTotal").unwrap_or(0);
    (total.saturating_sub(field("MemAvailable").unwrap_or(total)), total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_the_busy_share_between_two_readings() {
        let read = |text: &str| read_ticks(text).unwrap();
        let before = read("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n");
        let after = read("cpu  150 0 150 750 150 0 0 0 50 0\n");
        assert_eq!(percent(before, after), 50.0);
        assert_eq!(percent(after, after), 0.0);
        assert_eq!(percent(after, before), 0.0);
    }

    #[test]
    fn memory_in_use_leaves_out_what_can_be_given_back() {
        assert_eq!(read_memory("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:  400 kB\n"), (600 * 1024, 1000 * 1024));
        assert_eq!(read_memory(""), (0, 0));
    }

    #[test]
    fn this_machine_has_a_load() {
        let mut sampler = Sampler::new();
        let sample = sampler.sample(Timestamp(5));
        assert!(sample.memory_total_bytes > 0 && sample.memory_used_bytes > 0);
        assert!((0.0..=100.0).contains(&sample.cpu_percent) && sample.at == Timestamp(5));
    }
}
