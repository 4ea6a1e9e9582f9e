//! The prompts of a group as token ids, for programs that run the same judgements elsewhere.

use super::{Judge, JudgeError, OptionOverrides, tokens};
use crate::engine::Prompt;
use crate::prism::{Dimension, Group, plan};

/// One prompt of one candidate.
#[derive(Clone, Debug)]
pub struct TokenPrompt {
    /// Index into the group's candidates.
    pub candidate: usize,
    pub dimension: Dimension,
    /// Ids and what is read of them: exactly what [`Judge::score`] gives to the engine.
    pub prompt: Prompt,
}

impl Judge {
    /// The prompts of all candidates, in order. Content-free prompts of a calibration are not among them.
    pub fn prompts(&self, group: &Group, overrides: &OptionOverrides) -> Result<Vec<TokenPrompt>, JudgeError> {
        self.limits.check_group(group)?;
        for (index, candidate) in group.candidates.iter().enumerate() {
            self.limits.check_candidate(index, candidate)?;
        }
        let wording = &*self.wording;
        let plan = plan(group, &wording.spaces, &wording.template, &overrides.over(&self.options))?;
        let mut text = wording.text.session();
        let mut prompts = Vec::new();
        for (candidate, planned) in plan.candidates().enumerate() {
            for prompt in planned?.prompts {
                let ids = tokens::tokenize(&mut text, &prompt, wording.limit)?;
                let dimension = prompt.dimension;
                prompts.push(TokenPrompt {
                    candidate,
                    dimension,
                    prompt: tokens::request(&prompt, ids, wording.slot.ids),
                });
            }
        }
        Ok(prompts)
    }
}
