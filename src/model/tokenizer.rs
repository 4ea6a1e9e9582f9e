//! Byte-level BPE, read from a GGUF file, for plain text only.
//!
//! No control or user-defined token is in this tokenizer's vocabulary: whatever the text says, none can come out.
//! Those tokens are kept in a table of their own ([`AddedTokens`]) and are put in by the chat template alone.

use std::collections::HashMap;
use std::sync::LazyLock;

use candle_core::quantized::gguf_file::Value;
use tokenizers::models::bpe::{BPE, Merges, Vocab};

use super::{AddedTokens, Gguf, ModelError, TokenId, pre};

/// Kinds of `tokenizer.ggml.token_type`.
const NORMAL: i64 = 1;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// The tokenizer of one model.
pub struct Tokenizer {
    plain: tokenizers::Tokenizer,
    added: AddedTokens,
    vocabulary_size: usize,
    /// Bytes of the longest piece of text.
    longest: usize,
    bos: Option<TokenId>,
    eos: Option<TokenId>,
    add_bos: bool,
    /// Bytes that no piece of the vocabulary can express.
    missing: Vec<u8>,
}

/// What a tokenizer is made of, as the file gives it.
pub(super) struct Parts {
    pub tokens: Vec<String>,
    pub kinds: Vec<i64>,
    pub merges: Merges,
    pub pre: String,
    pub bos: Option<TokenId>,
    pub eos: Option<TokenId>,
    /// None: the family's default.
    pub add_bos: Option<bool>,
}

