//! Which blocks of an upload are whole, on disk, so that a server that starts anew still has them.
//!
//! One line a block, only ever added to; the last line of a block counts, and a torn line counts for nothing. Blocks are not
//! synced, so a line is believed only on the boot of the machine that it was written in.

use super::Slot;
use std::{collections::BTreeMap, fs, io, io::Write, path::Path, sync::LazyLock};

static BOOT: LazyLock<String> = LazyLock::new(|| {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default()
});

pub(super) fn add(folder: &Path, id: &str, slot: Slot) -> io::Result<()> {
    let line = format!("{} {} {} {id}\n", *BOOT, slot.at, slot.bytes);
    fs::File::options().create(true).append(true).open(folder.join("index"))?.write_all(line.as_bytes())
}

/// The blocks of the lines that can be believed.
pub(super) fn read(folder: &Path) -> BTreeMap<String, Slot> {
    let text = fs::read_to_string(folder.join("index")).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter(|_| !BOOT.is_empty()).filter_map(block).collect()
}

fn block(line: &str) -> Option<(String, Slot)> {
    let mut words = line.splitn(4, ' ');
    if words.next()? != *BOOT {
        return None;
    }
    let slot = Slot { at: words.next()?.parse().ok()?, bytes: words.next()?.parse().ok()? };
    Some((words.next()?.to_owned(), slot))
}
