//! Files that grow at their end while someone reads them: logs of work elsewhere.
//!
//! Invariant: bytes that are there are never written again, so a piece that comes twice, or half a piece, does no harm.

use super::{Files, Room, Spot, beneath, full_or};
use crate::Error;
use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};
use std::{fs, io, os::unix::fs::FileExt};

/// What became of a piece: how long the file is now.
#[derive(Debug, PartialEq, Eq)]
pub enum Appended {
    Length(u64),
    /// The piece begins behind the end of the file, and was not taken.
    Gap(u64),
}

impl Files {
    /// Adds what is new of a piece that begins at `offset`. It is on disk for good after [`Files::settle`].
    pub fn append(&self, spot: &Spot, offset: u64, bytes: &[u8], room: Room) -> Result<Appended, Error> {
        let container = self.container(&spot.workspace, &spot.container);
        let fail = |source| full_or(source, "write to", container.join(&spot.path));
        let _turn = self.turn(spot);
        let file = self.growing(spot).map_err(fail)?;
        let length = file.metadata().map_err(fail)?.len();
        let Some(known) = length.checked_sub(offset) else { return Ok(Appended::Gap(length)) };
        let new = usize::try_from(known).ok().and_then(|known| bytes.get(known..)).unwrap_or_default();
        file.write_all_at(new, length).map_err(fail)?;
        drop(room);
        self.usage.stored(&spot.workspace, new.len() as u64, 0);
        Ok(Appended::Length(length + new.len() as u64))
    }

    /// Makes the files in the folder of this one survive a power cut.
    pub fn settle(&self, spot: &Spot) -> Result<(), Error> {
        let folder = self.container(&spot.workspace, &spot.container).join(spot.split().0);
        let Ok(entries) = fs::read_dir(&folder) else { return Ok(()) };
        let settle = |entry: fs::DirEntry| {
            let plain = entry.file_type()?.is_file();
            if plain { fs::File::open(entry.path())?.sync_all() } else { Ok(()) }
        };
        let all = entries.flatten().try_for_each(settle).and_then(|()| fs::File::open(&folder)?.sync_all());
        all.map_err(|source| full_or(source, "sync", folder))
    }

    /// A plain file to write to, made if it is not there; never a link, wherever it leads.
    fn growing(&self, spot: &Spot) -> io::Result<fs::File> {
        let (parent, name) = spot.split();
        let folder = beneath::make_folder(&self.container(&spot.workspace, &spot.container), parent)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = fs::File::from(openat(&folder, name, flags, Mode::from_raw_mode(0o644))?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::INVAL.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_that_comes_twice_is_kept_once_and_a_gap_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let files = Files::under(home.path());
        let spot = Spot::parse("w", "c", "logs/a.txt").unwrap();
        let add = |offset, bytes: &[u8]| files.append(&spot, offset, bytes, files.room("w", 0, 0).unwrap()).unwrap();
        for (offset, bytes, expect) in [
            (0, "hello ", Appended::Length(6)),
            (0, "hello ", Appended::Length(6)),
            (3, "lo world", Appended::Length(11)),
            (2, "", Appended::Length(11)),
            (12, "x", Appended::Gap(11)),
            (11, "!", Appended::Length(12)),
        ] {
            assert_eq!(add(offset, bytes.as_bytes()), expect, "{bytes:?} at {offset}");
        }
        files.settle(&spot).unwrap();
        assert_eq!(fs::read_to_string(files.container("w", "c").join("logs/a.txt")).unwrap(), "hello world!");
    }

    #[test]
    fn a_link_in_the_place_of_a_log_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let files = Files::under(home.path());
        let outside = home.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        fs::create_dir_all(files.container("w", "c").join("logs")).unwrap();
        std::os::unix::fs::symlink(&outside, files.container("w", "c").join("logs/a.txt")).unwrap();
        let spot = Spot::parse("w", "c", "logs/a.txt").unwrap();
        assert!(files.append(&spot, 4, b"yours", files.room("w", 0, 0).unwrap()).is_err());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    }
}
