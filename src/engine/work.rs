//! What the engine is asked and what it answers.

use std::collections::HashMap;
use std::ops::Range;

use super::queue::Overloaded;
use super::tree::{NodeId, Parent, TokenTree};
use super::{Realm, Stop};
use crate::model::TokenId;
use crate::telemetry::CallRecord;

/// What is read from one prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// Log-probabilities of these tokens right after the prompt.
    Next(Vec<TokenId>),
    /// Log-probability of each token of this range of the prompt, given everything before it. Starts at 1 or later.
    Span(Range<usize>),
}

/// One whole prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prompt {
    /// At least one token.
    pub ids: Vec<TokenId>,
    pub read: Read,
}

/// Prompts that are answered together, merged into one tree as they are added: text that they share is held once.
#[derive(Debug, Default)]
pub struct Work {
    pub(super) realm: Realm,
    pub(super) tree: TokenTree,
    pub(super) asks: Vec<Ask>,
    /// For each prompt its place in `asks`: prompts that repeat an earlier one are asked once.
    pub(super) places: Vec<usize>,
    /// The call that asks.
    pub record: CallRecord,
    /// Whether log-probabilities that were read before may answer, and those that are read now are kept for that: a
    /// reply that grows is then read once.
    pub remembers: bool,
    /// The last of the `asks` that ends with a node.
    by_end: HashMap<NodeId, usize>,
}

/// What one or more prompts of a [`Work`] ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// The node that ends with the last token after which something is read; None if nothing is.
    pub end: Option<NodeId>,
    /// Tokens of the whole prompt.
    pub tokens: usize,
    /// Positions after which something is read.
    pub rows: Range<usize>,
    /// What is read: one token a row, or all after the only row.
    pub targets: Vec<TokenId>,
}

impl Ask {
    /// The targets that are read at one position.
    pub fn targets_at(&self, position: usize) -> Range<usize> {
        match self.rows.len() {
            1 => 0..self.targets.len(),
            _ => position - self.rows.start..position - self.rows.start + 1,
        }
    }
}

impl Work {
    /// Work without prompts yet, of a realm; the default is that of the tenant without a name.
    pub fn of(realm: Realm) -> Self {
        Self { realm, ..Self::default() }
    }

    pub fn push(&mut self, prompt: Prompt) {
        let Prompt { ids, read } = prompt;
        let (rows, targets) = match read {
            Read::Next(targets) => (ids.len() - 1..ids.len(), targets),
            Read::Span(span) => (span.start - 1..span.end - 1, ids[span].to_vec()),
        };
        // A node of its own from the first row that is read: what lies before can come from the cache, this cannot.
        // What comes after the last one changes nothing.
        let end = if rows.is_empty() {
            None
        } else {
            let middle = self.tree.insert(Parent::Start(self.realm), &ids[..rows.start]);
            self.tree.insert(middle, &ids[rows.clone()]).node()
        };
        let ask = Ask { end, tokens: ids.len(), rows, targets };
        let earlier = end.and_then(|end| self.by_end.get(&end)).filter(|earlier| self.asks[**earlier] == ask);
        if let Some(earlier) = earlier {
            self.places.push(*earlier);
            return;
        }
        let place = self.asks.len();
        self.by_end.extend(end.map(|end| (end, place)));
        self.places.push(place);
        self.asks.push(ask);
    }

    /// Number of prompts.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Distinct tokens that the model must see.
    pub fn tokens(&self) -> usize {
        self.tree.tokens()
    }
}

impl FromIterator<Prompt> for Work {
    fn from_iter<I: IntoIterator<Item = Prompt>>(prompts: I) -> Self {
        let mut work = Self::default();
        prompts.into_iter().for_each(|prompt| work.push(prompt));
        work
    }
}

/// The answer to one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Natural log-probabilities over the full vocabulary, in the order that [`Read`] asked for.
    pub log_probs: Vec<f64>,
    /// Tokens that went through the model for this prompt: those that no earlier prompt of this work, no other work of
    /// its realm and no cache had computed already.
    pub computed: usize,
}

/// One reading per prompt, in order; the outer error concerns all of them.
pub type Answer = Result<Vec<Result<Reading, EngineError>>, EngineError>;

/// Why a prompt or a whole piece of work has no reading.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("the model gave a value that is not finite")]
    NonFinite,
    #[error("{}", match .0 { Stop::Cancelled => "the call was cancelled", Stop::DeadlineExceeded => "the deadline passed" })]
    Stopped(Stop),
    #[error("a prompt of {tokens} tokens is longer than the model's context of {limit} tokens")]
    TooLong { tokens: usize, limit: usize },
    #[error("a prompt of {tokens} tokens needs {needed} bytes of keys and values and the budget is {budget} bytes")]
    KvBudget { tokens: usize, needed: usize, budget: usize },
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    #[error("the model thread failed: {0}")]
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_says_the_same_thousands_of_times_asks_it_once() {
        let prompt = |last: u32| Prompt { ids: vec![1, 2, 3, 4, last], read: Read::Span(2..5) };
        let repeated: Work = (0..20_000).map(|_| prompt(5)).collect();
        assert_eq!((repeated.len(), repeated.asks.len(), repeated.tokens()), (20_000, 1, 4));
        // The last token is read and never run: the same path, another question.
        let mixed: Work = [prompt(5), prompt(6), prompt(6), prompt(5)].into_iter().collect();
        assert_eq!(mixed.places.len(), 4);
        let target = |place: usize| mixed.asks[mixed.places[place]].targets[2];
        assert_eq!([0, 1, 2, 3].map(target), [5, 6, 6, 5]);
    }
}
