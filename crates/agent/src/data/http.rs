//! Plain addresses: one file behind `http` or `https`.
//!
//! Invariant: a file is taken from the cache only if the server's own mark of its version is unchanged; a server
//! without such marks is asked for the whole file each time.

use super::{
    Data, Error,
    cache::{Cache, Claim},
    local,
};
use crate::environment::request::hex;
use futures_util::TryStreamExt;
use reqwest::{Client, Response, header};
use ring::digest;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::io::AsyncWriteExt;

const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(300);
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// The longest silence in the middle of a file.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);

impl Data {
    pub(super) async fn view_http(&self, url: &str, holder: &str) -> Result<PathBuf, Error> {
        let client = self.client(url).await?;
        let name = name_of(url);
        let data = match version(client, url).await {
            Some((version, bytes)) => match self.cache().claim(&key(url, &version), holder).await? {
                Claim::There(data) => {
                    self.tally().cache(bytes);
                    data
                }
                Claim::Missing(filling) => {
                    self.make_room(&filling, bytes).await?;
                    local::make_folder(&filling.data())?;
                    fetch(client, url, &filling.data().join(&name)).await?;
                    self.tally().begin(bytes);
                    self.tally().store(bytes);
                    filling.finish(without_query(url), None)?
                }
            },
            None => unversioned(client, url, &name, self.cache(), holder).await?,
        };
        Ok(data.join(name))
    }

    async fn client(&self, url: &str) -> Result<&Client, Error> {
        let make = async || Client::builder().connect_timeout(CONNECT_LIMIT).read_timeout(SILENCE_LIMIT).build();
        let failed = |source| Error::Http { url: without_query(url).to_owned(), source };
        self.0.client.get_or_try_init(make).await.map_err(failed)
    }
}

/// The file is fetched first and named by what it holds.
async fn unversioned(client: &Client, url: &str, name: &str, cache: &Cache, holder: &str) -> Result<PathBuf, Error> {
    let scratch = cache.scratch()?;
    let sum = fetch(client, url, &scratch.folder().join(name)).await?;
    match cache.claim(&key(url, &sum), holder).await? {
        Claim::There(data) => Ok(data),
        Claim::Missing(filling) => {
            let data = filling.data();
            std::fs::rename(scratch.folder(), &data).map_err(|error| local::disk(&data, "written", error))?;
            filling.finish(without_query(url), None)
        }
    }
}

/// The server's mark and the size; `None` where it tells no mark or does not answer `HEAD`.
async fn version(client: &Client, url: &str) -> Option<(String, u64)> {
    let answer = client.head(url).send().await.ok()?.error_for_status().ok()?;
    let text = |name: header::HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let mark = text(header::ETAG).or_else(|| text(header::LAST_MODIFIED))?;
    let bytes = text(header::CONTENT_LENGTH).unwrap_or_default();
    Some((format!("{mark} {bytes}"), bytes.parse().unwrap_or(0)))
}

/// Fetches to `path`, trying again where that may help; gives the content's digest.
async fn fetch(client: &Client, url: &str, path: &Path) -> Result<String, Error> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match fetch_once(client, url, path).await {
            Err(error) if may_help(&error) => {}
            result => return result,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    fetch_once(client, url, path).await
}

async fn fetch_once(client: &Client, url: &str, path: &Path) -> Result<String, Error> {
    let failed =
        |source: reqwest::Error| Error::Http { url: without_query(url).to_owned(), source: source.without_url() };
    let answer = client.get(url).send().await.map_err(failed)?;
    match answer.status().as_u16() {
        200 => {}
        404 | 410 => return Err(Error::Absent { at: without_query(url).to_owned() }),
        status => return Err(Error::Status { url: without_query(url).to_owned(), status }),
    }
    let expected = content_length(&answer);
    let mut file = tokio::fs::File::create(path).await.map_err(|error| local::disk(path, "written", error))?;
    let mut sum = digest::Context::new(&digest::SHA256);
    let (mut got, mut bytes) = (0, answer.bytes_stream());
    while let Some(chunk) = bytes.try_next().await.map_err(failed)? {
        got += chunk.len() as u64;
        sum.update(&chunk);
        file.write_all(&chunk).await.map_err(|error| local::disk(path, "written", error))?;
    }
    file.flush().await.map_err(|error| local::disk(path, "written", error))?;
    match expected.filter(|expected| *expected != got) {
        Some(expected) => Err(Error::Short { at: without_query(url).to_owned(), got, expected }),
        None => Ok(hex(sum.finish().as_ref())),
    }
}

fn content_length(answer: &Response) -> Option<u64> {
    answer.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn may_help(error: &Error) -> bool {
    match error {
        Error::Status { status, .. } => *status == 429 || *status >= 500,
        Error::Http { .. } | Error::Short { .. } => true,
        _ => false,
    }
}

fn key(url: &str, version: &str) -> String {
    hex(digest::digest(&digest::SHA256, format!("{url}\0{version}").as_bytes()).as_ref())
}

/// The last part of the address, where it makes a file name.
fn name_of(url: &str) -> String {
    let path = without_query(url).split_once("://").map_or("", |(_, rest)| rest);
    let last = path.split('/').skip(1).last().unwrap_or_default();
    match super::tree::below(Path::new(""), last) {
        Ok(_) => last.to_owned(),
        Err(_) => "data".to_owned(),
    }
}

/// A query may hold a signature, which is a secret.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_the_name_it_has_at_its_address() {
        for (url, name) in [
            ("https://h/a/titanic.csv?sig=s%2F", "titanic.csv"),
            ("https://h/", "data"),
            ("https://h", "data"),
            ("https://h/a/..", "data"),
        ] {
            assert_eq!(name_of(url), name, "{url}");
        }
    }
}
