//! The record of one call: who asked, what was judged, by what, and what came of it.

use serde::{Deserialize, Serialize};

use super::{AskedOptions, EffectiveOptions, Real, Redact, SCHEMA, ShapingRecord, Text, processor};
use crate::digest::Digest;
use crate::numerics::Numerics;
use crate::persona::{Persona, TraitTarget};
use crate::prism::{
    Candidate, Dimension, DimensionVerdict, DimensionVerdicts, Group, Label, TextWarnings, TokenCounts, Turn, Verdict,
};
use crate::service::{CacheControl, ErrorCode, Finished, JudgeError, Lane};

/// A call with all its candidates, so that a replay makes the same call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    pub schema: u32,
    /// When the call was judged, RFC 3339 in UTC.
    pub time: String,
    pub made_by: Maker,
    pub request_id: Text,
    pub tenant: Text,
    pub method: String,
    pub lane: Lane,
    pub cache: CacheControl,
    /// Share of the calls that the file holds.
    pub sample: Real,
    pub persona: PersonaRecord,
    pub context: Vec<TurnRecord>,
    pub candidates: Vec<CandidateRecord>,
    pub asked: AskedOptions,
    pub options: EffectiveOptions,
    pub judge: JudgeRecord,
    /// How rewards were made of the verdicts; None: none were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<ShapingRecord>,
    /// Why the call as a whole has no results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// One per candidate, in order; empty where the whole call failed.
    pub results: Vec<ResultRecord>,
}

/// What the last places of a number may depend on beside the judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// Version of the program.
    pub version: String,
    /// See [`processor()`].
    pub processor: String,
}

impl Maker {
    /// This process.
    pub fn here() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), processor: processor() }
    }
}