impl Tokenizer {
    /// Reads `tokenizer.ggml.*`. A kind of tokenizer that is not supported is named in the error.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        let model = gguf.string("tokenizer.ggml.model")?;
        if model != "gpt2" {
            return Err(ModelError::Unsupported(format!(
                "the tokenizer is of kind \"{model}\" (tokenizer.ggml.model); supported is gpt2, which is byte-level BPE"
            )));
        }
        let pre = gguf.string("tokenizer.ggml.pre").map_err(|_| {
            ModelError::Unsupported(format!(
                "the file does not say how its tokenizer splits text (tokenizer.ggml.pre); supported are {}; \
                 convert the model again with a current converter",
                pre::SUPPORTED.join(", ")
            ))
        })?;
        Self::new(Parts {
            tokens: array(gguf, "tokenizer.ggml.tokens", |value| value.to_string().ok().cloned())?,
            kinds: array(gguf, "tokenizer.ggml.token_type", |value| value.to_i32().ok().map(i64::from))?,
            merges: array(gguf, "tokenizer.ggml.merges", |value| value.to_string().ok().and_then(|text| merge(text)))?,
            pre: pre.to_owned(),
            bos: special(gguf, "tokenizer.ggml.bos_token_id")?,
            eos: special(gguf, "tokenizer.ggml.eos_token_id")?,
            add_bos: gguf.value("tokenizer.ggml.add_bos_token").and_then(|value| value.to_bool().ok()),
        })
    }

    pub(super) fn new(parts: Parts) -> Result<Self, ModelError> {
        let fail = |reason: String| ModelError::Tokenizer(reason);
        let vocabulary_size = parts.tokens.len();
        if parts.kinds.len() != vocabulary_size {
            return Err(fail(format!("{vocabulary_size} tokens but {} token types", parts.kinds.len())));
        }
        if let Some(id) = [parts.bos, parts.eos].into_iter().flatten().find(|id| *id as usize >= vocabulary_size) {
            return Err(fail(format!("special token {id} is outside the vocabulary of {vocabulary_size}")));
        }
        let rules = pre::rules(&parts.pre)?;
        let mut plain = Vocab::default();
        let mut added = Vec::new();
        for ((id, token), kind) in (0..).zip(parts.tokens).zip(parts.kinds) {
            match kind {
                NORMAL => drop(plain.insert(token, id)),
                CONTROL | USER_DEFINED => added.push((token, id)),
                // Unknown, unused and byte tokens: nothing may produce them.
                _ => {}
            }
        }
        // A merge that makes an added token must not happen in text.
        let controls: std::collections::HashSet<&str> = added.iter().map(|(text, _)| text.as_str()).collect();
        let merges = parts.merges.into_iter().filter(|(a, b)| !controls.contains(format!("{a}{b}").as_str())).collect();
        drop(controls);
        let missing = BYTE_CHARS
            .iter()
            .zip(0..=255)
            .filter(|(char, _)| !plain.contains_key(&char.to_string()))
            .map(|(_, byte)| byte);
        let missing = missing.collect();
        // Byte-level pieces spell each byte as one character; composing characters (NFC) makes three bytes one at most.
        let longest = plain.keys().map(|piece| piece.chars().count()).max().unwrap_or(1).max(1);
        let longest = if rules.normalizer.is_some() { 3 * longest } else { longest };
        // Without the crate's memory of words, which is everybody's and never forgets: a word that one tenant sent would
        // be quicker for another, and the first ten thousand words, whatever they are, would be all that it ever holds.
        let bpe = BPE::builder().cache_capacity(0).ignore_merges(rules.ignore_merges);
        let mut plain = tokenizers::Tokenizer::new(
            bpe.vocab_and_merges(plain, merges).build().map_err(|error| fail(format!("merges: {error}")))?,
        );
        plain.with_pre_tokenizer(Some(rules.pre_tokenizer));
        plain.with_normalizer(rules.normalizer);
        Ok(Self {
            plain,
            added: AddedTokens::new(added),
            vocabulary_size,
            longest,
            bos: parts.bos,
            eos: parts.eos,
            add_bos: parts.add_bos.unwrap_or(rules.add_bos),
            missing,
        })
    }

    /// The fewest tokens that `bytes` bytes of text can take.
    pub fn fewest_tokens(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.longest)
    }

    /// Parts of a text that can be encoded one by one: their ids, joined, are those of the whole text.
    ///
    /// They end after a line feed that stands between two characters that are not white space. No rule of the supported
    /// families (`pre.rs`) makes a piece that holds such a line feed and what follows it, and none looks further behind
    /// it than to see that it is no white space. Composing characters (NFC) does not cross it either.
    pub fn parts<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let solid = |char: Option<char>| char.is_some_and(|char| !char.is_whitespace());
            let mut ends = rest.match_indices('\n').map(|(at, _)| at);
            let end = ends.find(|at| solid(rest[..*at].chars().next_back()) && solid(rest[at + 1..].chars().next()));
            let (part, after) = rest.split_at(end.map_or(rest.len(), |at| at + 1));
            rest = after;
            Some(part)
        })
    }

    /// Encodes text as plain text: no id is one of [`Self::added_tokens`], whatever the text says.
    ///
    /// Every byte that has a piece in the vocabulary comes back from [`Self::decode`]; the few that have none (see
    /// [`Self::missing_bytes`]) vanish, as they do in the model's own tokenizer. A family that normalises its text
    /// (Qwen2: NFC) gives the normalised form back.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<TokenId>, ModelError> {
        let encoding = self
            .plain
            .encode_fast(text, false)
            .map_err(|error| ModelError::Tokenizer(format!("cannot encode a text of {} bytes: {error}", text.len())))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The bytes that `ids` stand for; an id outside the vocabulary stands for none.
    pub fn decode(&self, ids: &[TokenId]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for id in ids {
            if let Some(text) = self.added.text_of(*id) {
                bytes.extend_from_slice(text.as_bytes());
            } else if let Some(piece) = self.plain.id_to_token(*id) {
                bytes.extend(piece.chars().filter_map(|char| CHAR_BYTES.get(&char)));
            }
        }
        bytes
    }

    /// Number of token ids, control tokens and unused ones included.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// The text of one token, for people: bytes that are not UTF-8 on their own show as U+FFFD.
    pub fn token_text(&self, id: TokenId) -> String {
        String::from_utf8_lossy(&self.decode(&[id])).into_owned()
    }

    /// The plain token whose text is exactly `text` (`" A"`, not `"ĠA"`); None where the vocabulary has no such piece.
    pub fn id_of(&self, text: &str) -> Option<TokenId> {
        let piece: String = text.bytes().map(|byte| BYTE_CHARS[usize::from(byte)]).collect();
        self.plain.token_to_id(&piece)
    }

    /// Control and user-defined tokens.
    pub fn added_tokens(&self) -> &AddedTokens {
        &self.added
    }

    /// The end-of-sequence token.
    pub fn eos(&self) -> Option<TokenId> {
        self.eos
    }

    /// The beginning-of-sequence token.
    pub fn bos(&self) -> Option<TokenId> {
        self.bos
    }

    /// Whether a sequence starts with [`Self::bos`] even where the chat template does not write it.
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Bytes that the vocabulary cannot express, ascending.
    pub fn missing_bytes(&self) -> &[u8] {
        &self.missing
    }
}

/// The printable character that byte-level BPE writes for each byte (OpenAI's GPT-2 `bytes_to_unicode`).
static BYTE_CHARS: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut next = 256;
    std::array::from_fn(|byte| match byte as u8 {
        byte @ (b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) => char::from(byte),
        _ => {
            next += 1;
            char::from_u32(next - 1).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
    })
});

static CHAR_BYTES: LazyLock<HashMap<char, u8>> = LazyLock::new(|| BYTE_CHARS.iter().copied().zip(0..=255).collect());

/// "a b": the pieces hold no space, so that the first one after the first character divides them.
fn merge(line: &str) -> Option<(String, String)> {
    let (left, right) = line.split_once(' ')?;
    Some((left.to_owned(), right.to_owned()))
}

