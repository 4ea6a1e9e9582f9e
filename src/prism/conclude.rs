//! From readings to the three dimension verdicts of a candidate.

use super::posterior::{self, NonFinite, canonical, finite, likelihood, mean, softmax};
use super::{CandidatePlan, Dimension, DimensionVerdict, DimensionVerdicts, InversePrompt, Label, Read};

/// What the model said to one inverse prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// For [`Read::LabelSlot`].
    LabelScores {
        /// Log-scores by displayed letter, up to a common constant (raw logits will do).
        log_scores: [f64; 3],
        /// Share of the next-token probability that the three letters hold, in [0, 1].
        label_mass: f64,
    },
    /// For [`Read::Response`].
    ResponseScore {
        /// Sum over the response's tokens, in nats.
        log_prob: f64,
    },
}

/// Why readings give no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConcludeError {
    #[error("the model gave a value that is not finite for the dimension {}", .0.name())]
    NonFinite(Dimension),
    /// A fault of the caller, not of the request.
    #[error("there are {found} readings for {expected} prompts")]
    Count { expected: usize, found: usize },
    /// A fault of the caller, not of the request.
    #[error("a reading of the dimension {} is not of its prompt's kind", .0.name())]
    Kind(Dimension),
    /// A fault of the model's room, not of the request.
    #[error("the label mass of the dimension {} is not a share between 0 and 1", .0.name())]
    LabelMass(Dimension),
}

/// The judgement of one candidate, before its provenance.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// S_PRISM, Eq. 3.
    pub s_prism: f64,
    pub dimensions: DimensionVerdicts,
    pub weakest_dimension: Dimension,
}

impl Conclusion {
    /// What follows from the three dimensions: Eq. 3 and the weakest of them.
    pub fn new(dimensions: DimensionVerdicts) -> Self {
        Self {
            s_prism: posterior::s_prism(&dimensions),
            weakest_dimension: posterior::weakest(&dimensions),
            dimensions,
        }
    }
}

/// Makes a candidate's verdicts. `readings` answer `candidate.prompts`, `baseline` answers [`super::Plan::baseline`].
///
/// # Errors
/// [`ConcludeError::NonFinite`] names the dimension; the other errors are faults of the caller.
pub fn conclude(
    candidate: &CandidatePlan,
    readings: &[Reading],
    baseline: &[Reading],
) -> Result<Conclusion, ConcludeError> {
    let expected = candidate.prompts.len();
    if readings.len() != expected {
        return Err(ConcludeError::Count { expected, found: readings.len() });
    }
    let dimension = |dimension| DimensionReadings { candidate, readings, baseline, dimension }.verdict();
    let dimensions = DimensionVerdicts {
        task_framing: dimension(Dimension::TaskFraming)?,
        interpersonal_stance: dimension(Dimension::InterpersonalStance)?,
        linguistic_style: dimension(Dimension::LinguisticStyle)?,
    };
    Ok(Conclusion::new(dimensions))
}

/// The readings of one dimension, calibrated as they are taken.
struct DimensionReadings<'a> {
    candidate: &'a CandidatePlan,
    readings: &'a [Reading],
    baseline: &'a [Reading],
    dimension: Dimension,
}

impl<'a> DimensionReadings<'a> {
    fn verdict(&self) -> Result<DimensionVerdict, ConcludeError> {
        let label_slot = self.prompts().any(|(_, prompt, _)| matches!(prompt.read, Read::LabelSlot { .. }));
        if label_slot { self.label_slot() } else { self.likelihood() }
    }

    fn prompts(&self) -> impl Iterator<Item = (usize, &'a InversePrompt, Reading)> {
        let prompts = self.candidate.prompts.iter().zip(self.readings).enumerate();
        let dimension = self.dimension;
        prompts
            .filter(move |(_, (prompt, _))| prompt.dimension == dimension)
            .map(|(i, (prompt, reading))| (i, prompt, *reading))
    }

