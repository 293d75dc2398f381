//! Where a block goes in its upload's file, and what a list of blocks makes of it.

use super::{Slot, State};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::{fs, io};

/// No upload has this many blocks, so a larger number is an offset.
const MOST_BLOCKS: u64 = 50_000;
/// No blob is larger than this, so a block is never put beyond it.
const FURTHEST: u64 = 5 << 40;

/// Where its name says, if that stretch is free; behind everything else otherwise.
pub(super) fn place(state: &State, id: &str, bytes: u64) -> u64 {
    let hint = number_in(id).and_then(|n| {
        let at = if n < MOST_BLOCKS { n.checked_mul(state.step.max(bytes))? } else { n };
        (at.checked_add(bytes)? <= FURTHEST && is_free(state, at, bytes)).then_some(at)
    });
    let end = || state.taken.last_key_value().map_or(0, |(at, bytes)| at + bytes);
    hint.unwrap_or_else(end)
}

fn is_free(state: &State, at: u64, bytes: u64) -> bool {
    let before = state.taken.range(..at + bytes).next_back();
    before.is_none_or(|(begin, length)| begin + length <= at)
}

/// The number that a client counts its blocks by, under whatever layers of encoding.
fn number_in(id: &str) -> Option<u64> {
    let mut text = id.to_owned();
    for _ in 0..3 {
        text = String::from_utf8(STANDARD.decode(text.replace("%3D", "=")).ok()?).ok()?;
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok();
        }
    }
    None
}

/// The length of the file if these slots are its bytes from the first to the last.
pub(super) fn in_order(slots: &[Slot]) -> Option<u64> {
    slots.iter().try_fold(0, |end, slot| (slot.at == end || slot.bytes == 0).then_some(end + slot.bytes))
}

/// Copies slots one after another into an empty file, in the kernel where it can.
pub(super) fn copy(from: &fs::File, slots: &[Slot], to: &fs::File) -> io::Result<()> {
    let mut end = 0;
    for slot in slots {
        let (mut at, last) = (slot.at, slot.at + slot.bytes);
        while at < last {
            let length = usize::try_from(last - at).unwrap_or(usize::MAX).min(1 << 30);
            match rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut end), length) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) if errno == rustix::io::Errno::NOSPC || errno == rustix::io::Errno::DQUOT => {
                    return Err(errno.into());
                }
                Err(_) => copy_piece(from, &mut at, to, &mut end, length)?,
            }
        }
    }
    Ok(())
}

fn copy_piece(from: &fs::File, at: &mut u64, to: &fs::File, end: &mut u64, length: usize) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0; length.min(256 << 10)];
    from.read_exact_at(&mut buffer, *at)?;
    to.write_all_at(&buffer, *end)?;
    *at += buffer.len() as u64;
    *end += buffer.len() as u64;
    Ok(())
}
