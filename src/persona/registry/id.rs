//! What a persona may be called.

/// What an id is made of. It travels in headers, addresses, labels of data sets and file names.
pub const RULE: &str = "1 to 64 letters (a-z, A-Z), digits, `-`, `_` and `.`, the first a letter or a digit";

/// Characters of an id, at most.
const LONGEST: usize = 64;

/// Whether `text` may be an id.
pub fn is_id(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= LONGEST
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && text.bytes().all(rest)
}

/// A key or a word of a file as messages show it. What is no plain word may be a piece of a persona, which belongs into no
/// log.
pub fn shown(text: &str) -> String {
    if is_id(text) { format!("`{text}`") } else { format!("a text of {} characters", text.chars().count()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_plain_word() {
        for id in ["a", "7", "Ada-2", "night_librarian.v2", &"x".repeat(64)] {
            assert!(is_id(id), "{id}");
        }
        for no_id in ["", " ", ".a", "-a", "_a", "a b", "a/b", "a\n", "é", "a\u{200b}", "日本", &"x".repeat(65)] {
            assert!(!is_id(no_id), "{no_id}");
        }
    }
}
