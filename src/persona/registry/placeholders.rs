//! What a character card writes for the two who talk (`malfoyslastname/character-card-spec-v2`, spec_v1.md).

/// What a card calls the user; the spec asks for a name and leaves it open. It is the one that a context in one text has
/// here.
pub const USER: &str = "User";

/// Bytes of a text that was filled in, at most: a long name at many places makes much of little.
const LONGEST: usize = 1 << 20;

enum Who {
    Character,
    User,
}

/// In any case of letters.
const PLACEHOLDERS: [(&str, Who); 4] =
    [("{{char}}", Who::Character), ("<bot>", Who::Character), ("{{user}}", Who::User), ("<user>", Who::User)];

/// Why a text cannot be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    #[error("it has {{{{char}}}} or <BOT>, and the card has no name to put there")]
    NoName,
    #[error("it has more than {limit} bytes with its names filled in; shorten it", limit = LONGEST)]
    TooLong,
}

/// The text with names in place of `{{char}}`, `<BOT>`, `{{user}}` and `<USER>`. What is put in is not looked at again.
pub fn fill(text: &str, name: Option<&str>) -> Result<String, FillError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '<']) {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let starts = |word: &str| from.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        let length = match PLACEHOLDERS.iter().find(|(word, _)| starts(word)) {
            Some((word, who)) => {
                filled.push_str(match who {
                    Who::Character => name.ok_or(FillError::NoName)?,
                    Who::User => USER,
                });
                word.len()
            }
            None => {
                filled.push_str(&from[..1]);
                1
            }
        };
        if filled.len() > LONGEST {
            return Err(FillError::TooLong);
        }
        rest = &from[length..];
    }
    filled.push_str(rest);
    if filled.len() > LONGEST { Err(FillError::TooLong) } else { Ok(filled) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_names_are_filled_in_whatever_the_case_and_only_once() {
        let filled = fill("{{char}} and {{USER}}, <bot>/<User>, {{ char }}, {{char, <b>, {", Some("{{user}} Ada"));
        assert_eq!(filled.unwrap(), "{{user}} Ada and User, {{user}} Ada/User, {{ char }}, {{char, <b>, {");
        assert_eq!(fill("é{{Char}}é", Some("日本")).unwrap(), "é日本é");
    }

    #[test]
    fn a_name_is_only_missed_where_it_is_asked_for() {
        assert_eq!(fill("{{user}} waits", None).unwrap(), "User waits");
        assert_eq!(fill("{{char}} waits", None), Err(FillError::NoName));
        assert!(FillError::NoName.to_string().contains("{{char}} or <BOT>"));
    }

    #[test]
    fn a_small_text_does_not_become_a_large_one() {
        let name = "n".repeat(1 << 10);
        assert_eq!(fill(&"{{char}}".repeat(1 << 10), Some(&name)).unwrap().len(), LONGEST);
        assert_eq!(fill(&"{{char}}".repeat((1 << 10) + 1), Some(&name)), Err(FillError::TooLong));
        assert_eq!(fill(&"x".repeat(LONGEST + 1), None), Err(FillError::TooLong));
    }

    proptest! {
        #[test]
        fn a_text_without_placeholders_stays_as_it_is(text in "[a-z{}<>é \n]{0,80}") {
            let lower = text.to_lowercase();
            prop_assume!(PLACEHOLDERS.iter().all(|(word, _)| !lower.contains(word)));
            prop_assert_eq!(fill(&text, None).unwrap(), text);
        }
    }
}
