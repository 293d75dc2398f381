//! Content hashes of folders and the names under which uploads lie.

use ring::digest::{Context, SHA256};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// One file to upload.
#[derive(Debug, Clone)]
pub struct Item {
    /// Relative to the folder, with `/`.
    pub name: String,
    pub path: PathBuf,
    pub bytes: u64,
}

/// A SHA-256 over names, sizes and contents, in the order given. Equal folders have equal hashes.
pub fn content_hash(items: &[Item]) -> io::Result<String> {
    let mut sum = Context::new(&SHA256);
    sum.update(items.len().to_string().as_bytes());
    for item in items {
        sum.update(format!("#{}#{}", item.name, item.bytes).as_bytes());
    }
    for item in items {
        hash_file(&mut sum, &item.path)?;
    }
    Ok(sum.finish().as_ref().iter().map(|b| format!("{b:02x}")).collect())
}

/// SHA-256 of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    ring::digest::digest(&SHA256, bytes).as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

fn hash_file(sum: &mut Context, path: &Path) -> io::Result<()> {
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(()),
            n => sum.update(&buffer[..n]),
        }
    }
}
