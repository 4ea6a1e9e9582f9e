//! The marks with which chat templates write a conversation as one text. Pure, and linear in the text.
//!
//! A text is read as a conversation only if it begins with a turn (after padding and a begin-of-text token), and then by
//! the marks of that one template: a message that speaks of another one's marks stays a message. Text outside of turns is
//! what a template puts there, such as a system message: nobody's turn.

/// How a template writes a turn.
struct Template {
    opens: &'static [Open],
    closes: &'static [&'static str],
    /// Whether text may stand before the first turn.
    preface: bool,
}

/// The beginning of a turn.
enum Open {
    /// The mark names the role.
    Fixed { mark: &'static str, role: &'static str },
    /// The role stands between two marks; `skip` follows them where the template writes it.
    Named { before: &'static str, after: &'static str, skip: &'static str },
}

use Open::{Fixed, Named};

const TEMPLATES: &[Template] = &[
    // ChatML: Qwen, SmolLM2, Yi and many others; Phi-4 has `<|im_sep|>` for the newline.
    Template {
        opens: &[
            Named { before: "<|im_start|>", after: "<|im_sep|>", skip: "" },
            Named { before: "<|im_start|>", after: "\n", skip: "" },
        ],
        closes: &["<|im_end|>", "<|endoftext|>"],
        preface: false,
    },
    // Llama 3.
    Template {
        opens: &[Named { before: "<|start_header_id|>", after: "<|end_header_id|>", skip: "\n\n" }],
        closes: &["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"],
        preface: false,
    },
    // Llama 4.
    Template {
        opens: &[Named { before: "<|header_start|>", after: "<|header_end|>", skip: "\n\n" }],
        closes: &["<|eot|>", "<|eom|>", "<|end_of_text|>"],
        preface: false,
    },
    // Gemma.
    Template {
        opens: &[Named { before: "<start_of_turn>", after: "\n", skip: "" }],
        closes: &["<end_of_turn>", "<eos>"],
        preface: false,
    },
    // gpt-oss: the channel stands beside the role; a prompt ends with the bare role.
    Template {
        opens: &[
            Fixed { mark: "<|start|>system<|message|>", role: "system" },
            Fixed { mark: "<|start|>developer<|message|>", role: "developer" },
            Fixed { mark: "<|start|>user<|message|>", role: "user" },
            Fixed { mark: "<|start|>assistant<|channel|>analysis<|message|>", role: THOUGHT },
            Fixed { mark: "<|start|>assistant<|channel|>commentary<|message|>", role: THOUGHT },
            Fixed { mark: "<|start|>assistant<|channel|>final<|message|>", role: "assistant" },
            Fixed { mark: "<|start|>assistant", role: "assistant" },
        ],
        closes: &["<|end|>", "<|return|>"],
        preface: false,
    },
    // Zephyr, Phi-3, GLM.
    Template {
        opens: &[
            Fixed { mark: "<|system|>\n", role: "system" },
            Fixed { mark: "<|user|>\n", role: "user" },
            Fixed { mark: "<|assistant|>\n", role: "assistant" },
            Fixed { mark: "<|system|>", role: "system" },
            Fixed { mark: "<|user|>", role: "user" },
            Fixed { mark: "<|assistant|>", role: "assistant" },
        ],
        closes: &["<|end|>", "</s>", "<|endoftext|>"],
        preface: false,
    },
    // Llama 2 and Mistral.
    Template {
        opens: &[
            Fixed { mark: "[INST]", role: "user" },
            Fixed { mark: "[/INST]", role: "assistant" },
            Fixed { mark: "<<SYS>>", role: "system" },
            Fixed { mark: "<</SYS>>", role: "user" },
            Fixed { mark: "[SYSTEM_PROMPT]", role: "system" },
        ],
        closes: &["</s>", "[/SYSTEM_PROMPT]"],
        preface: false,
    },
    // Command R.
    Template {
        opens: &[
            Fixed { mark: "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", role: "system" },
            Fixed { mark: "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", role: "user" },
            Fixed { mark: "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", role: "assistant" },
        ],
        closes: &["<|END_OF_TURN_TOKEN|>"],
        preface: false,
    },
    // DeepSeek: the system message stands bare before the first turn.
    Template {
        opens: &[Fixed { mark: "<｜User｜>", role: "user" }, Fixed { mark: "<｜Assistant｜>", role: "assistant" }],
        closes: &["<｜end▁of▁sentence｜>"],
        preface: true,
    },
];

/// Tokens that begin a text.
const BEGIN: &[&str] = &[
    "<|begin_of_text|>",
    "<|startoftext|>",
    "<|im_begin|>",
    "<s>",
    "<bos>",
    "[gMASK]",
    "<sop>",
    "<BOS_TOKEN>",
    "<｜begin▁of▁sentence｜>",
];

/// Tokens that end a turn or a text, or fill it up.
const END: &[&str] = &[
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|finetune_right_pad_id|>",
    "<|eot|>",
    "<|eom|>",
    "<end_of_turn>",
    "<eos>",
    "<|end|>",
    "<|return|>",
    "</s>",
    "<pad>",
    "<|pad|>",
    "[PAD]",
    "<PAD>",
    "<|vision_pad|>",
    "<|fim_pad|>",
    "<unk>",
    "<EOS_TOKEN>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
    "<｜▁pad▁｜>",
];

/// The role of what a model says to itself.
pub const THOUGHT: &str = "thought";

/// Longest name of a role and the mark after it, in bytes.
const ROLE: usize = 64;

/// A turn as it stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub role: &'a str,
    pub text: &'a str,
    /// Whether the turn ends; the last one of a prompt often only begins, for the model to go on.
    pub closed: bool,
}

