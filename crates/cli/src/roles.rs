//! The roles of the binary.
use crate::config::Config;
use std::{path::Path, process::ExitCode};
pub(crate) fn server_foreground(_config: &Config, _detached: bool) -> anyhow::Result<ExitCode> { anyhow::bail!("not here yet") }
pub(crate) fn agent(_home: &Path) -> anyhow::Result<ExitCode> { anyhow::bail!("not here yet") }
pub(crate) fn keeper(_home: &Path) -> anyhow::Result<ExitCode> { anyhow::bail!("not here yet") }
