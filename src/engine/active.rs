//! Work that is in the model's tree, and its answers so far.

use std::ops::Range;
use std::time::Instant;

use super::prefix::{JobId, PrefixTree};
use super::queue::Job;
use super::tree::{NodeId, Parent};
use super::work::Ask;
use super::{EngineError, Reading};
use crate::model::TokenId;
use crate::telemetry::{CallRecord, Stage};

/// One piece of work in the tree.
pub(super) struct Active {
    pub job: Job,
    /// The distinct prompts, with the ends of their paths in the model's tree.
    pub asks: Vec<Ask>,
    /// For each of them: what was read, or why nothing can be.
    pub answers: Vec<Partial>,
    /// Prompts without an answer.
    pub open: usize,
    /// Distinct tokens of all prompts.
    pub tokens: usize,
    /// No prompt before this one is open.
    next: usize,
    entered: Instant,
}

/// The answer to one prompt while it is made.
pub(super) struct Partial {
    pub log_probs: Vec<f64>,
    /// Rows that are not read yet.
    rows_left: usize,
    pub computed: usize,
    error: Option<EngineError>,
    open: bool,
}

impl Partial {
    /// Takes what is remembered of a prompt that ends at `end`. Returns the positions that are left to read, in runs.
    fn recall(&mut self, ask: &Ask, end: NodeId, tree: &PrefixTree) -> Vec<Range<usize>> {
        let mut unread: Vec<Range<usize>> = Vec::new();
        for id in tree.tree.path(end) {
            let node = tree.tree.node(id);
            for position in ask.rows.start.max(node.start)..ask.rows.end.min(node.end()) {
                let targets = ask.targets_at(position);
                match (node.data.known(position - node.start, &ask.targets[targets.clone()]), unread.last_mut()) {
                    (Some(log_prob), _) => {
                        self.log_probs[targets.start] = log_prob;
                        self.rows_left -= 1;
                    }
                    (None, Some(run)) if run.end == position => run.end += 1,
                    (None, _) => unread.push(position..position + 1),
                }
            }
        }
        unread
    }
}

impl Active {
    /// Merges a job into the tree. Returns it with the tokens whose keys and values were there already.
    pub fn enter(mut job: Job, id: JobId, tree: &mut PrefixTree, context_length: usize) -> (Self, usize) {
        let entered = Instant::now();
        job.work.record.enter(Stage::Model);
        job.work.record.spent("queue", job.arrived.elapsed());
        let tokens = job.work.tokens();
        let local = std::mem::take(&mut job.work.tree);
        let mut asks = std::mem::take(&mut job.work.asks);
        let mut places = std::collections::HashMap::new();
        let mut reused = 0;
        let mut answers = Vec::with_capacity(asks.len());
        let mut open = 0;
        for ask in &mut asks {
            let mut answer = Partial {
                log_probs: vec![f64::NAN; ask.targets.len()],
                rows_left: ask.rows.len(),
                computed: 0,
                error: None,
                open: false,
            };
            if ask.tokens > context_length {
                answer.error = Some(EngineError::TooLong { tokens: ask.tokens, limit: context_length });
            } else if let Some(end) = ask.end {
                let mut place = Parent::Start(job.work.realm);
                for node in local.path(end) {
                    place = *places.entry(node).or_insert_with(|| tree.insert(place, &local.node(node).tokens));
                }
                ask.end = place.node();
                answer.open = true;
                open += 1;
            }
            answers.push(answer);
        }
        // Only now do all nodes stay as they are: merging a prompt may split those of an earlier one.
        for (index, (ask, answer)) in asks.iter().zip(&mut answers).enumerate() {
            let Some(end) = ask.end.filter(|_| answer.open) else { continue };
            let unread = if job.work.remembers { answer.recall(ask, end, tree) } else { vec![ask.rows.clone()] };
            if unread.is_empty() {
                answer.open = false;
                open -= 1;
                tree.touch(&tree.tree.path(end));
            } else {
                reused += tree.enter(end, id, index, &unread);
            }
        }
        (Self { job, asks, answers, open, tokens, next: 0, entered }, reused)
    }

    /// The call that asks.
    pub fn record(&self) -> &CallRecord {
        &self.job.work.record
    }

    /// The first prompt that is open, from `from` on.
    pub fn open_from(&self, from: usize) -> Option<usize> {
        (from.max(self.next)..self.asks.len()).find(|ask| self.answers[*ask].open)
    }

    pub fn is_open(&self, ask: usize) -> bool {
        self.answers[ask].open
    }

    /// What may be remembered of a position that was just read: its only target and that one's log-probability.
    pub fn memorable(&self, ask: usize, position: usize) -> Option<(TokenId, f64)> {
        let (targets, answer) = (self.asks[ask].targets_at(position), &self.answers[ask]);
        let (target, log_prob) = match &self.asks[ask].targets[targets.clone()] {
            [target] if self.job.work.remembers => (*target, answer.log_probs[targets.start]),
            _ => return None,
        };
        log_prob.is_finite().then_some((target, log_prob))
    }

    /// Files the log-probabilities of one prompt's targets at one position. True when the prompt is answered.
    pub fn read(&mut self, ask: usize, position: usize, log_probs: impl Iterator<Item = f64>) -> bool {
        let answer = &mut self.answers[ask];
        let targets = self.asks[ask].targets_at(position);
        answer.log_probs[targets].iter_mut().zip(log_probs).for_each(|(answer, read)| *answer = read);
        answer.rows_left -= 1;
        answer.rows_left == 0
    }

    /// Ends a prompt and takes it out of the tree. True when it was the last one.
    pub fn close(&mut self, ask: usize, id: JobId, tree: &mut PrefixTree, error: Option<EngineError>) -> bool {
        let answer = &mut self.answers[ask];
        if std::mem::replace(&mut answer.open, false)
            && let Some(end) = self.asks[ask].end
        {
            answer.error = error;
            self.open -= 1;
            tree.leave(end, id, ask);
        }
        while self.next < self.asks.len() && !self.answers[self.next].open {
            self.next += 1;
        }
        self.open == 0
    }

    /// Takes every open prompt out of the tree. Returns the tokens that were computed for this work.
    pub fn abandon(&mut self, id: JobId, tree: &mut PrefixTree) -> usize {
        let ends = self.asks.iter().zip(&self.answers).filter(|(_, answer)| answer.open).filter_map(|(ask, _)| ask.end);
        tree.forget(ends, id);
        for ask in 0..self.asks.len() {
            self.close(ask, id, tree, None);
        }
        self.answers.iter().map(|answer| answer.computed).sum()
    }

    /// Sends the answers.
    pub fn finish(mut self) {
        self.record().spent("model", self.entered.elapsed());
        let finish = |answer: Partial| match answer.error {
            Some(error) => Err(error),
            None if answer.log_probs.iter().all(|value| value.is_finite()) => {
                Ok(Reading { log_probs: answer.log_probs, computed: answer.computed })
            }
            None => Err(EngineError::NonFinite),
        };
        let places = std::mem::take(&mut self.job.work.places);
        let mut answers: Vec<_> = self.answers.into_iter().map(finish).collect();
        let all = if places.len() == answers.len() {
            answers
        } else {
            let repeat = |place: usize| {
                let answer = answers[place].clone();
                if let Ok(reading) = &mut answers[place] {
                    // Computed for the first of those that repeat each other.
                    reading.computed = 0;
                }
                answer
            };
            places.into_iter().map(repeat).collect()
        };
        // The caller may have gone away; nothing else waits for this answer.
        let _ = self.job.reply.send(Ok(all));
    }
}
