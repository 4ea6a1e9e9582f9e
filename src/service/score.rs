//! The path of one call: cache, admission, preparation, model, verdicts. Everything that a call holds (its place in a
//! queue, its room in a lane, the leads that others wait for) is given back when its future is dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::observe::{self, Watch};
use super::pool::PoolError;
use super::subject::Subject;
use super::wording::Judged;
use super::{
    CacheControl, Call, ErrorCode, Finished, Health, Judge, JudgeError, Lane, OptionOverrides, Recorder, warnings,
};
use crate::cache::{Judgement, Question, QuestionKey, Rank, Seat};
use crate::digest::Digest;
use crate::engine::Realm;
use crate::prism::{
    EvidenceKind, Group, LabelOrder, Options, Provenance, TextCounts, TextWarnings, TokenCounts, Verdict,
    check_candidate, check_dialogue, check_group,
};
use crate::telemetry::Stage;
use crate::telemetry::catalogue::{CONTROL_TEXT, SHED};

/// One result per candidate, in order; the outer error concerns the whole request.
pub type Scored = Result<Vec<Result<Verdict, JudgeError>>, JudgeError>;

/// An error of a candidate, with its place in the group of the caller that got it.
pub(super) type Shared = (usize, JudgeError);

impl Judge {
    /// Judges a group. Needs a tokio runtime with timers if the call has a deadline or the judge a Redis; a call that the
    /// verdict cache in memory answers is ready at once.
    pub async fn score(&self, group: Group, overrides: &OptionOverrides, call: &Call) -> Scored {
        self.ask(Subject::of_group(group), overrides, call).await
    }

    /// The same, for callers outside an async runtime; blocks.
    pub fn score_blocking(&self, group: &Group, overrides: &OptionOverrides, call: &Call) -> Scored {
        blocking(self.score(group.clone(), overrides, call))
    }

    /// The same, where each candidate answers the first turns of the context alone, `after` so many of them, in rising
    /// order: the turns of a dialogue as [`super::Finished`] tells them.
    pub fn score_after_blocking(
        &self,
        group: &Group,
        after: Vec<usize>,
        overrides: &OptionOverrides,
        call: &Call,
    ) -> Scored {
        blocking(self.ask(Subject::of_dialogue(group.clone(), after)?, overrides, call))
    }

    pub(super) async fn ask(&self, subject: Subject, overrides: &OptionOverrides, call: &Call) -> Scored {
        let watch = Watch::begin(call, subject.group.candidates.len());
        let scored = self.answer(subject, overrides, call).await;
        watch.end(&scored);
        scored
    }

    async fn answer(&self, subject: Subject, overrides: &OptionOverrides, call: &Call) -> Scored {
        let too_large = match &subject.after {
            None => self.limits.check_group(&subject.group).map(|()| Vec::new())?,
            Some(after) => {
                self.limits.check_dialogue(&subject.group)?;
                self.limits.check_parts(&subject.group.context, after)
            }
        };
        let options = overrides.over(&self.options);
        let fitting = too_large.iter().take_while(|error| error.is_none()).count();
        let odd = warnings::of_request(&subject, fitting, self.wording.text.tokenizer().added_tokens());
        // The last one has all that there is.
        report(odd.last().copied().unwrap_or_default());
        let asked =
            Asked { judge: self, provenance: self.provenance(&options), options, odd, too_large, subject, call };
        let scored = asked.score_in_time().await;
        match &self.recorder {
            None => scored,
            Some(recorder) => asked.record(&**recorder, overrides, scored).await,
        }
    }

    /// Why a call could not be prepared that has been admitted with `tokens`.
    pub(super) fn unprepared(&self, error: PoolError, lane: Lane, tokens: usize) -> JudgeError {
        match error {
            PoolError::Full(waiting) => {
                let overloaded = self.engine.refuse(lane, tokens);
                SHED.increment([overloaded.lane.name(), "prepare_full"]);
                let message = format!(
                    "the {} lane is full: {waiting} calls wait to be prepared; try again in {} ms",
                    overloaded.lane.name(),
                    overloaded.retry_after.as_millis()
                );
                JudgeError { message, ..overloaded.into() }
            }
            PoolError::Panicked => {
                tracing::error!("a request could not be prepared: its job panicked");
                JudgeError::internal("the judge failed on this request")
            }
        }
    }
}

/// Runs a call on a runtime of its own.
pub(super) fn blocking<T>(call: impl Future<Output = Result<T, JudgeError>>) -> Result<T, JudgeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| JudgeError::internal(format!("no timer can be had: {error}")))?;
    runtime.block_on(call)
}

/// Counts for the whole process.
fn report(found: TextCounts) {
    let TextCounts { control, bidi, invisible, special_tokens } = found;
    for (kind, count) in
        [("control", control), ("bidi", bidi), ("invisible", invisible), ("special_token", special_tokens)]
    {
        if count > 0 {
            CONTROL_TEXT.add([kind], count);
        }
    }
}

