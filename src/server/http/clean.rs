//! What trainers leave around a reply: the prompt before it, the mark that begins its turn, end tokens and padding after
//! it, the thoughts in it. Pure, and linear in the text. Nothing inside a reply is taken out: a mark in the middle is part
//! of what the model wrote.

use super::markers;

/// What is taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// The prompt, where a host sends prompt and reply in one text.
    pub prompt: bool,
    /// The mark that begins the model's turn; a text that is a whole conversation is split at its marks.
    pub markers: bool,
    /// End tokens and padding at the tail.
    pub end: bool,
    /// Thoughts.
    pub think: bool,
}

impl Switches {
    /// For hosts that send what a model wrote, token by token.
    pub const ALL: Self = Self { prompt: true, markers: true, end: true, think: true };
    /// For callers that send what a person sees.
    pub const NONE: Self = Self { prompt: false, markers: false, end: false, think: false };

    /// As the setting writes them, in the order of the fields.
    pub const NAMES: [&str; 4] = ["prompt", "markers", "end", "think"];

    /// # Errors
    /// What a text must be, which lists some of the names, or says `none`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("it must be none, or some of {}, with commas between them", Self::NAMES.join(", "));
        if text == "none" {
            return Ok(Self::NONE);
        }
        let mut switches = Self::NONE;
        for name in text.split(',') {
            let switch = match name.trim() {
                "prompt" => &mut switches.prompt,
                "markers" => &mut switches.markers,
                "end" => &mut switches.end,
                "think" => &mut switches.think,
                _ => return Err(wrong()),
            };
            *switch = true;
        }
        Ok(switches)
    }
}

/// Marks around what a model says to itself: the first begins it, the second begins what it says aloud. The first is often
/// in the prompt.
const THOUGHTS: [(&str, &str); 2] =
    [("<think>", "</think>"), ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>")];

/// The reply in what a host calls one.
pub fn reply(text: &str, switches: Switches) -> &str {
    let text = if switches.end { markers::before_end(text) } else { text };
    let text = if switches.markers { markers::after_header(text) } else { text };
    if switches.think { aloud(text) } else { text }
}

/// What stands after the last thought. A thought that does not end leaves what stands before it.
pub fn aloud(text: &str) -> &str {
    for (begin, end) in THOUGHTS {
        if let Some(at) = text.rfind(end) {
            return text[at + end.len()..].trim_start();
        }
        if let Some(at) = text.find(begin) {
            return text[..at].trim_end();
        }
    }
    text
}

/// What stands after the prompt in a text that begins with it; None if it does not. Decoders may drop spaces, begin-of-text
/// tokens and padding: white space and the tokens before the text do not count.
pub fn after_prompt<'a>(text: &'a str, prompt: &str) -> Option<&'a str> {
    if let Some(rest) = text.strip_prefix(prompt) {
        return Some(rest);
    }
    let (text, prompt) = (markers::after_padding(text), markers::after_padding(prompt));
    let mut rest = text;
    for wanted in prompt.chars().filter(|letter| !letter.is_whitespace()) {
        rest = rest.trim_start().strip_prefix(wanted)?;
    }
    // White space that the prompt ends with is the prompt's.
    let end = prompt.trim_end().len();
    Some(rest.strip_prefix(&prompt[end..]).unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_follows_the_last_thought_is_said_aloud() {
        for (text, said) in [
            ("<think>\nHm.\n</think>\n\nHello!", "Hello!"),
            // The template wrote the opening tag.
            ("Hm.\n</think>\n\nHello!", "Hello!"),
            ("<think>a</think>b<think>c</think> d", "d"),
            ("<think>\n\n</think>\n\n", ""),
            // It was cut off while it thought.
            ("<think>Hm. Hel", ""),
            ("Well, <think>hm", "Well,"),
            ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello!", "Hello!"),
            ("<|channel|>analysis<|message|>Hm.", ""),
            (" Hello! ", " Hello! "),
            ("I think so.", "I think so."),
        ] {
            assert_eq!(aloud(text), said, "{text}");
        }
    }

    #[test]
    fn a_padded_reply_is_the_reply() {
        let bare = "Hm.</think> Yes! Who else is in? \n";
        let padded = format!("<|im_start|>assistant\n{bare}{}", "<|im_end|>".repeat(200));
        assert_eq!(reply(&padded, Switches::ALL), "Yes! Who else is in? \n");
        assert_eq!(reply(&padded, Switches::NONE), padded);
        assert_eq!(reply(&padded, Switches { think: false, ..Switches::ALL }), bare);
        let without_end = reply(&padded, Switches { end: false, ..Switches::ALL });
        assert!(without_end.starts_with("Yes!") && without_end.ends_with("<|im_end|>"));
        assert!(reply(&padded, Switches { markers: false, think: false, ..Switches::ALL }).starts_with("<|im_start|>"));
    }

    #[test]
    fn the_prompt_goes_as_far_as_it_is_the_prompt() {
        let prompt = "<|im_start|>user\nHi , you !<|im_end|>\n<|im_start|>assistant\n";
        for query in [
            "<|im_start|>user\nHi , you !<|im_end|>\n<|im_start|>assistant\nHi there",
            // Decoders that tidy up spaces.
            "<|im_start|>user\nHi, you!<|im_end|>\n<|im_start|>assistant\nHi there",
            "<s> <pad><|im_start|>user\nHi , you !<|im_end|>\n<|im_start|>assistant\nHi there",
        ] {
            assert_eq!(after_prompt(query, prompt), Some("Hi there"), "{query}");
        }
        assert_eq!(after_prompt("Hi there", "Hi"), Some(" there"));
        assert_eq!(after_prompt("<s>Hi there", "<bos>Hi"), Some(" there"));
        assert_eq!(after_prompt("Hi", "Hi"), Some(""));
        assert_eq!(after_prompt("Hi", ""), Some("Hi"));
        assert_eq!(after_prompt("Ho there", "Hi"), None);
        assert_eq!(after_prompt("H", "Hi"), None);
    }

    #[test]
    fn a_setting_names_what_is_taken_off() {
        assert_eq!(Switches::parse(&Switches::NAMES.join(",")), Ok(Switches::ALL));
        assert_eq!(Switches::parse("none"), Ok(Switches::NONE));
        assert_eq!(Switches::parse("end, think"), Ok(Switches { end: true, think: true, ..Switches::NONE }));
        for wrong in ["", "all", "end,", "none,end", "End"] {
            assert!(Switches::parse(wrong).unwrap_err().starts_with("it must be none, or some of prompt,"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_prompt_before_any_text_is_found_and_nothing_of_the_text_is_lost(prompt in "[ab <>|\n]{0,20}", text in "[ab ]{0,20}") {
            let whole = format!("{prompt}{text}");
            prop_assert_eq!(after_prompt(&whole, &prompt), Some(text.as_str()));
        }

        #[test]
        fn text_without_marks_is_left_alone(text in "[^<\\[]{0,200}") {
            prop_assert_eq!(reply(&text, Switches::ALL), &text);
        }

        #[test]
        fn a_reply_is_a_part_of_its_text(text in "(<think>|</think>|<\\|im_end\\|>|<\\|im_start\\|>assistant\n|[ a-zé\n]){0,20}") {
            prop_assert!(text.contains(reply(&text, Switches::ALL)));
        }
    }
}
