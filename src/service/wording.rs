//! From a group to the engine's prompts, and from its answers to judgements.

use std::ops::Range;

use super::slot::Slot;
use super::subject::Subject;
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

/// Candidates whose prompts went to the engine: how to read the answers.
pub struct Prepared {
    parts: Vec<Part>,
    /// Whether each part is a turn of its own, which may fail by itself.
    dialogue: bool,
    /// Tokens of each prompt.
    lengths: Vec<usize>,
}

/// Candidates that answer the same, with their content-free prompts.
struct Part {
    candidates: Vec<Planned>,
    baseline: (Vec<InversePrompt>, Range<usize>),
}

/// A judgement, and the tokens that went through the model for it.
pub struct Judged {
    pub judgement: Judgement,
    pub computed: u64,
}

impl Wording {
    /// Plans and tokenises candidates, as a job of the pool: it gives its thread up between them, and goes on unless
    /// `cancel` says otherwise.
    pub async fn prepare(
        &self,
        subject: &Subject,
        options: &Options,
        realm: Realm,
        cancel: &Cancel,
    ) -> Result<(Work, Prepared), JudgeError> {
        cancel.check()?;
        let dialogue = subject.after.is_some();
        let mut desk = Desk { wording: self, text: self.text.session(), work: Work::of(realm), lengths: Vec::new() };
        let mut parts = Vec::new();
        for (first, group) in subject.groups() {
            let mut candidates: Vec<Planned> = Vec::with_capacity(group.candidates.len());
            let plan = match plan(&group, &self.spaces, &self.template, options) {
                Ok(plan) => plan,
                // A turn that is wrong concerns those alone that come after it.
                Err(error) if dialogue && error.field().is_some_and(|field| field.starts_with("context")) => {
                    parts.push(Part::failed(error.into()));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for (at, candidate) in plan.candidates().enumerate() {
                pool::pass().await;
                cancel.check()?;
                let index = first + at;
                let planned = candidate.map_err(|error| JudgeError::from(error).moved(at, index));
                candidates.push(planned.and_then(|mut candidate| {
                    let range = desk.add(&candidate.prompts, &format!("candidates[{index}].response"))?;
                    forget_text(&mut candidate.prompts);
                    Ok((candidate, range))
                }));
            }
            let mut baseline = plan.baseline().to_vec();
            match desk.add(&baseline, "context") {
                Ok(range) => {
                    forget_text(&mut baseline);
                    parts.push(Part { candidates, baseline: (baseline, range) });
                }
                Err(error) if dialogue => parts.push(Part::failed(error)),
                Err(error) => return Err(error),
            }
            // The next turn of a dialogue has longer ones, and a group has no next part.
            desk.text.forget_conversations();
        }
        Ok((desk.work, Prepared { parts, dialogue, lengths: desk.lengths }))
    }

    /// About how many tokens candidates take, from their length in bytes.
    pub fn estimate(&self, subject: &Subject, options: &Options) -> usize {
        /// English text; other languages take more, and the count is made good when the tokens are known.
        const BYTES_PER_TOKEN: usize = 4;
        /// Tokens of one description of a label space, or of one system turn with its note.
        const WORDING: usize = 64;
        let Group { persona, context, candidates } = &*subject.group;
        let persona: usize = persona.description.len() + persona.facts.iter().map(String::len).sum::<usize>();
        let context: usize = context.iter().map(|turn| turn.speaker.len() + turn.text.len()).sum();
        let responses: usize = candidates.iter().map(|candidate| candidate.response.len()).sum();
        let candidates = candidates.len();
        let dialogue = subject.after.is_some();
        let orders = match options.label_order {
            LabelOrder::Released | LabelOrder::Content => 1,
            LabelOrder::Cyclic => 3,
            LabelOrder::All => 6,
        };
        match (options.evidence, options.layout) {
            // Six roles, each with its own system turn before the dialogue, and its own note in the turn before a response.
            (EvidenceKind::Likelihood, _) => {
                let notes = if dialogue { context / BYTES_PER_TOKEN + candidates * WORDING } else { WORDING };
                6 * ((persona + context + responses) / BYTES_PER_TOKEN + notes + 4 * candidates)
            }
            (EvidenceKind::LabelSlot, Layout::Shared) => {
                (persona + context + responses) / BYTES_PER_TOKEN + candidates * 3 * orders * 3 * WORDING
            }
            (EvidenceKind::LabelSlot, Layout::Released) => {
                // The turns of a dialogue have half of it before them, on average.
                let context = if dialogue { context / 2 } else { context };
                3 * orders
                    * ((candidates * (persona + context) + responses) / BYTES_PER_TOKEN + candidates * 3 * WORDING)
            }
        }
    }
}

/// Drops rendered text, which is not needed once there are tokens; ten thousand candidates of it would be large.
fn forget_text(prompts: &mut [InversePrompt]) {
    prompts.iter_mut().for_each(|prompt| prompt.messages = Vec::new());
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

impl Part {
    /// A turn that cannot be judged.
    fn failed(error: JudgeError) -> Self {
        Self { candidates: vec![Err(error)], baseline: (Vec::new(), 0..0) }
    }
}

impl Prepared {
    /// One judgement per candidate, in order.
    ///
    /// # Errors
    /// The outer error is one of the content-free prompts of a group, which belong to all of it.
    pub fn conclude(
        self,
        answers: &[Result<TokenReading, EngineError>],
    ) -> Result<Vec<Result<Judged, JudgeError>>, JudgeError> {
        if answers.len() != self.lengths.len() {
            let message = format!("the model gave {} answers to {} prompts", answers.len(), self.lengths.len());
            return Err(JudgeError::internal(message));
        }
        let mut all = Vec::new();
        for Part { candidates, baseline: (prompts, range) } in self.parts {
            let free = match readings(&prompts, &answers[range.clone()]) {
                Ok(free) => free,
                Err(error) if self.dialogue => {
                    all.extend(candidates.iter().map(|_| Err(error.clone())));
                    continue;
                }
                Err(error) => return Err(error),
            };
            // Content-free prompts belong to all of them: they are counted with the first candidate.
            let mut shared = computed(&answers[range]);
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
            all.extend(candidates.into_iter().map(judged));
        }
        Ok(all)
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
