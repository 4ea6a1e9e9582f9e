#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::audit::{Chain, Gap, Record, SCHEMA, seal};

const NEVER: Rotation = Rotation { bytes: None, keep: 0 };

fn line(number: u64, last: &mut Option<Link>) -> Vec<u8> {
    let gap = Gap { schema: SCHEMA, time: String::new(), queue_full: number, not_written: 0 };
    let mut lines = Vec::new();
    *last = Some(seal(&serde_json::to_string(&Record::Gap(gap)).unwrap(), *last, &mut lines));
    lines
}

/// The numbers of the intact lines of all files, and how many lines are damaged or out of order.
fn read(path: &Path) -> (Vec<u64>, usize) {
    let mut files: Vec<PathBuf> = rotated(path).unwrap().into_iter().map(|(_, file)| file).collect();
    files.push(path.to_owned());
    let (mut numbers, mut bad, mut chain) = (Vec::new(), 0, Chain::default());
    for file in files {
        for text in fs::read_to_string(file).unwrap().lines().filter(|text| !text.is_empty()) {
            match open_line(text) {
                Ok(line) => {
                    bad += usize::from(chain.follow(&line).is_err());
                    match line.record {
                        Record::Gap(gap) => numbers.push(gap.queue_full),
                        Record::Call(call) => panic!("unexpected {call:?}"),
                    }
                }
                Err(_) => {
                    bad += 1;
                    chain.damaged();
                }
            }
        }
    }
    (numbers, bad)
}

#[test]
fn files_are_set_aside_in_order_without_losing_a_line_and_a_new_process_goes_on_with_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let rotation = Rotation { bytes: Some(1000), keep: 0 };
    let mut number = 0;
    for process in 0..4 {
        let (mut file, mut last) = AuditFile::open(&path, rotation).unwrap();
        assert_eq!(last.is_some(), process > 0);
        for _ in 0..17 {
            let lines = line(number, &mut last);
            file.make_room(lines.len()).unwrap();
            file.write(&lines).unwrap();
            number += 1;
        }
        if process == 1 {
            // Ends just after a file was set aside: the chain goes on from that one.
            assert!(file.make_room(usize::MAX >> 1).unwrap());
        }
    }
    assert_eq!(read(&path), ((0..number).collect(), 0));
    let files = rotated(&path).unwrap();
    assert!(files.len() > 10, "{files:?}");
    assert!(files.iter().all(|(_, file)| fs::metadata(file).unwrap().len() <= 1000));
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), files.len() + 1, "{names:?}");
}

#[test]
fn only_as_many_files_are_kept_as_asked_for_and_the_newest_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (mut file, mut last) = AuditFile::open(&path, Rotation { bytes: Some(1), keep: 2 }).unwrap();
    for number in 0..8 {
        let lines = line(number, &mut last);
        file.make_room(lines.len()).unwrap();
        file.write(&lines).unwrap();
    }
    assert_eq!(read(&path), (vec![5, 6, 7], 0));
}

#[test]
fn a_line_that_a_killed_process_left_half_written_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (mut file, mut last) = AuditFile::open(&path, NEVER).unwrap();
    for number in 0..3 {
        file.write(&line(number, &mut last)).unwrap();
    }
    drop(file);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let (mut file, mut last) = AuditFile::open(&path, NEVER).unwrap();
    file.write(&line(3, &mut last)).unwrap();
    assert_eq!(read(&path), (vec![0, 1, 3], 1));
}

#[test]
fn the_last_line_is_found_even_if_it_is_longer_than_what_is_read_at_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (mut file, mut last) = AuditFile::open(&path, NEVER).unwrap();
    file.write(&line(0, &mut last)).unwrap();
    let gap = Gap { schema: SCHEMA, time: "é".repeat(5 * TAIL as usize), queue_full: 1, not_written: 0 };
    let mut lines = Vec::new();
    let link = seal(&serde_json::to_string(&Record::Gap(gap)).unwrap(), last, &mut lines);
    file.write(&lines).unwrap();
    drop(file);
    assert_eq!(AuditFile::open(&path, NEVER).unwrap().1, Some(link));
}

#[test]
fn one_process_alone_may_write_and_only_its_user_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (mut file, mut last) = AuditFile::open(&path, Rotation { bytes: Some(1), keep: 0 }).unwrap();
    for number in 0..2 {
        let lines = line(number, &mut last);
        file.make_room(lines.len()).unwrap();
        file.write(&lines).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(AuditFile::open(&path, NEVER), Err(AuditError::InUse(_))));
    }
    drop(file);
    assert!(AuditFile::open(&path, NEVER).is_ok());
}

#[test]
fn a_file_that_another_process_takes_away_is_noticed_and_the_chain_goes_on_in_what_is_there_now() {
    type Take = fn(&Path, &Path);
    let ways: [(&str, Take); 3] = [
        ("deleted", |path, _| fs::remove_file(path).unwrap()),
        ("moved", |path, other| fs::rename(path, other).unwrap()),
        ("replaced", |path, other| {
            fs::write(other, "").unwrap();
            fs::rename(other, path).unwrap();
        }),
    ];
    for (way, take) in ways {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let (mut file, mut last) = AuditFile::open(&path, NEVER).unwrap();
        file.write(&line(0, &mut last)).unwrap();
        let before = last.unwrap();
        assert!(!file.follow_path().unwrap(), "{way}");
        take(&path, &folder.path().join("other"));
        assert!(file.follow_path().unwrap() && !file.follow_path().unwrap(), "{way}");
        file.write(&line(1, &mut last)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(open_line(text.trim_end()).unwrap().prev, Some(before.digest), "{way}");
        assert!(matches!(AuditFile::open(&path, NEVER), Err(AuditError::InUse(_))), "{way}");
    }
}

#[test]
fn lines_that_no_path_leads_to_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (mut file, mut last) = AuditFile::open(&path, NEVER).unwrap();
    let lines = line(0, &mut last);
    file.write(&lines).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(file.write(&lines).is_err());
    // Nothing can be opened in its place: the next attempt may be luckier.
    fs::create_dir(&path).unwrap();
    assert!(file.follow_path().is_err());
    fs::remove_dir(&path).unwrap();
    assert!(file.follow_path().unwrap());
    file.write(&lines).unwrap();
    assert_eq!(fs::read(&path).unwrap(), lines);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_of_every_write() {
    let (mut file, _) = AuditFile::open(Path::new("/dev/full"), NEVER).unwrap();
    for _ in 0..2 {
        assert_eq!(file.write(b"{}\n").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn files_are_put_in_the_order_in_which_they_were_written() {
    let given = ["a.jsonl", "b/x.000002", "a.jsonl.000010", "-", "a.jsonl.000009", "b/x", "a.jsonl.1000000"];
    let files: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
    let ordered = in_order(&files);
    let ordered: Vec<_> = ordered.iter().map(|(name, file)| (name.to_str().unwrap(), file.to_str().unwrap())).collect();
    assert_eq!(
        ordered,
        [
            ("a.jsonl", "a.jsonl.000009"),
            ("a.jsonl", "a.jsonl.000010"),
            ("a.jsonl", "a.jsonl.1000000"),
            ("a.jsonl", "a.jsonl"),
            ("b/x", "b/x.000002"),
            ("b/x", "b/x"),
            ("-", "-"),
        ]
    );
}
