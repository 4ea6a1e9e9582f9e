//! How long responses are, for those who do not judge short ones.

use std::sync::Arc;

use super::pool;
use super::{Call, Judge, JudgeError, OptionOverrides};
use crate::model::ModelError;
use crate::prism::{Candidate, Group, plan};
use crate::telemetry::Stage;

impl Judge {
    /// Tokens of each response by itself, by the judge's own tokenizer.
    ///
    /// # Errors
    /// The first fault that [`Judge::score`] would find before it tokenises: a response that is short in a request that
    /// is wrong is a wrong request.
    pub async fn response_tokens(
        &self,
        group: &Group,
        overrides: &OptionOverrides,
        call: &Call,
    ) -> Result<Vec<usize>, JudgeError> {
        self.limits.check_group(group)?;
        for (index, candidate) in group.candidates.iter().enumerate() {
            self.limits.check_candidate(index, candidate)?;
        }
        let job = {
            let (wording, group, options) = (Arc::clone(&self.wording), group.clone(), overrides.over(&self.options));
            async move {
                let plan = plan(&group, &wording.spaces, &wording.template, &options)?;
                let mut counts = Vec::with_capacity(group.candidates.len());
                for (planned, candidate) in plan.candidates().zip(&group.candidates) {
                    pool::pass().await;
                    planned?;
                    counts.push(wording.text.tokenizer().encode_plain(&candidate.response)?.len());
                }
                Ok::<_, JudgeError>(counts)
            }
        };
        call.record.enter(Stage::Prepare);
        tokio::select! {
            biased;
            counted = self.pool.run(call.lane, job) => {
                counted.map_err(|error| self.unprepared(error, call.lane, 0))?
            }
            stop = call.cancel.stopped() => Err(stop.into()),
        }
    }

    /// Whether a candidate is within its limits, as [`Judge::score`] asks.
    ///
    /// # Errors
    /// The part that is too large, as a field of the first candidate.
    pub fn check_candidate(&self, candidate: &Candidate) -> Result<(), JudgeError> {
        self.limits.check_candidate(0, candidate)
    }
}

impl From<ModelError> for JudgeError {
    /// The tokenizer failed on a text.
    fn from(error: ModelError) -> Self {
        Self::internal(error.to_string())
    }
}
