#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn turns(text: &str) -> Option<Vec<(&str, &str, bool)>> {
    let turns = split(text)?;
    Some(turns.into_iter().map(|turn| (turn.role, turn.text, turn.closed)).collect())
}

/// Each as the template of a published model writes the same conversation, with the mark for the model to go on.
#[test]
fn every_template_gives_the_same_turns() {
    let deepseek = "<｜begin▁of▁sentence｜>Be kind.<｜User｜>Hi!<｜Assistant｜>Hello.<｜end▁of▁sentence｜><｜User｜>Tea?<｜Assistant｜>";
    for (model, text) in [
        (
            "Qwen/Qwen2.5-0.5B-Instruct",
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\nHello.\
             <|im_end|>\n<|im_start|>user\nTea?<|im_end|>\n<|im_start|>assistant\n",
        ),
        (
            "microsoft/phi-4",
            "<|im_start|>system<|im_sep|>Be kind.<|im_end|><|im_start|>user<|im_sep|>Hi!<|im_end|><|im_start|>assistant\
             <|im_sep|>Hello.<|im_end|><|im_start|>user<|im_sep|>Tea?<|im_end|><|im_start|>assistant<|im_sep|>",
        ),
        (
            "meta-llama/Meta-Llama-3-8B-Instruct",
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user\
             <|end_header_id|>\n\nHi!<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>\
             <|start_header_id|>user<|end_header_id|>\n\nTea?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        (
            "google/gemma-2-2b-it",
            "<bos><start_of_turn>user\nHi!<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n\
             <start_of_turn>user\nTea?<end_of_turn>\n<start_of_turn>model\n",
        ),
        (
            "openai/gpt-oss-20b",
            "<|start|>system<|message|>Be kind.<|end|><|start|>user<|message|>Hi!<|end|><|start|>assistant<|channel|>final\
             <|message|>Hello.<|end|><|start|>user<|message|>Tea?<|end|><|start|>assistant",
        ),
        (
            "HuggingFaceH4/zephyr-7b-beta",
            "<|system|>\nBe kind.</s>\n<|user|>\nHi!</s>\n<|assistant|>\nHello.</s>\n<|user|>\nTea?</s>\n<|assistant|>\n",
        ),
        (
            "microsoft/Phi-3-mini-4k-instruct",
            "<|system|>\nBe kind.<|end|>\n<|user|>\nHi!<|end|>\n<|assistant|>\nHello.<|end|>\n<|user|>\nTea?<|end|>\n<|assistant|>\n",
        ),
        (
            "CohereForAI/c4ai-command-r-v01",
            "<BOS_TOKEN><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Be kind.<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>\
             Hi!<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Hello.<|END_OF_TURN_TOKEN|>\
             <|START_OF_TURN_TOKEN|><|USER_TOKEN|>Tea?<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        ),
        ("deepseek-ai/DeepSeek-R1", deepseek),
        (
            "meta-llama/Llama-2-7b-chat-hf",
            "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi! [/INST] Hello. </s><s>[INST] Tea? [/INST]",
        ),
        (
            "mistralai/Mistral-Small-24B-Instruct-2501",
            "<s>[SYSTEM_PROMPT]Be kind.[/SYSTEM_PROMPT][INST]Hi![/INST]Hello.</s>[INST]Tea?[/INST]",
        ),
    ] {
        for text in [text.to_owned(), format!("<pad><pad>\n{text}"), format!("<|endoftext|>{text}")] {
            let found = split(&text).unwrap_or_else(|| panic!("{model}"));
            let spoken =
                found.iter().filter(|turn| turn.role != "system" && (turn.closed && !turn.text.trim().is_empty()));
            let spoken: Vec<_> = spoken.map(|turn| (is_agent(turn.role), turn.text.trim())).collect();
            assert_eq!(spoken, [(false, "Hi!"), (true, "Hello."), (false, "Tea?")], "{model}");
            let last = found.last().unwrap();
            assert!(is_agent(last.role) && !last.closed && last.text.is_empty(), "{model}: {last:?}");
        }
    }
}

#[test]
fn a_text_that_speaks_of_marks_is_no_conversation() {
    for text in [
        "",
        "Hi!",
        "What does <|im_start|>user\nmean?",
        "<|im_end|>",
        "<|im_start|>",
        "<|im_start|>no role here\nx",
        "I [INST]alled it.",
        "<s>strike</s>",
        "a < b [0]",
    ] {
        assert_eq!(split(text), None, "{text}");
    }
}

#[test]
fn a_conversation_is_read_by_the_marks_of_its_own_template() {
    let text =
        "<|im_start|>user\nWhat is [INST] and <start_of_turn>user\n?<|im_end|>\n<|im_start|>assistant\nA mark: </s>.";
    let expected = [("user", "What is [INST] and <start_of_turn>user\n?", true), ("assistant", "A mark: </s>.", false)];
    assert_eq!(turns(text).unwrap(), expected);
    // White space belongs to its turn.
    assert_eq!(turns("<|im_start|>user\n  a\n\n<|im_end|>").unwrap(), [("user", "  a\n\n", true)]);
}

#[test]
fn the_tail_goes_up_to_its_first_end_token_and_nothing_else_goes() {
    for (text, kept) in [
        ("Hi!", "Hi!"),
        ("Hi! \n", "Hi! \n"),
        ("Hi! \n<|im_end|>\n", "Hi! \n"),
        ("Hi!<|im_end|><|endoftext|>\n<|endoftext|> ", "Hi!"),
        ("<|im_end|>Hi!", "<|im_end|>Hi!"),
        ("Say </s> twice: </s>", "Say </s> twice: "),
        ("</s>", ""),
        ("", ""),
    ] {
        assert_eq!(before_end(text), kept, "{text}");
    }
}

#[test]
fn the_mark_that_begins_a_reply_goes_if_it_is_the_models() {
    for (text, kept) in [
        ("<|im_start|>assistant\nHi!", "Hi!"),
        ("\n<|start_header_id|>assistant<|end_header_id|>\n\nHi!", "Hi!"),
        ("<start_of_turn>model\nHi!", "Hi!"),
        ("<|start|>assistant<|channel|>final<|message|>Hi!", "Hi!"),
        ("<|im_start|>user\nHi!", "<|im_start|>user\nHi!"),
        (" Hi!", " Hi!"),
        ("<pad>Hi!", "<pad>Hi!"),
    ] {
        assert_eq!(after_header(text), kept, "{text}");
    }
}

/// Texts that are made of marks, parts of marks and letters.
fn odd() -> impl Strategy<Value = String> {
    let marks = TEMPLATES.iter().flat_map(|template| {
        let opens = template.opens.iter().flat_map(|open| match open {
            Fixed { mark, .. } => vec![*mark],
            Named { before, after, .. } => vec![*before, *after],
        });
        opens.chain(template.closes.iter().copied()).collect::<Vec<_>>()
    });
    let words = ["user", "assistant", "\n", " ", "é", "<", "[", "<|", "Hi!", "｜", "<think>", "</think>"];
    let pieces: Vec<&str> = marks.chain(BEGIN.iter().chain(END).copied()).chain(words).collect();
    proptest::collection::vec(proptest::sample::select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_fall_and_gives_parts_of_itself(text in odd()) {
        let inside = |part: &str| {
            let from = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
            part.is_empty() || from.is_some_and(|from| text.get(from..from + part.len()) == Some(part))
        };
        if let Some(turns) = split(&text) {
            prop_assert!(turns.iter().all(|turn| inside(turn.text)));
            prop_assert!(turns.iter().rev().skip(1).all(|turn| turn.closed));
        }
        for part in [before_end(&text), after_header(&text), after_padding(&text)] {
            prop_assert!(inside(part));
        }
        prop_assert!(text.starts_with(before_end(&text)));
        prop_assert!(text.ends_with(after_padding(&text)) && text.ends_with(after_header(&text)));
        prop_assert_eq!(before_end(before_end(&text)), before_end(&text));
    }

    #[test]
    fn padding_at_either_end_changes_nothing(text in "[a-z <\\[\n]{0,40}", count in 0..200_usize) {
        let padded = format!("{text}{}", "<|im_end|>".repeat(count));
        prop_assert_eq!(before_end(&padded), &text);
    }
}

/// Quadratic work on the largest body would take hours.
#[test]
fn the_longest_texts_are_read_at_once() {
    for piece in [
        "<",
        "[",
        "<|im_start|>",
        "<|im_end|>",
        "<|im_start|>user\n",
        " ",
        "<pad> ",
        "<｜User｜>",
        "[INST]",
        "<|start|>assistant",
    ] {
        let text = piece.repeat((16 << 20) / piece.len());
        split(&text);
        before_end(&text);
        after_header(&text);
        after_padding(&text);
    }
}
