//! A database that cannot be used: refused, untouched, and restored from a backup.

use crate::harness::Home;
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::PathBuf,
};

/// Where SQLite keeps `user_version`.
const USER_VERSION_AT: u64 = 60;

/// A stopped home with one job, and a backup of its database.
fn stopped() -> (Home, PathBuf) {
    let home = Home::new();
    home.begin("kept", "echo kept", "");
    home.ended("kept");
    home.ok(&["server", "backup", "--to", "backup.db"]);
    home.ok(&["server", "stop"]);
    let backup = home.path().join("backup.db");
    (home, backup)
}

/// Puts a file in place of the database, as the message says.
fn restore(home: &Home, backup: &PathBuf) {
    for name in ["peregrine.db", "peregrine.db-wal", "peregrine.db-shm"] {
        let _not_there = fs::rename(home.home().join(name), home.path().join(name));
    }
    fs::copy(backup, home.home().join("peregrine.db")).unwrap();
}

#[test]
fn a_damaged_database_is_refused_and_a_backup_brings_it_back() {
    let (home, backup) = stopped();
    let database = home.home().join("peregrine.db");
    let damages: [&dyn Fn(); 3] = [
        &|| File::options().write(true).open(&database).unwrap().write_all_at(&[0xff; 1900], 100).unwrap(),
        &|| fs::write(&database, "this is not a database, it only stands where one should be").unwrap(),
        &|| File::options().write(true).open(&database).unwrap().set_len(9000).unwrap(),
    ];
    for damage in damages {
        restore(&home, &backup);
        damage();
        let before = fs::read(&database).unwrap();
        let words = ["peregrine.db`", "is damaged", "to restore", "backups`", "peregrine server backup"];
        home.run(&["server", "start"]).must(2, &words);
        home.run(&["server", "start", "--foreground"]).must(2, &words);
        home.run(&["job", "list"]).must(2, &words);
        assert!(fs::read(&database).unwrap() == before, "what may still be saved is left as it is");
    }
    restore(&home, &backup);
    assert_eq!(home.job("kept")["status"], "Completed");
    home.is_well();
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let (home, backup) = stopped();
    restore(&home, &backup);
    let database = home.home().join("peregrine.db");
    let file = File::options().write(true).open(&database).unwrap();
    file.write_all_at(&99_u32.to_be_bytes(), USER_VERSION_AT).unwrap();
    let before = fs::read(&database).unwrap();
    let words = ["peregrine.db`", "newer Peregrine", "schema 99", "start that version", "restore a backup"];
    home.run(&["server", "start"]).must(2, &words);
    home.run(&["job", "list"]).must(2, &words);
    assert!(fs::read(&database).unwrap() == before);
    restore(&home, &backup);
    home.is_well();
}

#[test]
fn a_backup_never_overwrites() {
    let (home, backup) = stopped();
    home.run(&["server", "backup", "--to", "backup.db"])
        .must(2, &["backup.db`", "already exists", "choose another name"]);
    assert!(backup.exists());
}