impl Open {
    /// The role, and the bytes of the mark at the beginning of `text`.
    fn at<'a>(&self, text: &'a str) -> Option<(&'a str, usize)> {
        match *self {
            Fixed { mark, role } => text.starts_with(mark).then_some((role, mark.len())),
            Named { before, after, skip } => {
                let rest = text.strip_prefix(before)?;
                let mut window = rest.len().min(ROLE);
                while !rest.is_char_boundary(window) {
                    window -= 1;
                }
                let role = &rest[..rest[..window].find(after)?];
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                if role.is_empty() || !role.bytes().all(plain) {
                    return None;
                }
                let mark = before.len() + role.len() + after.len();
                Some((role, mark + if text[mark..].starts_with(skip) { skip.len() } else { 0 }))
            }
        }
    }
}

impl Template {
    fn open<'a>(&self, text: &'a str) -> Option<(&'a str, usize)> {
        self.opens.iter().find_map(|open| open.at(text))
    }

    fn close(&self, text: &str) -> Option<usize> {
        self.closes.iter().find(|close| text.starts_with(**close)).map(|close| close.len())
    }

    /// Whether a text is a conversation in this template.
    fn begins(&self, text: &str) -> bool {
        let first = |open: &Open| matches!(open, Fixed { mark, .. } if text.contains(mark));
        self.open(text).is_some() || (self.preface && self.opens.iter().any(first))
    }
}

/// The turns of a text; None if it is no conversation of a known template.
pub fn split(text: &str) -> Option<Vec<Segment<'_>>> {
    let text = after_padding(text).trim_start();
    let template = TEMPLATES.iter().find(|template| template.begins(text))?;
    let mut segments = Vec::new();
    // The turn that is being read: its role and where its text begins.
    let mut turn: Option<(&str, usize)> = None;
    let mut at = 0;
    while let Some(found) = text[at..].find(['<', '[']) {
        let mark = at + found;
        let rest = &text[mark..];
        let (next, length) = match (template.open(rest), template.close(rest)) {
            (Some((role, length)), _) => (Some((role, mark + length)), length),
            (None, Some(length)) => (None, length),
            (None, None) => {
                at = mark + 1;
                continue;
            }
        };
        if let Some((role, from)) = turn {
            segments.push(Segment { role, text: &text[from..mark], closed: true });
        }
        turn = next;
        at = mark + length;
    }
    if let Some((role, from)) = turn {
        segments.push(Segment { role, text: &text[from..], closed: false });
    }
    Some(segments)
}

/// A reply without the mark that begins its turn, which some hosts leave there.
pub fn after_header(text: &str) -> &str {
    let begun = after_padding(text).trim_start();
    let header = TEMPLATES.iter().find_map(|template| template.open(begun));
    match header {
        Some((role, length)) if is_agent(role) => &begun[length..],
        _ => text,
    }
}

/// A text without the end tokens and the padding of its tail. What stands before the first of them stays, white space
/// included: the text is the one that was never padded.
pub fn before_end(text: &str) -> &str {
    let mut kept = text;
    loop {
        let tail = kept.trim_end();
        match END.iter().find_map(|end| tail.strip_suffix(end)) {
            Some(before) => kept = before,
            None => return kept,
        }
    }
}

/// A text without the padding and the tokens that begin it.
pub fn after_padding(text: &str) -> &str {
    let mut rest = text;
    loop {
        let begun = rest.trim_start();
        match BEGIN.iter().chain(END).find_map(|token| begun.strip_prefix(token)) {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// Whether the model speaks in a turn of this role.
pub fn is_agent(role: &str) -> bool {
    ["assistant", "model", "gpt", "bot"].iter().any(|agent| role.eq_ignore_ascii_case(agent))
}

#[cfg(test)]
#[path = "markers_tests.rs"]
mod tests;
