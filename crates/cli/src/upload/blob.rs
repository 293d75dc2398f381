//! The Blob routes as a client uses them: put files, list a prefix, take files.

use super::{Uploader, progress::Progress};
use crate::failure::{Doing, Done, Failure};
use api::{ClientError, blob::Item};
use futures_util::{StreamExt, TryStreamExt, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, header::CONTENT_LENGTH};
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};
use tokio::io::AsyncWriteExt;

/// Uploads at the same time.
const AT_ONCE: usize = 16;
/// Smaller files are sent from memory, larger ones from disk.
const SMALL: u64 = 256 << 10;
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A container and the signature that opens it.
#[derive(Debug)]
pub(crate) struct Store {
    /// The datastore's name.
    pub(crate) name: String,
    pub(super) container: String,
    pub(super) signature: String,
}

impl Store {
    /// The default datastore, or the one named, opened for reading and writing.
    pub(crate) async fn open(up: &Uploader<'_>, name: Option<&str>) -> Done<Store> {
        let resource = match name {
            Some(name) => {
                let path = format!("{}/datastores/{name}", up.scope.path());
                up.client.get::<Value>(&path).await.doing(|| format!("cannot use datastore `{name}`"))?
            }
            None => default_datastore(up).await?,
        };
        let name = resource["name"].as_str().unwrap_or_default().to_owned();
        let text = |key: &str| resource["properties"][key].as_str().unwrap_or_default().to_owned();
        let account = text("accountName");
        let Some((_, account)) = account.split_once("/blob/") else {
            return Err(Failure::input(format!("the files of datastore `{name}` cannot be reached from here"))
                .because("only the server's own datastores take uploads and downloads")
                .hint("use `workspaceblobstore`, or name the data by its `azureml://` address"));
        };
        let secrets = format!("{}/datastores/{name}/listSecrets", up.scope.path());
        let secrets: Value = up.client.post(&secrets, &json!({"expirableSecret": true, "expireAfterHours": 1})).await?;
        let signature = secrets["sasToken"].as_str().unwrap_or_default().to_owned();
        let container =
            format!("{}/blob/{account}.blob.{}/{}", up.client.url(), text("endpoint"), text("containerName"));
        Ok(Store { name, container, signature })
    }

    /// The address of a blob.
    pub(super) fn url(&self, name: &str) -> String {
        let path: Vec<String> = name.split('/').map(segment).collect();
        format!("{}/{}?{}", self.container, path.join("/"), self.signature)
    }

