//! No text can stall the tokenizer (promise 17). Times are measured by `make bench-hostile`; here work is counted that does
//! not depend on the machine: bytes that are allocated on the way from a text to its tokens, which grow with every copy
//! of the text. Alone in this file: the counter counts everything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::quantized::gguf_file::Value;
use prism_judge::model::{ChatMessage, Gguf, TextModel};
use support::hostile::FAMILIES;
use support::tiny::Tiny;

/// Bytes that were ever allocated.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that twice the text may take, in what the text takes.
const GROWTH: f64 = 2.3;

fn work(model: &TextModel, text: &str) -> usize {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let tokens = model.prompt(&[ChatMessage { role: "user", text }]).unwrap();
    let bytes = ALLOCATED.load(Ordering::Relaxed) - before;
    assert!(tokens.ids.len() > 10);
    bytes
}

#[test]
fn twice_the_text_is_about_twice_the_work_for_every_family_of_texts_and_of_rules() {
    let Some(backbone) = support::backbone() else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    for rules in ["smollm", "gpt-2", "llama-bpe", "qwen2"] {
        let mut tiny = Tiny::speaking_as(&backbone, 1);
        tiny.set("tokenizer.ggml.pre", Value::String(rules.to_owned()));
        tiny.write(file.path());
        let model = TextModel::from_gguf(&Gguf::open(file.path()).unwrap()).unwrap();
        for (family, make) in FAMILIES {
            let counts: Vec<usize> = [8, 16, 32, 64].map(|kib| work(&model, &make(kib << 10))).into();
            for pair in counts.windows(2) {
                let growth = pair[1] as f64 / pair[0] as f64;
                assert!(growth <= GROWTH, "{rules}, {family}: {counts:?}");
            }
        }
    }
}
