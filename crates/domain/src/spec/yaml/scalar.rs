//! What a plain scalar is: null, boolean, number or text.
//!
//! Numbers that PyYAML and YAML 1.2 read differently (`0777`, `1e5`, `12:30`) stay text: whoever needs a number
//! asks for it by key, and everyone else gets exactly what was typed.

use super::Raw;

/// Reads an unquoted scalar.
pub(crate) fn resolve(source: &str) -> Raw {
    match source {
        "" | "~" | "null" | "Null" | "NULL" => return Raw::Null,
        "true" | "True" | "TRUE" => return Raw::Bool { value: true, source: source.to_owned() },
        "false" | "False" | "FALSE" => return Raw::Bool { value: false, source: source.to_owned() },
        _ => {}
    }
    let source = source.to_owned();
    if let Some(value) = integer(&source) {
        return Raw::Int { value, source };
    }
    match float(&source) {
        Some(value) => Raw::Float { value, source },
        None => Raw::Text { text: source, quoted: false },
    }
}

/// Decimal without leading zeros, or hexadecimal; `_` may separate digits.
fn integer(source: &str) -> Option<i64> {
    let (negative, digits) = split_sign(source);
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) if all_digits(hex, 16) => i64::from_str_radix(&hex.replace('_', ""), 16).ok()?,
        Some(_) => return None,
        None if digits.len() > 1 && digits.starts_with('0') => return None,
        None if all_digits(digits, 10) => digits.replace('_', "").parse().ok()?,
        None => return None,
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// A decimal fraction, with or without an exponent. A number too large for 64 bits counts as one too.
fn float(source: &str) -> Option<f64> {
    let (_, rest) = split_sign(source);
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let fraction = match mantissa.split_once('.') {
        Some((whole, part)) => {
            let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit() || b == b'_');
            digits(whole) && digits(part) && mantissa.bytes().any(|b| b.is_ascii_digit())
        }
        None => exponent.is_none() && mantissa.len() >= 19 && !mantissa.starts_with('0') && all_digits(mantissa, 10),
    };
    let exponent_ok = exponent.is_none_or(|e| all_digits(split_sign(e).1, 10));
    if !fraction || !exponent_ok || rest.starts_with('_') {
        return None;
    }
    source.replace('_', "").parse().ok().filter(|value: &f64| value.is_finite())
}

fn split_sign(source: &str) -> (bool, &str) {
    match source.as_bytes().first() {
        Some(b'-') => (true, &source[1..]),
        Some(b'+') => (false, &source[1..]),
        _ => (false, source),
    }
}

fn all_digits(text: &str, radix: u32) -> bool {
    text.starts_with(|c: char| c.is_digit(radix)) && text.chars().all(|c| c.is_digit(radix) || c == '_')
}
