//! A token tree: whole prompts, merged by common prefix of their token ids.

use std::collections::HashMap;

use crate::model::TokenId;

/// Index of a node.
pub type NodeId = usize;

/// A run of tokens that all prompts below it share.
#[derive(Debug, PartialEq, Eq)]
pub struct Node {
    pub parent: Option<NodeId>,
    /// Position of the first token on its path.
    pub start: usize,
    pub tokens: Vec<TokenId>,
    pub children: Vec<NodeId>,
    /// The first prompt that needed these tokens.
    pub first_prompt: usize,
}

/// Nodes in order of insertion; the prompts' last nodes.
#[derive(Debug, Default)]
pub struct TokenTree {
    nodes: Vec<Node>,
    roots: Vec<NodeId>,
    ends: Vec<NodeId>,
    by_first_token: HashMap<(Option<NodeId>, TokenId), NodeId>,
}

impl TokenTree {
    /// Merges `prompts`; each must hold at least one token.
    pub fn new<'a>(prompts: impl IntoIterator<Item = &'a [TokenId]>) -> Self {
        let mut tree = Self::default();
        for (prompt, ids) in prompts.into_iter().enumerate() {
            let end = tree.insert(prompt, ids);
            tree.ends.push(end);
        }
        tree.link();
        tree
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node with which prompt `prompt` ends.
    pub fn end(&self, prompt: usize) -> NodeId {
        self.ends[prompt]
    }

    /// Distinct tokens.
    pub fn tokens(&self) -> usize {
        self.nodes.iter().map(|node| node.tokens.len()).sum()
    }

    /// Nodes with every parent before its children and every subtree in one stretch.
    pub fn depth_first(&self) -> Vec<NodeId> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut stack: Vec<NodeId> = self.roots.iter().rev().copied().collect();
        while let Some(id) = stack.pop() {
            order.push(id);
            stack.extend(self.nodes[id].children.iter().rev());
        }
        order
    }

    /// Nodes from the root to `id`.
    pub fn path(&self, id: NodeId) -> Vec<NodeId> {
        let mut path: Vec<NodeId> = std::iter::successors(Some(id), |id| self.nodes[*id].parent).collect();
        path.reverse();
        path
    }

    fn insert(&mut self, prompt: usize, ids: &[TokenId]) -> NodeId {
        let mut parent = None;
        let mut position = 0;
        while position < ids.len() {
            let rest = &ids[position..];
            let Some(&child) = self.by_first_token.get(&(parent, rest[0])) else {
                return self.push(parent, position, rest.to_vec(), prompt);
            };
            let node = &self.nodes[child];
            let common = node.tokens.iter().zip(rest).take_while(|(a, b)| a == b).count();
            parent = Some(if common < node.tokens.len() { self.split(child, common) } else { child });
            position += common;
        }
        parent.unwrap_or_default()
    }

    fn push(&mut self, parent: Option<NodeId>, start: usize, tokens: Vec<TokenId>, first_prompt: usize) -> NodeId {
        let id = self.nodes.len();
        self.by_first_token.insert((parent, tokens[0]), id);
        self.nodes.push(Node { parent, start, tokens, children: Vec::new(), first_prompt });
        id
    }

    /// Cuts node `id` after `keep` tokens. `id` stays the lower part, so that its children and the prompts that end
    /// with it need not change; returns the new upper part.
    fn split(&mut self, id: NodeId, keep: usize) -> NodeId {
        let node = &mut self.nodes[id];
        let lower = node.tokens.split_off(keep);
        let upper = std::mem::replace(&mut node.tokens, lower);
        let (parent, start, first_prompt) = (node.parent, node.start, node.first_prompt);
        let first_of_lower = node.tokens[0];
        node.start += keep;
        let upper = self.push(parent, start, upper, first_prompt);
        self.nodes[id].parent = Some(upper);
        self.by_first_token.insert((Some(upper), first_of_lower), id);
        upper
    }

    /// Lists children in the order in which prompts first needed them.
    fn link(&mut self) {
        let mut order: Vec<NodeId> = (0..self.nodes.len()).collect();
        order.sort_by_key(|id| (self.nodes[*id].first_prompt, *id));
        for id in order {
            match self.nodes[id].parent {
                Some(parent) => self.nodes[parent].children.push(id),
                None => self.roots.push(id),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_prompt_is_its_path_and_every_prefix_is_stored_once(
            prompts in prop::collection::vec(prop::collection::vec(0u32..3, 1..9), 1..12)
        ) {
            let tree = TokenTree::new(prompts.iter().map(Vec::as_slice));
            for (index, prompt) in prompts.iter().enumerate() {
                let path = tree.path(tree.end(index));
                let ids: Vec<_> = path.iter().flat_map(|id| tree.nodes()[*id].tokens.clone()).collect();
                prop_assert_eq!(&ids, prompt);
                let mut position = 0;
                for id in path {
                    prop_assert_eq!(tree.nodes()[id].start, position);
                    position += tree.nodes()[id].tokens.len();
                }
            }
            let prefixes: HashSet<&[u32]> = prompts.iter().flat_map(|p| (1..=p.len()).map(|n| &p[..n])).collect();
            prop_assert_eq!(tree.tokens(), prefixes.len());
        }

        #[test]
        fn depth_first_keeps_subtrees_together(
            prompts in prop::collection::vec(prop::collection::vec(0u32..3, 1..9), 1..12)
        ) {
            let tree = TokenTree::new(prompts.iter().map(Vec::as_slice));
            let order = tree.depth_first();
            prop_assert_eq!(order.len(), tree.nodes().len());
            let rank: Vec<usize> = (0..order.len()).map(|id| order.iter().position(|o| *o == id).unwrap()).collect();
            for (id, node) in tree.nodes().iter().enumerate() {
                prop_assert!(node.parent.is_none_or(|parent| rank[parent] < rank[id]));
                let below = (0..order.len()).filter(|other| tree.path(*other).contains(&id)).count();
                for offset in 0..below {
                    prop_assert!(tree.path(order[rank[id] + offset]).contains(&id));
                }
            }
        }
    }
}
