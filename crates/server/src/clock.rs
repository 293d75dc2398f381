//! The one door through which the time of day comes in.

use domain::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, by the system's clock.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
