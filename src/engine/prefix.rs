//! The model's tree: the keys and values of what was computed, what was read of it, and what work still wants.
//!
//! Work is merged into this one tree, so that all of one realm shares what it has in common, now and later. A node without
//! keys and values is computed when a prompt needs it; giving up those of any node is therefore always safe and changes
//! no bit, because what a token gets depends on its path alone.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;

use super::tree::{NodeData, NodeId, Parent, TokenTree};
use crate::model::{KvBlock, TokenId};

/// A piece of work in the tree: its lane and its number, which is the order of service.
pub(super) type JobId = (super::Lane, u64);

/// Rows of one node that one prompt reads.
#[derive(Debug)]
pub(super) struct Want {
    pub job: JobId,
    pub ask: usize,
    /// Offsets into the node.
    pub rows: Range<usize>,
}

/// What was read of one row.
#[derive(Clone, Copy)]
struct Known {
    target: TokenId,
    log_prob: f64,
}

/// What the tree keeps of a node.
#[derive(Default)]
pub(super) struct Slot {
    pub kv: Option<KvBlock>,
    pub wants: Vec<Want>,
    /// By row: what was read there last, for work that remembers. A few bytes beside kilobytes of keys and values.
    known: Vec<Option<Known>>,
    /// Unanswered prompts on whose path the node is.
    users: usize,
    /// Whether more than one prompt has passed here. Replies seldom are shared, personas and dialogues often.
    shared: bool,
    /// When the node was last needed; 0 for never.
    used: u64,
}

impl Slot {
    /// The log-probability of `targets` after a row, if that is one token and the last that was read there.
    pub fn known(&self, row: usize, targets: &[TokenId]) -> Option<f64> {
        let known = self.known.get(row).copied().flatten()?;
        (*targets == [known.target]).then_some(known.log_prob)
    }

    pub fn remember(&mut self, row: usize, target: TokenId, log_prob: f64) {
        if self.known.len() <= row {
            self.known.resize(row + 1, None);
        }
        self.known[row] = Some(Known { target, log_prob });
    }

    /// Rows up to the first that nobody reads, where some prompt reads the first.
    pub fn wanted(&self) -> usize {
        let mut end = 0;
        loop {
            let reached = self.wants.iter().filter(|want| want.rows.start <= end).map(|want| want.rows.end);
            match reached.max().filter(|reached| *reached > end) {
                Some(reached) => end = reached,
                None => return end,
            }
        }
    }
}

impl NodeData for Slot {
    fn split(&mut self, keep: usize) -> Self {
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        for Want { job, ask, rows } in std::mem::take(&mut self.wants) {
            let (first, rest) = (rows.start..rows.end.min(keep), rows.start.max(keep)..rows.end);
            if !first.is_empty() {
                upper.push(Want { job, ask, rows: first });
            }
            if !rest.is_empty() {
                lower.push(Want { job, ask, rows: rest.start - keep..rest.end - keep });
            }
        }
        self.wants = lower;
        let (kv, rest) = self.kv.take().map(|kv| kv.split(keep)).unzip();
        self.kv = rest;
        let rest = self.known.split_off(keep.min(self.known.len()));
        let known = std::mem::replace(&mut self.known, rest);
        Self { kv, wants: upper, known, users: self.users, shared: self.shared, used: self.used }
    }
}

/// The tree with its budget, which all realms share.
pub(super) struct PrefixTree {
    pub tree: TokenTree<Slot>,
    /// Bytes of keys and values that may be held.
    budget: usize,
    clock: u64,
}

impl PrefixTree {
    pub fn new(budget: usize) -> Self {
        Self { tree: TokenTree::default(), budget, clock: 0 }
    }

    pub fn budget(&self) -> usize {
        self.budget
    }

    pub fn slot(&self, id: NodeId) -> &Slot {
        &self.tree.node(id).data
    }

    pub fn slot_mut(&mut self, id: NodeId) -> &mut Slot {
        &mut self.tree.node_mut(id).data
    }

    /// Merges tokens below the end of a node.
    pub fn insert(&mut self, parent: Parent, tokens: &[TokenId]) -> Parent {
        self.tree.insert(parent, tokens)
    }

    /// Counts a prompt in on its path; `rows` are the runs of positions at which it reads. Returns the tokens on the path
    /// whose keys and values are here and that no open prompt was counted for yet.
    pub fn enter(&mut self, end: NodeId, job: JobId, ask: usize, rows: &[Range<usize>]) -> usize {
        self.clock += 1;
        let mut reused = 0;
        for id in self.tree.path(end) {
            let node = self.tree.node_mut(id);
            let (start, end, tokens) = (node.start, node.end(), node.tokens.len());
            let slot = &mut node.data;
            if slot.kv.is_some() && slot.users == 0 {
                reused += tokens;
            }
            slot.shared |= slot.used > 0;
            slot.users += 1;
            slot.used = self.clock;
            for run in rows {
                let positions = run.start.max(start)..run.end.min(end);
                if !positions.is_empty() {
                    slot.wants.push(Want { job, ask, rows: positions.start - start..positions.end - start });
                }
            }
        }
        reused
    }

