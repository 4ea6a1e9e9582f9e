//! Displayed orders of the three labels.

use md5::{Digest as _, Md5};

use super::{Dimension, Label, LabelOrder, Turn};
use crate::digest::Digest;
use crate::persona::Persona;

use Label::{Aligned as A, Contradictory as C, Indeterminate as B};

/// The three rotations: every label stands once at every letter.
const CYCLIC: [[Label; 3]; 3] = [[A, B, C], [B, C, A], [C, A, B]];

/// All orders.
const ALL: [[Label; 3]; 6] = [[A, B, C], [A, C, B], [B, A, C], [B, C, A], [C, A, B], [C, B, A]];

/// What an order may depend on. `cyclic` and `all` depend on nothing.
pub(super) struct OrderSeed<'a> {
    /// For `released`.
    pub case_id: &'a str,
    pub released_key: &'a str,
    /// For `content`.
    pub persona: &'a Persona,
    pub context: &'a [Turn],
    pub response: &'a str,
    pub dimension: Dimension,
}

/// The orders in which one dimension's labels are shown; one prompt each.
pub(super) fn orders(order: LabelOrder, seed: &OrderSeed) -> Vec<[Label; 3]> {
    match order {
        LabelOrder::Released => vec![released(seed.case_id, seed.released_key)],
        LabelOrder::Content => vec![content(seed)],
        LabelOrder::Cyclic => CYCLIC.to_vec(),
        LabelOrder::All => ALL.to_vec(),
    }
}

/// The published rule: labels sorted by byte i of md5("{case_id}::{key}"), i the label's canonical index; ties keep the
/// canonical order.
fn released(case_id: &str, key: &str) -> [Label; 3] {
    let hash = Md5::digest(format!("{case_id}::{key}").as_bytes());
    let mut order = Label::ALL;
    order.sort_by_key(|label| hash[*label as usize]);
    order
}

/// One of the six orders, by the digest of what is judged.
fn content(seed: &OrderSeed) -> [Label; 3] {
    let Persona { name, traits, description, facts } = seed.persona;
    let mut digest = Digest::builder("prism/label-order/1").field("dimension", seed.dimension.name().as_bytes());
    if let Some(name) = name {
        digest = digest.field("name", name.as_bytes());
    }
    for target in traits {
        digest = digest.field("trait", format!("{}={}", target.trait_, target.polarity).as_bytes());
    }
    digest = digest.field("description", description.as_bytes());
    for fact in facts {
        digest = digest.field("fact", fact.as_bytes());
    }
    for turn in seed.context {
        digest = digest.field("speaker", turn.speaker.as_bytes()).field("text", turn.text.as_bytes());
    }
    let digest = digest.field("response", seed.response.as_bytes()).finish();
    let number = digest.as_bytes().iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    ALL[(number % ALL.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    const KEYS: [&str; 3] = ["agenda_pattern", "interpersonal_stance_pattern", "expression_style_pattern"];

    /// Made with Python: `d = hashlib.md5(f"{case}::{key}".encode()).digest()`, then
    /// `"".join("ABC"[i] for i in sorted(range(3), key=lambda i: d[i]))`, for each key.
    #[test]
    fn the_released_order_is_the_published_rule() {
        for (case, expected) in [
            ("4186686_openness_high", ["ABC", "CBA", "CAB"]),
            ("rolestyle_en_2", ["ACB", "CAB", "ACB"]),
            ("case-7", ["ACB", "BCA", "ACB"]),
            ("ünï", ["ACB", "CAB", "CBA"]),
        ] {
            for (key, letters) in KEYS.iter().zip(expected) {
                assert_eq!(show(released(case, key)), letters, "{case} {key}");
            }
        }
    }

    /// The digest starts with 725a72 (Python's hashlib): bytes 0 and 2 are equal.
    #[test]
    fn a_tie_keeps_the_canonical_order() {
        assert_eq!(show(released("tie-301", "agenda_pattern")), "BAC");
    }

    #[test]
    fn cyclic_shows_every_label_once_at_every_letter_and_all_shows_every_order() {
        for letter in 0..3 {
            let mut labels = CYCLIC.map(|order| order[letter]);
            labels.sort();
            assert_eq!(labels, Label::ALL);
        }
        let mut all: Vec<String> = ALL.iter().map(|order| show(*order)).collect();
        all.sort();
        assert_eq!(all, ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"]);
    }

    #[test]
    fn the_content_order_follows_the_content_and_not_the_id() {
        let persona = Persona { description: "A pirate.".to_owned(), ..Persona::default() };
        let order = |case_id: &str, response: &str| {
            content(&OrderSeed {
                case_id,
                released_key: "k",
                persona: &persona,
                context: &[],
                response,
                dimension: Dimension::TaskFraming,
            })
        };
        assert_eq!(order("1", "Arr."), order("2", "Arr."));
        let mut seen: Vec<String> = (0..200).map(|i| show(order("1", &format!("Arr {i}")))).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 6);
    }

    fn show(order: [Label; 3]) -> String {
        order.iter().map(|label| ["A", "B", "C"][*label as usize]).collect()
    }
}
