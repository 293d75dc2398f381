//! The GPUs of this machine, as NVML sees them.
//!
//! The library is part of NVIDIA's driver and is opened at run time, so one binary serves machines with and
//! without a GPU. Invariant: a machine without the library or without a device has an empty list, never an error.

use domain::report::GpuSample;
use nvml_wrapper::{Device, Nvml, error::NvmlError};
use std::{ffi::OsStr, sync::OnceLock};

/// One device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    pub index: u32,
    /// Stable across restarts; what `CUDA_VISIBLE_DEVICES` also accepts.
    pub uuid: String,
    pub model: String,
    pub memory_bytes: u64,
}

/// The devices, in NVML's order, which is by bus address: set `CUDA_DEVICE_ORDER=PCI_BUS_ID` beside
/// `CUDA_VISIBLE_DEVICES`, or name devices by `uuid`.
pub fn detect() -> Vec<Gpu> {
    devices(|index, device| {
        Ok(Gpu { index, uuid: device.uuid()?, model: device.name()?, memory_bytes: device.memory_info()?.total })
    })
}

/// How busy each device is now.
pub fn sample() -> Vec<GpuSample> {
    devices(|index, device| {
        let memory = device.memory_info()?;
        // Some virtual devices do not tell their utilisation; their memory is still worth showing.
        let utilization_percent = device.utilization_rates().map_or(0, |rates| rates.gpu);
        Ok(GpuSample { index, utilization_percent, memory_used_bytes: memory.used, memory_total_bytes: memory.total })
    })
}

fn devices<T>(read: impl Fn(u32, &Device<'_>) -> Result<T, NvmlError>) -> Vec<T> {
    let Some(nvml) = nvml() else { return Vec::new() };
    let count = nvml.device_count().unwrap_or(0);
    let read_one = |index| match nvml.device_by_index(index).and_then(|device| read(index, &device)) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(gpu.index = index, %error, "GPU {index} cannot be read");
            None
        }
    };
    (0..count).filter_map(read_one).collect()
}

/// The library, opened once. Drivers install `libnvidia-ml.so.1`; the plain name belongs to the developer package.
fn nvml() -> Option<&'static Nvml> {
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    let open = || Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init().or_else(|_| Nvml::init()).ok();
    NVML.get_or_init(open).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_agrees_with_the_device_files() {
        let gpus = detect();
        assert_eq!(!gpus.is_empty(), std::path::Path::new("/dev/nvidia0").exists(), "{gpus:?}");
        assert_eq!(sample().len(), gpus.len());
        for gpu in &gpus {
            assert!(gpu.uuid.starts_with("GPU-") && gpu.memory_bytes > 1 << 30, "{gpu:?}");
        }
    }
}
