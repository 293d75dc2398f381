//! What work needs and what a node has, in one unit each.
//!
//! Invariant: CPU is thousandths of a core, memory is bytes, a GPU is whole.

use serde::{Deserialize, Serialize};

/// An amount of compute: asked for by an instance type, offered by a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    #[serde(default)]
    pub gpus: u32,
}

/// A named shape of resources on a compute target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceType {
    pub name: String,
    /// What is set aside for the work; decides whether it fits.
    pub requests: Resources,
    /// What the work may use at most, enforced by cgroup; `None` leaves it to the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Resources>,
}

/// The instance type used when a job names none.
pub const DEFAULT_INSTANCE_TYPE: &str = "defaultinstancetype";

impl Resources {
    /// So many places, where whole nodes or slots are what is counted.
    pub fn places(count: u64) -> Resources {
        Resources { cpu_milli: count, ..Resources::default() }
    }

    pub fn fits_in(&self, free: &Resources) -> bool {
        self.cpu_milli <= free.cpu_milli && self.memory_bytes <= free.memory_bytes && self.gpus <= free.gpus
    }

    pub fn minus(&self, other: &Resources) -> Resources {
        Resources {
            cpu_milli: self.cpu_milli.saturating_sub(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes),
            gpus: self.gpus.saturating_sub(other.gpus),
        }
    }

    pub fn plus(&self, other: &Resources) -> Resources {
        Resources {
            cpu_milli: self.cpu_milli.saturating_add(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            gpus: self.gpus.saturating_add(other.gpus),
        }
    }

    pub fn times(&self, n: u32) -> Resources {
        Resources {
            cpu_milli: self.cpu_milli.saturating_mul(n.into()),
            memory_bytes: self.memory_bytes.saturating_mul(n.into()),
            gpus: self.gpus.saturating_mul(n),
        }
    }

    /// How many of these `free` has room for; what asks for nothing is not counted.
    pub fn count_in(&self, free: &Resources) -> u64 {
        let each = [
            free.cpu_milli.checked_div(self.cpu_milli),
            free.memory_bytes.checked_div(self.memory_bytes),
            free.gpus.checked_div(self.gpus).map(u64::from),
        ];
        each.into_iter().flatten().min().unwrap_or(0)
    }

    /// `2 CPUs, 4 GiB memory, 1 GPU`, leaving out what is zero.
    pub fn humane(&self) -> String {
        let mut parts = vec![match self.cpu_milli {
            1000 => "1 CPU".to_owned(),
            milli => format!("{} CPUs", milli as f64 / 1000.0),
        }];
        if self.memory_bytes > 0 {
            parts.push(format!("{} memory", humane_bytes(self.memory_bytes)));
        }
        match self.gpus {
            0 => {}
            1 => parts.push("1 GPU".to_owned()),
            n => parts.push(format!("{n} GPUs")),
        }
        parts.join(", ")
    }
}

/// Reads a Kubernetes CPU quantity: `100m`, `1`, `"0.5"`.
pub fn parse_cpu(text: &str) -> Option<u64> {
    match text.strip_suffix('m') {
        Some(milli) => milli.parse().ok(),
        None => text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).map(|n| (n * 1000.0).round() as u64),
    }
}

/// Reads a size in bytes: `2Gi`, `1500Mi`, `2g`, `512M`, `1024`. `i` means powers of 1024, as does a lone
/// lower-case letter (`docker --shm-size`).
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: f64 = match unit {
        "" | "b" | "B" => 1.0,
        "k" | "Ki" | "KiB" => 1024.0,
        "m" | "Mi" | "MiB" => 1024f64.powi(2),
        "g" | "Gi" | "GiB" => 1024f64.powi(3),
        "t" | "Ti" | "TiB" => 1024f64.powi(4),
        "K" | "kB" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "T" | "TB" => 1e12,
        _ => return None,
    };
    number.parse::<f64>().ok().filter(|n| n.is_finite() && *n * scale < 9e18).map(|n| (n * scale) as u64)
}

/// An amount of a disk: bytes, or so many hundredths of all it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskShare {
    Bytes(u64),
    Percent(u64),
}

impl DiskShare {
    /// `20Gi` or `20%`.
    pub fn parse(text: &str) -> Option<DiskShare> {
        match text.strip_suffix('%') {
            Some(share) => share.parse().ok().filter(|share| *share <= 100).map(DiskShare::Percent),
            None => parse_bytes(text).map(DiskShare::Bytes),
        }
    }

    pub fn of(self, disk_bytes: u64) -> u64 {
        match self {
            DiskShare::Bytes(bytes) => bytes,
            DiskShare::Percent(share) => disk_bytes / 100 * share,
        }
    }
}

/// `1.5 GiB`, as people read sizes.
pub fn humane_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value.fract() < 0.05 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_disk_is_bytes_or_a_part_of_it() {
        let of = |text: &str| DiskShare::parse(text).map(|share| share.of(1000));
        assert_eq!(
            [of("2k"), of("20%"), of("0%"), of("101%"), of("x%"), of("")],
            [Some(2048), Some(200), Some(0), None, None, None]
        );
    }

    #[test]
    fn quantities_read_as_kubernetes_and_docker_write_them() {
        assert_eq!(parse_cpu("100m"), Some(100));
        assert_eq!(parse_cpu("1.5"), Some(1500));
        assert_eq!(parse_cpu("-1"), None);
        assert_eq!(parse_bytes("2Gi"), Some(2 << 30));
        assert_eq!(parse_bytes("2g"), Some(2 << 30));
        assert_eq!(parse_bytes("1.5G"), Some(1_500_000_000));
        assert_eq!(parse_bytes("lots"), None);
    }

    #[test]
    fn resources_read_well() {
        let r = Resources { cpu_milli: 1500, memory_bytes: 3 << 29, gpus: 1 };
        assert_eq!(r.humane(), "1.5 CPUs, 1.5 GiB memory, 1 GPU");
    }
}
