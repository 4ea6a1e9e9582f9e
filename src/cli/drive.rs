//! Judges an input line by line and hands every line's results on, in order.

use super::input::{Event, Line, Source};
use super::interrupt::Interrupt;
use super::progress::Progress;
use super::{CliError, Outcome};
use crate::eval::{BadLine, Item, Known};
use crate::prism::Verdict;
use crate::service::{Call, ErrorCode, Judge, JudgeError, Lane, OptionOverrides};

/// The result of one response; None if Ctrl-C came before it was judged.
pub type RowResult = Option<Result<Verdict, JudgeError>>;

/// What became of one line.
pub enum LineResult<'a> {
    /// The line could not be read.
    Bad(&'a BadLine),
    /// One result per row of the item.
    Judged { line: usize, item: &'a Item, results: &'a [RowResult] },
}

/// Judges inputs one after the other. Holds one line and its results at a time.
pub struct Driver<'a> {
    pub judge: &'a Judge,
    /// The personas that lines may name.
    pub known: &'a Known,
    pub interrupt: &'a Interrupt,
    pub progress: Progress<'a>,
}

impl Driver<'_> {
    /// Judges the first `limit` lines of `source`. An error of `sink` ends the work.
    pub fn run(
        &mut self,
        source: &Source,
        limit: usize,
        sink: &mut dyn FnMut(LineResult<'_>) -> Result<(), CliError>,
    ) -> Result<Outcome, CliError> {
        self.interrupt.work_starts();
        let lines = source.lines(self.interrupt)?;
        let mut read = 0;
        for event in lines.iter().take(limit) {
            if self.interrupt.stopped() {
                return Ok(Outcome::Interrupted);
            }
            match event {
                Event::End => break,
                Event::Interrupt => return Ok(Outcome::Interrupted),
                Event::Failed(error) => {
                    return Err(CliError::Failed(format!("cannot read {}: {error}", source.name())));
                }
                Event::Line(line) => {
                    read = line.read;
                    self.line(line, sink)?;
                    self.progress.at(read);
                }
            }
        }
        self.progress.finish_input(source.size().unwrap_or(read));
        Ok(if self.interrupt.stopped() { Outcome::Interrupted } else { Outcome::Done })
    }

    fn line(
        &mut self,
        line: Line,
        sink: &mut dyn FnMut(LineResult<'_>) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let number = line.number;
        let item = match line.text.and_then(|text| Item::parse_knowing(self.known, &text, number)) {
            Ok(item) => item,
            Err(bad) => {
                self.progress.count_bad_line();
                return self.progress.paused(|| sink(LineResult::Bad(&bad)));
            }
        };
        let results = self.judge(&item);
        results.iter().flatten().for_each(|result| self.progress.count(result));
        self.progress.paused(|| sink(LineResult::Judged { line: number, item: &item, results: &results }))
    }

    /// One result per row of the item, in its order.
    fn judge(&self, item: &Item) -> Vec<RowResult> {
        let mut by_group: Vec<_> = item.groups.iter().map(|group| self.group(group)).collect();
        item.rows.iter().map(|row| by_group[row.group][row.candidate].take()).collect()
    }

    fn group(&self, group: &crate::prism::Group) -> Vec<RowResult> {
        if self.interrupt.stopped() {
            return vec![None; group.candidates.len()];
        }
        let candidates = group.candidates.len();
        let call = Call { lane: Lane::Batch, cancel: self.interrupt.cancel().clone(), ..Call::default() };
        let results = match self.judge.score_blocking(group, &OptionOverrides::default(), &call) {
            Ok(results) if results.len() == candidates => results,
            Ok(results) => {
                let message = format!("the judge gave {} results for {candidates} candidates", results.len());
                vec![Err(JudgeError::new(ErrorCode::Internal, message)); candidates]
            }
            Err(error) => vec![Err(error); candidates],
        };
        results
            .into_iter()
            .map(|result| match result {
                Err(error) if error.code == ErrorCode::Cancelled && self.interrupt.stopped() => None,
                result => Some(result),
            })
            .collect()
    }
}
