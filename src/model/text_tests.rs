//! Templates of other families and hostile vocabularies, over a vocabulary of single bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::model::tokenizer::tests::byte_tokenizer;

const LLAMA3: &str = "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' \
    + m['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";
/// Qwen3's: reasoning is cut out of earlier turns, and an empty one is written where thinking is off.
const QWEN3: &str = "{%- for m in messages %}{%- set content = m.content %}{%- if '</think>' in content %}\
    {%- set content = content.split('</think>')[-1].lstrip('\n') %}{%- endif %}{{- '<|im_start|>' + m.role + '\n' }}\
    {%- if m.role == 'assistant' and loop.last %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{{- content + '<|im_end|>\n' }}{%- endfor %}\
    {%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- if enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %}";
const MISTRAL: &str = "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}\
    {% elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}{% else %}{{ raise_exception('only user and assistant') }}{% endif %}{% endfor %}";

fn model(template: &str, added: &[&str]) -> TextModel {
    let tokenizer = byte_tokenizer("gpt-2", added, true);
    let text = |id: Option<TokenId>| tokenizer.token_text(id.unwrap());
    let template = ChatTemplate::new(template, text(tokenizer.bos()), text(tokenizer.eos())).unwrap();
    TextModel::new(tokenizer, template)
}

fn conversation<'a>(texts: &[&'a str]) -> Vec<ChatMessage<'a>> {
    let role = |index| if index % 2 == 0 { "user" } else { "assistant" };
    texts.iter().enumerate().map(|(index, text)| ChatMessage { role: role(index), text }).collect()
}

fn show(model: &TextModel, ids: &[TokenId]) -> String {
    let added = model.tokenizer().added_tokens();
    ids.iter()
        .map(|id| {
            if added.contains(*id) {
                format!("«{}»", model.tokenizer().token_text(*id))
            } else {
                model.tokenizer().token_text(*id)
            }
        })
        .collect()
}

const LLAMA3_ADDED: [&str; 5] = ["<s>", "</s>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"];

#[test]
fn a_template_that_writes_the_bos_token_gets_one_and_so_does_one_that_does_not() {
    let llama = model(LLAMA3, &LLAMA3_ADDED);
    let prompt = llama.prompt(&conversation(&[" <s>Hi\n"])).unwrap();
    assert_eq!(
        show(&llama, &prompt.ids),
        "«<s>»«<|start_header_id|>»user«<|end_header_id|>»\n\n<s>Hi«<|eot_id|>»«<|start_header_id|>»assistant«<|end_header_id|>»\n\n"
    );
    let without = model(&LLAMA3.replace("{{ bos_token }}", ""), &LLAMA3_ADDED);
    assert_eq!(without.prompt(&conversation(&[" <s>Hi\n"])).unwrap().ids, prompt.ids);
    assert_eq!(
        without.response(&conversation(&["Hi", "Yo"])).unwrap().ids.iter().filter(|id| **id == prompt.ids[0]).count(),
        1
    );
}

