//! Amounts as Kubernetes writes them: `100m`, `1.5Gi`, `2e3`.
//!
//! Invariant: exact. What is smaller than the unit asked for is rounded up, as Kubernetes does.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Thousandths, as CPU is counted; `None` for what is no amount, is negative or does not fit.
pub fn milli(quantity: &Quantity) -> Option<u64> {
    parse(&quantity.0, 1000)
}

/// Whole units, as memory and devices are counted.
pub fn units(quantity: &Quantity) -> Option<u64> {
    parse(&quantity.0, 1)
}

/// The value times `scale`, rounded up.
fn parse(text: &str, scale: u128) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // More digits than any amount has would only overflow.
    if number.len() > 24 || fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (times, per) = factor(suffix)?;
    let over = digits.checked_mul(times)?.checked_mul(scale)?;
    let under = per.checked_mul(10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?)?;
    over.div_ceil(under).try_into().ok()
}

/// What a suffix multiplies with and divides by.
fn factor(suffix: &str) -> Option<(u128, u128)> {
    let decimal = |exponent: u32| (10u128.pow(exponent), 1);
    let binary = |exponent: u32| (1u128 << (10 * exponent), 1);
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10u128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 { (1, power) } else { (power, 1) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_kubernetes_reads_them() {
        for (text, thousandths, whole) in [
            ("100m", Some(100), Some(1)),
            ("1", Some(1000), Some(1)),
            ("0.6", Some(600), Some(1)),
            (".5", Some(500), Some(1)),
            ("1536Mi", Some(1536 * 1_048_576_000), Some(1536 << 20)),
            ("1.5Gi", Some(3 * 536_870_912_000), Some(3 << 29)),
            ("2e3", Some(2_000_000), Some(2000)),
            ("5E-1", Some(500), Some(1)),
            ("500u", Some(1), Some(1)),
            ("1E", None, Some(1_000_000_000_000_000_000)),
            ("-1", None, None),
            ("", None, None),
            (".", None, None),
            ("1.2.3", None, None),
            ("1gi", None, None),
            ("1 Gi", None, None),
            ("lots", None, None),
            ("99999999999999999999999999", None, None),
        ] {
            let quantity = Quantity(text.to_owned());
            assert_eq!((milli(&quantity), units(&quantity)), (thousandths, whole), "{text}");
        }
    }
}
