//! The schema and its history: forward only.
//!
//! Invariant: a database written by a newer version is never touched.

use crate::Error;

/// The schema this binary writes.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// Step `i` leads from schema `i` to `i + 1`.
const STEPS: &[&str] = &[
    include_str!("schema-1.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
    include_str!("schema-7.sql"),
    include_str!("schema-8.sql"),
    include_str!("schema-9.sql"),
    include_str!("schema-10.sql"),
    include_str!("schema-11.sql"),
];

/// What leads from a schema to the newest: the version that each step reaches, and its statements.
pub(super) fn steps_after(found: i64) -> Result<impl Iterator<Item = (i64, &'static str)>, Error> {
    let first = usize::try_from(found).map_err(|_| Error::Decode(format!("schema version {found}")))?;
    Ok((1..).zip(STEPS.iter().copied()).skip(first))
}

/// The version found in a database, if this binary may write to it.
pub(super) fn not_newer(found: i64, database: &str) -> Result<i64, Error> {
    match found > SCHEMA_VERSION {
        true => Err(Error::Newer { database: database.to_owned(), found, known: SCHEMA_VERSION }),
        false => Ok(found),
    }
}
