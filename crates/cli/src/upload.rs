//! Sending local files to the server: code snapshots, and data for jobs and assets.
//!
//! Everything goes through the Blob routes with signed links, the way the Python SDK does it. Invariant: what lies
//! under a content hash never changes, so an upload that was cut off may simply be repeated.

mod blob;
mod code;
mod data;
mod progress;
mod snapshot;

pub(crate) use blob::{Store, download, inside, segment};
pub(crate) use code::{gathered, outline, upload_code};
pub(crate) use data::{data_address, upload_data};

use crate::output::Output;
use api::{Client, arm::Scope};

/// What an upload needs.
#[derive(Clone, Copy)]
pub(crate) struct Uploader<'a> {
    pub(crate) client: &'a Client,
    pub(crate) scope: &'a Scope,
    pub(crate) output: &'a Output,
}
