//! What tells judges apart that have the same model, wording and options and yet give other bits: the instructions and
//! cache sizes of the processor (products are summed in another order), the mathematical library, the program.

use super::JudgeError;
use crate::digest::Digest;
use crate::engine::{Cancel, Engine, Prompt, Read};
use crate::model::TokenId;

/// Tokens of the probe: more than one tile of a product, less than a second of a large model.
const TOKENS: usize = 48;

/// Arguments of the mathematical functions that are tried.
const ARGUMENTS: u32 = 64;

/// A digest of what this process makes of a probe, bit by bit. A sum that is taken in another order anywhere in the model
/// shows in the last bits of the log-probabilities of a whole prompt.
///
/// # Errors
/// The model does not work.
pub(super) fn fingerprint(engine: &Engine) -> Result<Digest, JudgeError> {
    let vocabulary = engine.config().vocabulary.max(1);
    // Any tokens will do, as long as they differ.
    let ids: Vec<TokenId> =
        (0..TOKENS).filter_map(|at| TokenId::try_from((at * 7919 + 11) % vocabulary).ok()).collect();
    let prompts = vec![
        Prompt { ids: ids.clone(), read: Read::Span(1..ids.len()) },
        Prompt { read: Read::Next(ids.clone()), ids },
    ];
    let mut bits = Vec::new();
    for answer in engine.run(prompts, &Cancel::default()).map_err(JudgeError::from)? {
        bits.extend(answer.map_err(JudgeError::from)?.log_probs.into_iter().map(f64::to_bits));
    }
    for argument in 1..=ARGUMENTS {
        let argument = 0.37 * f64::from(argument);
        bits.extend([(-argument).exp(), argument.ln()].map(f64::to_bits));
    }
    let bits: Vec<u8> = bits.into_iter().flat_map(u64::to_le_bytes).collect();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    Ok(Digest::builder("prism-judge arithmetic 1").field("version", version).field("bits", &bits).finish())
}
