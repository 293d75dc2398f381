//! Blocks: wherever they were put, a list makes of them what it says.

use super::*;
use base64::{Engine, engine::general_purpose::STANDARD};
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

fn files() -> (TempDir, Files) {
    let home = tempfile::tempdir().unwrap();
    let files = Files::under(home.path());
    (home, files)
}

fn spot() -> Spot {
    Spot::parse("w", "c", "big").unwrap()
}

fn begin(files: &Files, id: &str, text: &str) -> Block {
    let block = files.stage(&spot(), id, text.len() as u64, files.room("w", 0, 0).unwrap()).unwrap();
    block.file().write_all_at(text.as_bytes(), block.offset()).unwrap();
    block
}

fn stage(files: &Files, id: &str, text: &str) {
    assert!(begin(files, id, text).finish().unwrap());
}

fn assembled(files: &Files, ids: &[&str]) -> Result<String, String> {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let draft = files.assemble(&spot(), &ids).unwrap().map_err(|unknown| unknown.0)?;
    Ok(fs::read_to_string(draft.path()).unwrap())
}

/// Names as clients make them: by index, by offset under two layers, and without any number.
fn named(style: usize, index: usize, bytes: usize) -> String {
    match style {
        0 => STANDARD.encode(format!("{index:08}")),
        1 => STANDARD.encode(STANDARD.encode(format!("{:032}", index * bytes)).replace('=', "%3D")),
        _ => STANDARD.encode(format!("block-{index}-x")),
    }
}

#[test]
fn any_order_of_arrival_makes_the_blob_its_list_says() {
    for style in 0..3 {
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
            let (home, files) = files();
            let parts = ["aaaa", "bbbb", "cccc", "dddd", "e"];
            let ids: Vec<String> = (0..5).map(|n| named(style, n, 4)).collect();
            order.iter().for_each(|n| stage(&files, &ids[*n], parts[*n]));
            let list: Vec<&str> = ids.iter().map(String::as_str).collect();
            assert_eq!(assembled(&files, &list).unwrap(), "aaaabbbbccccdddde", "{style} {order:?}");
            let left = fs::read_dir(home.path().join("blobs/.drafts")).unwrap().count();
            assert_eq!(left, 0, "nothing is left behind");
        }
    }
}

#[test]
fn a_list_may_leave_out_repeat_and_turn_around() {
    let (_home, files) = files();
    let ids: Vec<String> = (0..3).map(|n| named(0, n, 2)).collect();
    for (id, text) in ids.iter().zip(["aa", "bb", "cc"]) {
        stage(&files, id, text);
    }
    assert_eq!(assembled(&files, &[&ids[2], &ids[0], &ids[2]]).unwrap(), "ccaacc");
    assert_eq!(assembled(&files, &[&ids[0]]).unwrap_err(), ids[0], "a commit ends the upload");
}

#[test]
fn a_block_sent_again_replaces_the_first_and_half_of_one_does_not() {
    let (_home, files) = files();
    let ids: Vec<String> = (0..2).map(|n| named(0, n, 4)).collect();
    stage(&files, &ids[0], "old!");
    stage(&files, &ids[1], "tail");
    drop(begin(&files, &ids[0], "half"));
    assert_eq!(files.staged(&spot()).len(), 2);
    stage(&files, &ids[0], "new!");
    assert_eq!(assembled(&files, &[&ids[0], &ids[1]]).unwrap(), "new!tail");
}

#[test]
fn a_writer_that_comes_too_late_does_not_touch_the_blob() {
    let (_home, files) = files();
    let ids: Vec<String> = (0..2).map(|n| named(0, n, 4)).collect();
    stage(&files, &ids[0], "done");
    let late = begin(&files, &ids[1], "late");
    let draft = files.assemble(&spot(), &ids[..1]).unwrap().unwrap();
    late.file().write_all_at(b"LATE", 0).unwrap();
    assert_eq!(fs::read_to_string(draft.path()).unwrap(), "done");
    assert!(!late.finish().unwrap());
}

#[test]
fn blocks_outlive_the_server_but_not_a_torn_line() {
    let (home, files) = files();
    let ids: Vec<String> = (0..3).map(|n| named(1, n, 4)).collect();
    ids.iter().zip(["aaaa", "bbbb", "cc"]).for_each(|(id, text)| stage(&files, id, text));
    let index = files.uploads.folder.join(key(&spot())).join("index");
    let text = fs::read_to_string(&index).unwrap();
    fs::write(&index, &text[..text.len() - 3]).unwrap();
    let files = Files::under(home.path());
    stage(&files, &ids[2], "CC");
    let list: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(assembled(&files, &list).unwrap(), "aaaabbbbCC");
}

#[test]
fn uploads_hold_the_room_of_their_blocks_until_they_end() {
    let (_home, files) = files();
    let id = named(0, 0, 4);
    let block = files.stage(&spot(), &id, 4, files.room("w", 4, 6).unwrap()).unwrap();
    block.finish().unwrap();
    assert_eq!(files.room("w", 4, 6).unwrap_err().held, 4);
    assert!(files.assemble(&spot(), &[id]).is_ok());
    drop(files.room("w", 6, 6).unwrap());
}
