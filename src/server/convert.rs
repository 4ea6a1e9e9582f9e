//! Wire messages to requests, verdicts to wire messages.

use tonic_types::FieldViolation;

use super::{pb, status};
use crate::numerics::Numerics;
use crate::persona::{Persona, Polarity, Trait, TraitTarget};
use crate::prism::{
    Aggregation, Calibration, Candidate, Dimension, DimensionVerdict, EvidenceKind, Group, Label, LabelOrder, Layout,
    RewardSignal, TextCounts, Turn, Verdict,
};
use crate::service::{CacheControl, JudgeError, JudgeInfo, Lane, OptionOverrides, check_request_id};

/// The fields at fault, collected so that one answer names them all.
#[derive(Default)]
pub struct Violations(Vec<FieldViolation>);

impl Violations {
    pub(super) fn push(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(FieldViolation::new(field, description));
    }

    /// Adds the faults of a part that is read by itself.
    pub fn of<T>(&mut self, part: &Result<T, Vec<FieldViolation>>) {
        self.0.extend(part.as_ref().err().into_iter().flatten().cloned());
    }

    /// `value`, unless a field is at fault.
    pub fn finish<T>(self, value: T) -> Result<T, Vec<FieldViolation>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

/// Whose persona a request judges by.
pub enum Who {
    /// What the request says; None: nothing.
    Inline(Option<pb::Persona>),
    /// What the judge knows by the id that the request gives.
    Named(Persona),
}

/// The parts of a request that all methods share.
pub struct Wire {
    pub who: Who,
    pub context: Vec<pb::Turn>,
    pub options: Option<pb::Options>,
    pub lane: i32,
    pub cache: i32,
}

/// What is judged and how.
pub struct Asked {
    pub group: Group,
    pub overrides: OptionOverrides,
    pub lane: Lane,
    pub cache: CacheControl,
}

impl Wire {
    /// The request in our own types. A persona that is missing is an empty one: the service says what it lacks.
    pub fn asked(
        self,
        candidates: Vec<pb::Candidate>,
        mut violations: Violations,
    ) -> Result<Asked, Vec<FieldViolation>> {
        let persona = match self.who {
            Who::Inline(wire) => persona(wire.unwrap_or_default(), &mut violations),
            Who::Named(persona) => persona,
        };
        let overrides = options(self.options.unwrap_or_default(), &mut violations);
        let lane = optional(Some(self.lane), "lane", &mut violations).unwrap_or_default();
        let cache = optional(Some(self.cache), "cache", &mut violations).unwrap_or_default();
        let context = self.context.into_iter().map(|turn| Turn { speaker: turn.speaker, text: turn.text }).collect();
        let candidates = candidates
            .into_iter()
            .map(|candidate| Candidate { id: candidate.id, response: candidate.response })
            .collect();
        violations.finish(Asked { group: Group { persona, context, candidates }, overrides, lane, cache })
    }
}

/// A request's id, which is echoed and never judged.
pub fn request_id(id: &str, violations: &mut Violations) {
    if let Err(error) = check_request_id(id) {
        violations.push(error.field.unwrap_or_default(), error.message);
    }
}

/// The candidate of a Score request.
pub fn one_candidate(candidate: Option<pb::Candidate>, violations: &mut Violations) -> Vec<pb::Candidate> {
    if candidate.is_none() {
        violations.push("candidate", "is missing");
    }
    candidate.into_iter().collect()
}

/// The candidates of a ScoreGroup request. Their reply must fit into a message, which only the wire demands.
pub fn candidates(
    candidates: Vec<pb::Candidate>,
    reply_limit: usize,
    violations: &mut Violations,
) -> Vec<pb::Candidate> {
    /// A verdict is about 0.6 kB with six label orders, an error's message at most this.
    const RESULT: usize = 1024;
    let reply = candidates.iter().map(|candidate| RESULT + 2 * candidate.id.len()).sum::<usize>();
    if reply > reply_limit {
        violations.push(
            "candidates",
            format!(
                "the reply to {} candidates would not fit into {} MiB; send fewer in one request",
                candidates.len(),
                reply_limit >> 20
            ),
        );
    }
    candidates
}

fn persona(wire: pb::Persona, violations: &mut Violations) -> Persona {
    let mut traits = Vec::new();
    for (index, target) in wire.traits.iter().enumerate() {
        let trait_ = required(target.r#trait, &format!("persona.traits[{index}].trait"), violations);
        let polarity = required(target.polarity, &format!("persona.traits[{index}].polarity"), violations);
        if let (Some(trait_), Some(polarity)) = (trait_, polarity) {
            traits.push(TraitTarget { trait_, polarity });
        }
    }
    Persona { name: wire.name, traits, description: wire.description, facts: wire.facts }
}

fn options(wire: pb::Options, violations: &mut Violations) -> OptionOverrides {
    OptionOverrides {
        evidence: optional(wire.evidence, "options.evidence", violations),
        layout: optional(wire.layout, "options.layout", violations),
        label_order: optional(wire.label_order, "options.label_order", violations),
        calibration: optional(wire.calibration, "options.calibration", violations),
        persona_block: wire.persona_block,
        likelihood_t: wire.likelihood_t,
        likelihood_b: wire.likelihood_b,
    }
}

/// A field that must be set.
fn required<T: OnWire>(number: i32, field: &str, violations: &mut Violations) -> Option<T> {
    let found = T::ALL.iter().find(|(wire, _)| *wire == number).map(|(_, value)| *value);
    if found.is_none() {
        let allowed: Vec<&str> = T::ALL.iter().map(|(wire, _)| T::name(*wire)).collect();
        let found = if number == 0 { "is not set".to_owned() } else { format!("{number} is not known here") };
        violations.push(field, format!("{found}; allowed are {}", allowed.join(", ")));
    }
    found
}

/// A field that may be left out; UNSPECIFIED means the same.
pub(super) fn optional<T: OnWire>(number: Option<i32>, field: &str, violations: &mut Violations) -> Option<T> {
    number.filter(|number| *number != 0).and_then(|number| required(number, field, violations))
}

/// An enumeration of ours and its numbers on the wire.
pub(super) trait OnWire: Copy + PartialEq + 'static {
    const ALL: &'static [(i32, Self)];

    /// The name of a number in the contract.
    fn name(number: i32) -> &'static str;

    fn number(self) -> i32 {
        Self::ALL.iter().find(|(_, value)| *value == self).map_or(0, |(number, _)| *number)
    }
}

/// Pairs an enumeration with the one of the same name and values in the contract.
macro_rules! on_wire {
    ($name:ident: $($value:ident),+) => {
        impl OnWire for $name {
            const ALL: &'static [(i32, Self)] = &[$((pb::$name::$value as i32, $name::$value)),+];

            fn name(number: i32) -> &'static str {
                pb::$name::try_from(number).map_or("", |wire| wire.as_str_name())
            }
        }
    };
}

