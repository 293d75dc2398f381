//! Files: names, drafts, notes, listing, room and what is swept away.

use super::*;
use std::{io::Write, os::unix::fs::symlink, time::Duration};
use tempfile::TempDir;

fn files() -> (TempDir, Files) {
    let home = tempfile::tempdir().unwrap();
    let files = Files::under(home.path());
    (home, files)
}

fn spot(path: &str) -> Spot {
    Spot::parse("w", "c", path).unwrap()
}

fn put(files: &Files, path: &str, text: &str, only_new: bool) -> Put {
    let draft = files.draft().unwrap();
    draft.file().write_all(text.as_bytes()).unwrap();
    files.publish(draft, &spot(path), Note::default(), only_new, None).unwrap()
}

fn drafts(home: &TempDir) -> usize {
    fs::read_dir(home.path().join("blobs/.drafts")).map_or(0, Iterator::count)
}

#[test]
fn a_path_never_leaves_its_container() {
    let files = Files::under(Path::new("/h"));
    let long = "x/".repeat(600) + "x";
    for bad in ["", "../x", "a/../../x", "/etc/passwd", "a/./b", "a\0b", "a//b", "a/", &long, &"n".repeat(256)] {
        assert!(files.blob("w", "c", bad).is_err(), "{bad:?}");
    }
    for (workspace, container) in [("..", "c"), ("w", "a/b"), (".drafts", "c"), ("w", "."), ("w", "")] {
        assert!(files.blob(workspace, container, "a").is_err(), "{workspace} {container}");
        assert!(files.list(workspace, container, "", "", 1).is_err());
    }
    for good in ["a/b.txt", "ü/日本/🦅", "a..b", "...", " "] {
        assert_eq!(files.blob("w", "c", good).unwrap(), Path::new("/h/blobs/w/c").join(good));
    }
}

#[test]
fn publishing_twice_keeps_the_first_and_leaves_no_draft() {
    let (home, files) = files();
    assert!(matches!(put(&files, "x/y", "one", true), Put::Done { .. }));
    assert!(matches!(put(&files, "x/y", "two", true), Put::Exists));
    assert_eq!(fs::read_to_string(files.blob("w", "c", "x/y").unwrap()).unwrap(), "one");
    assert_eq!(files.list("w", "c", "x/", "", 10).unwrap().len(), 1);
    assert_eq!(drafts(&home), 0);
}

#[test]
fn a_name_is_a_blob_or_a_folder_and_not_both() {
    let (_home, files) = files();
    put(&files, "a/b", "x", false);
    for only_new in [true, false] {
        assert!(matches!(put(&files, "a", "x", only_new), Put::Blocked(name) if name == "a"));
        assert!(matches!(put(&files, "a/b/c/d", "x", only_new), Put::Blocked(name) if name == "a/b"));
    }
    assert!(files.delete(&spot("a/b")).unwrap());
    assert!(!files.delete(&spot("a/b")).unwrap());
    assert!(matches!(put(&files, "a", "x", true), Put::Done { .. }), "the empty folder went with its last blob");
}

#[test]
fn a_link_is_never_followed_out_of_the_container() {
    let (home, files) = files();
    put(&files, "d/f", "inside", false);
    let container = files.container("w", "c");
    let outside = home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "outside").unwrap();
    symlink(&outside, container.join("out")).unwrap();
    symlink(outside.join("secret"), container.join("file")).unwrap();
    symlink("d/f", container.join("in")).unwrap();
    for path in ["out/secret", "file"] {
        assert!(files.open(&spot(path)).unwrap().is_none(), "{path}");
        assert!(!files.delete(&spot(path)).unwrap(), "{path}");
    }
    assert!(files.open(&spot("in")).unwrap().is_some());
    assert!(matches!(put(&files, "out/new", "x", false), Put::Blocked(name) if name == "out"));
    assert!(matches!(put(&files, "file", "x", false), Put::Done { .. }), "the link itself is replaced");
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "outside");
    assert!(!outside.join("new").exists());
    let names: Vec<String> = files.list("w", "c", "", "", 10).unwrap().into_iter().map(|found| found.path).collect();
    assert_eq!(names, ["d/f", "file"]);
    assert!(files.list("w", "c", "out/", "", 10).unwrap().is_empty());
}

