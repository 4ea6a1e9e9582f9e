//! Conversations as hosts send them: a list of messages, or one text that a chat template wrote. Both give the same turns.
//!
//! System messages are instructions and no turns: the persona stands in their place. White space around a turn goes,
//! because templates take it off or leave it. So do thoughts of earlier turns, which templates drop.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use super::clean;
use super::markers::{self, Segment};
use crate::server::pb;

const USER: &str = "User";
const AGENT: &str = "Assistant";

/// What a model is asked to go on from.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    Text(String),
    Messages(Vec<Message>),
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Message {
    #[serde(default)]
    pub role: String,
    #[serde(default)]
    pub content: Content,
}

/// What a message says; pictures and other things that are no text are nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content(pub String);

/// The turns before a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    pub turns: Vec<pb::Turn>,
    /// Words that the prompt puts into the model's mouth: the reply goes on from them.
    pub begun: String,
}

impl Default for Prompt {
    fn default() -> Self {
        Self::Messages(Vec::new())
    }
}

impl Prompt {
    /// The turns of the prompt; earlier replies without their thoughts if `think`.
    pub fn conversation(&self, think: bool) -> Conversation {
        let mut conversation = Conversation::default();
        match self {
            Self::Messages(messages) => {
                for Message { role, content } in messages {
                    conversation.add(role, &content.0, think);
                }
            }
            Self::Text(text) => match markers::split(text) {
                None => conversation.add("user", text, think),
                Some(mut segments) => {
                    if let Some(open) = segments.pop_if(|last| is_open(last)) {
                        conversation.begun = open.text.to_owned();
                    }
                    for Segment { role, text, .. } in segments {
                        conversation.add(role, text, think);
                    }
                }
            },
        }
        conversation
    }
}

impl Conversation {
    /// A whole conversation in one text: its turns, and the reply that ends it, which is empty if the model does not
    /// speak. A text that no template wrote is the reply.
    pub fn with_reply(text: &str, think: bool) -> (Self, &str) {
        let mut conversation = Self::default();
        let Some(segments) = markers::split(text) else { return (conversation, text) };
        let last = segments.iter().rposition(|turn| markers::is_agent(turn.role));
        for Segment { role, text, .. } in &segments[..last.unwrap_or(segments.len())] {
            conversation.add(role, text, think);
        }
        (conversation, last.map_or("", |last| segments[last].text))
    }

    /// Adds a turn, unless it is an instruction or says nothing.
    pub fn add(&mut self, role: &str, text: &str, think: bool) {
        let lower = role.to_ascii_lowercase();
        let agent = markers::is_agent(&lower);
        let speaker = match lower.as_str() {
            "system" | "developer" | markers::THOUGHT => return,
            "user" | "human" | "" => USER.to_owned(),
            _ if agent => AGENT.to_owned(),
            // A tool, or a speaker by name.
            _ => role.to_owned(),
        };
        let text = if agent && think { clean::aloud(text) } else { text }.trim();
        if !text.is_empty() {
            self.turns.push(pb::Turn { speaker, text: text.to_owned() });
        }
    }
}

/// The turn that a prompt begins for the model.
fn is_open(turn: &Segment<'_>) -> bool {
    !turn.closed && markers::is_agent(turn.role)
}

impl<'de> Deserialize<'de> for Prompt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Prompt;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of messages {role, content}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Prompt, E> {
                Ok(Prompt::Text(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Prompt, E> {
                Ok(Prompt::Text(text))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Prompt, E> {
                Ok(Prompt::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Prompt, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = seq.next_element()? {
                    messages.push(message);
                }
                Ok(Prompt::Messages(messages))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// One part of a content that has several.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts {type, text}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Content, E> {
                Ok(Content(text))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Content, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut content = String::new();
                while let Some(Part { text }) = seq.next_element()? {
                    content.push_str(text.as_deref().unwrap_or_default());
                }
                Ok(Content(content))
            }

            /// One part alone, or an object of a host's own.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
                let mut content = Content::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "text" {
                        content.0 = map.next_value::<Option<String>>()?.unwrap_or_default();
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(content)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use serde_json::json;

    use super::*;

    fn turns(conversation: &Conversation) -> Vec<(&str, &str)> {
        conversation.turns.iter().map(|turn| (turn.speaker.as_str(), turn.text.as_str())).collect()
    }

    #[test]
    fn messages_and_the_text_that_a_template_makes_of_them_are_one_conversation() {
        let messages: Prompt = serde_json::from_value(json!([
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi!\n"},
            {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nHello.", "tool_calls": []},
            {"role": "user", "content": [{"type": "text", "text": "Tea"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "?"}]},
            {"role": "assistant", "content": null},
        ]))
        .unwrap();
        let text = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi!\n<|im_end|>\n<|im_start|>assistant\nHello.\
                    <|im_end|>\n<|im_start|>user\nTea?<|im_end|>\n<|im_start|>assistant\n";
        let expected = [("User", "Hi!"), ("Assistant", "Hello."), ("User", "Tea?")];
        for prompt in [messages, Prompt::Text(text.to_owned())] {
            let conversation = prompt.conversation(true);
            assert_eq!(turns(&conversation), expected);
            assert_eq!(conversation.begun, "");
        }
    }

    #[test]
    fn a_text_that_no_template_wrote_is_one_turn_of_the_user() {
        assert_eq!(turns(&Prompt::Text(" Coming? ".into()).conversation(true)), [("User", "Coming?")]);
        assert_eq!(turns(&Prompt::Text(" ".into()).conversation(true)), []);
        assert_eq!(turns(&Prompt::default().conversation(true)), []);
    }

    #[test]
    fn words_that_are_put_into_the_models_mouth_are_kept_for_the_reply() {
        let prompt = Prompt::Text("<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n<think>\n".into());
        let conversation = prompt.conversation(true);
        assert_eq!((turns(&conversation), conversation.begun.as_str()), (vec![("User", "Hi!")], "<think>\n"));
    }

    #[test]
    fn the_last_turn_of_the_model_is_the_reply_of_a_whole_conversation() {
        let text = "<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n";
        let (conversation, reply) = Conversation::with_reply(text, true);
        assert_eq!((turns(&conversation), reply), (vec![("User", "Hi!")], "Hello."));
        assert_eq!(Conversation::with_reply("Hello.", true), (Conversation::default(), "Hello."));
        let (conversation, reply) = Conversation::with_reply("<|im_start|>user\nHi!<|im_end|>", true);
        assert_eq!((turns(&conversation), reply), (vec![("User", "Hi!")], ""));
    }

    #[test]
    fn speakers_of_other_roles_keep_their_names() {
        let mut conversation = Conversation::default();
        for role in ["Priya", "tool", "human", "model", "developer", "SYSTEM"] {
            conversation.add(role, "x", true);
        }
        assert_eq!(turns(&conversation), [("Priya", "x"), ("tool", "x"), ("User", "x"), ("Assistant", "x")]);
    }

    #[test]
    fn what_is_no_prompt_is_refused_with_its_place() {
        for (wrong, expected) in [
            (json!(7), "a text or a list of messages"),
            (json!([{"role": "user", "content": 7}]), "a text or a list of parts"),
            (json!(["Hi"]), "struct Message"),
        ] {
            let error = serde_json::from_value::<Prompt>(wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
