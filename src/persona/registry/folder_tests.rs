#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn names(contents: &Contents) -> Vec<&str> {
    contents.files.iter().map(|file| file.stem.as_str()).collect()
}

#[test]
fn files_are_read_in_order_and_what_is_skipped_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for file in
        ["b.toml", "a.JSON", "c.yml", "d.yaml", "e.txt", "f.v2.md", ".hidden.toml", "g.toml~", "h.png", "README.md"]
    {
        fs::write(path.join(file), file).unwrap();
    }
    fs::create_dir(path.join("folder.toml")).unwrap();
    let contents = Contents::read(path);
    assert_eq!(names(&contents), ["a", "b", "c", "d", "e", "f.v2"]);
    assert!(contents.files.iter().all(|file| file.bytes.is_ok()));
    let skipped: Vec<(String, SkipReason)> =
        contents.skipped.iter().map(|it| (it.file.replace(&format!("{}/", path.display()), ""), it.reason)).collect();
    let expected = [
        (".hidden.toml", SkipReason::Hidden),
        ("README.md", SkipReason::ReadMe),
        ("folder.toml", SkipReason::Folder),
        ("g.toml~", SkipReason::Extension),
        ("h.png", SkipReason::Extension),
    ];
    assert_eq!(skipped, expected.map(|(file, reason)| (file.to_owned(), reason)));
}

#[test]
fn a_link_is_what_it_points_to_as_in_a_config_map() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (version, text) in [("..2001", "old"), ("..2002", "new")] {
        fs::create_dir(path.join(version)).unwrap();
        fs::write(path.join(version).join("ada.txt"), text).unwrap();
    }
    symlink("..2001", path.join("..data")).unwrap();
    symlink("..data/ada.txt", path.join("ada.txt")).unwrap();
    let before = Contents::read(path);
    assert_eq!((names(&before), before.files[0].bytes.as_deref()), (vec!["ada"], Ok(&b"old"[..])));
    symlink("..2002", path.join("..tmp")).unwrap();
    fs::rename(path.join("..tmp"), path.join("..data")).unwrap();
    let after = Contents::read(path);
    assert_eq!(after.files[0].bytes.as_deref(), Ok(&b"new"[..]));
    assert_ne!(before.digest(), after.digest());
}

#[test]
fn what_cannot_be_read_is_part_of_what_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    symlink("nowhere", path.join("lost.toml")).unwrap();
    let contents = Contents::read(path);
    assert!(contents.files[0].bytes.is_err());
    // The same trouble is not news.
    assert_eq!(contents.digest(), Contents::read(path).digest());
    fs::write(path.join("nowhere"), "").unwrap();
    assert_ne!(contents.digest(), Contents::read(path).digest());
    let missing = Contents::read(&path.join("missing"));
    assert!(missing.unreadable.is_some() && missing.files.is_empty());
    assert_eq!(missing.digest(), Contents::read(&path.join("missing")).digest());
}

#[test]
fn a_file_that_is_far_too_large_is_not_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.txt");
    fs::File::create(&path).unwrap().set_len(FILE_BYTES + 1).unwrap();
    let told = Contents::read(&path).files[0].bytes.clone().unwrap_err();
    assert_eq!(told, "it has more than 4 MiB; is it a file of personas?");
    fs::File::create(&path).unwrap().set_len(FILE_BYTES).unwrap();
    assert!(Contents::read(&path).files[0].bytes.is_ok());
}

#[test]
fn one_file_may_be_named_by_itself_if_it_is_of_a_form_that_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ada.toml");
    fs::write(&path, "x").unwrap();
    assert_eq!(names(&Contents::read(&path)), ["ada"]);
    let other = folder.path().join("ada.png");
    fs::write(&other, "x").unwrap();
    assert!(Contents::read(&other).unreadable.unwrap().contains(".toml, .yaml"));
}