#[test]
fn a_pipe_in_the_place_of_a_blob_holds_nobody_up() {
    let (_home, files) = files();
    put(&files, "f", "x", false);
    let pipe = files.container("w", "c").join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(files.open(&spot("pipe")).unwrap().is_none());
}

#[test]
fn a_note_comes_with_its_bytes_and_its_digest_ends_with_them() {
    let (_home, files) = files();
    let draft = files.draft().unwrap();
    draft.file().write_all(b"x").unwrap();
    let mut note = Note::default();
    note.set_metadata([("upload_status".to_owned(), "completed".to_owned())]);
    note.set_header("content-type", "text/plain");
    note.set_md5(Some("nd/5"));
    files.publish(draft, &spot("f"), note, false, None).unwrap();
    let (file, found) = files.open(&spot("f")).unwrap().unwrap();
    let note = Note::read(&file).unwrap();
    if note.lies_elsewhere() {
        return; // This disk has no attributes; the server keeps such notes in the database.
    }
    assert_eq!(note.metadata().collect::<Vec<_>>(), [("upload_status", "completed")]);
    assert_eq!((note.header("content-type"), note.md5(&found)), (Some("text/plain"), Some("nd/5")));
    fs::File::options().append(true).open(files.blob("w", "c", "f").unwrap()).unwrap().write_all(b"y").unwrap();
    let (file, found) = files.open(&spot("f")).unwrap().unwrap();
    assert_eq!(Note::read(&file).unwrap().md5(&found), None, "a job wrote to the file");
    put(&files, "f", "z", false);
    let (file, _) = files.open(&spot("f")).unwrap().unwrap();
    assert_eq!(Note::read(&file).unwrap().metadata().count(), 0, "another blob took its place");
}

#[test]
fn pages_in_order_are_the_whole_tree_whatever_their_size() {
    let (_home, files) = files();
    let container = files.container("w", "c");
    let mut expected: Vec<String> = Vec::new();
    for folder in ["a", "a.b", "a-b", "a0", "deep/er/still", "ü", "empty/none"] {
        fs::create_dir_all(container.join(folder)).unwrap();
        for n in 0..if folder.starts_with("empty") { 0 } else { 23 } {
            expected.push(format!("{folder}/{n}"));
        }
    }
    expected.extend(["a.txt", "a-", "A", "deep/x", "deep.x"].map(str::to_owned));
    expected.iter().for_each(|path| fs::write(container.join(path), "x").unwrap());
    expected.sort();
    for limit in [1, 7, 50, 1000] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let wanted = Listing { prefix: "", delimiter: None, after: &after, limit };
            let (page, more) = files.page("w", "c", &wanted).unwrap();
            seen.extend(page.iter().map(|entry| entry.name().to_owned()));
            if !more {
                break;
            }
            after = seen.last().unwrap().clone();
        }
        assert_eq!(seen, expected, "{limit} to a page");
    }
}

