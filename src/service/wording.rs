//! From a group to the engine's prompts, and from its answers to judgements.

use std::ops::Range;

use super::slot::Slot;
use super::{Cancel, JudgeError, pool, tokens};
use crate::cache::Judgement;
use crate::engine::{EngineError, Prompt, Reading as TokenReading, Realm, Work};
use crate::model::{TextModel, TextSession};
use crate::prism::{
    CandidatePlan, EvidenceKind, Group, InversePrompt, LabelOrder, LabelSpaces, Layout, Options, PromptTemplate,
    Reading, conclude, plan,
};

/// What prompts are made from.
pub struct Wording {
    pub text: TextModel,
    pub spaces: LabelSpaces,
    pub template: PromptTemplate,
    pub slot: Slot,
    /// Longest prompt, in tokens.
    pub limit: usize,
}

/// A candidate's plan and where its prompts are in the work, or why it has none.
type Planned = Result<(CandidatePlan, Range<usize>), JudgeError>;

/// A group whose prompts went to the engine: how to read the answers.
pub struct Prepared {
    candidates: Vec<Planned>,
    baseline: (Vec<InversePrompt>, Range<usize>),
    /// Tokens of each prompt.
    lengths: Vec<usize>,
}

/// A judgement, and the tokens that went through the model for it.
pub struct Judged {
    pub judgement: Judgement,
    pub computed: u64,
}

impl Wording {
    /// Plans and tokenises a group, as a job of the pool: it gives its thread up between candidates, and goes on unless
    /// `cancel` says otherwise.
    pub async fn prepare(
        &self,
        group: &Group,
        options: &Options,
        realm: Realm,
        cancel: &Cancel,
    ) -> Result<(Work, Prepared), JudgeError> {
        cancel.check()?;
        let plan = plan(group, &self.spaces, &self.template, options)?;
        let mut desk = Desk { wording: self, text: self.text.session(), work: Work::of(realm), lengths: Vec::new() };
        let mut candidates: Vec<Planned> = Vec::with_capacity(plan.len());
        for (index, candidate) in plan.candidates().enumerate() {
            pool::pass().await;
            cancel.check()?;
            candidates.push(candidate.map_err(JudgeError::from).and_then(|mut candidate| {
                let range = desk.add(&candidate.prompts, &format!("candidates[{index}].response"))?;
                // Rendered text is not needed any more; ten thousand candidates of it would be.
                candidate.prompts.iter_mut().for_each(|prompt| prompt.messages = Vec::new());
                Ok((candidate, range))
            }));
        }
        let range = desk.add(plan.baseline(), "context")?;
        let baseline = (plan.baseline().to_vec(), range);
        Ok((desk.work, Prepared { candidates, baseline, lengths: desk.lengths }))
    }

    /// About how many tokens a group takes, from its length in bytes.
    pub fn estimate(&self, group: &Group, options: &Options) -> usize {
        /// English text; other languages take more, and the count is made good when the tokens are known.
        const BYTES_PER_TOKEN: usize = 4;
        /// Tokens of one description of a label space, or of one system turn with its note.
        const WORDING: usize = 64;
        let persona = &group.persona;
        let persona: usize = persona.description.len() + persona.facts.iter().map(String::len).sum::<usize>();
        let context: usize = group.context.iter().map(|turn| turn.speaker.len() + turn.text.len()).sum();
        let responses: usize = group.candidates.iter().map(|candidate| candidate.response.len()).sum();
        let candidates = group.candidates.len();
        let orders = match options.label_order {
            LabelOrder::Released | LabelOrder::Content => 1,
            LabelOrder::Cyclic => 3,
            LabelOrder::All => 6,
        };
        match (options.evidence, options.layout) {
            // Six roles, each with its own system turn before the dialogue.
            (EvidenceKind::Likelihood, _) => {
                6 * ((persona + context + responses) / BYTES_PER_TOKEN + WORDING + 4 * candidates)
            }
            (EvidenceKind::LabelSlot, Layout::Shared) => {
                (persona + context + responses) / BYTES_PER_TOKEN + candidates * 3 * orders * 3 * WORDING
            }
            (EvidenceKind::LabelSlot, Layout::Released) => {
                3 * orders
                    * ((candidates * (persona + context) + responses) / BYTES_PER_TOKEN + candidates * 3 * WORDING)
            }
        }
    }
}

/// Where prompts become work.
struct Desk<'a> {
    wording: &'a Wording,
    text: TextSession<'a>,
    work: Work,
    lengths: Vec<usize>,
}

impl Desk<'_> {
    /// Tokenises `prompts` onto the end of the work, all or none; `field` is blamed for what is too long.
    fn add(&mut self, prompts: &[InversePrompt], field: &str) -> Result<Range<usize>, JudgeError> {
        let mut ready: Vec<Prompt> = Vec::with_capacity(prompts.len());
        for prompt in prompts {
            match tokens::tokenize(&mut self.text, prompt, self.wording.limit) {
                Ok(tokens) => ready.push(tokens::request(prompt, tokens, self.wording.slot.ids)),
                Err(error) => {
                    return Err(JudgeError { field: error.field.or_else(|| Some(field.to_owned())), ..error });
                }
            }
        }
        let first = self.work.len();
        for prompt in ready {
            self.lengths.push(prompt.ids.len());
            self.work.push(prompt);
        }
        Ok(first..self.work.len())
    }
}

impl Prepared {
    /// One judgement per candidate, in order.
    ///
    /// # Errors
    /// The outer error is one of the content-free prompts, which belong to the whole group.
    pub fn conclude(
        self,
        answers: &[Result<TokenReading, EngineError>],
    ) -> Result<Vec<Result<Judged, JudgeError>>, JudgeError> {
        if answers.len() != self.lengths.len() {
            let message = format!("the model gave {} answers to {} prompts", answers.len(), self.lengths.len());
            return Err(JudgeError::internal(message));
        }
        let (prompts, range) = &self.baseline;
        let free = readings(prompts, &answers[range.clone()])?;
        // Content-free prompts belong to the group: they are counted with the first candidate.
        let mut shared = computed(&answers[range.clone()]);
        let judged = |planned: Planned| {
            let (candidate, range) = planned?;
            let answers = &answers[range.clone()];
            let conclusion = conclude(&candidate, &readings(&candidate.prompts, answers)?, &free)?;
            let prompt_tokens = self.lengths[range].iter().map(|length| *length as u64).sum();
            Ok(Judged {
                judgement: Judgement { conclusion, prompt_tokens },
                computed: computed(answers) + std::mem::take(&mut shared),
            })
        };
        Ok(self.candidates.into_iter().map(judged).collect())
    }
}

fn computed(answers: &[Result<TokenReading, EngineError>]) -> u64 {
    answers.iter().flatten().map(|answer| answer.computed as u64).sum()
}

fn readings(
    prompts: &[InversePrompt],
    answers: &[Result<TokenReading, EngineError>],
) -> Result<Vec<Reading>, JudgeError> {
    let answers = prompts.iter().zip(answers);
    answers
        .map(|(prompt, answer)| match answer {
            Ok(answer) => Ok(tokens::reading(prompt, answer)),
            Err(error) => Err(JudgeError::from(error.clone())),
        })
        .collect()
}
