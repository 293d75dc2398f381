//! A column of whole numbers: the first as it is, then by how much each change differs from the one before.
//!
//! Steps that count up and times at a steady pace are runs of zeros, and a run of zeros is a zero and its length.

use super::Corrupt;
use super::bytes::{Reader, put as put_number, unzigzag, zigzag};

/// Appends a column. Differences wrap, so every whole number fits.
pub(super) fn put(out: &mut Vec<u8>, numbers: impl Iterator<Item = i64>) {
    let mut numbers = numbers;
    let Some(mut last) = numbers.next() else { return };
    put_number(out, zigzag(last));
    let (mut change, mut steady) = (0_i64, 0_u64);
    for number in numbers {
        let now = number.wrapping_sub(last);
        let differs = now.wrapping_sub(change);
        (last, change) = (number, now);
        if differs == 0 {
            steady += 1;
            continue;
        }
        put_steady(out, &mut steady);
        put_number(out, zigzag(differs));
    }
    put_steady(out, &mut steady);
}

/// Fills a column of known length.
pub(super) fn read<'p>(reader: &mut Reader, places: impl Iterator<Item = &'p mut i64>) -> Result<(), Corrupt> {
    let mut last = unzigzag(reader.number()?);
    let (mut change, mut steady) = (0_i64, 0_u64);
    for (at, place) in places.enumerate() {
        if at > 0 && steady > 0 {
            steady -= 1;
            last = last.wrapping_add(change);
        } else if at > 0 {
            match reader.number()? {
                0 => steady = reader.number()?,
                differs => change = change.wrapping_add(unzigzag(differs)),
            }
            last = last.wrapping_add(change);
        }
        *place = last;
    }
    if steady > 0 { Err(reader.corrupt("a run longer than its column")) } else { Ok(()) }
}

/// Writes a run of unchanged changes: a zero, then how many follow the first.
fn put_steady(out: &mut Vec<u8>, steady: &mut u64) {
    if *steady > 0 {
        put_number(out, 0);
        put_number(out, *steady - 1);
        *steady = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[i64]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, numbers.iter().copied());
        out
    }

    #[test]
    fn columns_come_back() {
        let cases: [&[i64]; 8] = [
            &[0],
            &[7, 7, 7],
            &[1, 2, 3, 4, 6, 8, 10],
            &[i64::MIN, i64::MAX, i64::MIN, 0],
            &[0, 0, 1, 1, 0, 0],
            &[5, 4, 3, 9],
            &[-1, -1],
            &[1_700_000_000_000, 1_700_000_000_113, 1_700_000_000_229],
        ];
        for numbers in cases {
            let bytes = bytes(numbers);
            let mut back = vec![0; numbers.len()];
            let mut reader = Reader::new(&bytes);
            read(&mut reader, back.iter_mut()).unwrap();
            assert!(reader.is_done());
            assert_eq!(back, numbers);
        }
    }

    #[test]
    fn steady_columns_cost_a_few_bytes_whatever_their_length() {
        assert!(bytes(&(0..100_000).collect::<Vec<_>>()).len() <= 6);
        assert!(bytes(&[9; 100_000]).len() <= 5);
    }

    #[test]
    fn a_run_past_the_end_is_refused() {
        let long = bytes(&[3; 10]);
        let mut short = [0; 5];
        assert!(read(&mut Reader::new(&long), short.iter_mut()).is_err());
    }
}
