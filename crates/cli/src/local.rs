//! Finding or starting the server of this machine.
use crate::config::Config;
use std::path::{Path, PathBuf};
pub(crate) struct Running { pub(crate) pid: u32, pub(crate) url: String, pub(crate) version: String, pub(crate) home: PathBuf }
pub(crate) async fn connect(_config: &Config, _start: bool) -> anyhow::Result<api::Client> { anyhow::bail!("not here yet") }
pub(crate) fn status(_home: &Path) -> Option<Running> { None }
pub(crate) async fn start_detached(_config: &Config) -> anyhow::Result<()> { anyhow::bail!("not here yet") }
pub(crate) async fn stop(_home: &Path) -> anyhow::Result<()> { anyhow::bail!("not here yet") }
pub(crate) async fn backup(_config: &Config, _to: &Path) -> anyhow::Result<()> { anyhow::bail!("not here yet") }