mod check;

pub use check::{checked, policy};

on_wire!(Trait: Openness, Conscientiousness, Extraversion, Agreeableness, Neuroticism);
on_wire!(Polarity: High, Low);
on_wire!(Dimension: TaskFraming, InterpersonalStance, LinguisticStyle);
on_wire!(Label: Aligned, Indeterminate, Contradictory);
on_wire!(EvidenceKind: LabelSlot, Likelihood);
on_wire!(Layout: Shared, Released);
on_wire!(LabelOrder: Released, Content, Cyclic, All);
on_wire!(Calibration: None, Contextual);
on_wire!(Lane: Guard, Train, Batch);
on_wire!(CacheControl: Use, Refresh, Off);
on_wire!(Numerics: F32, Int8);
on_wire!(Aggregation: Mean, Min, Geometric);
on_wire!(RewardSignal: Evidence, Margin);

/// A place or a count: a message holds far fewer of anything than u32 counts.
pub(super) fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The result of the candidate at `index`.
pub fn result(id: String, index: usize, result: Result<Verdict, JudgeError>) -> pb::CandidateResult {
    use pb::candidate_result::Result as Wire;
    let result = match result {
        Ok(found) => Wire::Verdict(verdict(found)),
        Err(found) => Wire::Error(error(found)),
    };
    pb::CandidateResult { id, index: number(index), result: Some(result), reward: None }
}

/// An error in the place of a verdict.
pub fn error(error: JudgeError) -> pb::JudgeError {
    let retry_after = error.retry_after().map(|pause| u32::try_from(pause.as_millis()).unwrap_or(u32::MAX));
    pb::JudgeError {
        code: status::code(error.code) as i32,
        message: error.message,
        field: error.field.unwrap_or_default(),
        retry_after_ms: retry_after,
    }
}

/// A verdict, field by field.
pub fn verdict(verdict: Verdict) -> pb::Verdict {
    let judge = verdict.judge;
    pb::Verdict {
        id: verdict.id,
        s_prism: verdict.s_prism,
        dimensions: Some(pb::DimensionVerdicts {
            task_framing: Some(dimension(verdict.dimensions.task_framing)),
            interpersonal_stance: Some(dimension(verdict.dimensions.interpersonal_stance)),
            linguistic_style: Some(dimension(verdict.dimensions.linguistic_style)),
        }),
        weakest_dimension: verdict.weakest_dimension.number(),
        judge: Some(pb::Provenance {
            model: judge.model,
            model_digest: judge.model_digest.to_string(),
            prompt_digest: judge.prompt_digest.to_string(),
            label_space_digest: judge.label_space_digest.to_string(),
            evidence: judge.evidence.number(),
            layout: judge.layout.number(),
            label_order: judge.label_order.number(),
            calibration: judge.calibration.number(),
            numerics: judge.numerics.number(),
        }),
        tokens: Some(pb::TokenCounts { prompt: verdict.tokens.prompt, computed: verdict.tokens.computed }),
        cached: verdict.cached,
        warnings: Some(pb::TextWarnings {
            response: Some(counts(verdict.warnings.response)),
            request: Some(counts(verdict.warnings.request)),
        }),
    }
}

