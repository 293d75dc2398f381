//! The token with which one node of a cluster fetches one piece of data from another.
//!
//! It is signed with what the server and the lending node both know, so that the node need not ask. Invariant: it opens one
//! entry on one node, until it expires.

use domain::Timestamp;
use ring::hmac;

/// How long a token is good for.
pub const LIFE_MS: i64 = 10 * 60_000;

/// A token for the entry `key` on the node whose own token is `secret`.
pub fn token(secret: &str, key: &str, now: Timestamp) -> String {
    let expires = now.0 + LIFE_MS;
    let sum = hmac::sign(&signer(secret), claim(key, expires).as_bytes());
    let sum: String = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{expires}.{sum}")
}

/// Whether a token opens an entry now.
pub fn opens(secret: &str, key: &str, token: &str, now: Timestamp) -> bool {
    let Some((expires, sum)) = token.split_once('.') else { return false };
    let Ok(expires) = expires.parse::<i64>() else { return false };
    let digit = |at: usize| u8::from_str_radix(sum.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..sum.len()).step_by(2).map(digit).collect();
    let signed = |bytes: Vec<u8>| hmac::verify(&signer(secret), claim(key, expires).as_bytes(), &bytes).is_ok();
    now.0 < expires && bytes.is_some_and(signed)
}

fn signer(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

fn claim(key: &str, expires: i64) -> String {
    format!("peer {key} {expires}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_one_entry_of_one_node_for_a_while() {
        let made = token("node", "k", Timestamp(0));
        assert!(opens("node", "k", &made, Timestamp(LIFE_MS - 1)));
        assert!(!opens("node", "k", &made, Timestamp(LIFE_MS)));
        assert!(!opens("node", "l", &made, Timestamp(0)) && !opens("other", "k", &made, Timestamp(0)));
        let later = format!("{}{}", LIFE_MS * 2, &made[made.find('.').unwrap()..]);
        for bad in [later.as_str(), "", ".", "600000.", "600000.zz", "600000.0", "x.00"] {
            assert!(!opens("node", "k", bad, Timestamp(0)), "{bad}");
        }
    }
}
