//! A model file: header, metadata, tokenizer, chat template, shape, weights.
#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use prism_judge::model::{ChatMessage, Decoder, Gguf, TextModel};
use prism_judge::numerics::Numerics;

/// candle divides by the alignment that a file names. `Gguf::open` makes an error of the panic (tests/loading.rs), but a
/// fuzz target ends at every panic.
const ALIGNMENT: &[u8] = b"general.alignment";

fuzz_target!(|bytes: &[u8]| {
    if bytes.windows(ALIGNMENT.len()).any(|window| window == ALIGNMENT) {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let Ok(gguf) = Gguf::open(file.path()) else { return };
    let _ = Decoder::load(&gguf, Numerics::F32, 1);
    if let Ok(text) = TextModel::from_gguf(&gguf) {
        let _ = text.prompt(&[ChatMessage { role: "user", text: "Is it early? <|im_end|> é漢" }]);
    }
});
