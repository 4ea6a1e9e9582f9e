//! What the judge tells of itself. Durations and values are recorded where they arise; what is held, and what the engine
//! counts, is copied by [`Judge::observe`] when somebody asks.

use super::{Call, Judge, Lane, Overloaded, Scored};
use crate::cache::Seat;
use crate::engine::EngineError;
use crate::prism::{Conclusion, Dimension, TokenCounts, Verdict};
use crate::telemetry::catalogue::{
    ACTIVE_PIECES, CACHE_BYTES, CACHE_ENTRIES, CACHE_LIMIT_BYTES, CACHE_LOOKUPS, CANDIDATES_JUDGED, COMPUTED_TOKENS,
    EVIDENCE, GROUP_CANDIDATES, KV_BYTES, KV_LIMIT_BYTES, LABEL_MASS, MODEL_INFO, NON_FINITE, PERSONAS,
    PREFIX_EVICTED_TOKENS, PREFIX_HIT_TOKENS, PROMPT_TOKENS, QUEUE_AGE_SECONDS, QUEUE_LIMIT_TOKENS, QUEUE_PIECES,
    QUEUE_TOKENS, S_PRISM, SHED, WASTED_TOKENS,
};
use crate::telemetry::{CallRecord, Sizes};

/// Counts what becomes of the candidates of one call. Dropped before its end, the caller went away.
pub(super) struct Watch<'a> {
    record: &'a CallRecord,
    candidates: usize,
    ended: bool,
}

impl<'a> Watch<'a> {
    pub fn begin(call: &'a Call, candidates: usize) -> Self {
        call.record.set_lane(call.lane.name());
        if let Some(shaping) = &call.shaping {
            call.record.set_shaping(shaping.name());
        }
        call.record.add(Sizes { candidates: candidates as u64, ..Sizes::default() });
        GROUP_CANDIDATES.record([], candidates as f64);
        Self { record: &call.record, candidates, ended: false }
    }

    pub fn end(mut self, scored: &Scored) {
        self.ended = true;
        match scored {
            Ok(results) => results.iter().for_each(|result| match result {
                Ok(verdict) => self.handed_out(verdict),
                Err(error) => count(error.code.name(), 1),
            }),
            Err(error) => count(error.code.name(), self.candidates),
        }
    }

    fn handed_out(&self, verdict: &Verdict) {
        count(if verdict.cached { "cached" } else { "computed" }, 1);
        let TokenCounts { prompt, computed } = verdict.tokens;
        let cached = u64::from(verdict.cached);
        self.record.add(Sizes { candidates: 0, cached, prompt_tokens: prompt, computed_tokens: computed });
        PROMPT_TOKENS.add([], prompt);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.ended {
            count("cancelled", self.candidates);
        }
    }
}

fn count(outcome: &'static str, candidates: usize) {
    CANDIDATES_JUDGED.add([outcome], candidates as u64);
    if outcome == "non_finite" {
        NON_FINITE.add([], candidates as u64);
    }
}

/// The engine did not take a call.
pub(super) fn refused(error: &EngineError) {
    if let EngineError::Overloaded(overloaded) = error {
        lane_full(overloaded);
    }
}

pub(super) fn lane_full(overloaded: &Overloaded) {
    SHED.increment([overloaded.lane.name(), "lane_full"]);
}

/// The caller's tenant has used up its share.
pub(super) fn over_quota(lane: Lane) {
    SHED.increment([lane.name(), "quota"]);
}

/// What the memory had for a candidate.
pub(super) fn lookup<E>(seat: &Seat<E>) {
    CACHE_LOOKUPS.increment([
        "memory",
        match seat {
            Seat::Hit(_) => "hit",
            Seat::Lead(_) => "miss",
            Seat::Follow(_) => "follow",
        },
    ]);
}

/// A judgement that was computed.
pub(super) fn judged(conclusion: &Conclusion) {
    S_PRISM.record([], conclusion.s_prism);
    for dimension in Dimension::ALL {
        let (name, verdict) = (dimension.name(), conclusion.dimensions.get(dimension));
        EVIDENCE.record([name], verdict.evidence);
        if let Some(mass) = verdict.label_mass {
            LABEL_MASS.record([name], mass);
        }
    }
}

impl Judge {
    /// Copies what the judge holds, and what its engine has counted, to the metrics. To be called before each scrape.
    pub fn observe(&self) {
        let stats = self.engine.stats();
        COMPUTED_TOKENS.copy([], stats.computed_tokens);
        WASTED_TOKENS.copy([], stats.wasted_tokens);
        PREFIX_HIT_TOKENS.copy([], stats.reused_tokens);
        PREFIX_EVICTED_TOKENS.copy([], stats.evicted_tokens);
        ACTIVE_PIECES.set([], stats.active as f64);
        KV_BYTES.set([], stats.kv_bytes as f64);
        KV_LIMIT_BYTES.set([], self.engine.kv_limit() as f64);
        for (lane, held) in Lane::ALL.into_iter().zip(self.engine.lanes()) {
            let lane = [lane.name()];
            QUEUE_TOKENS.set(lane, held.tokens as f64);
            QUEUE_LIMIT_TOKENS.set(lane, held.limit as f64);
            QUEUE_PIECES.set(lane, held.pieces as f64);
            QUEUE_AGE_SECONDS.set(lane, held.oldest.as_secs_f64());
        }
        if let Some(recorder) = &self.recorder {
            recorder.observe();
        }
        PERSONAS.set([], self.personas().len() as f64);
        let (entries, bytes) = self.cache.size();
        CACHE_ENTRIES.set([], entries as f64);
        CACHE_BYTES.set([], bytes as f64);
        CACHE_LIMIT_BYTES.set([], self.cache.limit() as f64);
        let info = self.info();
        let digests = [info.model_digest.to_string(), info.label_space_digest.to_string()];
        MODEL_INFO.set([&info.model, &digests[0], &digests[1], info.numerics.name()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ErrorCode;
    use crate::telemetry::{CATALOGUE, Description};

    fn labels(metric: &str) -> Vec<&'static str> {
        let descriptions = CATALOGUE.iter().map(|metric| metric.description());
        let found = descriptions.into_iter().find(|description: &Description| description.name == metric);
        found.map(|description| description.labels[0].values.to_vec()).unwrap_or_default()
    }

    #[test]
    fn the_labels_of_the_catalogue_are_the_names_of_the_rooms() {
        assert_eq!(labels("prism_judge_queue_tokens"), Lane::ALL.map(Lane::name));
        assert_eq!(labels("prism_judge_evidence"), Dimension::ALL.map(Dimension::name));
        let codes = [
            ErrorCode::InvalidArgument,
            ErrorCode::NonFinite,
            ErrorCode::Cancelled,
            ErrorCode::DeadlineExceeded,
            ErrorCode::Overloaded,
            ErrorCode::OverQuota,
            ErrorCode::Unavailable,
            ErrorCode::NotFound,
            ErrorCode::Internal,
        ];
        let outcomes = labels("prism_judge_candidates_total");
        for name in ["computed", "cached"].into_iter().chain(codes.map(ErrorCode::name)) {
            assert!(outcomes.contains(&name), "{name}");
        }
    }
}
