//! What a replay found, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::audit::{Difference, Made, Maker, Mismatch, Part};
use crate::service::ErrorCode;

/// A line that is worth telling.
#[derive(Debug, Serialize)]
pub struct Finding {
    pub file: String,
    /// From 1.
    pub line: usize,
    #[serde(flatten)]
    pub kind: Kind,
}

#[derive(Debug, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Kind {
    /// The line was cut off or changed.
    Damaged { reason: String },
    /// The line does not follow the one before it.
    OutOfOrder { reason: String },
    /// The server could not record some calls.
    Lost { queue_full: u64, not_written: u64 },
    /// Another judge than the recorded one was opened.
    OtherJudge { made_by: Maker, mismatches: Vec<Mismatch> },
    /// The record holds digests in place of text.
    Redacted,
    /// The same judge gave another result.
    Different { made_by: Maker, differences: Vec<Difference> },
}

/// Counts of a replay.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Records of calls.
    records: usize,
    /// Records that were judged again, and of these, those that came out the same and not the same.
    replayed: usize,
    equal: usize,
    different: usize,
    redacted: usize,
    /// Records of another judge, and in which part it differs.
    other_judge: usize,
    other: BTreeMap<Part, usize>,
    /// Records of calls that failed by circumstances.
    no_verdict: BTreeMap<ErrorCode, usize>,
    /// Candidates that were judged again with the same bits.
    judgements_equal: usize,
    /// Candidates that failed by circumstances.
    judgements_skipped: usize,
    damaged: usize,
    out_of_order: usize,
    /// Calls that the server says it has not recorded.
    lost: u64,
    findings: Vec<Finding>,
}

impl Report {
    /// Whether every recorded verdict was made again with the same bits.
    pub fn all_equal(&self) -> bool {
        self.different + self.redacted + self.other_judge + self.damaged + self.out_of_order == 0
    }

    pub fn made(&mut self, made: &Made) {
        self.records += 1;
        self.replayed += 1;
        self.judgements_equal += made.equal;
        self.judgements_skipped += made.skipped;
        self.equal += usize::from(made.differences.is_empty());
    }

    pub fn no_verdict(&mut self, code: ErrorCode) {
        self.records += 1;
        *self.no_verdict.entry(code).or_default() += 1;
    }

    /// Counts a finding, and keeps it if `keep` says so. One of a call that was made again follows [`Report::made`].
    pub fn found(&mut self, finding: Finding, keep: bool) {
        match &finding.kind {
            Kind::Damaged { .. } => self.damaged += 1,
            Kind::OutOfOrder { .. } => self.out_of_order += 1,
            Kind::Lost { queue_full, not_written } => self.lost += queue_full + not_written,
            Kind::OtherJudge { mismatches, .. } => {
                self.records += 1;
                self.other_judge += 1;
                for Mismatch { part, .. } in mismatches {
                    *self.other.entry(*part).or_default() += 1;
                }
            }
            Kind::Redacted => {
                self.records += 1;
                self.redacted += 1;
            }
            Kind::Different { .. } => self.different += 1,
        }
        if keep {
            self.findings.push(finding);
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        match &self.kind {
            Kind::Damaged { reason } | Kind::OutOfOrder { reason } => f.write_str(reason),
            Kind::Lost { queue_full, not_written } => write!(
                f,
                "calls without a record before this line: {queue_full} found the queue full, {not_written} could not be \
                 written"
            ),
            Kind::OtherJudge { made_by, mismatches } => {
                f.write_str("another judge, cannot replay:")?;
                for Mismatch { part, recorded, here } in mismatches {
                    write!(f, " {} {recorded} in the record, {here} here;", part_name(*part))?;
                }
                write!(f, " {made_by} in the record, {} here", Maker::here())
            }
            Kind::Redacted => f.write_str("redacted, cannot replay: the record holds digests of the text alone"),
            Kind::Different { made_by, differences } => {
                write!(f, "different (judged by {made_by}, replayed by {})", Maker::here())?;
                for Difference { id, field, recorded, replayed, ulps, .. } in differences {
                    write!(f, "\n  {id} {field}: {recorded} in the record, {replayed} now")?;
                    if let Some(ulps) = ulps {
                        write!(f, ", {ulps} ulp")?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} records: {} replayed, {} equal, {} different ({} judgements with the same bits)",
            self.records, self.replayed, self.equal, self.different, self.judgements_equal
        )?;
        let mut line = |count: usize, what: &str| if count > 0 { writeln!(f, "  {count} {what}") } else { Ok(()) };
        line(self.redacted, "redacted, cannot be replayed")?;
        line(self.other_judge, "of another judge, cannot be replayed here")?;
        for (part, count) in &self.other {
            line(*count, &format!("of another {}", part_name(*part)))?;
        }
        for (code, count) in &self.no_verdict {
            line(*count, &format!("calls without a verdict ({}), nothing to compare", code.name()))?;
        }
        line(self.judgements_skipped, "candidates without a verdict, nothing to compare")?;
        line(self.damaged, "lines damaged")?;
        line(self.out_of_order, "places where lines are missing or out of order")?;
        line(usize::try_from(self.lost).unwrap_or(usize::MAX), "calls were answered without a record, as the file says")
    }
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Model => "model",
        Part::Prompt => "prompt",
        Part::LabelSpaces => "label spaces",
        Part::Numerics => "numerics",
    }
}
