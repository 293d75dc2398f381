//! Object stores: opening one, listing what an address names, fetching and sending it.
//!
//! Invariants: every byte fetched belongs to the version that was listed, or the fetch fails; a file appears at the
//! other end whole or not at all.

use super::{
    Error, Secrets, Tally,
    local::{disk, make_folder},
    tree::{Kind, Tree, below},
};
use crate::{environment::request::hex, outpost::Outpost};
use domain::Place;
use futures_util::{TryStreamExt, stream::FuturesUnordered};
use object_store::{
    Certificate, ClientOptions, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig, aws::AmazonS3Builder,
    azure::MicrosoftAzureBuilder, buffered::BufWriter, gcp::GoogleCloudStorageBuilder, path::Path as Key,
};
use ring::digest;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

/// Files on their way at once.
const FILES_AT_ONCE: usize = 8;
/// A larger file is fetched in ranges, several at once, since one connection rarely fills the line.
const RANGE_BYTES: u64 = 32 << 20;
const RANGES_AT_ONCE: usize = 4;
/// Stores allow 10,000 parts; a part is at least 10 MiB.
const MOST_PARTS: u64 = 9_000;
const PART_BYTES: u64 = 10 << 20;

/// The datastore name of what lies with the server itself.
pub(crate) const SERVER: &str = "@server";

/// How to reach what lies with a server elsewhere: it may be away, and comes back.
#[derive(Debug)]
pub(super) struct OwnStore {
    authorities: Vec<Certificate>,
    away: Duration,
}

impl OwnStore {
    pub(super) fn of(outpost: &Outpost) -> OwnStore {
        let pem = outpost.authority.as_deref().unwrap_or_default();
        // One that cannot be read is told of by the first call to the server.
        OwnStore { authorities: Certificate::from_pem_bundle(pem).unwrap_or_default(), away: outpost.away }
    }

    fn client(&self) -> ClientOptions {
        let trust = |options: ClientOptions, authority: &Certificate| options.with_root_certificate(authority.clone());
        self.authorities.iter().fold(ClientOptions::new(), trust)
    }

    fn retry(&self) -> RetryConfig {
        RetryConfig { max_retries: usize::MAX, retry_timeout: self.away, ..RetryConfig::default() }
    }
}

/// A place in an object store.
pub(super) struct Remote {
    store: Arc<dyn ObjectStore>,
    key: Key,
    url: String,
}

/// What an address names, as it was at one moment.
pub(super) struct Listing {
    url: String,
    /// The address is one object of this name, not a folder of them.
    pub single: Option<String>,
    /// By name relative to the address.
    pub files: BTreeMap<String, ObjectMeta>,
}

impl Listing {
    #[cfg(test)]
    pub(super) fn of(url: &str, files: BTreeMap<String, ObjectMeta>) -> Listing {
        Listing { url: url.to_owned(), single: None, files }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.values().map(|meta| meta.size).sum()
    }

    /// A digest of the address and of every object's version.
    pub(super) fn key(&self) -> String {
        let mut sum = digest::Context::new(&digest::SHA256);
        sum.update(self.url.as_bytes());
        for (name, meta) in &self.files {
            let version = meta.e_tag.clone().unwrap_or_else(|| meta.last_modified.to_rfc3339());
            sum.update(format!("\0{name}\0{}\0{version}", meta.size).as_bytes());
        }
        hex(sum.finish().as_ref())
    }

    /// Where a reader finds it once it is fetched into `folder`.
    pub(super) fn path_in(&self, folder: &Path) -> PathBuf {
        self.single.as_ref().map_or_else(|| folder.to_owned(), |name| folder.join(name))
    }
}

impl Remote {
    /// Connects with the place's options and its datastore's secrets. Without secrets the node's own identity counts.
    pub(super) fn open(place: &Place, secrets: &Secrets, own: Option<&OwnStore>) -> Result<Remote, Error> {
        let Place::Object { url, datastore, options } = place else {
            return Err(Error::BadAddress { url: format!("{place:?}") });
        };
        let bad = || Error::BadAddress { url: url.clone() };
        let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        let key = Key::parse(key.trim_matches('/')).map_err(|_| bad())?;
        let mut settings = options.clone();
        settings.extend(secrets.get(datastore).cloned().unwrap_or_default());
        if settings.values().any(|value| value.starts_with("http://")) {
            settings.entry("allow_http".to_owned()).or_insert_with(|| "true".to_owned());
        }
        let own = own.filter(|_| datastore == SERVER);
        let store = connect(scheme, authority, settings, own).ok_or_else(bad)?;
        let failed = |source| Error::Open { datastore: datastore.clone(), url: url.clone(), source };
        Ok(Remote { store: store.map_err(failed)?, key, url: url.clone() })
    }

