//! Messages through a chat template and a byte-level tokenizer: no text becomes a control token, and none loses a byte.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use prism_judge::model::{ChatMessage, Gguf, TextModel, TokenId, TokenizedPrompt};

/// Every byte is a token; a few merges; control tokens; the ChatML template (scripts/fuzz_corpus.py).
static MODEL: LazyLock<TextModel> = LazyLock::new(|| {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/gguf/text.gguf"));
    TextModel::from_gguf(&Gguf::open(path).unwrap()).unwrap()
});

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    system: Option<&'a str>,
    user: &'a str,
    reply: &'a str,
}

impl<'a> Input<'a> {
    fn messages(&self) -> Vec<ChatMessage<'a>> {
        let system = self.system.map(|text| ChatMessage { role: "system", text });
        let user = ChatMessage { role: "user", text: self.user };
        system.into_iter().chain([user, ChatMessage { role: "assistant", text: self.reply }]).collect()
    }

    /// The same with nothing in it to mistake.
    fn harmless(&self) -> Input<'static> {
        let harmless = |text: &str| if text.trim().is_empty() { " " } else { "x" };
        Input { system: self.system.map(harmless), user: harmless(self.user), reply: harmless(self.reply) }
    }
}

fn controls(prompt: &TokenizedPrompt) -> Vec<TokenId> {
    prompt.ids.iter().copied().filter(|id| MODEL.tokenizer().added_tokens().contains(*id)).collect()
}

fuzz_target!(|input: Input<'_>| {
    let (messages, plain) = (input.messages(), input.harmless().messages());
    for (found, harmless) in
        [(MODEL.prompt(&messages), MODEL.prompt(&plain)), (MODEL.response(&messages), MODEL.response(&plain))]
    {
        let (Ok(found), Ok(harmless)) = (found, harmless) else { continue };
        assert_eq!(controls(&found), controls(&harmless));
        assert_eq!(found.dropped, 0);
        assert_eq!(MODEL.tokenizer().decode(&found.ids), found.text.as_bytes());
        assert!(messages.iter().all(|message| found.text.contains(message.text.trim())));
        assert!(found.span.start <= found.span.end && found.span.end == found.ids.len());
    }
});
