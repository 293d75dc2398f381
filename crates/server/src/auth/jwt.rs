//! Bearer tokens in the form the Azure clients insist on: JSON web tokens, signed with a key of this server. Those for
//! scoring are signed such that routers can check them and make none.
//!
//! Keys lie in the home, one file each, the newest signs. Invariant: a token is believed only if a key that is still
//! here signed it, it is meant for this server, and its time is not over.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use domain::{Timestamp, access::SCORING};
use ring::{
    hmac,
    signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};
use store::secrets::{Keyring, hex, write_owner_only};

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) aud: String,
    pub(crate) iss: String,
    /// A principal's id, or `job:<workspace>/<name>`.
    pub(crate) sub: String,
    /// The same again, under the names that clients show.
    pub(crate) oid: String,
    pub(crate) appid: String,
    /// The tenant, which clients add to links.
    pub(crate) tid: String,
    pub(crate) iat: i64,
    pub(crate) nbf: i64,
    pub(crate) exp: i64,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    typ: String,
    kid: String,
}

/// The signing keys of a home.
pub(crate) struct Keys {
    folder: PathBuf,
    /// Oldest first.
    keys: RwLock<Vec<(String, Signer)>>,
}

#[derive(Clone)]
struct Signer {
    own: hmac::Key,
    scoring: Arc<Ed25519KeyPair>,
}

impl Signer {
    fn of(secret: &[u8]) -> io::Result<Signer> {
        let own = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let scoring = Ed25519KeyPair::from_seed_unchecked(hmac::sign(&own, b"scoring tokens").as_ref());
        Ok(Signer { scoring: Arc::new(scoring.map_err(|error| io::Error::other(error.to_string()))?), own })
    }

    fn verifies(&self, alg: &str, text: &[u8], signature: &[u8]) -> bool {
        match alg {
            "HS256" => hmac::verify(&self.own, text, signature).is_ok(),
            "EdDSA" => UnparsedPublicKey::new(&ED25519, self.scoring.public_key()).verify(text, signature).is_ok(),
            _ => false,
        }
    }
}

/// The longest a token may live.
pub(crate) const LIFE_SECONDS: i64 = 3600;
/// A key that no longer signs is believed for as long as a token it signed may live, and a moment more.
const RETIRED_MS: i64 = LIFE_SECONDS * 1000 + 60_000;

impl Keys {
    /// Reads the keys under `folder`, making the first.
    pub(crate) fn load_or_make(folder: &Path, keyring: &Keyring, now: Timestamp) -> io::Result<Keys> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let keys = Keys::load(folder)?;
        if keys.keys.read().expect("nothing panics while it holds the keys").is_empty() {
            keys.rotate(keyring, now)?;
        }
        Ok(keys)
    }

    /// Reads the keys there are.
    pub(crate) fn load(folder: &Path) -> io::Result<Keys> {
        let keys = Keys { folder: folder.to_owned(), keys: RwLock::default() };
        keys.read()?;
        Ok(keys)
    }

    /// What tokens for scoring are checked with, by the ids of their keys.
    pub(crate) fn public(&self, now: Timestamp) -> BTreeMap<String, String> {
        let retired = self.retired(now);
        let keys = self.keys.read().expect("nothing panics while it holds the keys");
        let good = keys.iter().filter(|(id, _)| !retired.contains(id));
        good.map(|(id, key)| (id.clone(), BASE64.encode(key.scoring.public_key()))).collect()
    }

    /// Makes a new key that signs from now on, and removes those whose time is over; the id of the new one.
    pub(crate) fn rotate(&self, keyring: &Keyring, now: Timestamp) -> io::Result<String> {
        for id in self.retired(now) {
            let _ = fs::remove_file(self.file(&id));
        }
        let id = format!("{:012x}-{}", now.0, hex(&keyring.random::<4>()));
        write_owner_only(&self.file(&id), &keyring.random::<32>())?;
        self.read()?;
        Ok(id)
    }

    /// Keys that were replaced so long ago that nothing they signed can be good any more.
    fn retired(&self, now: Timestamp) -> Vec<String> {
        let keys = self.keys.read().expect("nothing panics while it holds the keys");
        let over = |pair: &[(String, Signer)]| made_at(&pair[1].0).is_none_or(|at| now.0 - at > RETIRED_MS);
        keys.windows(2).filter(|pair| over(pair)).map(|pair| pair[0].0.clone()).collect()
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.key"))
    }

    fn read(&self) -> io::Result<()> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "key")
                && let Some(id) = path.file_stem().and_then(|stem| stem.to_str())
            {
                found.push((id.to_owned(), Signer::of(&fs::read(&path)?)?));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        *self.keys.write().expect("nothing panics while it holds the keys") = found;
        Ok(())
    }

    pub(crate) fn sign(&self, claims: &Claims) -> String {
        let keys = self.keys.read().expect("nothing panics while it holds the keys");
        let (id, key) = keys.last().expect("a home has at least one key");
        let scoring = SCORING.contains(&claims.aud.as_str());
        let alg = if scoring { "EdDSA" } else { "HS256" };
        let header = Header { alg: alg.into(), typ: "JWT".into(), kid: id.clone() };
        let part = |bytes: Vec<u8>| BASE64.encode(bytes);
        let header = part(serde_json::to_vec(&header).expect("a header is plain data"));
        let text = format!("{header}.{}", part(serde_json::to_vec(claims).expect("claims are plain data")));
        let signature = match scoring {
            true => BASE64.encode(key.scoring.sign(text.as_bytes())),
            false => BASE64.encode(hmac::sign(&key.own, text.as_bytes())),
        };
        format!("{text}.{signature}")
    }

    /// The claims of a token this server signed and whose time is now.
    pub(crate) fn verify(&self, token: &str, now: Timestamp) -> Option<Claims> {
        let (text, signature) = token.rsplit_once('.')?;
        let (header, claims) = text.split_once('.')?;
        let header: Header = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        if self.retired(now).contains(&header.kid) {
            return None;
        }
        let keys = self.keys.read().expect("nothing panics while it holds the keys");
        let (_, key) = keys.iter().find(|(id, _)| *id == header.kid)?;
        if !key.verifies(&header.alg, text.as_bytes(), &BASE64.decode(signature).ok()?) {
            return None;
        }
        let claims: Claims = serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()?;
        let seconds = now.0 / 1000;
        let short = claims.exp.saturating_sub(claims.iat) <= LIFE_SECONDS;
        (short && claims.nbf <= seconds + 60 && seconds < claims.exp).then_some(claims)
    }
}

