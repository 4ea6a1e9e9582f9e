//! A recorded call, made again.

use serde::Serialize;

use super::call::{CallRecord, ErrorRecord, Outcome, ResultRecord, VerdictRecord};
use super::compare::{differences, reward};
use super::{Difference, Real};
use crate::prism::{Options, Provenance, Shaping, Verdict};
use crate::service::{CacheControl, Call, Cancel, ErrorCode, Judge, JudgeError, Lane, OptionOverrides, Scored};

/// What became of a recorded call.
#[derive(Debug)]
pub enum Replay {
    /// It was made again.
    Made(Made),
    /// This judge is another one than the record's; in what.
    OtherJudge(Vec<Mismatch>),
    /// Its text is not in the record.
    Redacted,
    /// It has no verdict and failed by circumstances, which do not come again.
    NoVerdict(ErrorCode),
}

/// A call that was made again.
#[derive(Debug, Default)]
pub struct Made {
    /// One per candidate; empty if the call as a whole fails.
    pub results: Vec<Result<Verdict, JudgeError>>,
    /// Candidates, or whole calls, with the same bits or the same error.
    pub equal: usize,
    /// Candidates that failed by circumstances.
    pub skipped: usize,
    pub differences: Vec<Difference>,
}

/// A part of a judge that its scores depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Model,
    /// Prompt template, chat template, answer slot.
    Prompt,
    LabelSpaces,
    Numerics,
}

/// A part in which the record's judge and this one differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    pub part: Part,
    pub recorded: String,
    pub here: String,
}

/// Makes a call again under its own options, past the cache, and compares.
///
/// # Errors
/// [`ErrorCode::Cancelled`] when `cancel` said so.
pub fn replay(judge: &Judge, record: &CallRecord, cancel: &Cancel) -> Result<Replay, JudgeError> {
    let options = Options::from(record.options);
    let mismatches = mismatches(record, &judge.provenance(&options));
    if !mismatches.is_empty() {
        return Ok(Replay::OtherJudge(mismatches));
    }
    if let Some(error) = record.error.as_ref().filter(|error| !comes_again(error.code)) {
        return Ok(Replay::NoVerdict(error.code));
    }
    let Some(group) = record.group() else { return Ok(Replay::Redacted) };
    let call = Call { lane: Lane::Batch, cache: CacheControl::Off, cancel: cancel.clone(), ..Call::default() };
    let overrides = OptionOverrides::from(options);
    let scored = match record.after() {
        None => judge.score_blocking(&group, &overrides, &call),
        Some(after) => judge.score_after_blocking(&group, after, &overrides, &call),
    };
    cancel.check()?;
    Ok(Replay::Made(compare(record, scored)))
}

/// Whether the same request gets the same error from the same judge.
fn comes_again(code: ErrorCode) -> bool {
    match code {
        ErrorCode::InvalidArgument | ErrorCode::NonFinite => true,
        ErrorCode::Cancelled
        | ErrorCode::DeadlineExceeded
        | ErrorCode::Overloaded
        | ErrorCode::OverQuota
        | ErrorCode::Unavailable
        | ErrorCode::NotFound
        | ErrorCode::Internal => false,
    }
}

fn mismatches(record: &CallRecord, here: &Provenance) -> Vec<Mismatch> {
    let judge = &record.judge;
    let digests = [
        (Part::Model, judge.model_digest, here.model_digest),
        (Part::Prompt, judge.prompt_digest, here.prompt_digest),
        (Part::LabelSpaces, judge.label_space_digest, here.label_space_digest),
    ];
    let digests = digests.map(|(part, recorded, here)| (part, recorded.to_string(), here.to_string()));
    let numerics = (Part::Numerics, judge.numerics.name().to_owned(), here.numerics.name().to_owned());
    digests
        .into_iter()
        .chain([numerics])
        .filter(|(_, recorded, here)| recorded != here)
        .map(|(part, recorded, here)| Mismatch { part, recorded, here })
        .collect()
}

fn compare(record: &CallRecord, scored: Scored) -> Made {
    let whole = |recorded: String, replayed: String| Made {
        differences: vec![result(None, String::new(), recorded, replayed)],
        ..Made::default()
    };
    match (&record.error, scored) {
        (Some(recorded), Err(replayed)) if recorded.code == replayed.code => Made { equal: 1, ..Made::default() },
        (Some(recorded), Err(replayed)) => whole(of_error(recorded), of(&replayed)),
        (Some(recorded), Ok(_)) => whole(of_error(recorded), "results".to_owned()),
        (None, Err(replayed)) => whole("results".to_owned(), of(&replayed)),
        (None, Ok(results)) if results.len() != record.results.len() => {
            whole(format!("{} results", record.results.len()), format!("{} results", results.len()))
        }
        (None, Ok(results)) => {
            let shaping = match record.shaping.map(Shaping::try_from).transpose() {
                Ok(shaping) => shaping,
                // The server would have refused it.
                Err(error) => return whole("rewards".to_owned(), format!("{}: {error}", error.field())),
            };
            let rewards = shaping.map_or(vec![None; results.len()], |shaping| shaping.rewards(&results));
            let mut made = Made::default();
            for (index, ((recorded, replayed), reward)) in record.results.iter().zip(&results).zip(rewards).enumerate()
            {
                made.candidate(index, recorded, (replayed, reward));
            }
            Made { results, ..made }
        }
    }
}

impl Made {
    fn candidate(
        &mut self,
        index: usize,
        recorded: &ResultRecord,
        (replayed, reward_now): (&Result<Verdict, JudgeError>, Option<f64>),
    ) {
        let id = recorded.id.shown();
        let mut found = match (&recorded.outcome, replayed) {
            (Outcome::Verdict(verdict), Ok(replayed)) => {
                let mut found = differences((index, &id), verdict, &VerdictRecord::from(replayed));
                found.extend(reward((index, &id), recorded.reward, reward_now.map(Real)));
                found
            }
            (Outcome::Error(recorded), _) if !comes_again(recorded.code) => {
                self.skipped += 1;
                return;
            }
            (Outcome::Error(recorded), Err(replayed)) if recorded.code == replayed.code => Vec::new(),
            (recorded, replayed) => {
                let recorded = match recorded {
                    Outcome::Verdict(_) => "a verdict".to_owned(),
                    Outcome::Error(error) => of_error(error),
                };
                let replayed = replayed.as_ref().map_or_else(of, |_| "a verdict".to_owned());
                vec![result(Some(index), id, recorded, replayed)]
            }
        };
        self.equal += usize::from(found.is_empty());
        self.differences.append(&mut found);
    }
}

fn result(candidate: Option<usize>, id: String, recorded: String, replayed: String) -> Difference {
    Difference { candidate, id, field: "result".to_owned(), recorded, replayed, ulps: None }
}

fn of(error: &JudgeError) -> String {
    format!("{}: {error}", error.code.name())
}

fn of_error(error: &ErrorRecord) -> String {
    error.code.name().to_owned()
}