    pub(super) async fn list(&self) -> Result<Listing, Error> {
        let mut listing = Listing { url: self.url.clone(), single: None, files: BTreeMap::new() };
        if let Some(name) = self.key.filename().filter(|_| !self.url.ends_with('/')) {
            match self.store.head(&self.key).await {
                // An empty object may be what some tools leave to mark a folder.
                Ok(meta) if meta.size > 0 => {
                    listing.single = Some(name.to_owned());
                    listing.files.insert(name.to_owned(), meta);
                    return Ok(listing);
                }
                Ok(meta) => drop(listing.files.insert(name.to_owned(), meta)),
                Err(object_store::Error::NotFound { .. }) => {}
                Err(source) => return Err(self.failed("read", source)),
            }
        }
        let marker = std::mem::take(&mut listing.files);
        let mut objects = self.store.list(Some(&self.key));
        while let Some(meta) = objects.try_next().await.map_err(|source| self.failed("listed", source))? {
            let Some(parts) = meta.location.prefix_match(&self.key) else { continue };
            let name = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
            if !name.is_empty() {
                listing.files.insert(name, meta);
            }
        }
        drop_markers(&mut listing.files);
        match (listing.files.is_empty(), marker.into_iter().next()) {
            (false, _) => Ok(listing),
            (true, Some((name, meta))) => {
                listing.single = Some(name.clone());
                listing.files.insert(name, meta);
                Ok(listing)
            }
            (true, None) => Err(Error::Absent { at: self.url.clone() }),
        }
    }

    /// Fetches all that was listed into `folder`.
    pub(super) async fn fetch(&self, listing: &Listing, folder: &Path, tally: &Tally) -> Result<(), Error> {
        make_folder(folder)?;
        let mut under_way = FuturesUnordered::new();
        for (name, meta) in &listing.files {
            if under_way.len() == FILES_AT_ONCE {
                under_way.try_next().await?;
            }
            under_way.push(self.fetch_file(meta, below(folder, name)?, tally));
        }
        while under_way.try_next().await?.is_some() {}
        Ok(())
    }

    async fn fetch_file(&self, meta: &ObjectMeta, to: PathBuf, tally: &Tally) -> Result<(), Error> {
        if let Some(parent) = to.parent() {
            make_folder(parent)?;
        }
        let file = std::fs::File::create(&to).map_err(|error| disk(&to, "written", error))?;
        file.set_len(meta.size).map_err(|error| disk(&to, "written", error))?;
        let mut under_way = FuturesUnordered::new();
        for start in (0..meta.size).step_by(RANGE_BYTES as usize) {
            if under_way.len() == RANGES_AT_ONCE {
                under_way.try_next().await?;
            }
            under_way.push(self.fetch_range(meta, start, &to, tally));
        }
        while under_way.try_next().await?.is_some() {}
        Ok(())
    }

    async fn fetch_range(&self, meta: &ObjectMeta, start: u64, to: &Path, tally: &Tally) -> Result<(), Error> {
        let end = meta.size.min(start + RANGE_BYTES);
        let options = GetOptions::new().with_if_match(meta.e_tag.clone());
        let whole = start == 0 && end == meta.size;
        let options = if whole { options } else { options.with_range(Some(start..end)) };
        let answer =
            self.store.get_opts(&meta.location, options).await.map_err(|source| self.failed("fetched", source))?;
        let mut file =
            tokio::fs::File::options().write(true).open(to).await.map_err(|error| disk(to, "written", error))?;
        file.seek(std::io::SeekFrom::Start(start)).await.map_err(|error| disk(to, "written", error))?;
        let mut bytes = answer.into_stream();
        let mut got = 0;
        while let Some(chunk) = bytes.try_next().await.map_err(|source| self.failed("fetched", source))? {
            got += chunk.len() as u64;
            if got > end - start {
                break;
            }
            file.write_all(&chunk).await.map_err(|error| disk(to, "written", error))?;
            tally.store(chunk.len() as u64);
        }
        file.flush().await.map_err(|error| disk(to, "written", error))?;
        match got == end - start {
            true => Ok(()),
            false => Err(Error::Short { at: meta.location.to_string(), got: start + got, expected: meta.size }),
        }
    }