fn array<T>(gguf: &Gguf, key: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, ModelError> {
    let fail = |reason: String| ModelError::File { path: gguf.path().to_owned(), reason };
    let values = gguf
        .value(key)
        .and_then(|value| value.to_vec().ok())
        .ok_or_else(|| fail(format!("metadata {key} is missing or not an array")))?;
    let item = |(index, value)| read(value).ok_or_else(|| fail(format!("metadata {key}[{index}] is malformed")));
    values.iter().enumerate().map(item).collect()
}

fn special(gguf: &Gguf, key: &str) -> Result<Option<TokenId>, ModelError> {
    if gguf.value(key).is_none() {
        return Ok(None);
    }
    let id = TokenId::try_from(gguf.integer(key)?);
    id.map(Some).map_err(|_| ModelError::Tokenizer(format!("{key} is not a token id")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub(super) mod tests {
    use super::*;

    /// One token for each byte, then `added` (the first is BOS, the second EOS) and merges that make "AB".
    pub fn byte_tokenizer(pre: &str, added: &[&str], add_bos: bool) -> Tokenizer {
        Tokenizer::new(byte_parts(pre, added, add_bos)).unwrap()
    }

    fn byte_parts(pre: &str, added: &[&str], add_bos: bool) -> Parts {
        let bytes = BYTE_CHARS.iter().map(char::to_string).chain(["AB".to_owned()]);
        let tokens: Vec<String> = bytes.chain(added.iter().map(|text| (*text).to_owned())).collect();
        let kinds =
            (0..tokens.len()).map(|id| if id < 257 { NORMAL } else { [CONTROL, USER_DEFINED][id % 2] }).collect();
        let merges = vec![("A".to_owned(), "B".to_owned())];
        Parts { tokens, kinds, merges, pre: pre.to_owned(), bos: Some(257), eos: Some(258), add_bos: Some(add_bos) }
    }

    #[test]
    fn every_supported_family_gives_every_byte_back() {
        for pre in pre::SUPPORTED {
            let tokenizer = byte_tokenizer(pre, &["<s>", "</s>"], false);
            for text in
                ["", "ABBA 123 don't\r\n\n  é漢😀\0<s>", &" ".repeat(100_000), &format!("{}x", "\n ".repeat(50_000))]
            {
                let ids = tokenizer.encode_plain(text).unwrap();
                assert_eq!(tokenizer.decode(&ids), text.as_bytes(), "{pre}");
                assert!(ids.iter().all(|id| *id < 257), "{pre}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn the_ids_of_parts_joined_are_those_of_the_text(
            text in "[ab'sé\u{301}1.(漢😀 \t\r\n\u{a0}\u{85}]{0,24}", pre in 0..pre::SUPPORTED.len()
        ) {
            let mut parts = byte_parts(pre::SUPPORTED[pre], &["<s>", "</s>"], false);
            // Merges over everything that rules might have kept together.
            let newline = BYTE_CHARS[usize::from(b'\n')].to_string();
            for (a, b) in [("a", newline.as_str()), (&newline, "a"), (".", &newline), (&newline, &newline), (&newline, "(")] {
                let first_added = parts.tokens.len() - 2;
                parts.tokens.insert(first_added, format!("{a}{b}"));
                parts.kinds.insert(first_added, NORMAL);
                parts.merges.push((a.to_owned(), b.to_owned()));
            }
            let tokenizer = Tokenizer::new(parts).unwrap();
            let whole = tokenizer.encode_plain(&text).unwrap();
            let joined: Vec<TokenId> =
                tokenizer.parts(&text).flat_map(|part| tokenizer.encode_plain(part).unwrap()).collect();
            proptest::prop_assert_eq!(tokenizer.parts(&text).collect::<String>(), text);
            proptest::prop_assert_eq!(joined, whole);
        }
    }

    #[test]
    fn a_merge_that_would_make_a_control_token_does_not_happen() {
        let mut parts = byte_parts("gpt-2", &["<s>", "</s>", "no"], false);
        parts.merges.push(("n".to_owned(), "o".to_owned()));
        let tokenizer = Tokenizer::new(parts).unwrap();
        assert_eq!(tokenizer.encode_plain("no").unwrap(), [u32::from(b'n'), u32::from(b'o')]);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let error = Tokenizer::new(byte_parts("deepseek-llm", &["<s>", "</s>"], false)).err().unwrap().to_string();
        assert!(error.contains("\"deepseek-llm\"") && error.contains("smollm, llama-bpe, qwen2, gpt-2"), "{error}");
        let mut parts = byte_parts("gpt-2", &["<s>", "</s>"], false);
        parts.eos = Some(1000);
        assert!(Tokenizer::new(parts).err().unwrap().to_string().contains("special token 1000"));
    }
}
