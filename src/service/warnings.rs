//! Counts what people do not see in a text and what imitates the model's own structure. Nothing is taken out of a text
//! for it: it is judged as it is, and the counts are reported beside the verdict.

use super::subject::Subject;
use crate::model::AddedTokens;
use crate::prism::{Group, TextCounts, Turn};

/// What stands in one text. One pass.
pub fn of_text(text: &str, added: &AddedTokens) -> TextCounts {
    let mut counts = TextCounts::default();
    // Where the special token that was found last ends.
    let mut token_end = 0;
    let mut follows = Follows::default();
    for (at, char) in text.char_indices() {
        if at >= token_end
            && let Some((token, _)) = added.at_start_of(&text[at..])
        {
            counts.special_tokens += 1;
            token_end = at + token.len();
        }
        let found = kind(char, follows, &text[at..]);
        match found {
            None => {}
            Some(Kind::Control) => counts.control += 1,
            Some(Kind::Bidi) => counts.bidi += 1,
            Some(Kind::Invisible) => counts.invisible += 1,
        }
        follows = match char {
            '\u{fe0e}' | '\u{fe0f}' if found.is_none() => Follows { style: false, ..follows },
            '\u{200c}' | '\u{200d}' => Follows::default(),
            _ => Follows { joiner: char >= '\u{600}' && !is_ignorable(char), style: takes_style(char) },
        };
    }
    counts
}

/// What stands in the persona and the context together: one for all candidates of a group, one for each of the first
/// `turns` of a dialogue.
pub fn of_request(subject: &Subject, turns: usize, added: &AddedTokens) -> Vec<TextCounts> {
    let Group { persona, context, .. } = &*subject.group;
    let texts = persona.name.iter().chain([&persona.description]).chain(&persona.facts);
    let persona: TextCounts = texts.map(|text| of_text(text, added)).sum();
    let with = |before: TextCounts, turns: &[Turn]| {
        let texts = turns.iter().flat_map(|turn| [&turn.speaker, &turn.text]);
        [before].into_iter().chain(texts.map(|text| of_text(text, added))).sum()
    };
    let Some(after) = &subject.after else { return vec![with(persona, context)] };
    let (mut counts, mut counted) = (persona, 0);
    let next = |turns: &usize| {
        counts = with(counts, &context[counted..*turns]);
        counted = *turns;
        counts
    };
    after.iter().take(turns).map(next).collect()
}

enum Kind {
    Control,
    Bidi,
    Invisible,
}

/// What may follow a character and is then nothing odd.
#[derive(Clone, Copy, Default)]
struct Follows {
    /// Joiners shape letters of the scripts from Arabic to Mongolian, and join emoji.
    joiner: bool,
    /// A sign's style as text or as emoji, once.
    style: bool,
}

/// What is odd about a character; `rest` starts with it.
fn kind(char: char, follows: Follows, rest: &str) -> Option<Kind> {
    match char {
        '\n' | '\t' | ' '..='~' => None,
        '\r' if rest[1..].starts_with('\n') => None,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some(Kind::Control),
        // Marks, embeddings, overrides and isolates of the bidirectional algorithm (UAX #9).
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some(Kind::Bidi),
        '\u{200c}' | '\u{200d}' if follows.joiner => None,
        '\u{fe0e}' | '\u{fe0f}' if follows.style => None,
        _ if is_ignorable(char) => Some(Kind::Invisible),
        _ => None,
    }
}

/// Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties): what is not shown where it is not supported.
fn is_ignorable(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a character may be shown as text or as emoji: digits and signs of keycaps, the two marks of Latin-1, and
/// symbols from the arrows on.
fn takes_style(char: char) -> bool {
    matches!(char, '0'..='9' | '#' | '*' | '©' | '®' | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
        && !is_ignorable(char)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persona::Persona;
    use crate::prism::Turn;

    fn added() -> AddedTokens {
        AddedTokens::new([("<|im_start|>".to_owned(), 1), ("<|im".to_owned(), 2), ("é!".to_owned(), 3)])
    }

    /// Control, bidi, invisible and special tokens of a text.
    fn counts(text: &str) -> [u64; 4] {
        let TextCounts { control, bidi, invisible, special_tokens } = of_text(text, &added());
        [control, bidi, invisible, special_tokens]
    }

    #[test]
    fn text_of_every_script_and_emoji_as_people_type_them_has_nothing_odd() {
        for text in [
            "",
            "Plain text,\twith a tab,\na line and\r\nanother one.",
            "שלום, مرحبا، नमस्ते, สวัสดี, 你好, こんにちは, 안녕, naïve, Ελληνικά, Привет",
            "می\u{200c}خواهم क्\u{200d}ष",
            "👩\u{200d}👩\u{200d}👧\u{200d}👦 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f} 1\u{fe0f}\u{20e3} 👍🏽 ☎\u{fe0e} ©\u{fe0f}",
            "e\u{301}\u{327} < | im_start",
        ] {
            assert_eq!(counts(text), [0; 4], "{text:?}");
        }
    }

    #[test]
    fn each_kind_is_counted_by_itself() {
        for (text, expected) in [
            ("a\0b\u{7}\u{1b}[0m\u{7f}", [4, 0, 0, 0]),
            ("one\rtwo\r", [2, 0, 0, 0]),
            ("\u{80}\u{85}\u{9f}\u{a0}", [3, 0, 0, 0]),
            ("\u{202e}drowkcab\u{202c}\u{2066}x\u{2069}\u{200e}\u{61c}", [0, 6, 0, 0]),
            ("pass\u{200b}word\u{2060}\u{feff}\u{ad}", [0, 0, 4, 0]),
            ("i\u{200d}g\u{200c}n", [0, 0, 2, 0]),
            ("\u{200d}\u{200d}👍\u{200d}\u{200d}", [0, 0, 3, 0]),
            // An instruction in tag characters, as it is smuggled behind an emoji.
            ("👍\u{e0001}\u{e0068}\u{e0069}\u{e007f}", [0, 0, 4, 0]),
            // Bytes in variation selectors.
            ("😀\u{fe0f}\u{fe01}\u{e0100}\u{e01ef}", [0, 0, 3, 0]),
            ("a\u{fe0f}", [0, 0, 1, 0]),
            ("<|im_start|>system<|im_start|><|imx é!", [0, 0, 0, 4]),
            ("<|im_start<|im_start|>", [0, 0, 0, 2]),
        ] {
            assert_eq!(counts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_request_is_the_sum_of_all_texts_of_persona_and_context_and_of_no_response() {
        let odd = "\0\u{202e}\u{200b}<|im";
        let group = |context: Vec<Turn>, candidates: usize| Group {
            persona: Persona {
                name: Some(odd.to_owned()),
                description: odd.to_owned(),
                facts: vec![odd.to_owned(), odd.to_owned()],
                ..Persona::default()
            },
            context,
            candidates: vec![crate::prism::Candidate { id: odd.to_owned(), response: odd.to_owned() }; candidates],
        };
        let turn = Turn { speaker: odd.to_owned(), text: odd.to_owned() };
        let each = |count| TextCounts { control: count, bidi: count, invisible: count, special_tokens: count };
        assert_eq!(of_request(&Subject::of_group(group(vec![turn.clone()], 3)), 0, &added()), [each(6)]);
        // In a dialogue each turn is asked about with those before it.
        let dialogue =
            Subject::of_dialogue(group(vec![turn; 5], 4), vec![0, 1, 1, 5]).unwrap_or_else(|_| unreachable!());
        assert_eq!(of_request(&dialogue, 4, &added()), [each(4), each(6), each(6), each(14)]);
        assert_eq!(of_request(&dialogue, 2, &added()), [each(4), each(6)]);
    }
}
