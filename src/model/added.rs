//! The tokens that text must never become: control and user-defined tokens of the vocabulary.

use std::collections::{HashMap, HashSet};

use super::TokenId;

/// A set of ASCII characters.
type AsciiSet = u128;

/// Control and user-defined tokens, kept apart from the byte-level vocabulary and found only in a chat template's own
/// structure.
#[derive(Debug, Default)]
pub struct AddedTokens {
    /// Longest text first, so that the first that matches is the longest.
    tokens: Vec<(String, TokenId)>,
    /// Indices into `tokens`, by first character, in the order of `tokens`.
    by_first: HashMap<char, Vec<usize>>,
    /// Whether some token starts with an ASCII character: what nearly every character of a text is asked.
    ascii: AsciiSet,
    ids: HashSet<TokenId>,
}

impl AddedTokens {
    /// Collects tokens; empty texts can match nothing and are kept by id only.
    pub fn new(tokens: impl IntoIterator<Item = (String, TokenId)>) -> Self {
        let mut tokens: Vec<_> = tokens.into_iter().collect();
        let ids = tokens.iter().map(|(_, id)| *id).collect();
        tokens.retain(|(text, _)| !text.is_empty());
        tokens.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        let mut by_first: HashMap<char, Vec<usize>> = HashMap::new();
        for (index, (text, _)) in tokens.iter().enumerate() {
            by_first.entry(first(text)).or_default().push(index);
        }
        let ascii = by_first.keys().filter_map(|first| bit(*first)).fold(0, |set, bit| set | bit);
        Self { tokens, by_first, ascii, ids }
    }

    /// Text and id of every token, longest text first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, TokenId)> {
        self.tokens.iter().map(|(text, id)| (text.as_str(), *id))
    }

    /// Whether `id` is one of these tokens.
    pub fn contains(&self, id: TokenId) -> bool {
        self.ids.contains(&id)
    }

    /// The text of an added token.
    pub fn text_of(&self, id: TokenId) -> Option<&str> {
        self.iter().find(|(_, other)| *other == id).map(|(text, _)| text)
    }

    /// The longest token that `text` starts with.
    pub fn at_start_of(&self, text: &str) -> Option<(&str, TokenId)> {
        let first = text.chars().next()?;
        if !self.starts_with(first) {
            return None;
        }
        let candidates = self.by_first.get(&first)?;
        candidates
            .iter()
            .map(|index| &self.tokens[*index])
            .find(|(token, _)| text.starts_with(token.as_str()))
            .map(|(token, id)| (token.as_str(), *id))
    }

    /// Whether some token starts with `first`.
    pub(super) fn starts_with(&self, first: char) -> bool {
        match bit(first) {
            Some(bit) => self.ascii & bit != 0,
            None => self.by_first.contains_key(&first),
        }
    }

    /// Characters that are a whole token by themselves.
    pub(super) fn single_characters(&self) -> impl Iterator<Item = char> {
        self.tokens.iter().filter(|(text, _)| text.chars().count() == 1).map(|(text, _)| first(text))
    }
}

/// The member of an [`AsciiSet`] that stands for a character; None for one that is not ASCII.
fn bit(char: char) -> Option<AsciiSet> {
    char.is_ascii().then(|| 1 << u32::from(char))
}

/// The first character; `tokens` holds no empty text, and NUL stands in so that nothing can panic.
fn first(text: &str) -> char {
    text.chars().next().unwrap_or('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_token_wins() {
        let added =
            AddedTokens::new([("<a".to_owned(), 1), ("<a>".to_owned(), 2), ("<".to_owned(), 3), (String::new(), 4)]);
        assert_eq!(added.at_start_of("<a>b"), Some(("<a>", 2)));
        assert_eq!(added.at_start_of("<ab"), Some(("<a", 1)));
        assert_eq!(added.at_start_of("<"), Some(("<", 3)));
        assert_eq!(added.at_start_of(""), None);
        assert!(added.contains(4), "a token without text is still no plain token");
    }
}
