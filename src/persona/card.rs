//! Character cards: a description cut into named sections.

/// A section of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// As written, without the colon.
    pub header: String,
    /// The value after the colon and the lines up to the next header, trimmed; may be empty.
    pub body: String,
}

/// A description read as a character card.
///
/// A header is `Name:` at the start of a line. A known name (any case) always opens a section. An unknown name opens
/// one when nothing follows the colon, or when it follows a one-line field (`Personality: shy` and then
/// `Favourite colour: green`); elsewhere it is text, so that `Geppetto: your maker` stays inside `Related People:`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// In the order of the description.
    pub sections: Vec<Section>,
}

/// Names that always open a section.
const KNOWN: [&str; 28] = [
    "your character profile",
    "character profile",
    "name",
    "age",
    "gender",
    "species",
    "occupation",
    "personality",
    "personality traits",
    "introduction",
    "background",
    "character background",
    "related people",
    "relationships",
    "character relationships",
    "dialogue style",
    "speaking style",
    "speech style",
    "hobbies",
    "likes",
    "dislikes",
    "catchphrases",
    "goals",
    "fears",
    "residence",
    "unique characteristics",
    "your unique characteristics",
    "your task",
];

/// What the section of the personality may be called.
pub const PERSONALITY: [&str; 2] = ["personality", "personality traits"];

/// What the section of the style may be called.
pub const DIALOGUE_STYLE: [&str; 3] = ["dialogue style", "speaking style", "speech style"];

/// Longest unknown header, in words.
const HEADER_WORDS: usize = 4;

impl Card {
    /// Reads a description; one without headers gives a card without sections.
    pub fn parse(description: &str) -> Self {
        let mut sections: Vec<Section> = Vec::new();
        let mut one_line_field = false;
        for line in description.lines() {
            match header(line) {
                Some((name, value)) if opens(name, value, one_line_field) => {
                    one_line_field = !value.is_empty();
                    sections.push(Section { header: name.to_owned(), body: value.to_owned() });
                }
                _ => {
                    if let Some(section) = sections.last_mut() {
                        section.body.push('\n');
                        section.body.push_str(line.trim_end());
                    }
                }
            }
        }
        for section in &mut sections {
            section.body = section.body.trim().to_owned();
        }
        Self { sections }
    }

    /// Whether the description is a card at all: it has a section of a known name that says something.
    pub fn is_card(&self) -> bool {
        self.sections.iter().any(|section| is_known(&section.header) && !section.body.is_empty())
    }

    /// The first section that bears one of the names (lower case) and is not empty.
    pub fn find(&self, names: &[&str]) -> Option<&Section> {
        let named = |section: &&Section| names.iter().any(|name| section.header.eq_ignore_ascii_case(name));
        self.sections.iter().filter(named).find(|section| !section.body.is_empty())
    }

    /// The body of that section.
    pub fn section(&self, names: &[&str]) -> Option<&str> {
        self.find(names).map(|section| section.body.as_str())
    }

    /// The `Personality:` section.
    pub fn personality(&self) -> Option<&str> {
        self.section(&PERSONALITY)
    }

    /// The `Dialogue Style:` section.
    pub fn dialogue_style(&self) -> Option<&str> {
        self.section(&DIALOGUE_STYLE)
    }

    /// The `Name:` section.
    pub fn name(&self) -> Option<&str> {
        self.section(&["name"])
    }
}

fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn opens(name: &str, value: &str, after_one_line_field: bool) -> bool {
    is_known(name) || value.is_empty() || after_one_line_field
}

/// `Name: value` at the start of a line, both trimmed.
fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().split_once(':')?;
    let name = name.trim();
    let looks_like_one = is_known(name)
        || (name.starts_with(char::is_uppercase)
            && name.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '-' | '\'' | '/' | '&'))
            && name.split_whitespace().count() <= HEADER_WORDS);
    // `https://…` and the like are no headers.
    (looks_like_one && !value.starts_with('/')).then(|| (name, value.trim()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    const CARD: &str = "Your Character Profile:\nAge: Ancient\npersonality: Gruff but fair\n\nIntroduction:\nYou are the \
                        harbour cat.\n\nRelated People:\nMarta: feeds you: fish, mostly.\nThe Gull: an enemy.\n\n\
                        Background:\nYou came by ship.\r\nYou stayed.\n\nDIALOGUE STYLE:\nShort growls.\n";

    #[test]
    fn a_card_is_cut_at_its_headers() {
        let card = Card::parse(CARD);
        let headers: Vec<&str> = card.sections.iter().map(|section| section.header.as_str()).collect();
        assert_eq!(
            headers,
            [
                "Your Character Profile",
                "Age",
                "personality",
                "Introduction",
                "Related People",
                "Background",
                "DIALOGUE STYLE"
            ]
        );
        assert_eq!(card.personality(), Some("Gruff but fair"));
        assert_eq!(card.dialogue_style(), Some("Short growls."));
        assert_eq!(card.section(&["background"]), Some("You came by ship.\nYou stayed."));
        assert!(card.is_card());
    }

    #[test]
    fn a_person_inside_a_section_is_text() {
        let card = Card::parse(CARD);
        assert_eq!(card.section(&["related people"]), Some("Marta: feeds you: fish, mostly.\nThe Gull: an enemy."));
    }

    #[test]
    fn an_unknown_field_ends_a_one_line_field() {
        let card = Card::parse("Personality: shy\nFavourite colour: green\nIQ: 120");
        assert_eq!(card.personality(), Some("shy"));
        assert_eq!(card.sections.len(), 3);
    }

    #[test]
    fn a_value_may_run_over_several_lines() {
        let card = Card::parse("Personality: shy,\nand slow to trust\nAge: 7");
        assert_eq!(card.personality(), Some("shy,\nand slow to trust"));
    }

    #[test]
    fn prose_is_no_card() {
        for text in ["", "You are a pirate: loud and proud.", "see https://example.org", "Remember this:\nbe kind"] {
            assert!(!Card::parse(text).is_card(), "{text}");
        }
    }

    #[test]
    fn an_empty_section_says_nothing() {
        let card = Card::parse("Personality:\n\nDialogue Style:\n   \n");
        assert_eq!(card.personality(), None);
        assert!(!card.is_card());
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "(?s).{0,200}") {
            let _ = Card::parse(&text);
        }
    }
}
