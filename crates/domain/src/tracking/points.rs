//! p
/// x
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub timestamp_ms: i64,
    pub step: i64,
    pub value: f64,
}
/// x
#[derive(Debug)]
pub struct Corrupt;
