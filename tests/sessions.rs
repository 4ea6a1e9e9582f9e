//! A session shares work between the prompts of a request and changes no token.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;

use prism_judge::eval::Item;
use prism_judge::model::{ChatMessage, Gguf, TextModel};
use prism_judge::prism::{
    Calibration, EvidenceKind, LabelOrder, LabelSpaces, Layout, LikelihoodScale, Options, PromptTemplate, Read, plan,
};

/// Lines of the development data that are compared; the whole takes minutes.
const LINES_PER_FILE: usize = 12;

#[test]
fn prompts_of_the_development_data_have_the_same_ids_in_a_session_and_alone() {
    let Some(path) = support::backbone() else { return };
    let text = TextModel::from_gguf(&Gguf::open(&path).unwrap()).unwrap();
    let (spaces, template) = (LabelSpaces::load(None).unwrap(), PromptTemplate::load(None).unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/dev");
    let Ok(files) = std::fs::read_dir(&folder) else {
        assert!(std::env::var_os("CI").is_none(), "this test needs {}", folder.display());
        eprintln!("SKIPPED, NOT TESTED: {} is not here", folder.display());
        return;
    };
    let mut compared = 0;
    for file in files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl")) {
        let lines = std::fs::read_to_string(&file).unwrap();
        let items = lines.lines().take(LINES_PER_FILE).filter_map(|line| Item::parse(line, 1).ok());
        for group in items.flat_map(|item| item.groups) {
            for (evidence, layout) in [
                (EvidenceKind::Likelihood, Layout::Shared),
                (EvidenceKind::LabelSlot, Layout::Shared),
                (EvidenceKind::LabelSlot, Layout::Released),
            ] {
                let options = Options {
                    evidence,
                    layout,
                    label_order: LabelOrder::Cyclic,
                    calibration: Calibration::Contextual,
                    persona_block: true,
                    scale: LikelihoodScale::default(),
                };
                let Ok(plan) = plan(&group, &spaces, &template, &options) else { continue };
                let mut session = text.session();
                let candidates = plan.candidates().filter_map(Result::ok).flat_map(|candidate| candidate.prompts);
                for prompt in candidates.chain(plan.baseline().to_vec()) {
                    let messages: Vec<_> = prompt
                        .messages
                        .iter()
                        .map(|message| ChatMessage { role: message.role.name(), text: &message.text })
                        .collect();
                    let [shared, alone] = match prompt.read {
                        Read::LabelSlot { .. } => [session.prompt(&messages), text.prompt(&messages)],
                        Read::Response { .. } => [session.response(&messages), text.response(&messages)],
                    };
                    let (shared, alone) = (shared.unwrap(), alone.unwrap());
                    assert_eq!(shared, alone, "{}", file.display());
                    // Between control tokens nothing may be cut: each stretch has the ids that it has as one string.
                    let tokenizer = text.tokenizer();
                    for stretch in alone.ids.split(|id| tokenizer.added_tokens().contains(*id)) {
                        let whole = String::from_utf8(tokenizer.decode(stretch)).unwrap();
                        assert_eq!(tokenizer.encode_plain(&whole).unwrap(), stretch);
                    }
                    compared += 1;
                }
            }
        }
    }
    println!("{compared} prompts compared");
    assert!(compared > 500, "{compared}");
}