#[test]
fn a_delimiter_folds_names_and_a_page_goes_on_behind_the_fold() {
    let (_home, files) = files();
    let container = files.container("w", "c");
    for path in ["a/1", "a/2/3", "ab/1", "b", "b-1", "b-2", "c/d/e"] {
        fs::create_dir_all(container.join(path).parent().unwrap()).unwrap();
        fs::write(container.join(path), "x").unwrap();
    }
    fs::create_dir_all(container.join("hollow/inside")).unwrap();
    let all = |prefix: &str, delimiter: &str, limit: usize| {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let wanted = Listing { prefix, delimiter: Some(delimiter), after: &after, limit };
            let (page, more) = files.page("w", "c", &wanted).unwrap();
            seen.extend(page.iter().map(|entry| entry.name().to_owned()));
            if !more {
                return seen.join(" ");
            }
            after = seen.last().unwrap().clone();
        }
    };
    for limit in [1, 2, 100] {
        for (prefix, delimiter, expected) in [
            ("", "/", "a/ ab/ b b-1 b-2 c/"),
            ("a", "/", "a/ ab/"),
            ("a/", "/", "a/1 a/2/"),
            ("", "-", "a/1 a/2/3 ab/1 b b- c/d/e"),
            ("none", "/", ""),
        ] {
            assert_eq!(all(prefix, delimiter, limit), expected, "{prefix:?} {delimiter:?} {limit}");
        }
    }
}

#[test]
fn a_folder_of_more_names_than_are_held_at_a_time_is_listed_whole() {
    let (_home, files) = files();
    let container = files.container("w", "c");
    fs::create_dir_all(&container).unwrap();
    (0..3000).for_each(|n| drop(fs::File::create(container.join(format!("{n:04}"))).unwrap()));
    let names: Vec<String> = files.list("w", "c", "", "0999", 10_000).unwrap().into_iter().map(|f| f.path).collect();
    assert_eq!((names.len(), names[0].as_str(), names[1999].as_str()), (2000, "1000", "2999"));
}

#[test]
fn room_is_what_is_stored_and_what_is_coming() {
    let (_home, files) = files();
    put(&files, "f", "12345", false);
    let coming = files.room("w", 3, 10).unwrap();
    assert_eq!(files.room("w", 3, 10).unwrap_err().held, 8);
    drop(coming);
    drop(files.room("w", 5, 10).unwrap());
    put(&files, "f", "12", false);
    put(&files, "g", "1234", false);
    assert_eq!(files.room("w", 9, 10).unwrap_err().held, 6);
    files.delete(&spot("g")).unwrap();
    drop(files.room("w", 8, 10).unwrap());
    fs::write(files.blob("w", "c", "by-a-job").unwrap(), "12345678").unwrap();
    files.recount_all();
    assert_eq!(files.room("w", 1, 10).unwrap_err().held, 10);
    assert!(files.room("w", u64::MAX, 0).is_ok(), "no limit");
}

#[test]
fn what_nobody_finished_is_removed_a_day_later_and_not_before() {
    let (home, files) = files();
    let room = || files.room("w", 0, 0).unwrap();
    let block = files.stage(&spot("f"), "MQ==", 1, room()).unwrap();
    block.file().write_all(b"x").unwrap();
    block.finish().unwrap();
    let draft = files.draft().unwrap();
    let made = domain::Timestamp(fs::metadata(draft.path()).unwrap().mtime() * 1000);
    let after = |life: Duration, more: i64| domain::Timestamp(made.0 + life.as_millis() as i64 + more);
    assert_eq!(files.sweep_drafts(after(DRAFT_LIFE, -5000)), 0);
    assert_eq!((files.sweep_drafts(after(DRAFT_LIFE, 60_000)), drafts(&home)), (2, 0));
    assert!(files.assemble(&spot("f"), &["MQ==".to_owned()]).unwrap().is_err(), "the block is forgotten");
    for container in ["snap-1", "snap-2", "other"] {
        fs::create_dir_all(files.container("w", container)).unwrap();
    }
    assert!(files.old_snapshots(after(SNAPSHOT_LIFE, -60_000)).is_empty());
    let old = files.old_snapshots(after(SNAPSHOT_LIFE, 60_000));
    let referred = snapshots_in("{\"codeUri\": \"https://h/blob/w.blob.x/snap-2/src\"}").collect();
    assert_eq!(files.sweep_snapshots(&old, &referred), 1);
    let left = ["snap-1", "snap-2", "other"].map(|container| files.container("w", container).exists());
    assert_eq!(left, [false, true, true]);
}
