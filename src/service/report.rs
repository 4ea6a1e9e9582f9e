//! What a judge says of itself and of one verdict.

use std::collections::BTreeMap;

use serde::Serialize;

use super::wording::Wording;
use super::{Call, Judge, JudgeError, Lane, OptionOverrides, tokens};
use crate::digest::Digest;
use crate::engine::LaneStats;
use crate::numerics::Numerics;
use crate::prism::{Candidate, Dimension, Group, InversePrompt, Label, LabelSpace, Options, Read, Verdict, plan};

/// What a judge says of itself.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeInfo {
    pub version: &'static str,
    pub model: String,
    pub model_digest: Digest,
    pub prompt_digest: Digest,
    pub label_space_digest: Digest,
    pub architecture: String,
    pub parameters: u64,
    /// Longest prompt, in tokens.
    pub context_length: usize,
    pub vocabulary: usize,
    /// The spelling of the three letters at the answer slot, e.g. ["A", "B", "C"].
    pub answer_slot: [String; 3],
    pub threads: usize,
    pub numerics: Numerics,
    pub options: Options,
}

/// A verdict with everything that led to it.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub verdict: Verdict,
    pub prompts: Vec<ExplainedPrompt>,
}

/// One prompt as the model saw it.
#[derive(Clone, Debug)]
pub struct ExplainedPrompt {
    pub dimension: Dimension,
    /// For the label slot: letter, label, description, in displayed order. For the likelihood: the one label that the
    /// prompt plays, with its system turn and note.
    pub labels: Vec<ShownLabel>,
    pub text: String,
    pub tokens: usize,
}

/// A label as a prompt shows it.
#[derive(Clone, Debug)]
pub struct ShownLabel {
    /// None for the likelihood estimator.
    pub letter: Option<String>,
    pub label: Label,
    pub description: String,
}

/// What waits and what is held, now.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    pub lanes: BTreeMap<&'static str, LaneLoad>,
    /// Pieces of work that the model is computing.
    pub active_pieces: u64,
    pub kv_cache_bytes: u64,
    pub kv_cache_limit_bytes: usize,
    pub verdict_cache_entries: u64,
    pub verdict_cache_bytes: u64,
}

/// What one lane holds.
#[derive(Clone, Debug, Serialize)]
pub struct LaneLoad {
    /// Tokens that wait or run.
    pub queue_tokens: usize,
    pub queue_limit_tokens: usize,
    /// Pieces of work that hold them.
    pub queue_pieces: usize,
    /// How long the oldest piece has been waiting for the model; 0 if none is.
    pub queue_age_seconds: f64,
}

impl Judge {
    pub fn load(&self) -> Load {
        let engine = self.engine.stats();
        let (verdict_cache_entries, verdict_cache_bytes) = self.cache.size();
        let lane = |(lane, held): (Lane, LaneStats)| {
            let LaneStats { tokens, pieces, limit, oldest } = held;
            let load = LaneLoad {
                queue_tokens: tokens,
                queue_limit_tokens: limit,
                queue_pieces: pieces,
                queue_age_seconds: oldest.as_secs_f64(),
            };
            (lane.name(), load)
        };
        Load {
            lanes: Lane::ALL.into_iter().zip(self.engine.lanes()).map(lane).collect(),
            active_pieces: engine.active,
            kv_cache_bytes: engine.kv_bytes,
            kv_cache_limit_bytes: self.engine.kv_limit(),
            verdict_cache_entries,
            verdict_cache_bytes,
        }
    }

    pub fn info(&self) -> JudgeInfo {
        let (identity, backbone) = (&self.identity, self.engine.config());
        JudgeInfo {
            version: env!("CARGO_PKG_VERSION"),
            model: identity.model.clone(),
            model_digest: identity.model_digest,
            prompt_digest: self.prompt_digest(&self.options),
            label_space_digest: self.wording.spaces.digest(),
            architecture: backbone.architecture.clone(),
            parameters: identity.parameters,
            context_length: self.wording.limit,
            vocabulary: backbone.vocabulary,
            answer_slot: self.wording.slot.letters.map(str::to_owned),
            threads: identity.threads,
            numerics: identity.numerics,
            options: self.options,
        }
    }

    /// Time that the model has spent in forward passes since it was loaded.
    pub fn forward_time(&self) -> std::time::Duration {
        self.engine.busy()
    }

    /// Judges a group of exactly one candidate and keeps the prompts.
    pub fn explain(&self, group: &Group, overrides: &OptionOverrides) -> Result<Explanation, JudgeError> {
        let [Candidate { .. }] = group.candidates.as_slice() else {
            return Err(JudgeError::invalid("candidates", "explain takes exactly one candidate"));
        };
        let mut verdicts = self.score_blocking(group, overrides, &Call::default())?;
        let verdict =
            verdicts.pop().unwrap_or_else(|| Err(JudgeError::invalid("candidates", "there is no candidate")))?;
        let Wording { text, spaces, template, limit, .. } = &*self.wording;
        let plan = plan(group, spaces, template, &overrides.over(&self.options))?;
        let mut text = text.session();
        let explain = |prompt: &InversePrompt| {
            let tokens = tokens::tokenize(&mut text, prompt, *limit)?;
            Ok(ExplainedPrompt {
                dimension: prompt.dimension,
                labels: self.shown(&plan.spaces()[prompt.dimension as usize], prompt),
                text: tokens.text,
                tokens: tokens.ids.len(),
            })
        };
        let prompts = plan.candidate(0)?.prompts.iter().map(explain).collect::<Result<_, JudgeError>>()?;
        Ok(Explanation { verdict, prompts })
    }

    fn shown(&self, space: &LabelSpace, prompt: &InversePrompt) -> Vec<ShownLabel> {
        match prompt.read {
            Read::LabelSlot { order } => order
                .into_iter()
                .zip(self.wording.slot.letters)
                .map(|(label, letter)| ShownLabel {
                    letter: Some(letter.to_owned()),
                    label,
                    description: space.description(label).to_owned(),
                })
                .collect(),
            Read::Response { label } => {
                let side = usize::from(label == Label::Contradictory);
                let description = format!("{} {}", space.role[side], space.note[side]).trim().to_owned();
                vec![ShownLabel { letter: None, label, description }]
            }
        }
    }
}