fn counts(found: TextCounts) -> pb::TextCounts {
    let TextCounts { control, bidi, invisible, special_tokens } = found;
    pb::TextCounts { control, bidi, invisible, special_tokens }
}

fn dimension(verdict: DimensionVerdict) -> pb::DimensionVerdict {
    let order = |order: [Label; 3]| pb::LabelPermutation { labels: order.map(Label::number).to_vec() };
    pb::DimensionVerdict {
        aligned: verdict.posterior.aligned,
        indeterminate: verdict.posterior.indeterminate,
        contradictory: verdict.posterior.contradictory,
        evidence: verdict.evidence,
        label_mass: verdict.label_mass,
        label_order: verdict.label_order.into_iter().map(order).collect(),
    }
}

/// What the judge says of itself.
pub fn info(info: JudgeInfo) -> pb::GetJudgeInfoResponse {
    let options = info.options;
    pb::GetJudgeInfoResponse {
        version: info.version.to_owned(),
        model: info.model,
        model_digest: info.model_digest.to_string(),
        prompt_digest: info.prompt_digest.to_string(),
        label_space_digest: info.label_space_digest.to_string(),
        architecture: info.architecture,
        parameters: info.parameters,
        context_length: info.context_length as u64,
        vocabulary: info.vocabulary as u64,
        answer_slot: info.answer_slot.to_vec(),
        threads: u32::try_from(info.threads).unwrap_or(u32::MAX),
        numerics: info.numerics.number(),
        options: Some(pb::Options {
            evidence: Some(options.evidence.number()),
            layout: Some(options.layout.number()),
            label_order: Some(options.label_order.number()),
            calibration: Some(options.calibration.number()),
            persona_block: Some(options.persona_block),
            likelihood_t: Some(options.scale.t),
            likelihood_b: Some(options.scale.b),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_numbers<T: OnWire>(count: usize) {
        assert_eq!(T::ALL.len(), count);
        for (number, value) in T::ALL {
            assert_eq!(value.number(), *number);
            assert!(!T::name(*number).is_empty());
        }
    }

    #[test]
    fn every_value_has_one_number_and_a_name() {
        all_numbers::<Trait>(5);
        all_numbers::<Polarity>(2);
        all_numbers::<Dimension>(3);
        all_numbers::<Label>(3);
        all_numbers::<EvidenceKind>(2);
        all_numbers::<Layout>(2);
        all_numbers::<LabelOrder>(4);
        all_numbers::<Calibration>(2);
        all_numbers::<Lane>(3);
        all_numbers::<CacheControl>(3);
        all_numbers::<Numerics>(2);
        all_numbers::<Aggregation>(3);
        all_numbers::<RewardSignal>(2);
    }

    #[test]
    fn every_wrong_field_is_collected_and_told_what_is_allowed() {
        let wire = Wire {
            who: Who::Inline(Some(pb::Persona {
                traits: vec![pb::TraitTarget { r#trait: 17, polarity: 0 }],
                ..pb::Persona::default()
            })),
            context: Vec::new(),
            options: Some(pb::Options { layout: Some(-1), evidence: Some(0), ..pb::Options::default() }),
            lane: 9,
            cache: 4,
        };
        let mut violations = Violations::default();
        let candidates = one_candidate(None, &mut violations);
        let found = wire.asked(candidates, violations).err().unwrap_or_default();
        let found: Vec<_> =
            found.iter().map(|violation| format!("{} {}", violation.field, violation.description)).collect();
        assert_eq!(found[0], "candidate is missing");
        assert!(found[1].starts_with("persona.traits[0].trait 17 is not known here; allowed are TRAIT_OPENNESS"));
        assert_eq!(found[2], "persona.traits[0].polarity is not set; allowed are POLARITY_HIGH, POLARITY_LOW");
        assert_eq!(found[3], "options.layout -1 is not known here; allowed are LAYOUT_SHARED, LAYOUT_RELEASED");
        assert_eq!(found[4], "lane 9 is not known here; allowed are LANE_GUARD, LANE_TRAIN, LANE_BATCH");
        assert!(found[5].starts_with("cache 4 is not known here; allowed are CACHE_CONTROL_USE"));
        assert_eq!(found.len(), 6);
    }

    #[test]
    fn a_request_id_that_is_too_long_is_named_with_both_numbers() {
        let mut violations = Violations::default();
        request_id(&"r".repeat(1024), &mut violations);
        assert!(violations.0.is_empty());
        request_id(&"r".repeat(1025), &mut violations);
        let found = violations.finish(()).err().unwrap_or_default();
        assert_eq!(found[0].field, "request_id");
        assert_eq!(found[0].description, "it has 1025 bytes and this judge takes at most 1024: shorten it");
    }

    #[test]
    fn a_call_that_names_no_lane_and_no_cache_control_trains_and_uses_the_cache() {
        let wire = Wire { who: Who::Inline(None), context: Vec::new(), options: None, lane: 0, cache: 0 };
        let asked = wire.asked(Vec::new(), Violations::default()).ok().map(|asked| (asked.lane, asked.cache));
        assert_eq!(asked, Some((Lane::Train, CacheControl::Use)));
    }
}
