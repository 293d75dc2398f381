//! Who may call an endpoint: holders of one of its two keys, or of a token that its token key signed; or someone who proves
//! who they are and whose role allows it.
//!
//! Keys are compared as digests and in constant time: how long a refusal takes says nothing about how much was right.

mod callers;
pub(crate) mod token;
pub(crate) mod wrong;

use callers::Callers;
use domain::{
    Timestamp,
    spec::routes::{EndpointAuth, EndpointRoute, Secret},
};
use ring::{
    digest::{SHA256, digest},
    hmac,
};
use std::fmt;

type Digest = [u8; 32];

/// What an endpoint asks of its callers.
pub(crate) enum Access {
    Keys([Option<Digest>; 2]),
    Tokens {
        endpoint: Box<str>,
        key: hmac::Key,
    },
    /// Tokens of this endpoint open it too: that is what its owners hand out.
    Callers {
        endpoint: Box<str>,
        key: hmac::Key,
        callers: Callers,
    },
}

/// Why a caller is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No `authorization`, or not of the form `Bearer …`.
    Missing,
    /// A key or token that is not one of ours.
    Wrong,
    Expired,
    /// A good token for another endpoint.
    Elsewhere,
    /// Someone who is known, without a role that lets them call.
    NotAllowed,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Keys(_) => "Keys",
            Access::Tokens { .. } => "Tokens",
            Access::Callers { .. } => "Callers",
        })
    }
}

impl Access {
    pub(crate) fn of(endpoint: &str, route: &EndpointRoute) -> Access {
        match route.auth_mode {
            EndpointAuth::Key => {
                Access::Keys([&route.keys.primary, &route.keys.secondary].map(|key| key.as_ref().map(stored)))
            }
            EndpointAuth::AmlToken => Access::Tokens { endpoint: endpoint.into(), key: token_key(route) },
            EndpointAuth::AadToken => {
                let callers = Callers::of(&route.callers, &route.signers);
                Access::Callers { endpoint: endpoint.into(), key: token_key(route), callers }
            }
        }
    }

    /// Whether the value of `authorization` opens the endpoint.
    pub(crate) fn check(&self, authorization: Option<&[u8]>, clock: fn() -> Timestamp) -> Result<(), Denied> {
        let bearer = authorization.and_then(bearer).ok_or(Denied::Missing)?;
        match self {
            Access::Keys(keys) => {
                let given = sha256(bearer);
                // Both are compared, whichever fits.
                let fits = keys.iter().flatten().fold(false, |fits, key| fits | same(key, &given));
                if fits { Ok(()) } else { Err(Denied::Wrong) }
            }
            Access::Tokens { endpoint, key } => token::check(key, endpoint, bearer, clock()),
            Access::Callers { endpoint, key, callers } => {
                let now = clock();
                callers.check(bearer, now).unwrap_or_else(|| token::check(key, endpoint, bearer, now))
            }
        }
    }

    /// Whether the value of `authorization` is a good token of this endpoint. Keys are no tokens: they name nobody.
    pub(crate) fn has_signed(&self, authorization: Option<&[u8]>, clock: fn() -> Timestamp) -> bool {
        let (Access::Tokens { endpoint, key } | Access::Callers { endpoint, key, .. }) = self else { return false };
        let token = authorization.and_then(bearer);
        token.is_some_and(|token| token::check(key, endpoint, token, clock()).is_ok())
    }
}

/// What a token says it is for; whether that is true is another question.
pub(crate) fn named(authorization: Option<&[u8]>) -> Option<&str> {
    let (claim, _) = token::split_last(authorization.and_then(bearer)?)?;
    std::str::from_utf8(token::split_last(claim)?.0).ok()
}

fn token_key(route: &EndpointRoute) -> hmac::Key {
    token::key(route.token_key.as_ref().map(Secret::reveal).unwrap_or_default())
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| rest.trim_ascii())
}

/// The digest of a key that is written out, or the one that is written in its place.
fn stored(key: &Secret) -> Digest {
    match key.reveal().strip_prefix("sha256:") {
        Some(hex) => unhex(hex),
        None => sha256(key.reveal().as_bytes()),
    }
}

fn unhex(hex: &str) -> Digest {
    std::array::from_fn(|at| {
        hex.get(2 * at..2 * at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0)
    })
}

fn sha256(bytes: &[u8]) -> Digest {
    digest(&SHA256, bytes).as_ref().try_into().expect("a SHA-256 digest has 32 bytes")
}

fn same(a: &Digest, b: &Digest) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp(1_000_000)
    }

    #[test]
    fn either_key_opens_and_nothing_else_does() {
        let mut route = EndpointRoute::default();
        route.keys.primary = Some(Secret::new("first-key"));
        let hex: String = sha256(b"second-key").iter().map(|b| format!("{b:02x}")).collect();
        route.keys.secondary = Some(Secret::new(format!("sha256:{hex}")));
        let access = Access::of("iris", &route);
        for (given, expected) in [
            (Some("Bearer first-key"), Ok(())),
            (Some("bearer  second-key "), Ok(())),
            (Some("Bearer first-ke"), Err(Denied::Wrong)),
            (Some("Bearer "), Err(Denied::Wrong)),
            (Some("Basic first-key"), Err(Denied::Missing)),
            (Some("first-key"), Err(Denied::Missing)),
            (Some(""), Err(Denied::Missing)),
            (None, Err(Denied::Missing)),
        ] {
            assert_eq!(access.check(given.map(str::as_bytes), now), expected, "{given:?}");
        }
    }
}
