//! Keys on disk and secrets at rest.
//!
//! Invariants: key files are readable by their owner only; a secret enters the database sealed with
//! ChaCha20-Poly1305 and bound to the place it belongs to, so that a copied row opens nowhere else.

use crate::Error;
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// The server's keys: one seals secrets, one signs tokens and links.
pub struct Keyring {
    seal: LessSafeKey,
    sign: hmac::Key,
    random: SystemRandom,
}

impl Keyring {
    pub(crate) fn load_or_make(folder: &Path) -> Result<Keyring, Error> {
        fs::create_dir_all(folder).map_err(|source| Error::Io {
            what: "make the folder",
            path: folder.to_owned(),
            source,
        })?;
        let seal = owner_only_key(&folder.join("seal.key"))?;
        let sign = owner_only_key(&folder.join("sign.key"))?;
        let unbound =
            UnboundKey::new(&CHACHA20_POLY1305, &seal).map_err(|_| Error::Decode("the sealing key".into()))?;
        Ok(Keyring {
            seal: LessSafeKey::new(unbound),
            sign: hmac::Key::new(hmac::HMAC_SHA256, &sign),
            random: SystemRandom::new(),
        })
    }

    /// Seals `secret` for `place`, such as `workspace/datastore`.
    pub fn seal(&self, place: &str, secret: &[u8]) -> Result<Vec<u8>, Error> {
        let mut nonce = [0u8; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| Error::Decode("no randomness".into()))?;
        let mut sealed = secret.to_vec();
        self.seal
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place.as_bytes()), &mut sealed)
            .map_err(|_| Error::Decode("a secret could not be sealed".into()))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens what [`Keyring::seal`] made for the same place.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        let wrong = || Error::Decode(format!("the secret of `{place}` does not open with this server's key"));
        let (nonce, body) = sealed.split_at_checked(NONCE_LEN).ok_or_else(wrong)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
        let mut body = body.to_vec();
        let open = self.seal.open_in_place(nonce, Aad::from(place.as_bytes()), &mut body).map_err(|_| wrong())?;
        Ok(open.to_vec())
    }

    /// A signature over `text`, in hexadecimal.
    pub fn sign(&self, text: &str) -> String {
        hex(hmac::sign(&self.sign, text.as_bytes()).as_ref())
    }

    /// Whether `signature` is this server's over `text`; takes the same time either way.
    pub fn signed(&self, text: &str, signature: &str) -> bool {
        unhex(signature).is_some_and(|bytes| hmac::verify(&self.sign, text.as_bytes(), &bytes).is_ok())
    }

    /// Random bytes from the operating system.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.random.fill(&mut bytes).expect("the operating system gives random bytes");
        bytes
    }
}

/// Reads a 32-byte key, making it on first use; the file belongs to its owner alone.
pub fn owner_only_key(path: &Path) -> Result<[u8; 32], Error> {
    let fail = |what| move |source| Error::Io { what, path: path.to_owned(), source };
    if let Ok(bytes) = fs::read(path) {
        return bytes.try_into().map_err(|_| Error::Decode(format!("the key `{}` is not 32 bytes", path.display())));
    }
    let mut key = [0u8; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| Error::Decode("no randomness".into()))?;
    write_owner_only(path, &key).map_err(fail("write the key"))?;
    Ok(key)
}

/// Writes a whole file that only its owner may read, or nothing.
pub fn write_owner_only(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_sealed_secret_opens_only_in_its_own_place() {
        let home = tempfile::tempdir().unwrap();
        let ring = Keyring::load_or_make(home.path()).unwrap();
        let sealed = ring.seal("ws/store", b"key").unwrap();
        assert!(!sealed.windows(3).any(|w| w == b"key"));
        assert_eq!(ring.open("ws/store", &sealed).unwrap(), b"key");
        assert!(ring.open("ws/other", &sealed).is_err());
        let again = Keyring::load_or_make(home.path()).unwrap();
        assert_eq!(again.open("ws/store", &sealed).unwrap(), b"key");
    }

    #[test]
    fn key_files_belong_to_their_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        Keyring::load_or_make(home.path()).unwrap();
        let mode = fs::metadata(home.path().join("seal.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_signature_holds_for_its_text_only() {
        let home = tempfile::tempdir().unwrap();
        let ring = Keyring::load_or_make(home.path()).unwrap();
        let signature = ring.sign("a");
        assert!(ring.signed("a", &signature));
        assert!(!ring.signed("b", &signature));
        assert!(!ring.signed("a", "zz"));
    }
}