/// One call under way.
struct Asked<'a> {
    judge: &'a Judge,
    provenance: Provenance,
    options: Options,
    /// What is odd about the persona and the context; in a dialogue, one for each candidate whose context is not too large.
    odd: Vec<TextCounts>,
    /// In a dialogue, for each candidate what is too large about its context.
    too_large: Vec<Option<JudgeError>>,
    subject: Subject,
    call: &'a Call,
}

/// A place for each candidate's result.
type Results = Vec<Option<Result<Verdict, JudgeError>>>;

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
        let Call { lane, cache, tenant, request_id, method, cancel, shaping, .. } = self.call;
        let recording = recorder.record(Finished {
            request_id: request_id.clone(),
            tenant: tenant.clone(),
            method,
            lane: *lane,
            cache: *cache,
            group: Arc::clone(&self.subject.group),
            after: self.subject.after.clone(),
            overrides: *overrides,
            options: self.options,
            judge: self.provenance.clone(),
            answer_slot: self.judge.wording.slot.letters,
            shaping: *shaping,
            scored: scored.clone(),
        });
        tokio::select! {
            biased;
            recorded = recording => recorded.and(scored),
            stop = cancel.stopped() => Err(stop.into()),
        }
    }

    async fn score(&self) -> Scored {
        let candidates = &self.subject.group.candidates;
        let check = |index| {
            if let Some(error) = self.too_large.get(index).cloned().flatten() {
                return Err(error);
            }
            self.judge.limits.check_candidate(index, &candidates[index])?;
            check_candidate(index, &candidates[index], &self.options).map_err(JudgeError::from)
        };
        // A candidate that is at fault fails by itself, before it is looked at any further.
        let mut results: Results = (0..candidates.len()).map(|index| check(index).err().map(Err)).collect();
        let open: Vec<usize> = (0..candidates.len()).filter(|index| results[*index].is_none()).collect();
        match self.call.cache {
            // Nothing is left to compute, which would say what is wrong with the group.
            _ if open.is_empty() => self.check()?,
            CacheControl::Use => self.shared(open, &mut results).await?,
            CacheControl::Refresh => {
                let keys = self.keys(&open);
                for ((index, key), judged) in open.iter().zip(keys).zip(self.compute(&open).await?) {
                    results[*index] = Some(judged.map(|judged| {
                        let judgement = Arc::new(judged.judgement);
                        self.judge.cache.keep(key, &judgement);
                        self.verdict(*index, &judgement, Some(judged.computed))
                    }));
                }
            }
            CacheControl::Off => {
                for (index, judged) in open.iter().zip(self.compute(&open).await?) {
                    let verdict = |judged: Judged| self.verdict(*index, &judged.judgement, Some(judged.computed));
                    results[*index] = Some(judged.map(verdict));
                }
            }
        }
        let missing = || Err(JudgeError::internal("a candidate was forgotten"));
        Ok(results.into_iter().map(|result| result.unwrap_or_else(missing)).collect())
    }

    /// Takes what the cache has, computes what nobody else computes, and waits for the rest. A leader that gave up
    /// leaves its followers open; they look again.
    async fn shared(&self, mut open: Vec<usize>, results: &mut Results) -> Result<(), JudgeError> {
        let cache = &self.judge.cache;
        let keys: HashMap<usize, Digest> = open.iter().copied().zip(self.keys(&open)).collect();
        let rank = Rank(self.call.lane as u8);
        while !open.is_empty() {
            let (mut first, mut follows) = (Vec::new(), Vec::new());
            for index in open.drain(..) {
                let seat = cache.seat(keys[&index], rank);
                observe::lookup(&seat);
                match seat {
                    Seat::Hit(judgement) => results[index] = Some(Ok(self.verdict(index, &judgement, None))),
                    Seat::Lead(lead) => first.push((index, lead)),
                    Seat::Follow(follow) => follows.push((index, follow)),
                }
            }
            // Own leads come to their end before anybody is waited for: callers never wait for each other in a circle.
            let (mut wanted, mut leads) = (Vec::new(), Vec::new());
            for (index, recalled) in cache.recall(first).await {
                match recalled {
                    Ok(judgement) => results[index] = Some(Ok(self.verdict(index, &judgement, None))),
                    Err(lead) => {
                        wanted.push(index);
                        leads.push(lead);
                    }
                }
            }
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
                self.call.record.enter(Stage::Follow);
                match follow.outcome().await {
                    Some(Ok(judgement)) => results[index] = Some(Ok(self.verdict(index, &judgement, None))),
                    Some(Err((theirs, error))) => results[index] = Some(Err(error.moved(theirs, index))),
                    None => open.push(index),
                }
            }
        }
        Ok(())
    }

    /// Judges the candidates at `wanted`, past the cache. What the caller can be told without computing is told first,
    /// whether or not there is room or quota.
    async fn compute(&self, wanted: &[usize]) -> Result<Vec<Result<Judged, JudgeError>>, JudgeError> {
        self.check()?;
        let Judge { engine, pool, wording, .. } = self.judge;
        if *self.judge.health.borrow() != Health::Ready {
            return Err(JudgeError::new(ErrorCode::Unavailable, "the model is restarting or has failed; try again"));
        }
        let subject = self.subject.only(wanted);
        let Call { lane, cancel, quota, record, tenant, .. } = self.call;
        let estimate = wording.estimate(&subject, &self.options);
        let permit = engine.admit(*lane, estimate).inspect_err(observe::lane_full)?;
        // Last: what a full lane refuses costs the tenant nothing.
        let taken = quota.as_ref().map_or(Ok(()), |quota| quota.take(estimate, Instant::now()));
        taken.inspect_err(|_| observe::over_quota(*lane))?;
        let job = {
            let (wording, options, cancel) = (Arc::clone(wording), self.options, cancel.clone());
            let (record, realm, asked) = (record.clone(), Realm::of(tenant), Instant::now());
            async move {
                record.spent("prepare_wait", asked.elapsed());
                let started = Instant::now();
                let prepared = wording.prepare(&subject, &options, realm, &cancel).await;
                record.spent("prepare", started.elapsed());
                prepared
            }
        };
        record.enter(Stage::Prepare);
        let prepared = pool.run(*lane, job).await.map_err(|error| self.judge.unprepared(error, *lane, estimate));
        let prepared = prepared.flatten();
        if let Some(quota) = quota {
            // What cannot be prepared costs nothing.
            quota.settle(estimate, prepared.as_ref().map_or(0, |(work, _)| work.tokens()));
        }
        let (mut work, prepared) = prepared?;
        work.record = record.clone();
        work.remembers = self.call.cache == CacheControl::Use;
        record.enter(Stage::Queue);
        let answers = if work.is_empty() {
            Vec::new()
        } else {
            engine.submit(permit, work, cancel).inspect_err(observe::refused)?.wait().await?
        };
        record.enter(Stage::Other);
        let judged = prepared.conclude(&answers)?;
        // The candidates were numbered among themselves.
        let renumber = |(at, judged): (usize, Result<Judged, JudgeError>)| {
            judged.map_err(|error| error.moved(at, wanted.get(at).copied().unwrap_or(at)))
        };
        Ok(judged.into_iter().enumerate().map(renumber).collect())
    }

    /// What can be said against the whole request before anything is made of it.
    fn check(&self) -> Result<(), JudgeError> {
        let check = if self.subject.after.is_some() { check_dialogue } else { check_group };
        Ok(check(&self.subject.group, &self.options).map(drop)?)
    }

    /// The keys of the judgements of the candidates at `wanted`, which are in order.
    fn keys(&self, wanted: &[usize]) -> Vec<Digest> {
        let label_slot = self.options.evidence == EvidenceKind::LabelSlot;
        let by_id = self.options.label_order == LabelOrder::Released || self.judge.wording.template.shows_id();
        let mut key = QuestionKey::new(&Question {
            judge: &self.provenance,
            options: &self.options,
            tenant: &self.call.tenant,
            persona: &self.subject.group.persona,
            context: &[],
            by_id: label_slot && by_id,
        });
        let (mut turns, mut keys) = (0, Vec::with_capacity(wanted.len()));
        for index in wanted {
            // Each context is the beginning of the next.
            let context = self.subject.context(*index);
            key = key.after(&context[turns..]);
            turns = context.len();
            keys.push(key.candidate(&self.subject.group.candidates[*index]));
        }
        keys
    }

    /// The verdict of the candidate at `index`; `computed` is None for a judgement that was made for somebody else.
    fn verdict(&self, index: usize, judgement: &Judgement, computed: Option<u64>) -> Verdict {
        let Judgement { conclusion, prompt_tokens } = judgement;
        if computed.is_some() {
            observe::judged(conclusion);
        }
        let candidates = &self.subject.group.candidates;
        let candidate = &candidates[index];
        let dialogue = self.subject.after.is_some();
        let response = warnings::of_text(&candidate.response, self.judge.wording.text.tokenizer().added_tokens());
        // In a dialogue all but the last one are in the context too, and were reported with it.
        if !dialogue || index + 1 == candidates.len() {
            report(response);
        }
        let request = self.odd.get(if dialogue { index } else { 0 }).copied().unwrap_or_default();
        Verdict {
            id: candidate.id.clone(),
            s_prism: conclusion.s_prism,
            dimensions: conclusion.dimensions.clone(),
            weakest_dimension: conclusion.weakest_dimension,
            judge: self.provenance.clone(),
            tokens: TokenCounts { prompt: *prompt_tokens, computed: computed.unwrap_or(0) },
            cached: computed.is_none(),
            warnings: TextWarnings { response, request },
        }
    }
}
