//! How a byte-level BPE vocabulary cuts text before it merges: the rules that Hugging Face's tokenizers define for each
//! family, by the name that GGUF files give them (`tokenizer.ggml.pre`).
//!
//! llama.cpp rewrites the same rules with its own regular expressions; where the two differ, the model was trained on
//! these. See `tests/tokenizer.rs`.

use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

use super::ModelError;

/// What `tokenizer.ggml.pre` may say.
pub(super) const SUPPORTED: [&str; 4] = ["smollm", "llama-bpe", "qwen2", "gpt-2"];

/// Llama 3: numbers in groups of up to three digits.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Qwen2: single digits.
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The rules of one family.
pub(super) struct Rules {
    pub pre_tokenizer: PreTokenizerWrapper,
    pub normalizer: Option<NFC>,
    /// A whole word of the vocabulary is taken as it is, without merging.
    pub ignore_merges: bool,
    /// Whether a file that does not say so starts every sequence with its BOS token.
    pub add_bos: bool,
}

/// The rules named `pre`.
pub(super) fn rules(pre: &str) -> Result<Rules, ModelError> {
    let rules = |pre_tokenizer| Rules { pre_tokenizer, normalizer: None, ignore_merges: false, add_bos: false };
    match pre {
        "smollm" => Ok(rules(sequence(vec![Digits::new(true).into(), byte_level(true)]))),
        "gpt-2" => Ok(rules(byte_level(true))),
        "llama-bpe" => {
            let pre_tokenizer = sequence(vec![split(LLAMA3)?, byte_level(false)]);
            Ok(Rules { ignore_merges: true, add_bos: true, ..rules(pre_tokenizer) })
        }
        "qwen2" => {
            let pre_tokenizer = sequence(vec![split(QWEN2)?, byte_level(false)]);
            Ok(Rules { normalizer: Some(NFC), ..rules(pre_tokenizer) })
        }
        other => Err(ModelError::Unsupported(format!(
            "the tokenizer's pre-tokenization rules are \"{other}\" (tokenizer.ggml.pre); supported are {}",
            SUPPORTED.join(", ")
        ))),
    }
}

fn sequence(steps: Vec<PreTokenizerWrapper>) -> PreTokenizerWrapper {
    Sequence::new(steps).into()
}

fn byte_level(use_regex: bool) -> PreTokenizerWrapper {
    ByteLevel::new(false, true, use_regex).into()
}

fn split(regex: &str) -> Result<PreTokenizerWrapper, ModelError> {
    Split::new(SplitPattern::Regex(regex.to_owned()), SplitDelimiterBehavior::Isolated, false)
        .map(PreTokenizerWrapper::from)
        .map_err(|error| ModelError::Tokenizer(format!("the pre-tokenization rules do not compile: {error}")))
}