    /// Eq. 1 over the mean of the calibrated log-scores of all displayed orders.
    fn label_slot(&self) -> Result<DimensionVerdict, ConcludeError> {
        let (mut orders, mut masses, mut scores) = (Vec::new(), Vec::new(), [const { Vec::new() }; 3]);
        for (index, prompt, reading) in self.prompts() {
            let (Read::LabelSlot { order }, Reading::LabelScores { log_scores, label_mass }) = (prompt.read, reading)
            else {
                return Err(self.kind());
            };
            let free = self.free(index, |reading| match reading {
                Reading::LabelScores { log_scores, .. } => Some(canonical(order, log_scores)),
                Reading::ResponseScore { .. } => None,
            })?;
            for (label, score) in canonical(order, log_scores).into_iter().enumerate() {
                let free = self.mean(free.iter().map(|scores| scores[label]))?.unwrap_or(0.0);
                scores[label].push(score - free);
            }
            orders.push(order);
            masses.push(label_mass);
        }
        let mut means = [0.0; 3];
        for (mean, scores) in means.iter_mut().zip(scores) {
            *mean = self.mean(scores)?.unwrap_or(0.0);
        }
        let posterior = softmax(means).map_err(|_| self.non_finite())?;
        let label_mass = self.mean(masses)?.map(|mass| self.share(mass)).transpose()?;
        Ok(DimensionVerdict::new(posterior, label_mass, orders))
    }

    /// The contrast of the aligned and the contradictory role, minus that of the content-free responses.
    fn likelihood(&self) -> Result<DimensionVerdict, ConcludeError> {
        let [mut aligned, mut contradictory] = [None, None];
        for (index, prompt, reading) in self.prompts() {
            let (Read::Response { label }, Reading::ResponseScore { log_prob }) = (prompt.read, reading) else {
                return Err(self.kind());
            };
            let free = self.free(index, |reading| match reading {
                Reading::ResponseScore { log_prob } => Some(log_prob),
                Reading::LabelScores { .. } => None,
            })?;
            let log_prob = finite(log_prob).map_err(|_| self.non_finite())?;
            let score = Some(log_prob - self.mean(free)?.unwrap_or(0.0));
            match label {
                Label::Aligned => aligned = score,
                Label::Contradictory => contradictory = score,
                Label::Indeterminate => return Err(self.kind()),
            }
        }
        let (Some(aligned), Some(contradictory)) = (aligned, contradictory) else { return Err(self.kind()) };
        let posterior = likelihood(aligned - contradictory, self.candidate.scale).map_err(|_| self.non_finite())?;
        Ok(DimensionVerdict::new(posterior, None, Vec::new()))
    }

    /// The content-free readings that belong to one prompt.
    fn free<T>(&self, prompt: usize, read: impl Fn(Reading) -> Option<T>) -> Result<Vec<T>, ConcludeError> {
        let places = self.candidate.baseline.get(prompt).map_or(&[][..], Vec::as_slice);
        let found = self.baseline.len();
        let read = |place: &usize| {
            let reading = self.baseline.get(*place).ok_or(ConcludeError::Count { expected: place + 1, found })?;
            read(*reading).ok_or_else(|| self.kind())
        };
        places.iter().map(read).collect()
    }

    fn mean(&self, values: impl IntoIterator<Item = f64>) -> Result<Option<f64>, ConcludeError> {
        mean(values).map_err(|NonFinite| self.non_finite())
    }

    /// Rounding may put a share a hair above 1; more than that is a fault.
    fn share(&self, mass: f64) -> Result<f64, ConcludeError> {
        if (0.0..=1.0 + 1e-4).contains(&mass) {
            Ok(mass.min(1.0))
        } else {
            Err(ConcludeError::LabelMass(self.dimension))
        }
    }

    fn non_finite(&self) -> ConcludeError {
        ConcludeError::NonFinite(self.dimension)
    }

    fn kind(&self) -> ConcludeError {
        ConcludeError::Kind(self.dimension)
    }
}
