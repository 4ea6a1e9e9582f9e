//! The path of one call: cache, admission, preparation, model, verdicts. Everything that a call holds (its place in a
//! queue, its room in a lane, the leads that others wait for) is given back when its future is dropped.

use std::sync::Arc;

use super::wording::Judged;
use super::{CacheControl, Call, ErrorCode, Finished, Health, Judge, JudgeError, OptionOverrides, Recorder};
use crate::cache::{Judgement, Question, QuestionKey, Rank, Seat};
use crate::digest::Digest;
use crate::engine::Stop;
use crate::prism::{EvidenceKind, Group, LabelOrder, Options, Provenance, TokenCounts, Verdict};

/// One result per candidate, in order; the outer error concerns the whole request.
pub type Scored = Result<Vec<Result<Verdict, JudgeError>>, JudgeError>;

/// An error of a candidate, with its place in the group of the caller that got it.
pub(super) type Shared = (usize, JudgeError);

impl Judge {
    /// Judges a group. Needs a tokio runtime with timers if the call has a deadline; a call that the verdict cache
    /// answers is ready at once.
    pub async fn score(&self, group: Group, overrides: &OptionOverrides, call: &Call) -> Scored {
        let options = overrides.over(&self.options);
        let asked = Asked { judge: self, provenance: self.provenance(&options), options, group: Arc::new(group), call };
        let scored = asked.score_in_time().await;
        match &self.recorder {
            None => scored,
            Some(recorder) => asked.record(&**recorder, overrides, scored).await,
        }
    }

    /// The same, for callers outside an async runtime; blocks.
    pub fn score_blocking(&self, group: &Group, overrides: &OptionOverrides, call: &Call) -> Scored {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| JudgeError::internal(format!("no timer can be had: {error}")))?;
        runtime.block_on(self.score(group.clone(), overrides, call))
    }
}

/// One call under way.
struct Asked<'a> {
    judge: &'a Judge,
    provenance: Provenance,
    options: Options,
    group: Arc<Group>,
    call: &'a Call,
}