    /// Counts a prompt out, with what it still wants; nodes that hold nothing for anybody go.
    pub fn leave(&mut self, end: NodeId, job: JobId, ask: usize) {
        for id in self.tree.path(end) {
            let slot = self.slot_mut(id);
            slot.users -= 1;
            slot.wants.retain(|want| (want.job, want.ask) != (job, ask));
        }
        self.tidy(end);
    }

    /// Takes out all that one job wants on the paths to `ends`, each node once: a group may want the same of one node
    /// thousands of times. Its prompts stay counted in.
    pub fn forget(&mut self, ends: impl Iterator<Item = NodeId>, job: JobId) {
        let mut seen = HashSet::new();
        for end in ends {
            let mut next = Some(end);
            while let Some(id) = next.filter(|id| seen.insert(*id)) {
                let node = self.tree.node_mut(id);
                node.data.wants.retain(|want| want.job != job);
                next = node.parent.node();
            }
        }
    }

    /// Marks a path as needed now.
    pub fn touch(&mut self, path: &[NodeId]) {
        self.clock += 1;
        for id in path {
            self.tree.node_mut(*id).data.used = self.clock;
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.tree.iter().filter_map(|(_, node)| node.data.kv.as_ref()).map(KvBlock::bytes).sum()
    }

    /// Gives up keys and values until `needed` more bytes fit: first what one answered prompt alone needed, then what
    /// answered prompts shared, then what later chunks will compute again; in each, what was used longest ago and
    /// lowest in the tree. `pinned` (sorted) stays. Returns the tokens given up.
    pub fn make_room(&mut self, needed: usize, pinned: &[NodeId]) -> usize {
        let held = self.bytes();
        if held + needed <= self.budget {
            return 0;
        }
        // A little more than asked for, so that the search is rare.
        let target = (self.budget - self.budget / 16).saturating_sub(needed);
        let mut candidates: Vec<_> = self
            .tree
            .iter()
            .filter(|(id, node)| node.data.kv.is_some() && pinned.binary_search(id).is_err())
            .map(|(id, node)| {
                let slot = &node.data;
                let class = if slot.users > 0 { 2 } else { u8::from(slot.shared) };
                (class, slot.used, Reverse(node.start), id)
            })
            .collect();
        candidates.sort_unstable();
        let (mut held, mut evicted) = (held, 0);
        for (.., id) in candidates {
            if held <= target {
                break;
            }
            if let Some(kv) = self.slot_mut(id).kv.take() {
                held -= kv.bytes();
                evicted += kv.tokens();
            }
            self.tidy(id);
        }
        evicted
    }

    /// Removes a node that nobody uses, holds nothing and has nothing below; then its parent, if that is now one.
    fn tidy(&mut self, id: NodeId) {
        let mut next = Some(id);
        while let Some(id) = next {
            let node = self.tree.node(id);
            if node.children > 0 || node.data.users > 0 || node.data.kv.is_some() {
                return;
            }
            next = self.tree.remove(id).and_then(|node| node.parent.node());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::engine::{Lane, Realm};

    #[test]
    fn a_job_that_is_forgotten_wants_nothing_and_the_others_what_they_did() {
        let mut tree = PrefixTree::new(usize::MAX);
        let trunk = tree.insert(Parent::Start(Realm::default()), &[1, 2]);
        let ends: Vec<NodeId> = (0..3).map(|leaf| tree.insert(trunk, &[leaf]).node().unwrap()).collect();
        let jobs = [(Lane::Train, 0), (Lane::Guard, 1)];
        for job in jobs {
            for (ask, end) in ends.iter().enumerate() {
                tree.enter(*end, job, ask, std::slice::from_ref(&(1..3)));
            }
        }
        tree.forget(ends.iter().copied(), jobs[0]);
        let wants = |tree: &PrefixTree, id: NodeId| -> Vec<(JobId, usize)> {
            tree.slot(id).wants.iter().map(|want| (want.job, want.ask)).collect()
        };
        assert_eq!(wants(&tree, trunk.node().unwrap()), [(jobs[1], 0), (jobs[1], 1), (jobs[1], 2)]);
        assert_eq!(wants(&tree, ends[2]), [(jobs[1], 2)]);
        for job in jobs {
            for (ask, end) in ends.iter().enumerate() {
                tree.leave(*end, job, ask);
            }
        }
        assert_eq!(tree.tree.tokens(), 0);
    }
}
