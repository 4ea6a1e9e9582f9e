//! What a call asks about: candidates, each with the part of the context that it answers.

use std::borrow::Cow;
use std::sync::Arc;

use super::JudgeError;
use crate::prism::{Group, Turn};

/// Candidates under one persona. Those of a group answer the whole context; those of a dialogue, which are turns of it,
/// the turns before them.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub group: Arc<Group>,
    /// For each candidate how many turns of the context come before it, in rising order; None: all.
    pub after: Option<Arc<[usize]>>,
}

impl Subject {
    pub fn of_group(group: Group) -> Self {
        Self { group: Arc::new(group), after: None }
    }

    /// # Errors
    /// `after` does not fit the group.
    pub fn of_dialogue(group: Group, after: Vec<usize>) -> Result<Self, JudgeError> {
        let fits = after.len() == group.candidates.len()
            && after.is_sorted()
            && after.last().is_none_or(|last| *last <= group.context.len());
        if !fits {
            return Err(JudgeError::invalid("candidates", "their places in the dialogue do not fit it"));
        }
        Ok(Self { group: Arc::new(group), after: Some(after.into()) })
    }

    /// The turns that the candidate at `index` answers.
    pub fn context(&self, index: usize) -> &[Turn] {
        let all = &self.group.context;
        self.after.as_ref().map_or(all, |after| &all[..after[index]])
    }

    /// The candidates at `wanted` alone.
    pub fn only(&self, wanted: &[usize]) -> Self {
        let Group { persona, context, candidates } = &*self.group;
        if wanted.len() == candidates.len() {
            return self.clone();
        }
        let candidates = wanted.iter().map(|index| candidates[*index].clone()).collect();
        let after = self.after.as_ref().map(|after| wanted.iter().map(|index| after[*index]).collect());
        Self { group: Arc::new(Group { persona: persona.clone(), context: context.clone(), candidates }), after }
    }

    /// The groups of candidates that answer the same, in order, each with the index of its first candidate. Those of a
    /// dialogue are made one by one, so that its text is not held as often as it has turns.
    pub fn groups(&self) -> impl Iterator<Item = (usize, Cow<'_, Group>)> {
        let whole = self.after.is_none().then(|| (0, Cow::Borrowed(&*self.group)));
        let turns = self.after.iter().flat_map(|after| 0..after.len()).map(|index| {
            let (persona, context) = (self.group.persona.clone(), self.context(index).to_vec());
            (index, Cow::Owned(Group { persona, context, candidates: vec![self.group.candidates[index].clone()] }))
        });
        whole.into_iter().chain(turns)
    }
}
