//! A file of personas in any form, whatever is in it. The first byte chooses the form.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use prism_judge::persona::Registry;

const NAMES: [&str; 4] = ["a.toml", "a.yaml", "a.json", "a.txt"];

fuzz_target!(|bytes: &[u8]| {
    let Some((form, bytes)) = bytes.split_first() else { return };
    let name = Path::new(NAMES[usize::from(*form) % NAMES.len()]);
    let (registry, problems) = Registry::of_file(name, bytes);
    // Something is known or something is wrong.
    assert!(!registry.is_empty() || !problems.is_empty());
    for named in registry.iter() {
        assert!(!named.id.is_empty() && named.id.len() <= 64);
        assert!(named.persona.profile().is_ok(), "{}", named.id);
    }
    for problem in &problems {
        assert!(problem.to_string().starts_with("a."), "{problem}");
    }
    assert_eq!((registry, problems), Registry::of_file(name, bytes));
});
