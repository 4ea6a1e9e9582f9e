//! From a request to its inverse prompts.

use std::collections::HashMap;

use minijinja::Value;

use super::order::{OrderSeed, orders};
use super::template::{PromptInput, context_value, persona_value};
use super::{
    Calibration, Candidate, Dimension, EvidenceKind, Group, InversePrompt, Label, LabelOrder, LabelSpace,
    LabelSpaceError, LabelSpaces, LikelihoodScale, Message, Options, PromptTemplate, Read, Role, TemplateError,
    roleplay,
};
use crate::persona::{PersonaError, Profile};

/// A request that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{0}")]
    Persona(#[from] PersonaError),
    /// A field of the request is wrong; the message says what to do.
    #[error("{message}")]
    Field { field: String, message: &'static str },
    /// The user's prompt template fails on this request.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The user's label-space file fails on this request.
    #[error(transparent)]
    LabelSpace(#[from] LabelSpaceError),
}

impl PlanError {
    fn at(field: impl Into<String>, message: &'static str) -> Self {
        Self::Field { field: field.into(), message }
    }

    /// The field of the request at fault, e.g. `candidates[2].response`; None when a file of the judge is at fault.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Persona(error) => Some(error.field()),
            Self::Field { field, .. } => Some(field),
            Self::Template(_) | Self::LabelSpace(_) => None,
        }
    }
}

/// The prompts of a group. Those of a candidate are rendered when asked for, so that a group of any size is planned in
/// little memory.
#[derive(Debug)]
pub struct Plan<'a> {
    group: &'a Group,
    template: &'a PromptTemplate,
    label_spaces: &'a LabelSpaces,
    options: Options,
    spaces: [LabelSpace; 3],
    context: Value,
    persona: Value,
    /// The role-play turns between the system turn and the response; empty for the label slot.
    turns: Vec<Message>,
    baseline: Vec<InversePrompt>,
    /// Where the content-free prompts of a reading stand in `baseline`.
    baseline_at: HashMap<(Dimension, Read), Vec<usize>>,
}

/// The prompts of one candidate.
#[derive(Clone, Debug)]
pub struct CandidatePlan {
    /// The candidate's id.
    pub id: String,
    /// By dimension, in canonical order. Label slot: one a displayed order. Likelihood: aligned, contradictory. Prompts
    /// may repeat; the engine runs repeats once.
    pub prompts: Vec<InversePrompt>,
    /// For each prompt, its content-free prompts in [`Plan::baseline`]; none without calibration.
    pub(super) baseline: Vec<Vec<usize>>,
    pub(super) scale: LikelihoodScale,
}

/// Reads a group and makes what its candidates share.
///
/// # Errors
/// [`PlanError`] for faults of the whole group: the persona, no candidates, the options, or a file that fails to render.
/// A fault of one candidate comes from [`Plan::candidate`] and leaves its neighbours alone.
pub fn plan<'a>(
    group: &'a Group,
    spaces: &'a LabelSpaces,
    template: &'a PromptTemplate,
    options: &Options,
) -> Result<Plan<'a>, PlanError> {
    let profile = check_group(group, options)?;
    let likelihood = options.evidence == EvidenceKind::Likelihood;
    let mut plan = Plan {
        group,
        template,
        label_spaces: spaces,
        options: *options,
        spaces: spaces.for_profile(&profile)?,
        context: context_value(&group.context),
        persona: if options.persona_block { persona_value(&profile) } else { Value::from(()) },
        turns: if likelihood { roleplay::turns(spaces, profile.name.as_deref(), &group.context)? } else { Vec::new() },
        baseline: Vec::new(),
        baseline_at: HashMap::new(),
    };
    if options.calibration == Calibration::Contextual {
        plan.add_baseline(spaces.content_free())?;
    }
    Ok(plan)
}

/// What can be said against a group before anything is made of it; its persona, read.
///
/// # Errors
/// Those faults of the whole group that are no fault of a file.
pub fn check_group(group: &Group, options: &Options) -> Result<Profile, PlanError> {
    let profile = check_dialogue(group, options)?;
    if let Some(index) = group.context.iter().position(|turn| turn.speaker.trim().is_empty()) {
        return Err(PlanError::at(format!("context[{index}].speaker"), "the speaker is empty: name who speaks"));
    }
    Ok(profile)
}

/// The same without the context, a turn of which may concern some of the candidates alone.
///
/// # Errors
/// As [`check_group`].
pub fn check_dialogue(group: &Group, options: &Options) -> Result<Profile, PlanError> {
    check_scale(options.scale)?;
    let profile = group.persona.profile()?;
    if group.candidates.is_empty() {
        return Err(PlanError::at("candidates", "there is no candidate: give at least one response"));
    }
    Ok(profile)
}

/// The same of the candidate at `index`.
///
/// # Errors
/// An empty response, or no id where the `released` label order needs one.
pub fn check_candidate(index: usize, candidate: &Candidate, options: &Options) -> Result<(), PlanError> {
    if candidate.response.trim().is_empty() {
        let field = format!("candidates[{index}].response");
        return Err(PlanError::at(field, "the response is empty: give the text to judge"));
    }
    let named = options.evidence == EvidenceKind::LabelSlot && options.label_order == LabelOrder::Released;
    if named && candidate.id.is_empty() {
        let field = format!("candidates[{index}].id");
        return Err(PlanError::at(field, "the id is empty: the released label order is made from it"));
    }
    Ok(())
}