    /// Whether an upload whose first file this is came to its end.
    pub(super) async fn is_complete(&self, up: &Uploader<'_>, first: &str) -> Done<bool> {
        let answer = up.client.send(up.client.request(Method::HEAD, &self.url(first))).await;
        match answer {
            Ok(answer) => Ok(answer.headers().get("x-ms-meta-upload_status").is_some_and(|mark| mark == "completed")),
            Err(ClientError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Marks an upload as complete on its first file.
    pub(super) async fn mark_complete(&self, up: &Uploader<'_>, first: &str) -> Done {
        let url = format!("{}&comp=metadata", self.url(first));
        let request = up.client.request(Method::PUT, &url).header("x-ms-meta-upload_status", "completed");
        up.client.send(request.header(CONTENT_LENGTH, 0)).await?;
        Ok(())
    }

    /// Puts every item under `prefix`, several at once. A blob that is already there stays.
    pub(super) async fn put_all(&self, up: &Uploader<'_>, prefix: &str, items: &[Item]) -> Done {
        let progress = Progress::new(up.output, "uploading", items.len(), items.iter().map(|item| item.bytes).sum());
        let progress = &progress;
        stream::iter(items)
            .map(Ok::<_, Failure>)
            .try_for_each_concurrent(AT_ONCE, |item| async move {
                let name = if prefix.is_empty() { item.name.clone() } else { format!("{prefix}/{}", item.name) };
                self.put(up, &name, item).await.doing(|| format!("cannot upload `{}`", item.path.display()))?;
                progress.file(item.bytes);
                Ok(())
            })
            .await
    }

    async fn put(&self, up: &Uploader<'_>, name: &str, item: &Item) -> Done {
        let unreadable =
            |error: std::io::Error| Failure::file(format!("cannot read `{}`", item.path.display()), &error);
        let body = if item.bytes <= SMALL {
            reqwest::Body::from(tokio::fs::read(&item.path).await.map_err(unreadable)?)
        } else {
            let file = tokio::fs::File::open(&item.path).await.map_err(unreadable)?;
            reqwest::Body::wrap_stream(tokio_util::io::ReaderStream::with_capacity(file, 256 << 10))
        };
        let mut request = up.client.request(Method::PUT, &self.url(name)).header("x-ms-blob-type", "BlockBlob");
        request = request.header("If-None-Match", "*").body(body);
        if item.bytes > SMALL {
            request = request.header(CONTENT_LENGTH, item.bytes);
        }
        match up.client.send(request).await {
            Ok(_) | Err(ClientError::Refused { status: 409, .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Names and sizes of the blobs whose names start with `prefix`.
    async fn list(&self, up: &Uploader<'_>, prefix: &str) -> Done<Vec<(String, u64)>> {
        let mut found = Vec::new();
        let mut marker = String::new();
        loop {
            let asked = [("restype", "container"), ("comp", "list"), ("prefix", prefix), ("marker", &marker)];
            let url = format!("{}?{}", self.container, self.signature);
            let answer = up.client.send(up.client.request(Method::GET, &url).query(&asked)).await?;
            let text = answer.text().await.map_err(|error| up.client.unreachable(error))?;
            for blob in elements(&text, "Blob") {
                let bytes = elements(blob, "Content-Length").first().and_then(|text| text.parse().ok()).unwrap_or(0);
                found.extend(elements(blob, "Name").first().map(|name| (unescape(name), bytes)));
            }
            match elements(&text, "NextMarker").first().filter(|next| !next.is_empty()) {
                Some(next) => marker = unescape(next),
                None => return Ok(found),
            }
        }
    }
}

/// Downloads everything under a path of a datastore into a folder; answers how many files came.
pub(crate) async fn download(up: &Uploader<'_>, store: &Store, path: &str, to: &Path) -> Done<usize> {
    let prefix = path.trim_end_matches('/');
    let found = store.list(up, prefix).await?;
    let under = |name: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let found: Vec<(String, u64)> = found.into_iter().filter(|(name, _)| prefix.is_empty() || under(name)).collect();
    let progress = Progress::new(up.output, "downloading", found.len(), found.iter().map(|(_, bytes)| bytes).sum());
    for (name, bytes) in &found {
        let rest = name.strip_prefix(prefix).unwrap_or(name).trim_start_matches('/');
        // A single file keeps its own name.
        let relative = if rest.is_empty() { name.rsplit('/').next().unwrap_or(name) } else { rest };
        take(up, &store.url(name), &inside(to, relative)?).await?;
        progress.file(*bytes);
    }
    Ok(found.len())
}

/// `folder/name`, where `name` stays in the folder whatever it says.
pub(crate) fn inside(folder: &Path, name: &str) -> Done<PathBuf> {
    let safe = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    match safe && !name.is_empty() {
        true => Ok(folder.join(name)),
        false => Err(Failure::input(format!("refused to write `{name}`")).because("the name leads out of the folder")),
    }
}

/// One part of a path, fit to stand in an address.
pub(crate) fn segment(part: &str) -> String {
    utf8_percent_encode(part, SEGMENT).to_string()
}

async fn take(up: &Uploader<'_>, url: &str, to: &Path) -> Done {
    let cannot = |error: std::io::Error| Failure::file(format!("cannot write `{}`", to.display()), &error);
    if let Some(parent) = to.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(cannot)?;
    }
    let answer = up.client.send(up.client.request(Method::GET, url)).await?;
    let mut file = tokio::fs::File::create(to).await.map_err(cannot)?;
    let mut pieces = answer.bytes_stream();
    while let Some(piece) = pieces.try_next().await.map_err(|error| up.client.unreachable(error))? {
        file.write_all(&piece).await.map_err(cannot)?;
    }
    file.flush().await.map_err(cannot)
}

async fn default_datastore(up: &Uploader<'_>) -> Done<Value> {
    let path = format!("{}/datastores?isDefault=true&count=30", up.scope.path());
    let mut found = up.client.list(&path, 30).await?;
    found.retain(|store| store["properties"]["isDefault"] != json!(false));
    match found.into_iter().next() {
        Some(store) => Ok(store),
        None => Err(Failure::input(format!("workspace `{}` has no default datastore", up.scope.workspace))),
    }
}

/// The contents of every element of this name that has no element of the same name inside.
fn elements<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let after_open = text.split(open.as_str()).skip(1);
    after_open.filter_map(|rest| rest.split_once(close.as_str())).map(|(inner, _)| inner).collect()
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read() {
        let text = "<?xml version=\"1.0\"?><EnumerationResults><Blobs><Blob><Name>a/b &amp; c</Name><Properties>\
                    <Content-Length>7</Content-Length></Properties></Blob><Blob><Name>d</Name></Blob></Blobs><NextMarker/></EnumerationResults>";
        let blobs = elements(text, "Blob");
        assert_eq!(blobs.len(), 2);
        assert_eq!(unescape(elements(blobs[0], "Name")[0]), "a/b & c");
        assert_eq!(elements(blobs[0], "Content-Length"), ["7"]);
        assert!(elements(text, "NextMarker").is_empty());
    }

    #[test]
    fn a_name_cannot_leave_its_folder() {
        for bad in ["../x", "/etc/passwd", "a/../../b", "", "./a/.."] {
            assert!(inside(Path::new("out"), bad).is_err(), "{bad}");
        }
        assert_eq!(inside(Path::new("out"), "a/b").unwrap(), Path::new("out/a/b"));
    }

    #[test]
    fn odd_letters_in_names_are_escaped() {
        let store = Store { name: "s".into(), container: "https://h/blob/c".into(), signature: "sig=x".into() };
        assert_eq!(store.url("a b/c#d?.txt"), "https://h/blob/c/a%20b/c%23d%3F.txt?sig=x");
    }
}
