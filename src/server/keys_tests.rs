#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write as _;
use std::time::Instant;

use http::HeaderValue;

use super::*;

fn digest(key: &str) -> String {
    Digest::of_bytes(key.as_bytes()).to_string()
}

fn entry(key: &str, tenant: &str, more: &str) -> String {
    format!("[[keys]]\nsha256 = \"{}\"\ntenant = \"{tenant}\"\n{more}\n", digest(key))
}

fn file(text: &str) -> (tempfile::NamedTempFile, Keys) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let keys = Keys::open(file.path()).unwrap();
    (file, keys)
}

fn shown(value: &str) -> HeaderMap {
    HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
}

#[test]
fn a_key_opens_its_lanes_for_its_tenant_and_nothing_else_opens_anything() {
    let text = entry("one", "chat", "lanes = [\"guard\"]") + &entry("two", "rl", "");
    let (_file, keys) = file(&text);
    let chat = keys.caller(&shown("Bearer one")).unwrap();
    assert_eq!(&*chat.tenant, "chat");
    assert_eq!(chat.enter(Lane::Guard), Ok(()));
    assert_eq!(chat.enter(Lane::Train), Err("guard".to_owned()));
    let rl = keys.caller(&shown("bearer  two ")).unwrap();
    assert_eq!(&*rl.tenant, "rl");
    assert!(Lane::ALL.into_iter().all(|lane| rl.enter(lane).is_ok()));
    for wrong in ["Bearer three", "Bearer ", "Bearer onetwo", "Bearer One"] {
        assert_eq!(keys.caller(&shown(wrong)).unwrap_err(), Refusal::UnknownKey, "{wrong}");
    }
    // A digest from the file is no key.
    assert_eq!(keys.caller(&shown(&format!("Bearer {}", digest("one")))).unwrap_err(), Refusal::UnknownKey);
    for wrong in ["one", "Basic one", "Bearer", ""] {
        assert_eq!(keys.caller(&shown(wrong)).unwrap_err(), Refusal::NoKey, "{wrong}");
    }
    assert_eq!(keys.caller(&HeaderMap::new()).unwrap_err(), Refusal::NoKey);
}

#[test]
fn what_is_wrong_in_a_file_is_named() {
    let wrong = |text: &str| parse(text, &[]).err().unwrap_or_else(|| panic!("{text} is taken"));
    assert!(wrong("").contains("[[keys]]"));
    assert!(wrong("[[keys]]\nsha256 = \"ab\"\ntenant = \"t\"").contains("keys[0]: sha256"));
    assert!(wrong(&entry("k", "", "")).contains("keys[0]: tenant"));
    assert!(
        wrong(&entry("k", "t", "lanes = [\"gard\"]")).contains("keys[0]: lanes must be some of guard, train, batch")
    );
    assert!(wrong(&entry("k", "t", "lanes = []")).contains("keys[0]: lanes"));
    assert!(wrong(&(entry("k", "t", "") + &entry("k", "u", ""))).contains("keys[1]: this key is there twice"));
    assert!(wrong(&entry("k", "t", "lane = \"guard\"")).contains("line 4: this is not understood"));
    let quota = |line: &str| wrong(&format!("{}[tenants.t]\n{line}", entry("k", "t", "")));
    assert!(quota("tokens_per_second = 0").contains("tenants.t"));
    assert!(quota("burst_tokens = 1").contains("tokens_per_second"));
    // A key that was pasted into the file does not reach the log.
    for line in ["key = \"prism-secret\"", "sha256 = \"prism-secret", "\"prism-secret\" = 1", "prism-secret"] {
        let told = wrong(&format!("[[keys]]\n{line}\ntenant = \"t\"\n"));
        assert!(told.contains("line ") && !told.contains("secret"), "{told}");
    }
    let other = format!("{}[tenants.u]\ntokens_per_second = 1", entry("k", "t", ""));
    assert!(wrong(&other).contains("tenants.u: no key belongs to this tenant"));
}

#[test]
fn a_changed_file_is_taken_whole_or_not_at_all_and_a_quota_is_not_filled_by_it() {
    let tenant = "[tenants.t]\ntokens_per_second = 1\nburst_tokens = 5\n";
    let (file, keys) = file(&(entry("old", "t", "") + tenant));
    let quota = keys.caller(&shown("Bearer old")).unwrap().quota.unwrap();
    let now = Instant::now();
    assert!(quota.take(50, now).is_ok());
    assert!(!keys.reload().unwrap());

    std::fs::write(file.path(), "[[keys]]\n").unwrap();
    assert!(keys.reload().is_err());
    assert!(keys.caller(&shown("Bearer old")).is_ok());
    // Told once.
    assert!(!keys.reload().unwrap());

    std::fs::write(file.path(), entry("old", "t", "") + &entry("new", "t", "") + tenant).unwrap();
    assert!(keys.reload().unwrap());
    for key in ["Bearer old", "Bearer new"] {
        assert!(keys.caller(&shown(key)).unwrap().quota.unwrap().take(1, now).is_err());
    }
    let more = "[tenants.t]\ntokens_per_second = 2\nburst_tokens = 6\n";
    std::fs::write(file.path(), entry("new", "t", "") + more).unwrap();
    assert!(keys.reload().unwrap());
    assert!(keys.caller(&shown("Bearer new")).unwrap().quota.unwrap().take(1, now).is_err(), "debts are kept");
    assert_eq!(keys.caller(&shown("Bearer old")).unwrap_err(), Refusal::UnknownKey);
}