fn check_scale(scale: LikelihoodScale) -> Result<(), PlanError> {
    if !(scale.t.is_finite() && scale.t > 0.0) {
        return Err(PlanError::at("options.likelihood_t", "the scale t must be finite and above zero"));
    }
    if !scale.b.is_finite() {
        return Err(PlanError::at("options.likelihood_b", "the tie b must be finite"));
    }
    Ok(())
}

impl Plan<'_> {
    /// The label spaces of the group's persona, in the order of [`Dimension::ALL`].
    pub fn spaces(&self) -> &[LabelSpace; 3] {
        &self.spaces
    }

    /// Content-free prompts for contextual calibration, shared by all candidates (their `case_id` is empty); empty
    /// without calibration. Their readings are the last argument of [`conclude`](super::conclude()).
    pub fn baseline(&self) -> &[InversePrompt] {
        &self.baseline
    }

    /// Number of candidates.
    pub fn len(&self) -> usize {
        self.group.candidates.len()
    }

    /// Never: a plan has at least one candidate.
    pub fn is_empty(&self) -> bool {
        self.group.candidates.is_empty()
    }

    /// Every candidate's prompts, in order.
    pub fn candidates(&self) -> impl Iterator<Item = Result<CandidatePlan, PlanError>> {
        (0..self.len()).map(|index| self.candidate(index))
    }

    /// The prompts of one candidate.
    ///
    /// # Errors
    /// [`PlanError`] that concerns this candidate alone: no such index, those of [`check_candidate`], a template that
    /// fails on this response.
    pub fn candidate(&self, index: usize) -> Result<CandidatePlan, PlanError> {
        let Some(candidate) = self.group.candidates.get(index) else {
            return Err(PlanError::at(format!("candidates[{index}]"), "there is no such candidate"));
        };
        check_candidate(index, candidate, &self.options)?;
        let (mut prompts, mut baseline) = (Vec::new(), Vec::new());
        for reading in self.readings(candidate) {
            prompts.push(self.prompt(reading, &candidate.response, &candidate.id)?);
            baseline.push(self.baseline_at.get(&reading).cloned().unwrap_or_default());
        }
        Ok(CandidatePlan { id: candidate.id.clone(), prompts, baseline, scale: self.options.scale })
    }

    /// What is read for one candidate, by dimension.
    fn readings(&self, candidate: &Candidate) -> Vec<(Dimension, Read)> {
        if self.options.evidence == EvidenceKind::Likelihood {
            let sides = [Label::Aligned, Label::Contradictory].map(|label| Read::Response { label });
            return Dimension::ALL.into_iter().flat_map(|dimension| sides.map(|read| (dimension, read))).collect();
        }
        let shown = |space: &LabelSpace| {
            let seed = OrderSeed {
                case_id: &candidate.id,
                released_key: &space.released_key,
                persona: &self.group.persona,
                context: &self.group.context,
                response: &candidate.response,
                dimension: space.dimension,
            };
            let dimension = space.dimension;
            orders(self.options.label_order, &seed).into_iter().map(move |order| (dimension, Read::LabelSlot { order }))
        };
        self.spaces.iter().flat_map(shown).collect()
    }

    fn prompt(
        &self,
        (dimension, read): (Dimension, Read),
        response: &str,
        case_id: &str,
    ) -> Result<InversePrompt, PlanError> {
        let space = &self.spaces[dimension as usize];
        let messages = match read {
            Read::LabelSlot { order } => {
                let text = self.template.render(&PromptInput {
                    layout: self.options.layout,
                    space,
                    order,
                    context: self.context.clone(),
                    persona: self.persona.clone(),
                    response,
                    case_id,
                })?;
                vec![Message { role: Role::User, text }]
            }
            Read::Response { label } => {
                let side = usize::from(label == Label::Contradictory);
                let mut messages = vec![Message { role: Role::System, text: space.role[side].clone() }];
                messages.extend_from_slice(&self.turns);
                if let Some(last) = messages.last_mut().filter(|last| last.role == Role::User) {
                    last.text = self.label_spaces.noted_turn(&last.text, &space.note[side])?;
                }
                messages.push(Message { role: Role::Assistant, text: response.to_owned() });
                messages
            }
        };
        Ok(InversePrompt { dimension, messages, read })
    }

    /// Makes the content-free prompts of everything that some candidate reads, once each.
    fn add_baseline(&mut self, content_free: &[String]) -> Result<(), PlanError> {
        for (index, candidate) in self.group.candidates.iter().enumerate() {
            // Nothing is read for a candidate at fault; `candidate` reports it.
            if check_candidate(index, candidate, &self.options).is_err() {
                continue;
            }
            for reading in self.readings(candidate) {
                if self.baseline_at.contains_key(&reading) {
                    continue;
                }
                let first = self.baseline.len();
                for response in content_free {
                    self.baseline.push(self.prompt(reading, response, "")?);
                }
                self.baseline_at.insert(reading, (first..self.baseline.len()).collect());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
