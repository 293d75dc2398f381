//! Time and chance: the one door through which the command line takes them.

use domain::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use std::time::UNIX_EPOCH;

/// This moment.
#[expect(clippy::disallowed_methods, reason = "this is the door for time")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Fresh random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// A random name in the form of a GUID.
pub(crate) fn guid() -> String {
    let hex: String = random::<16>().iter().map(|b| format!("{b:02x}")).collect();
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}
