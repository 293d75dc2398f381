//! Callers of `aad_token` endpoints: they prove who they are, with their own secret or with a web token that a server signed
//! for them, and the routes say what they may.
//!
//! Nobody is asked: routes hold digests of secrets and public keys, so that a router can check tokens and make none.

use super::{Denied, Digest, same, sha256, unhex};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    Timestamp,
    access::{OWN_TOKEN, SCORING},
    spec::routes::KnownCaller,
};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// How a web token begins: with an object in base64.
const WEB_TOKEN: &[u8] = b"eyJ";
/// How far clocks may differ.
const SKEW_SECONDS: i64 = 60;

pub(crate) struct Callers {
    known: HashMap<String, Known>,
    signers: HashMap<String, UnparsedPublicKey<Vec<u8>>>,
}

struct Known {
    digest: Option<Digest>,
    may_score: bool,
    expires_at: Option<Timestamp>,
}

impl Callers {
    pub(crate) fn of(callers: &BTreeMap<String, KnownCaller>, signers: &BTreeMap<String, String>) -> Callers {
        let known = callers.iter().map(|(id, caller)| {
            let digest = (!caller.digest.is_empty()).then(|| unhex(&caller.digest));
            (id.clone(), Known { digest, may_score: caller.may_score, expires_at: caller.expires_at })
        });
        let signers = signers.iter().filter_map(|(id, key)| {
            let key = URL_SAFE_NO_PAD.decode(key).ok()?;
            Some((id.clone(), UnparsedPublicKey::new(&ED25519, key)))
        });
        Callers { known: known.collect(), signers: signers.collect() }
    }

    /// Whether the caller may; `None` where it is no token of a caller at all.
    pub(crate) fn check(&self, bearer: &[u8], now: Timestamp) -> Option<Result<(), Denied>> {
        if let Some(own) = bearer.strip_prefix(OWN_TOKEN.as_bytes()) {
            return Some(self.own(own).ok_or(Denied::Wrong).and_then(|known| known.may(now)));
        }
        if !bearer.starts_with(WEB_TOKEN) {
            return None;
        }
        Some(self.web(bearer, now.0 / 1000).and_then(|known| known.may(now)))
    }

    fn own(&self, token: &[u8]) -> Option<&Known> {
        let (id, secret) = std::str::from_utf8(token).ok()?.split_once('.')?;
        let known = self.known.get(id)?;
        same(known.digest.as_ref()?, &sha256(secret.as_bytes())).then_some(known)
    }

    fn web(&self, token: &[u8], seconds: i64) -> Result<&Known, Denied> {
        let claims = self.claims(token).ok_or(Denied::Wrong)?;
        let (from, until) = (claims["nbf"].as_i64(), claims["exp"].as_i64());
        let meant = claims["aud"].as_str().is_some_and(|aud| SCORING.contains(&aud.trim_end_matches('/')));
        if !meant || from.is_none_or(|from| seconds + SKEW_SECONDS < from) {
            return Err(Denied::Wrong);
        }
        if until.is_none_or(|until| until <= seconds) {
            return Err(Denied::Expired);
        }
        let id = claims["sub"].as_str().unwrap_or_default();
        // Jobs of a workspace are known together.
        let id = if id.starts_with("job:") { id.find('/').map_or(id, |at| &id[..=at]) } else { id };
        self.known.get(id).ok_or(Denied::NotAllowed)
    }

    /// What a token says whose signature is good.
    fn claims(&self, token: &[u8]) -> Option<Value> {
        let (text, signature) = super::token::split_last(token)?;
        let (header, claims) = super::token::split_last(text)?;
        let read = |part: &[u8]| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
        let header = read(header)?;
        let signer = self.signers.get(header["kid"].as_str()?).filter(|_| header["alg"] == "EdDSA")?;
        signer.verify(text, &URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        read(claims)
    }
}

impl Known {
    fn may(&self, now: Timestamp) -> Result<(), Denied> {
        match self.expires_at {
            Some(at) if at <= now => Err(Denied::Expired),
            _ if !self.may_score => Err(Denied::NotAllowed),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    fn callers(public: &[u8]) -> Callers {
        let hex = |text: &str| sha256(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect::<String>();
        let known = |may_score, expires_at| KnownCaller { digest: hex("secret"), may_score, expires_at };
        let jobs = KnownCaller { may_score: true, ..KnownCaller::default() };
        let all = [
            ("ana", known(true, None)),
            ("reader", known(false, None)),
            ("gone", known(true, Some(Timestamp(50_000)))),
            ("job:team/", jobs),
        ];
        let all = all.map(|(id, caller)| (id.to_owned(), caller)).into();
        Callers::of(&all, &[("k1".to_owned(), URL_SAFE_NO_PAD.encode(public))].into())
    }

    #[test]
    fn callers_open_an_endpoint_by_who_they_are_and_what_they_may() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let callers = callers(pair.public_key().as_ref());
        let sign = |kid: &str, alg: &str, claims: Value| {
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let text = format!("{}.{}", part(&json!({"alg": alg, "kid": kid})), part(&claims));
            format!("{text}.{}", URL_SAFE_NO_PAD.encode(pair.sign(text.as_bytes())))
        };
        let web =
            |sub: &str| sign("k1", "EdDSA", json!({"sub": sub, "aud": "https://ml.azure.com", "nbf": 0, "exp": 1000}));
        let with = |claims: Value| sign("k1", "EdDSA", claims);
        let touched = format!("{}x", web("ana"));
        for (token, expected) in [
            ("pgn.ana.secret".to_owned(), Some(Ok(()))),
            ("pgn.ana.Secret".to_owned(), Some(Err(Denied::Wrong))),
            ("pgn.nobody.secret".to_owned(), Some(Err(Denied::Wrong))),
            ("pgn.job:team/.".to_owned(), Some(Err(Denied::Wrong))),
            ("pgn.reader.secret".to_owned(), Some(Err(Denied::NotAllowed))),
            ("pgn.gone.secret".to_owned(), Some(Err(Denied::Expired))),
            (web("ana"), Some(Ok(()))),
            (web("reader"), Some(Err(Denied::NotAllowed))),
            (web("nobody"), Some(Err(Denied::NotAllowed))),
            (web("job:team/train"), Some(Ok(()))),
            (web("job:other/train"), Some(Err(Denied::NotAllowed))),
            (touched, Some(Err(Denied::Wrong))),
            (sign("k2", "EdDSA", json!({"sub": "ana"})), Some(Err(Denied::Wrong))),
            (sign("k1", "none", json!({"sub": "ana"})), Some(Err(Denied::Wrong))),
            (with(json!({"sub": "ana", "aud": "https://else", "nbf": 0, "exp": 1000})), Some(Err(Denied::Wrong))),
            (with(json!({"sub": "ana", "aud": SCORING[0], "nbf": 0, "exp": 100})), Some(Err(Denied::Expired))),
            (with(json!({"sub": "ana", "aud": SCORING[0], "nbf": 200, "exp": 1000})), Some(Err(Denied::Wrong))),
            (with(json!({"sub": "ana", "aud": SCORING[0]})), Some(Err(Denied::Wrong))),
            ("iris.100.AAAA".to_owned(), None),
        ] {
            assert_eq!(callers.check(token.as_bytes(), Timestamp(100_000)), expected, "{token}");
        }
    }
}
