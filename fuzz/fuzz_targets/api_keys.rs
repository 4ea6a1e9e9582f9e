//! A file of API keys, whatever is in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prism_judge::server::Keys;

fuzz_target!(|text: &str| {
    let answer = Keys::check(text);
    if let Ok(count) = answer {
        assert!((1..=text.matches("sha256").count()).contains(&count), "{count} keys");
    }
    assert_eq!(answer, Keys::check(text));
});