    /// Sends a folder's files below this place, or a single file to it; gives the bytes sent.
    pub(super) async fn send(&self, from: &Path, tree: &Tree) -> Result<u64, Error> {
        let single = from.is_file();
        let mut bytes = 0;
        let mut under_way = FuturesUnordered::new();
        for entry in tree.entries.iter().filter(|entry| entry.kind == Kind::File) {
            if under_way.len() == FILES_AT_ONCE {
                bytes += under_way.try_next().await?.unwrap_or(0);
            }
            under_way.push(match single {
                true => self.send_file(from.to_owned(), self.key.clone()),
                false => self.send_file(from.join(&entry.name), self.key_below(&entry.name)?),
            });
        }
        while let Some(sent) = under_way.try_next().await? {
            bytes += sent;
        }
        Ok(bytes)
    }

    fn key_below(&self, name: &str) -> Result<Key, Error> {
        let whole = if self.key.as_ref().is_empty() { name.to_owned() } else { format!("{}/{name}", self.key) };
        Key::parse(whole).map_err(|_| Error::BadName { name: name.to_owned() })
    }

    async fn send_file(&self, path: PathBuf, key: Key) -> Result<u64, Error> {
        let read = |error| disk(&path, "read", error);
        let mut file = tokio::fs::File::open(&path).await.map_err(read)?;
        let size = file.metadata().await.map_err(read)?.len();
        let part = PART_BYTES.max(size / MOST_PARTS) as usize;
        let mut writer = BufWriter::with_capacity(self.store.clone(), key, part).with_max_concurrency(RANGES_AT_ONCE);
        let sent = |source: std::io::Error| {
            self.failed("written", object_store::Error::Generic { store: "upload", source: source.into() })
        };
        match tokio::io::copy(&mut file, &mut writer).await {
            Ok(bytes) => writer.shutdown().await.map(|()| bytes).map_err(sent),
            Err(error) => {
                // Parts of an upload that is not aborted are kept, and charged for, without end.
                let _gone_too = writer.abort().await;
                Err(sent(error))
            }
        }
    }

    fn failed(&self, what: &'static str, source: object_store::Error) -> Error {
        match source {
            object_store::Error::NotFound { .. } => Error::Absent { at: self.url.clone() },
            source => Error::Store { at: self.url.clone(), what, source },
        }
    }
}

/// `None` for an unknown scheme. Settings that the store does not know are passed over.
fn connect(
    scheme: &str,
    authority: &str,
    settings: BTreeMap<String, String>,
    own: Option<&OwnStore>,
) -> Option<Result<Arc<dyn ObjectStore>, object_store::Error>> {
    Some(match scheme {
        "s3" | "s3a" => {
            let mut builder = AmazonS3Builder::from_env().with_bucket_name(authority).with_retry(retry());
            for (name, value) in known(settings) {
                builder = builder.with_config(name, value);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        "gs" => {
            let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(authority).with_retry(retry());
            for (name, value) in known(settings) {
                builder = builder.with_config(name, value);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        "az" | "azure" | "adl" | "abfs" | "abfss" | "wasb" | "wasbs" => {
            let (container, account) = authority.split_once('@').unwrap_or((authority, ""));
            let mut builder = match own {
                Some(own) => MicrosoftAzureBuilder::new().with_client_options(own.client()).with_retry(own.retry()),
                None => MicrosoftAzureBuilder::from_env().with_retry(retry()),
            };
            builder = builder.with_container_name(container);
            if let Some(account) = account.split('.').next().filter(|account| !account.is_empty()) {
                builder = builder.with_account(account);
            }
            for (name, value) in known(settings) {
                builder = builder.with_config(name, value);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        _ => return None,
    })
}

/// A store that is down should be known as such within half a minute, not three.
fn retry() -> RetryConfig {
    RetryConfig { max_retries: 5, retry_timeout: Duration::from_secs(30), ..RetryConfig::default() }
}

fn known<K: std::str::FromStr>(settings: BTreeMap<String, String>) -> impl Iterator<Item = (K, String)> {
    settings.into_iter().filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)))
}

/// An empty object whose name is also a folder only marks that folder.
fn drop_markers(files: &mut BTreeMap<String, ObjectMeta>) {
    let folders: Vec<String> = files
        .iter()
        .filter(|(name, meta)| {
            let inside = format!("{name}/");
            meta.size == 0 && files.range(inside.clone()..).next().is_some_and(|(next, _)| next.starts_with(&inside))
        })
        .map(|(name, _)| name.clone())
        .collect();
    for name in folders {
        files.remove(&name);
    }
}
