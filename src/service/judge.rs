//! The judge that every front end calls.

use std::ops::Range;

use super::slot::{self, Slot};
use super::{Cancel, ErrorCode, JudgeConfig, JudgeError, OpenError, OptionOverrides, config, tokens};
use crate::digest::Digest;
use crate::engine::{Engine, EngineError, EngineSettings, Prompt, Reading as TokenReading};
use crate::model::{Decoder, DecoderConfig, Gguf, TextModel};
use crate::prism::{
    CandidatePlan, ConcludeError, Group, InversePrompt, LabelSpaces, Options, PlanError, PromptTemplate, Provenance,
    Reading, TokenCounts, Verdict, conclude, plan,
};

/// One model, one label space, one template: `Send + Sync`, shared by all front ends.
pub struct Judge {
    pub(super) text: TextModel,
    pub(super) spaces: LabelSpaces,
    pub(super) template: PromptTemplate,
    pub(super) slot: Slot,
    pub(super) options: Options,
    pub(super) identity: Identity,
    pub(super) engine: Engine,
}

/// What makes this judge this judge.
pub(super) struct Identity {
    pub model: String,
    pub model_digest: Digest,
    pub parameters: u64,
    pub threads: usize,
}

/// A candidate's plan and where its prompts are in the work, or why it has none.
type Planned = Result<(CandidatePlan, Range<usize>), JudgeError>;

