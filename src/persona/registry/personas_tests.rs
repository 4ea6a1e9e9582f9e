#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cell::RefCell;
use std::convert::Infallible;
use std::fs;

use super::*;

fn any(_: &Persona) -> Result<(), Infallible> {
    Ok(())
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("ada.txt", "A proud pirate.");
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn open(&self) -> Personas {
        Personas::open(self.0.path()).unwrap()
    }
}

fn descriptions(personas: &Personas) -> Vec<String> {
    personas.now().iter().map(|named| format!("{}: {}", named.id, named.persona.description)).collect()
}

#[test]
fn a_changed_set_is_taken_as_a_whole_and_only_once() {
    let folder = Folder::new();
    let personas = folder.open();
    assert_eq!(personas.reload(any), Ok(false));
    let held = personas.now();
    folder.write("ada.txt", "A shy pirate.");
    folder.write("bo.toml", "facts = ['keeps bees']");
    assert_eq!(personas.reload(any), Ok(true));
    assert_eq!(descriptions(&personas), ["ada: A shy pirate.", "bo: "]);
    assert_eq!(personas.reload(any), Ok(false));
    // Whoever holds the old set keeps it.
    assert_eq!(held.get("ada").unwrap().persona.description, "A proud pirate.");
    fs::remove_file(folder.0.path().join("ada.txt")).unwrap();
    assert_eq!(personas.reload(any), Ok(true));
    assert_eq!(descriptions(&personas), ["bo: "]);
}

#[test]
fn a_bad_file_keeps_all_of_the_last_good_set_and_is_told_once() {
    let folder = Folder::new();
    let personas = folder.open();
    folder.write("ada.txt", "A shy pirate.");
    folder.write("bo.toml", "facts = ['keeps");
    assert_eq!(personas.reload(any).unwrap_err().problems.len(), 1);
    assert_eq!(personas.reload(any), Ok(false));
    assert_eq!(descriptions(&personas), ["ada: A proud pirate."]);
    folder.write("bo.toml", "facts = ['keeps bees']");
    assert_eq!(personas.reload(any), Ok(true));
    assert_eq!(descriptions(&personas), ["ada: A shy pirate.", "bo: "]);
}

#[test]
fn a_folder_that_goes_away_keeps_the_last_good_set() {
    let folder = Folder::new();
    let personas = folder.open();
    fs::rename(folder.0.path(), folder.0.path().with_extension("away")).unwrap();
    assert!(personas.reload(any).is_err());
    assert_eq!(personas.reload(any), Ok(false));
    fs::create_dir(folder.0.path()).unwrap();
    assert!(personas.reload(any).unwrap_err().to_string().contains("no file of personas"));
    assert_eq!(descriptions(&personas), ["ada: A proud pirate."]);
    fs::remove_dir_all(folder.0.path().with_extension("away")).unwrap();
}

#[test]
fn a_persona_that_others_refuse_keeps_the_last_good_set() {
    let folder = Folder::new();
    let personas = folder.open();
    folder.write("ada.txt", "A very long pirate.");
    let told = personas.reload(|persona| if persona.description.len() > 15 { Err("too long") } else { Ok(()) });
    let problem = told.unwrap_err().problems.remove(0);
    assert_eq!((problem.field.as_str(), problem.message.as_str()), ("ada", "too long"));
    assert_eq!(descriptions(&personas), ["ada: A proud pirate."]);
}

#[test]
fn files_that_change_between_two_looks_are_left_for_the_next() {
    let folder = Folder::new();
    let personas = folder.open();
    let look = |text: &str| {
        folder.write("ada.txt", text);
        Contents::read(folder.0.path())
    };
    let looks =
        RefCell::new(vec![look("written whole"), look("written ha"), look("written whole"), look("written whole")]);
    let next = || looks.borrow_mut().pop().unwrap();
    // The last comes first: whole, then the end of the list is a half.
    assert!(personas.changed(next).is_some());
    looks.borrow_mut().push(look("written whole"));
    assert!(personas.changed(next).is_none(), "whole, then half");
    assert_eq!(looks.borrow().len(), 1);
}
