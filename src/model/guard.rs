//! Keeps untrusted text from becoming structure: breaks every possible added token in the text of messages before a
//! template sees it, so that whatever added token is found in the rendered conversation was written by the template.
//!
//! A marker, which is a character that occurs in no message and not in the template, goes after each character that
//! could begin an added token. A match can then neither lie in the text nor begin in it and end in what follows. Texts
//! keep their ends and their other characters, so that templates can trim and test them. Markers are taken out again
//! before the text is encoded.

use std::collections::HashSet;

use super::chat::Turn;
use super::{AddedTokens, TokenId};

/// Marker characters of one conversation.
#[derive(Debug)]
pub(super) struct Markers {
    breaker: char,
    /// A character that is an added token by itself, and what stands for it.
    substitutes: Vec<(char, char)>,
}

/// A rendered conversation without markers, and the added tokens in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub text: String,
    /// In order: where each added token starts and ends in `text` (bytes).
    pub controls: Vec<Control>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Control {
    pub start: usize,
    pub end: usize,
    pub id: TokenId,
}

impl Markers {
    /// Picks characters that neither the texts nor `template` contain; None if all are taken.
    pub fn choose(added: &AddedTokens, turns: &[Turn<'_>], template: &str) -> Option<Self> {
        let texts = turns.iter().map(|turn| turn.text.as_ref()).chain([template]);
        let taken: HashSet<char> = texts.flat_map(str::chars).filter(|char| *char >= '\u{e000}').collect();
        let mut free = candidates().filter(|char| !taken.contains(char) && !added.starts_with(*char));
        let breaker = free.next()?;
        let substitutes = added.single_characters().map(|char| Some((char, free.next()?))).collect::<Option<_>>()?;
        Some(Self { breaker, substitutes })
    }

    /// The text with every possible added token broken.
    pub fn mark(&self, added: &AddedTokens, text: &str) -> String {
        let mut marked = String::with_capacity(text.len() + text.len() / 16);
        for char in text.chars() {
            match self.substitutes.iter().find(|(single, _)| *single == char) {
                Some((_, substitute)) => marked.push(*substitute),
                None => marked.push(char),
            }
            if added.starts_with(char) {
                marked.push(self.breaker);
            }
        }
        marked
    }

    /// Finds the added tokens of a rendered conversation, leftmost and longest first, and takes the markers out.
    pub fn scan(&self, added: &AddedTokens, marked: &str) -> Layout {
        let mut layout = Layout { text: String::with_capacity(marked.len()), controls: Vec::new() };
        let mut rest = marked;
        while let Some(char) = rest.chars().next() {
            let start = layout.text.len();
            if let Some((token, id)) = added.at_start_of(rest) {
                layout.text.push_str(token);
                layout.controls.push(Control { start, end: layout.text.len(), id });
                rest = &rest[token.len()..];
                continue;
            }
            rest = &rest[char.len_utf8()..];
            if let Some((single, _)) = self.substitutes.iter().find(|(_, substitute)| *substitute == char) {
                layout.text.push(*single);
            } else if char != self.breaker {
                layout.text.push(char);
            }
        }
        layout
    }
}

/// Noncharacters first (Unicode reserves them for such internal use), then the private use areas.
fn candidates() -> impl Iterator<Item = char> {
    let arabic = 0xfdd0..=0xfdef;
    let plane_ends = (0..=16).flat_map(|plane| [(plane << 16) | 0xfffe, (plane << 16) | 0xffff]);
    arabic.chain(plane_ends).chain(0xe000..=0xf8ff).chain(0xf_0000..=0x10_fffd).filter_map(char::from_u32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;

    fn added() -> AddedTokens {
        AddedTokens::new(["<|end|>", "<|", "aab", "§", "\n\n", "é!"].into_iter().map(str::to_owned).zip(100..))
    }

    fn turn(text: &str) -> Turn<'_> {
        Turn { role: "user", text: Cow::Borrowed(text) }
    }

    #[test]
    fn structure_is_found_and_text_is_not() {
        let added = added();
        let markers = Markers::choose(&added, &[turn("<|end|>§")], "").unwrap();
        let marked = markers.mark(&added, "<|end|>§");
        let layout = markers.scan(&added, &format!("§{marked}<|end|>"));
        assert_eq!(layout.text, "§<|end|>§<|end|>");
        let found: Vec<_> = layout.controls.iter().map(|control| (control.start, control.id)).collect();
        assert_eq!(found, [(0, 103), (11, 100)]);
    }

    #[test]
    fn a_text_that_holds_marker_characters_gets_other_markers() {
        let added = added();
        let text: String = candidates().take(70).collect();
        let markers = Markers::choose(&added, &[turn(&text)], "\u{e004}").unwrap();
        assert!(!text.contains(markers.breaker) && markers.breaker != '\u{e004}');
        assert_eq!(markers.scan(&added, &markers.mark(&added, &text)).text, text);
        let all: String = candidates().collect();
        assert!(Markers::choose(&added, &[turn(&all)], "").is_none());
    }

    proptest! {
        #[test]
        fn no_text_makes_a_control_and_every_text_comes_back(
            before in "[<|end>a§é!b\n]{0,12}", text in "[<|end>a§é!b\n\u{fdd0}]{0,24}", after in "[<|end>a§é!b\n]{0,12}",
        ) {
            let added = added();
            let markers = Markers::choose(&added, &[turn(&text)], "").unwrap();
            let marked = markers.mark(&added, &text);
            let layout = markers.scan(&added, &marked);
            prop_assert_eq!(&layout.text, &text);
            prop_assert_eq!(&layout.controls, &vec![]);
            // What follows the text does not see it.
            let followed = markers.scan(&added, &format!("{marked}{after}")).controls;
            let alone = markers.scan(&added, &after).controls;
            prop_assert_eq!(followed.iter().map(|c| c.id).collect::<Vec<_>>(), alone.iter().map(|c| c.id).collect::<Vec<_>>());
            // Text after an unfinished token of the structure can complete it: the caller compares ids for that.
            prop_assert_eq!(markers.scan(&added, &format!("{before}{marked}")).text, format!("{before}{text}"));
        }
    }
}