/// When a key was made, which its id says.
fn made_at(id: &str) -> Option<i64> {
    i64::from_str_radix(id.split('-').next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(exp: i64) -> Claims {
        let text = |text: &str| text.to_owned();
        Claims {
            aud: text("a"),
            iss: text("i"),
            sub: text("s"),
            oid: text("s"),
            appid: text("s"),
            tid: text("t"),
            iat: 0,
            nbf: 0,
            exp,
        }
    }

    #[test]
    fn a_token_is_believed_until_its_time_is_over_and_not_when_it_was_touched() {
        let home = tempfile::tempdir().unwrap();
        let store = store::Store::open(home.path()).unwrap();
        let keys = Keys::load_or_make(&home.path().join("jwt"), store.keyring(), Timestamp(1)).unwrap();
        assert_eq!(keys.verify(&keys.sign(&claims(LIFE_SECONDS + 1)), Timestamp(1_000)), None, "no token lives longer");
        let token = keys.sign(&claims(100));
        assert_eq!(keys.verify(&token, Timestamp(99_000)), Some(claims(100)));
        assert_eq!(keys.verify(&token, Timestamp(100_000)), None);
        let parts: Vec<&str> = token.split('.').collect();
        let other = BASE64.encode(serde_json::to_vec(&claims(1_000_000)).unwrap());
        let none = BASE64.encode(br#"{"alg":"none","typ":"JWT","kid":"x"}"#);
        for forged in [
            format!("{}.{other}.{}", parts[0], parts[2]),
            format!("{none}.{}.", parts[1]),
            format!("{}.{}.AAAA", parts[0], parts[1]),
            "a.b.c".to_owned(),
            String::new(),
        ] {
            assert_eq!(keys.verify(&forged, Timestamp(1_000)), None, "{forged}");
        }
    }

    #[test]
    fn a_replaced_key_is_believed_for_a_while_and_then_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let store = store::Store::open(home.path()).unwrap();
        let folder = home.path().join("jwt");
        let keys = Keys::load_or_make(&folder, store.keyring(), Timestamp(1)).unwrap();
        let good_for = |now: i64| Claims { iat: now, exp: now + LIFE_SECONDS, ..claims(0) };
        let old = keys.sign(&good_for(0));
        keys.rotate(store.keyring(), Timestamp(1_000)).unwrap();
        assert!(keys.verify(&old, Timestamp(2_000)).is_some());
        let late = 1_000 + RETIRED_MS + 1;
        let forged = {
            let all = keys.keys.read().unwrap();
            let kept = Keys { folder: folder.clone(), keys: RwLock::new(vec![all[0].clone()]) };
            kept.sign(&good_for(late / 1000))
        };
        assert!(keys.verify(&forged, Timestamp(2_000)).is_some(), "the replaced key is good for a while");
        assert!(keys.verify(&forged, Timestamp(late)).is_none(), "and then it is not, whatever it signed");
        keys.rotate(store.keyring(), Timestamp(late)).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        let again = Keys::load_or_make(&folder, store.keyring(), Timestamp(2)).unwrap();
        assert!(again.verify(&keys.sign(&claims(100)), Timestamp(2)).is_some());
    }
}
