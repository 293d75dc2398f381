//! What is kept beside a blob's bytes: its type, its digest, its clients' own words.
//!
//! A note lies in an extended attribute of the file, so that it comes and goes with the bytes in one step. Where the disk
//! has no such attributes, or a note is too long for one, it lies in the database; [`Note::lies_elsewhere`] says so.
//! Invariant: a digest is told only while the file is as it was when the digest was taken.

use super::Found;
use rustix::{
    fs::{XattrFlags, fgetxattr, fsetxattr},
    io::Errno,
};
use std::{collections::BTreeMap, fs, io};

const ATTRIBUTE: &str = "user.peregrine.blob";
const TAG: &str = ":tag";
const MD5: &str = ":md5";
const OF: &str = ":of";
const ELSEWHERE: &str = ":elsewhere";
/// Longest note that is tried as an attribute; most disks hold less.
const LONGEST: usize = 60_000;

/// A blob's note. Names that begin with `:` are ours, all others are its clients' metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note(BTreeMap<String, String>);

impl Note {
    /// From what the database holds of a blob.
    pub fn from_map(map: BTreeMap<String, String>) -> Note {
        Note(map)
    }

    pub fn as_map(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// What clients said of the blob in their own words.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter(|(name, _)| !name.starts_with(':')).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Replaces all of the clients' own words.
    pub fn set_metadata(&mut self, metadata: impl IntoIterator<Item = (String, String)>) {
        self.0.retain(|name, _| name.starts_with(':'));
        self.0.extend(metadata.into_iter().filter(|(name, _)| !name.starts_with(':')));
    }

    /// A header the blob is to be shown with, such as `content-type`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.get(&format!(":{name}")).map(String::as_str)
    }

    pub fn set_header(&mut self, name: &str, value: &str) {
        self.0.insert(format!(":{name}"), value.to_owned());
    }

    /// The MD5 of the content in base64, if it still is the content's.
    pub fn md5(&self, found: &Found) -> Option<&str> {
        (self.0.get(OF)? == &stamp(found)).then(|| self.0.get(MD5).map(String::as_str)).flatten()
    }

    pub fn set_md5(&mut self, md5: Option<&str>) {
        match md5 {
            Some(md5) => self.0.insert(MD5.to_owned(), md5.to_owned()),
            None => self.0.remove(MD5),
        };
    }

    /// Differs between any two writes of a blob, also within one tick of the disk's clock.
    pub fn tag(&self) -> &str {
        self.0.get(TAG).map_or("", String::as_str)
    }

    /// Whether the database has the rest of it, if anything has.
    pub fn lies_elsewhere(&self) -> bool {
        self.0.is_empty() || self.0.contains_key(ELSEWHERE)
    }

    /// The note of an open file; empty where there is none.
    pub fn read(file: &fs::File) -> io::Result<Note> {
        let mut buffer = [0u8; 1024];
        let bytes = match fgetxattr(file, ATTRIBUTE, &mut buffer) {
            Ok(length) => buffer[..length].to_vec(),
            Err(Errno::NODATA | Errno::NOTSUP) => return Ok(Note::default()),
            Err(Errno::RANGE) => long_attribute(file)?,
            Err(errno) => return Err(errno.into()),
        };
        // A note that cannot be read is not ours.
        Ok(Note(serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// Puts the note on an open file as it is now, under a new tag. `false` when the rest must go to the database.
    pub(super) fn write(&mut self, file: &fs::File, found: &Found, tag: String) -> io::Result<bool> {
        self.0.remove(ELSEWHERE);
        self.0.insert(TAG.to_owned(), tag.clone());
        if self.0.contains_key(MD5) {
            self.0.insert(OF.to_owned(), stamp(found));
        } else {
            self.0.remove(OF);
        }
        let text = serde_json::to_vec(&self.0)?;
        let fits = text.len() <= LONGEST && attach(file, &text)?;
        if !fits {
            let short = BTreeMap::from([(TAG, tag.as_str()), (ELSEWHERE, "")]);
            attach(file, &serde_json::to_vec(&short)?)?;
        }
        Ok(fits)
    }
}

fn stamp(found: &Found) -> String {
    format!("{:x}.{:x}", found.modified_ns, found.bytes)
}

/// `false` when the disk cannot hold it.
fn attach(file: &fs::File, bytes: &[u8]) -> io::Result<bool> {
    match fsetxattr(file, ATTRIBUTE, bytes, XattrFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOTSUP | Errno::NOSPC | Errno::TOOBIG | Errno::RANGE | Errno::DQUOT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn long_attribute(file: &fs::File) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0u8; 64 << 10];
    let length = fgetxattr(file, ATTRIBUTE, buffer.as_mut_slice())?;
    buffer.truncate(length);
    Ok(buffer)
}
