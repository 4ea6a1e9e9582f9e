//! A configuration file of the server, whatever is in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prism_judge::cli::check_config;

fuzz_target!(|text: &str| {
    let answer = check_config("the file", text).map_err(|error| error.to_string());
    match &answer {
        // A file of nothing but comments gives nothing.
        Ok(keys) => assert!(*keys <= text.lines().count(), "{keys} keys"),
        Err(error) => assert!(error.contains("the file"), "{error}"),
    }
    assert_eq!(answer, check_config("the file", text).map_err(|error| error.to_string()));
});
