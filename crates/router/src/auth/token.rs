//! Tokens: an endpoint's name and an expiry, signed. `<endpoint>.<unix seconds>.<signature>`.
//!
//! Nothing is looked up to check one, and nothing has to be kept to hand one out.

use super::Denied;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::Timestamp;
use ring::hmac;

/// A token that opens `endpoint` until `expires`, for routes with the same `token_key`.
pub fn mint(token_key: &str, endpoint: &str, expires: Timestamp) -> String {
    let claim = format!("{endpoint}.{}", expires.0 / 1000);
    let signature = hmac::sign(&key(token_key), claim.as_bytes());
    format!("{claim}.{}", URL_SAFE_NO_PAD.encode(signature))
}

pub(super) fn key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

pub(super) fn check(key: &hmac::Key, endpoint: &str, token: &[u8], now: Timestamp) -> Result<(), Denied> {
    let (claim, signature) = split_last(token).ok_or(Denied::Wrong)?;
    let mut decoded = [0; 48];
    let length = URL_SAFE_NO_PAD.decode_slice(signature, &mut decoded).map_err(|_| Denied::Wrong)?;
    hmac::verify(key, claim, &decoded[..length]).map_err(|_| Denied::Wrong)?;
    let (name, expires) = split_last(claim).ok_or(Denied::Wrong)?;
    let expires: i64 = std::str::from_utf8(expires).ok().and_then(|text| text.parse().ok()).ok_or(Denied::Wrong)?;
    match expires.saturating_mul(1000) > now.0 {
        _ if name != endpoint.as_bytes() => Err(Denied::Elsewhere),
        true => Ok(()),
        false => Err(Denied::Expired),
    }
}

pub(super) fn split_last(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(|b| *b == b'.')?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_its_endpoint_until_it_expires() {
        let token = mint("a secret of sixteen", "iris", Timestamp(60_000));
        let forged = token.replacen("60", "99", 1);
        for (token, endpoint, now, expected) in [
            (token.as_str(), "iris", 59_999, Ok(())),
            (&token, "iris", 60_000, Err(Denied::Expired)),
            (&token, "other", 0, Err(Denied::Elsewhere)),
            (&forged, "iris", 0, Err(Denied::Wrong)),
            (&token[..token.len() - 2], "iris", 0, Err(Denied::Wrong)),
            ("iris", "iris", 0, Err(Denied::Wrong)),
            ("..", "iris", 0, Err(Denied::Wrong)),
            ("", "iris", 0, Err(Denied::Wrong)),
        ] {
            let got = check(&key("a secret of sixteen"), endpoint, token.as_bytes(), Timestamp(now));
            assert_eq!(got, expected, "{token} at {now}");
        }
    }
}
