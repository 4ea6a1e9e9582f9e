//! The published form `Big Five focus: X = high|low` inside a description.

use super::{PersonaError, Polarity, Trait, TraitTarget};

/// What a description says of traits, and what remains of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Focus {
    /// In order of appearance, repeats included.
    pub targets: Vec<TraitTarget>,
    /// The description without its focus phrases, trimmed.
    pub rest: String,
}

/// Finds every focus phrase. Case and spaces do not matter; one phrase may name several traits, separated by `,`, `;`,
/// `and` or `&`; a full stop after the phrase belongs to it.
pub(super) fn parse(description: &str) -> Result<Focus, PersonaError> {
    let mut targets = Vec::new();
    let mut rest = String::new();
    let mut remaining = description;
    while let Some((before, after)) = split_at_marker(remaining) {
        rest.push_str(before);
        let mut cursor = Cursor(after);
        targets.push(cursor.pair().ok_or_else(|| unreadable(after))?);
        while let Some(target) = cursor.next_pair() {
            targets.push(target);
        }
        cursor.spaces();
        let _ = cursor.symbol('.') || cursor.symbol(';');
        remaining =
            if rest.is_empty() || rest.ends_with(char::is_whitespace) { cursor.0.trim_start() } else { cursor.0 };
    }
    rest.push_str(remaining);
    Ok(Focus { targets, rest: rest.trim().to_owned() })
}

fn unreadable(after: &str) -> PersonaError {
    let line = after.lines().next().unwrap_or_default().trim();
    PersonaError::Focus { found: line.chars().take(60).collect() }
}

/// Splits around the first `Big Five focus:`; the marker itself is dropped.
fn split_at_marker(text: &str) -> Option<(&str, &str)> {
    text.char_indices().find_map(|(at, _)| {
        let before = text.get(..at)?;
        if before.ends_with(char::is_alphanumeric) {
            return None;
        }
        let mut cursor = Cursor(text.get(at..)?);
        let found = cursor.word("big")
            && cursor.spaces()
            && cursor.word("five")
            && cursor.spaces()
            && cursor.word("focus")
            && (cursor.spaces() | true)
            && cursor.symbol(':');
        found.then_some((before, cursor.0))
    })
}

/// What is left to read.
struct Cursor<'a>(&'a str);

impl Cursor<'_> {
    /// Skips white space; false when there was none.
    fn spaces(&mut self) -> bool {
        let trimmed = self.0.trim_start();
        let moved = trimmed.len() != self.0.len();
        self.0 = trimmed;
        moved
    }

    /// Reads `word` (ASCII), whatever its case, if it stands here as a whole word.
    fn word(&mut self, word: &str) -> bool {
        let Some((head, tail)) = self.0.split_at_checked(word.len()) else { return false };
        let found = head.eq_ignore_ascii_case(word) && !tail.starts_with(char::is_alphanumeric);
        if found {
            self.0 = tail;
        }
        found
    }

    fn symbol(&mut self, symbol: char) -> bool {
        let Some(tail) = self.0.strip_prefix(symbol) else { return false };
        self.0 = tail;
        true
    }

    fn trait_(&mut self) -> Option<Trait> {
        if self.word("extroversion") {
            return Some(Trait::Extraversion);
        }
        let found = Trait::ALL.into_iter().find(|trait_| self.word(trait_.name()))?;
        if found == Trait::Openness {
            let mut long = Cursor(self.0);
            if long.spaces() && long.word("to") && long.spaces() && long.word("experience") {
                self.0 = long.0;
            }
        }
        Some(found)
    }

    /// `TRAIT = high|low`; `:` is taken for `=`.
    fn pair(&mut self) -> Option<TraitTarget> {
        self.spaces();
        let trait_ = self.trait_()?;
        self.spaces();
        if !self.symbol('=') && !self.symbol(':') {
            return None;
        }
        self.spaces();
        let polarity = Polarity::ALL.into_iter().find(|polarity| self.word(polarity.name()))?;
        Some(TraitTarget { trait_, polarity })
    }

    /// A separator and another pair; reads nothing if it is not there.
    fn next_pair(&mut self) -> Option<TraitTarget> {
        let mut ahead = Cursor(self.0);
        ahead.spaces();
        let mark = ahead.symbol(',') || ahead.symbol(';') || ahead.symbol('&');
        ahead.spaces();
        let and = ahead.word("and");
        let target = (mark || and).then(|| ahead.pair()).flatten()?;
        self.0 = ahead.0;
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn target(trait_: Trait, polarity: Polarity) -> TraitTarget {
        TraitTarget { trait_, polarity }
    }

    #[test]
    fn the_published_form_is_read_and_taken_out() {
        let focus = parse("Big Five focus: Agreeableness = high. You are kind.").unwrap();
        assert_eq!(focus.targets, [target(Trait::Agreeableness, Polarity::High)]);
        assert_eq!(focus.rest, "You are kind.");
    }

    #[test]
    fn case_and_spaces_do_not_matter() {
        for text in ["big five FOCUS :NEUROTICISM=LOW", "  Big  Five\tfocus:\n neuroticism  =  Low ."] {
            let focus = parse(text).unwrap();
            assert_eq!(focus.targets, [target(Trait::Neuroticism, Polarity::Low)], "{text}");
            assert_eq!(focus.rest, "");
        }
    }

    #[test]
    fn several_phrases_and_lists_are_read_in_order() {
        let text = "Ana.\nBig Five focus: Openness to Experience = low, Extroversion = high and neuroticism = low; \
                    She sings. Big Five focus: Conscientiousness = high.\nShe cooks.";
        let focus = parse(text).unwrap();
        assert_eq!(
            focus.targets,
            [
                target(Trait::Openness, Polarity::Low),
                target(Trait::Extraversion, Polarity::High),
                target(Trait::Neuroticism, Polarity::Low),
                target(Trait::Conscientiousness, Polarity::High),
            ]
        );
        assert_eq!(focus.rest, "Ana.\nShe sings. She cooks.");
    }

    #[test]
    fn an_unreadable_focus_is_an_error_that_quotes_it() {
        for (text, found) in [
            ("Big Five focus: Honesty = high", "Honesty = high"),
            ("Big Five focus: Openness = medium", "Openness = medium"),
            ("Big Five focus: openness is high", "openness is high"),
            ("Big Five focus:", ""),
        ] {
            assert_eq!(parse(text), Err(PersonaError::Focus { found: found.to_owned() }), "{text}");
        }
    }

    #[test]
    fn prose_that_only_mentions_the_words_stays_as_it_is() {
        for text in ["My big five focus is on people.", "antibig five focus: openness = high", "", "Ünïcødé 🦀 big"]
        {
            assert_eq!(parse(text).unwrap(), Focus { targets: vec![], rest: text.to_owned() });
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in any::<String>()) {
            let _ = parse(&text);
            let _ = parse(&format!("Big Five focus: {text}"));
        }
    }
}