#[test]
fn text_cannot_steer_a_template_that_looks_for_control_tokens_in_it() {
    let qwen = model(QWEN3, &["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]);
    let read = qwen.response(&conversation(&["Hi</think>there", "a</think>b"])).unwrap();
    let start =
        "«<s>»«<|im_start|>»user\nHi</think>there«<|im_end|>»\n«<|im_start|>»assistant\n«<think>»\n\n«</think>»\n\n";
    assert_eq!(show(&qwen, &read.ids), format!("{start}a</think>b«<|im_end|>»"));
    assert_eq!(show(&qwen, &read.ids[read.span]), "a</think>b«<|im_end|>»");
}

#[test]
fn a_response_closed_by_the_eos_token_is_read_with_it() {
    let mistral = model(MISTRAL, &["<s>", "</s>", "[INST]", "[/INST]"]);
    let messages = [
        ChatMessage { role: "system", text: "S [INST]" },
        ChatMessage { role: "user", text: "[/INST" },
        ChatMessage { role: "assistant", text: "]</s>" },
    ];
    let read = mistral.response(&messages).unwrap();
    assert_eq!(show(&mistral, &read.ids), "«<s>»«[INST]» S [INST]\n\n[/INST «[/INST]» ]</s>«</s>»");
    assert_eq!(show(&mistral, &read.ids[read.span]), " ]</s>«</s>»");
}

#[test]
fn templates_that_cannot_be_read_safely_are_refused() {
    let error = |template: &str, texts: &[&str]| {
        let model = model(template, &["<s>", "</s>", "<end>"]);
        model.response(&conversation(texts)).unwrap_err().to_string()
    };
    let open = "{% for m in messages %}{{ '<s>' + m.content }}{% endfor %}{% if add_generation_prompt %}<s>{% endif %}";
    assert!(error(open, &["a", "b"]).contains("does not close"));
    let rewriting = "{% for m in messages %}{{ '<s>' + m.content + (messages | length) | string + '<end>' }}{% endfor %}{% if add_generation_prompt %}<s>{% endif %}";
    assert!(error(rewriting, &["a", "b"]).contains("rewrites earlier turns"));
    let cutting = "{% for m in messages %}{{ '<s>' + m.content[:8] + '<end>' }}{% endfor %}{% if add_generation_prompt %}<s>{% endif %}";
    assert!(error(cutting, &["short", "longer than that"]).contains("drops the text of message 1 (assistant)"));
    let unfinished = "{% for m in messages %}{{ '<s>' + '<' + m.content + '<end>' }}{% endfor %}{% if add_generation_prompt %}<s><{% endif %}";
    assert!(error(unfinished, &["end>", "b"]).contains("changes the structure"));
}

#[test]
fn a_role_is_a_plain_word() {
    let llama = model(LLAMA3, &LLAMA3_ADDED);
    let error = llama.prompt(&[ChatMessage { role: "user<|eot_id|>", text: "" }]).unwrap_err();
    assert!(matches!(error, TextError::Role(_)), "{error}");
}

#[test]
fn answer_letters_that_merge_with_the_end_of_the_prompt_are_no_single_token() {
    let llama = model(LLAMA3, &LLAMA3_ADDED);
    // Single bytes: the bare letters are tokens, those with a space are two.
    let prompt = llama.prompt(&conversation(&["Which?"])).unwrap();
    let [bare, spaced] = llama.answer_spellings(&prompt).unwrap();
    assert_eq!(bare, Some(["A", "B", "C"].map(|letter| llama.tokenizer().id_of(letter).unwrap())));
    assert_eq!(spaced, None);
}

proptest! {
    #[test]
    fn no_text_changes_the_structure(texts in prop::collection::vec("[<|s>§é/ \nénd\u{fdd0}]{0,10}", 4), trimming in any::<bool>()) {
        // Added tokens of one character, of white space, and one inside another.
        let filter = if trimming { " | trim" } else { "" };
        let template = format!("{{% for m in messages %}}{{{{ '<s>' + m.role + '|' + m.content{filter} + '<end>' }}}}{{% endfor %}}{{% if add_generation_prompt %}}<s>assistant|{{% endif %}}");
        let model = model(&template, &["<s>", "</s>", "<end>", "§", "<", "s>§", "éé", "\u{fdd1}"]);
        let messages = conversation(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let ids = model.prompt(&messages[..3]).unwrap().ids;
        let controls: Vec<_> = ids.iter().filter(|id| model.tokenizer().added_tokens().contains(**id)).map(|id| model.tokenizer().token_text(*id)).collect();
        prop_assert_eq!(controls, ["<s>", "<end>", "<s>", "<end>", "<s>", "<end>", "<s>"]);
        let text = |text: &str| if trimming { text.trim().to_owned() } else { text.to_owned() };
        let read = model.response(&messages).unwrap();
        let spoken = String::from_utf8(model.tokenizer().decode(&read.ids[read.span])).unwrap();
        prop_assert_eq!(spoken, format!("{}<end>", text(&texts[3])));
    }
}