impl Judge {
    /// Loads and checks everything: wording, model, answer slot. Blocks for about a second a gigabyte of weights.
    pub fn open(config: &JudgeConfig) -> Result<Self, OpenError> {
        let spaces = LabelSpaces::load(config.label_spaces.as_deref())?;
        let template = PromptTemplate::load(config.prompt_template.as_deref())?;
        let threads = match config.threads {
            Some(0) => return Err(OpenError::Threads),
            Some(threads) => threads,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let gguf = Gguf::open(&config.model_path)?;
        let decoder = Decoder::load(&gguf, threads)?;
        let text = TextModel::from_gguf(&gguf)?;
        let model_digest = Digest::of_bytes(gguf.bytes());
        drop(gguf);
        let parameters = decoder.parameters();
        let engine = Engine::start(decoder, EngineSettings::default()).map_err(OpenError::Thread)?;
        let slot = slot::choose(&engine, &text, (&spaces, &template), config.answer_slot)?;
        let identity = Identity { model: config.model_name.clone(), model_digest, parameters, threads };
        let options = config.overrides.over(&config::defaults(parameters));
        Ok(Self { text, spaces, template, slot, options, identity, engine })
    }

    /// Judges a group: one result per candidate, in order. The outer error concerns the whole request.
    pub fn score(
        &self,
        group: &Group,
        overrides: &OptionOverrides,
        cancel: &Cancel,
    ) -> Result<Vec<Result<Verdict, JudgeError>>, JudgeError> {
        let options = overrides.over(&self.options);
        let plan = plan(group, &self.spaces, &self.template, &options)?;
        let mut work = Vec::new();
        let mut planned: Vec<Planned> = Vec::with_capacity(plan.len());
        for (index, candidate) in plan.candidates().enumerate() {
            cancel.check().map_err(|stop| tokens::engine_error(&EngineError::Stopped(stop)))?;
            planned.push(candidate.map_err(JudgeError::from).and_then(|mut candidate| {
                let range = self.enqueue(&mut work, &candidate.prompts, &format!("candidates[{index}].response"))?;
                // Rendered text is not needed any more; ten thousand candidates of it would be.
                candidate.prompts.iter_mut().for_each(|prompt| prompt.messages = Vec::new());
                Ok((candidate, range))
            }));
        }
        let baseline = self.enqueue(&mut work, plan.baseline(), "context")?;
        let lengths: Vec<usize> = work.iter().map(|prompt| prompt.ids.len()).collect();
        let answers = self.engine.run(work, cancel).map_err(|error| tokens::engine_error(&error))?;
        let free = readings(plan.baseline(), &answers[baseline.clone()])?;
        // Content-free prompts belong to the group: they are counted with the first candidate.
        let mut shared: u64 = answers[baseline].iter().flatten().map(|answer| answer.computed as u64).sum();
        let judge = self.provenance(&options);
        let conclude = |planned: Planned| -> Result<Verdict, JudgeError> {
            let (candidate, range) = planned?;
            let answers = &answers[range.clone()];
            let conclusion = conclude(&candidate, &readings(&candidate.prompts, answers)?, &free)?;
            let computed: usize = answers.iter().flatten().map(|answer| answer.computed).sum();
            Ok(Verdict {
                id: candidate.id,
                s_prism: conclusion.s_prism,
                dimensions: conclusion.dimensions,
                weakest_dimension: conclusion.weakest_dimension,
                judge: judge.clone(),
                tokens: TokenCounts {
                    prompt: lengths[range].iter().map(|length| *length as u64).sum(),
                    computed: computed as u64 + std::mem::take(&mut shared),
                },
            })
        };
        Ok(planned.into_iter().map(conclude).collect())
    }

    pub(super) fn backbone(&self) -> &DecoderConfig {
        self.engine.config()
    }

    /// Tokenises `prompts` onto the end of `work`; `field` is blamed for what is too long.
    fn enqueue(
        &self,
        work: &mut Vec<Prompt>,
        prompts: &[InversePrompt],
        field: &str,
    ) -> Result<Range<usize>, JudgeError> {
        let first = work.len();
        let limit = self.backbone().context_length;
        for prompt in prompts {
            match tokens::tokenize(&self.text, prompt, limit) {
                Ok(tokens) => work.push(tokens::request(prompt, tokens, self.slot.ids)),
                Err(error) => {
                    work.truncate(first);
                    return Err(JudgeError { field: error.field.or_else(|| Some(field.to_owned())), ..error });
                }
            }
        }
        Ok(first..work.len())
    }

    /// The digest of everything between a request and its numbers that no other field of the provenance names.
    pub(super) fn prompt_digest(&self, options: &Options) -> Digest {
        Digest::builder("prism-judge prompt 1")
            .field("template", self.template.digest().as_bytes())
            .field("chat_template", self.text.template().source().as_bytes())
            .field("answer_slot", self.slot.letters.concat().as_bytes())
            .field("persona_block", &[u8::from(options.persona_block)])
            .field("likelihood_t", &options.scale.t.to_bits().to_le_bytes())
            .field("likelihood_b", &options.scale.b.to_bits().to_le_bytes())
            .finish()
    }

    fn provenance(&self, options: &Options) -> Provenance {
        Provenance {
            model: self.identity.model.clone(),
            model_digest: self.identity.model_digest,
            prompt_digest: self.prompt_digest(options),
            label_space_digest: self.spaces.digest(),
            evidence: options.evidence,
            layout: options.layout,
            label_order: options.label_order,
            calibration: options.calibration,
        }
    }
}

fn readings(
    prompts: &[InversePrompt],
    answers: &[Result<TokenReading, EngineError>],
) -> Result<Vec<Reading>, JudgeError> {
    let answers = prompts.iter().zip(answers);
    answers
        .map(|(prompt, answer)| match answer {
            Ok(answer) => Ok(tokens::reading(prompt, answer)),
            Err(error) => Err(tokens::engine_error(error)),
        })
        .collect()
}

impl From<PlanError> for JudgeError {
    fn from(error: PlanError) -> Self {
        let code = ErrorCode::InvalidArgument;
        Self { code, field: error.field().map(str::to_owned), message: error.to_string() }
    }
}

impl From<ConcludeError> for JudgeError {
    fn from(error: ConcludeError) -> Self {
        let code =
            if matches!(error, ConcludeError::NonFinite(_)) { ErrorCode::NonFinite } else { ErrorCode::Internal };
        Self::new(code, error.to_string())
    }
}