impl Asked<'_> {
    async fn score_in_time(&self) -> Scored {
        self.call.cancel.check()?;
        tokio::select! {
            biased;
            scored = self.score() => scored,
            stop = self.call.cancel.stopped() => Err(stop.into()),
        }
    }

    /// Tells the recorder how the call ended. What it refuses is not handed out.
    async fn record(&self, recorder: &dyn Recorder, overrides: &OptionOverrides, scored: Scored) -> Scored {
        let Call { lane, cache, tenant, request_id, method, cancel, .. } = self.call;
        let recording = recorder.record(Finished {
            request_id: request_id.clone(),
            tenant: tenant.clone(),
            method,
            lane: *lane,
            cache: *cache,
            group: Arc::clone(&self.group),
            overrides: *overrides,
            options: self.options,
            judge: self.provenance.clone(),
            answer_slot: self.judge.wording.slot.letters,
            scored: scored.clone(),
        });
        tokio::select! {
            biased;
            recorded = recording => recorded.and(scored),
            stop = cancel.stopped() => Err(stop.into()),
        }
    }

    async fn score(&self) -> Scored {
        let cache = &self.judge.cache;
        let all: Vec<usize> = (0..self.group.candidates.len()).collect();
        match self.call.cache {
            // Without a candidate nothing can be looked up; preparing says what is wrong.
            CacheControl::Use if !all.is_empty() => self.shared(all).await,
            CacheControl::Refresh => {
                let key = self.key();
                let keep = |(index, judged): (usize, Result<Judged, JudgeError>)| {
                    let judged = judged?;
                    let judgement = Arc::new(judged.judgement);
                    cache.keep(key.candidate(&self.group.candidates[index]), &judgement);
                    Ok(self.verdict(index, &judgement, Some(judged.computed)))
                };
                Ok(self.compute(&all).await?.into_iter().enumerate().map(keep).collect())
            }
            CacheControl::Use | CacheControl::Off => {
                let verdict = |(index, judged): (usize, Result<Judged, JudgeError>)| {
                    judged.map(|judged| self.verdict(index, &judged.judgement, Some(judged.computed)))
                };
                Ok(self.compute(&all).await?.into_iter().enumerate().map(verdict).collect())
            }
        }
    }

    /// Takes what the cache has, computes what nobody else computes, and waits for the rest. A leader that gave up
    /// leaves its followers open; they look again.
    async fn shared(&self, mut open: Vec<usize>) -> Scored {
        let cache = &self.judge.cache;
        let key = self.key();
        let keys: Vec<Digest> = self.group.candidates.iter().map(|candidate| key.candidate(candidate)).collect();
        let rank = Rank(self.call.lane as u8);
        let mut results: Vec<Option<Result<Verdict, JudgeError>>> = Vec::new();
        results.resize_with(keys.len(), || None);
        while !open.is_empty() {
            let (mut wanted, mut leads, mut follows) = (Vec::new(), Vec::new(), Vec::new());
            for index in open.drain(..) {
                match cache.seat(keys[index], rank) {
                    Seat::Hit(judgement) => results[index] = Some(Ok(self.verdict(index, &judgement, None))),
                    Seat::Lead(lead) => {
                        wanted.push(index);
                        leads.push(lead);
                    }
                    Seat::Follow(follow) => follows.push((index, follow)),
                }
            }
            // Own leads come to their end before anybody is waited for: callers never wait for each other in a circle.
            if !wanted.is_empty() {
                let computed = self.compute(&wanted).await?;
                for ((index, lead), judged) in wanted.into_iter().zip(leads).zip(computed) {
                    results[index] = Some(match judged {
                        Ok(Judged { judgement, computed }) => {
                            let verdict = self.verdict(index, &judgement, Some(computed));
                            cache.finish(lead, Ok(judgement));
                            Ok(verdict)
                        }
                        Err(error) => {
                            if error.code.is_everybodys() {
                                cache.finish(lead, Err((index, error.clone())));
                            }
                            Err(error)
                        }
                    });
                }
            }
            for (index, follow) in follows {
                match follow.outcome().await {
                    Some(Ok(judgement)) => results[index] = Some(Ok(self.verdict(index, &judgement, None))),
                    Some(Err((theirs, error))) => results[index] = Some(Err(error.moved(theirs, index))),
                    None => open.push(index),
                }
            }
        }
        let missing = || Err(JudgeError::internal("a candidate was forgotten"));
        Ok(results.into_iter().map(|result| result.unwrap_or_else(missing)).collect())
    }

    /// Judges the candidates at `wanted`, past the cache.
    async fn compute(&self, wanted: &[usize]) -> Result<Vec<Result<Judged, JudgeError>>, JudgeError> {
        let Judge { engine, pool, wording, .. } = self.judge;
        if *self.judge.health.borrow() != Health::Ready {
            return Err(JudgeError::new(ErrorCode::Unavailable, "the model is restarting or has failed; try again"));
        }
        let group = self.only(wanted);
        let Call { lane, cancel, .. } = self.call;
        let permit = engine.admit(*lane, wording.estimate(&group, &self.options))?;
        let job = {
            let (wording, options, cancel) = (Arc::clone(wording), self.options, cancel.clone());
            move |waited_for: &dyn Fn() -> bool| {
                wording.prepare(&group, &options, &|| {
                    cancel.check()?;
                    if waited_for() { Ok(()) } else { Err(Stop::Cancelled.into()) }
                })
            }
        };
        let (work, prepared) = pool.run(*lane, job).await??;
        let answers = if work.is_empty() { Vec::new() } else { engine.submit(permit, work, cancel)?.wait().await? };
        let judged = prepared.conclude(&answers)?;
        // The candidates were numbered among themselves.
        let renumber = |(at, judged): (usize, Result<Judged, JudgeError>)| {
            judged.map_err(|error| error.moved(at, wanted.get(at).copied().unwrap_or(at)))
        };
        Ok(judged.into_iter().enumerate().map(renumber).collect())
    }

    /// The group with the candidates at `wanted` alone.
    fn only(&self, wanted: &[usize]) -> Arc<Group> {
        let Group { persona, context, candidates } = &*self.group;
        if wanted.len() == candidates.len() {
            return Arc::clone(&self.group);
        }
        let candidates = wanted.iter().map(|index| candidates[*index].clone()).collect();
        Arc::new(Group { persona: persona.clone(), context: context.clone(), candidates })
    }

    fn key(&self) -> QuestionKey {
        let label_slot = self.options.evidence == EvidenceKind::LabelSlot;
        let by_id = self.options.label_order == LabelOrder::Released || self.judge.wording.template.shows_id();
        QuestionKey::new(&Question {
            judge: &self.provenance,
            options: &self.options,
            tenant: &self.call.tenant,
            persona: &self.group.persona,
            context: &self.group.context,
            by_id: label_slot && by_id,
        })
    }

    /// The verdict of the candidate at `index`; `computed` is None for a judgement that was made for somebody else.
    fn verdict(&self, index: usize, judgement: &Judgement, computed: Option<u64>) -> Verdict {
        let Judgement { conclusion, prompt_tokens } = judgement;
        Verdict {
            id: self.group.candidates[index].id.clone(),
            s_prism: conclusion.s_prism,
            dimensions: conclusion.dimensions.clone(),
            weakest_dimension: conclusion.weakest_dimension,
            judge: self.provenance.clone(),
            tokens: TokenCounts { prompt: *prompt_tokens, computed: computed.unwrap_or(0) },
            cached: computed.is_none(),
        }
    }
}