impl std::fmt::Display for Maker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "version {} on {}", self.version, self.processor)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonaRecord {
    pub name: Option<Text>,
    pub traits: Vec<TraitTarget>,
    pub description: Text,
    pub facts: Vec<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRecord {
    pub speaker: Text,
    pub text: Text,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateRecord {
    pub id: Text,
    pub response: Text,
    /// A turn of a dialogue: so many turns of the context come before it. None: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<usize>,
}

/// What judged. The options are part of it too, and stand beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeRecord {
    pub model: String,
    pub model_digest: Digest,
    pub prompt_digest: Digest,
    pub label_space_digest: Digest,
    pub numerics: Numerics,
    pub answer_slot: [String; 3],
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultRecord {
    pub id: Text,
    #[serde(flatten)]
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward: Option<Real>,
}

// Nearly all are verdicts: a box for each would cost more than the room of the few errors.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Verdict(VerdictRecord),
    Error(ErrorRecord),
}

/// Every number of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictRecord {
    pub s_prism: Real,
    pub dimensions: DimensionRecords,
    pub weakest_dimension: Dimension,
    pub tokens: TokenCounts,
    pub cached: bool,
    /// What is odd about the texts. No replay compares it; None in a line that was written before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnings: Option<TextWarnings>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DimensionRecords {
    pub task_framing: DimensionRecord,
    pub interpersonal_stance: DimensionRecord,
    pub linguistic_style: DimensionRecord,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DimensionRecord {
    pub aligned: Real,
    pub indeterminate: Real,
    pub contradictory: Real,
    pub evidence: Real,
    pub label_mass: Option<Real>,
    pub label_order: Vec<[Label; 3]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecord {
    pub code: ErrorCode,
    pub field: Option<String>,
    /// None in a redacted record: a message may quote the text that is wrong.
    pub message: Option<String>,
}

impl CallRecord {
    /// The record of a call that ended at `time`; `sample` is the share of calls that are kept.
    pub fn new(finished: &Finished, time: String, sample: f64, redact: Redact) -> Self {
        let Finished { group, judge, scored, .. } = finished;
        let Group { persona, context, candidates } = &**group;
        let text = |text: &String| Text::new(text, redact >= Redact::Text);
        let id = |id: &String| Text::new(id, redact >= Redact::All);
        let failed = |error: &JudgeError| ErrorRecord::new(error, redact);
        let (error, results) = match scored {
            Err(error) => (Some(failed(error)), Vec::new()),
            Ok(results) => {
                let outcome = |result: &Result<Verdict, JudgeError>| match result {
                    Ok(verdict) => Outcome::Verdict(verdict.into()),
                    Err(error) => Outcome::Error(failed(error)),
                };
                let rewards = finished.shaping.map_or(vec![None; results.len()], |shaping| shaping.rewards(results));
                let results = candidates.iter().zip(results).zip(rewards);
                let result = |((candidate, result), reward): ((&Candidate, _), Option<f64>)| ResultRecord {
                    id: id(&candidate.id),
                    outcome: outcome(result),
                    reward: reward.map(Real),
                };
                (None, results.map(result).collect())
            }
        };
        let Persona { name, traits, description, facts } = persona;
        Self {
            schema: SCHEMA,
            time,
            made_by: Maker::here(),
            request_id: id(&finished.request_id),
            tenant: id(&finished.tenant),
            method: finished.method.to_owned(),
            lane: finished.lane,
            cache: finished.cache,
            sample: Real(sample),
            persona: PersonaRecord {
                name: name.as_ref().map(text),
                traits: traits.clone(),
                description: text(description),
                facts: facts.iter().map(text).collect(),
            },
            context: context
                .iter()
                .map(|Turn { speaker, text: turn }| TurnRecord { speaker: text(speaker), text: text(turn) })
                .collect(),
            candidates: candidates
                .iter()
                .enumerate()
                .map(|(index, candidate)| CandidateRecord {
                    id: id(&candidate.id),
                    response: text(&candidate.response),
                    after: finished.after.as_ref().and_then(|after| after.get(index).copied()),
                })
                .collect(),
            asked: finished.overrides.into(),
            options: finished.options.into(),
            judge: JudgeRecord {
                model: judge.model.clone(),
                model_digest: judge.model_digest,
                prompt_digest: judge.prompt_digest,
                label_space_digest: judge.label_space_digest,
                numerics: judge.numerics,
                answer_slot: finished.answer_slot.map(str::to_owned),
            },
            shaping: finished.shaping.map(ShapingRecord::from),
            error,
            results,
        }
    }

    /// In a dialogue, for each candidate how many turns of the context come before it.
    pub fn after(&self) -> Option<Vec<usize>> {
        let turns = self.candidates.iter().map(|candidate| candidate.after);
        turns.collect::<Option<Vec<usize>>>().filter(|turns| !turns.is_empty())
    }

    /// What was judged; None in a redacted record.
    pub fn group(&self) -> Option<Group> {
        let PersonaRecord { name, traits, description, facts } = &self.persona;
        let persona = Persona {
            // A name that is there but redacted is not a name that is missing.
            name: name.as_ref().map(|name| name.plain().ok_or(())).transpose().ok()?,
            traits: traits.clone(),
            description: description.plain()?,
            facts: facts.iter().map(Text::plain).collect::<Option<_>>()?,
        };
        let turn = |turn: &TurnRecord| Some(Turn { speaker: turn.speaker.plain()?, text: turn.text.plain()? });
        let candidate = |candidate: &CandidateRecord| {
            Some(Candidate { id: candidate.id.plain()?, response: candidate.response.plain()? })
        };
        Some(Group {
            persona,
            context: self.context.iter().map(turn).collect::<Option<_>>()?,
            candidates: self.candidates.iter().map(candidate).collect::<Option<_>>()?,
        })
    }
}

impl ErrorRecord {
    fn new(error: &JudgeError, redact: Redact) -> Self {
        let message = Some(error.message.clone()).filter(|_| redact == Redact::None);
        Self { code: error.code, field: error.field.clone(), message }
    }
}

impl VerdictRecord {
    pub(super) fn dimension(&self, dimension: Dimension) -> &DimensionRecord {
        match dimension {
            Dimension::TaskFraming => &self.dimensions.task_framing,
            Dimension::InterpersonalStance => &self.dimensions.interpersonal_stance,
            Dimension::LinguisticStyle => &self.dimensions.linguistic_style,
        }
    }
}

impl From<&Verdict> for VerdictRecord {
    fn from(verdict: &Verdict) -> Self {
        let DimensionVerdicts { task_framing, interpersonal_stance, linguistic_style } = &verdict.dimensions;
        Self {
            s_prism: Real(verdict.s_prism),
            dimensions: DimensionRecords {
                task_framing: task_framing.into(),
                interpersonal_stance: interpersonal_stance.into(),
                linguistic_style: linguistic_style.into(),
            },
            weakest_dimension: verdict.weakest_dimension,
            tokens: verdict.tokens,
            cached: verdict.cached,
            warnings: Some(verdict.warnings),
        }
    }
}

impl From<&DimensionVerdict> for DimensionRecord {
    fn from(verdict: &DimensionVerdict) -> Self {
        let DimensionVerdict { posterior, evidence, label_mass, label_order } = verdict;
        Self {
            aligned: Real(posterior.aligned),
            indeterminate: Real(posterior.indeterminate),
            contradictory: Real(posterior.contradictory),
            evidence: Real(*evidence),
            label_mass: label_mass.map(Real),
            label_order: label_order.clone(),
        }
    }
}
