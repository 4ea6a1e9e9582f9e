//! A token tree: whole prompts, merged by common prefix of their token ids.

use std::collections::HashMap;

use super::Realm;
use crate::model::TokenId;

/// Index of a node. It stays valid until the node is removed.
pub type NodeId = usize;

/// What a tree keeps beside the tokens of a node.
pub trait NodeData: Default {
    /// Takes the part that belongs to the first `keep` of the node's tokens.
    fn split(&mut self, keep: usize) -> Self;
}

impl NodeData for () {
    fn split(&mut self, _keep: usize) -> Self {}
}

/// What a run of tokens follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parent {
    /// Nothing: it starts the prompts of a realm.
    Start(Realm),
    Node(NodeId),
}

impl Parent {
    pub fn node(self) -> Option<NodeId> {
        match self {
            Self::Start(_) => None,
            Self::Node(id) => Some(id),
        }
    }
}

/// A run of tokens that all prompts below it share.
#[derive(Debug)]
pub struct Node<D> {
    pub parent: Parent,
    /// Position of the first token on its path.
    pub start: usize,
    pub tokens: Vec<TokenId>,
    /// Number of nodes right below.
    pub children: usize,
    pub data: D,
}

impl<D> Node<D> {
    /// Position after the last token on its path.
    pub fn end(&self) -> usize {
        self.start + self.tokens.len()
    }
}

/// Nodes by id. A parent's tokens are never empty and no two children of it begin with the same token, nor do two runs
/// that start the prompts of one realm.
#[derive(Debug)]
pub struct TokenTree<D = ()> {
    nodes: Vec<Option<Node<D>>>,
    free: Vec<NodeId>,
    by_first_token: HashMap<(Parent, TokenId), NodeId>,
    tokens: usize,
}

impl<D> Default for TokenTree<D> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), by_first_token: HashMap::new(), tokens: 0 }
    }
}

impl<D: NodeData> TokenTree<D> {
    /// The node, which must be in the tree.
    pub fn node(&self, id: NodeId) -> &Node<D> {
        match self.nodes.get(id) {
            Some(Some(node)) => node,
            _ => unreachable!("node {id} is not in the tree"),
        }
    }

    pub fn node_mut(&mut self, id: NodeId) -> &mut Node<D> {
        match self.nodes.get_mut(id) {
            Some(Some(node)) => node,
            _ => unreachable!("node {id} is not in the tree"),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node<D>)> {
        self.nodes.iter().enumerate().filter_map(|(id, node)| node.as_ref().map(|node| (id, node)))
    }

    /// Distinct tokens.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Nodes from the root to `id`.
    pub fn path(&self, id: NodeId) -> Vec<NodeId> {
        let mut path: Vec<NodeId> = std::iter::successors(Some(id), |id| self.node(*id).parent.node()).collect();
        path.reverse();
        path
    }

    /// The tokens from the root to the end of `id`.
    pub fn ids(&self, id: NodeId) -> Vec<TokenId> {
        self.path(id).into_iter().flat_map(|id| self.node(id).tokens.iter().copied()).collect()
    }

    /// Merges `tokens` below the end of `parent`; returns the node that ends with the last of them (`parent` itself for
    /// none). Nodes are split where the tokens part from them or end inside them.
    pub fn insert(&mut self, parent: Parent, tokens: &[TokenId]) -> Parent {
        let (mut parent, mut rest) = (parent, tokens);
        while let Some(first) = rest.first() {
            let Some(&child) = self.by_first_token.get(&(parent, *first)) else {
                return Parent::Node(self.push(parent, rest.to_vec()));
            };
            let node = self.node(child);
            let common = node.tokens.iter().zip(rest).take_while(|(a, b)| a == b).count();
            parent = Parent::Node(if common < node.tokens.len() { self.split(child, common) } else { child });
            rest = &rest[common..];
        }
        parent
    }

    /// Cuts node `id` after its first `keep` tokens, at least one and not all. `id` stays the lower part, so that its
    /// children and the prompts that end with it need not change; returns the new upper part.
    pub fn split(&mut self, id: NodeId, keep: usize) -> NodeId {
        let node = self.node_mut(id);
        let lower = node.tokens.split_off(keep);
        let upper_tokens = std::mem::replace(&mut node.tokens, lower);
        let upper_data = node.data.split(keep);
        let (parent, first_of_lower) = (node.parent, node.tokens[0]);
        node.start += keep;
        self.tokens -= keep;
        let upper = self.push(parent, upper_tokens);
        if let Parent::Node(parent) = parent {
            // The upper part takes the place of the lower.
            self.node_mut(parent).children -= 1;
        }
        let node = self.node_mut(upper);
        node.data = upper_data;
        node.children = 1;
        self.node_mut(id).parent = Parent::Node(upper);
        self.by_first_token.insert((Parent::Node(upper), first_of_lower), id);
        upper
    }

    /// Takes a node without children out of the tree.
    pub fn remove(&mut self, id: NodeId) -> Option<Node<D>> {
        let node = self.nodes.get_mut(id)?.take()?;
        debug_assert_eq!(node.children, 0);
        self.free.push(id);
        self.tokens -= node.tokens.len();
        self.by_first_token.remove(&(node.parent, node.tokens[0]));
        if let Parent::Node(parent) = node.parent {
            self.node_mut(parent).children -= 1;
        }
        Some(node)
    }

    fn push(&mut self, parent: Parent, tokens: Vec<TokenId>) -> NodeId {
        let mut start = 0;
        if let Parent::Node(parent) = parent {
            let parent = self.node_mut(parent);
            parent.children += 1;
            start = parent.end();
        }
        self.tokens += tokens.len();
        let id = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            self.nodes.len() - 1
        });
        self.by_first_token.insert((parent, tokens[0]), id);
        self.nodes[id] = Some(Node { parent, start, tokens, children: 0, data: D::default() });
        id
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn prompts() -> impl Strategy<Value = Vec<Vec<u32>>> {
        prop::collection::vec(prop::collection::vec(0u32..3, 1..9), 1..12)
    }

    fn start() -> Parent {
        Parent::Start(Realm::default())
    }

    fn tree(prompts: &[Vec<u32>]) -> (TokenTree, Vec<NodeId>) {
        let mut tree = TokenTree::default();
        let ends = prompts.iter().map(|prompt| tree.insert(start(), prompt).node().unwrap()).collect();
        (tree, ends)
    }

    fn check(tree: &TokenTree) {
        for (id, node) in tree.iter() {
            assert_eq!(node.start, node.parent.node().map_or(0, |parent| tree.node(parent).end()));
            assert_eq!(node.children, tree.iter().filter(|(_, other)| other.parent == Parent::Node(id)).count());
            assert!(!node.tokens.is_empty());
        }
        assert_eq!(tree.tokens(), tree.iter().map(|(_, node)| node.tokens.len()).sum::<usize>());
    }

    proptest! {
        #[test]
        fn every_prompt_is_its_path_and_every_prefix_is_stored_once(prompts in prompts()) {
            let (tree, ends) = tree(&prompts);
            check(&tree);
            for (end, prompt) in ends.into_iter().zip(&prompts) {
                prop_assert_eq!(&tree.ids(end), prompt);
            }
            let prefixes: HashSet<&[u32]> = prompts.iter().flat_map(|p| (1..=p.len()).map(|n| &p[..n])).collect();
            prop_assert_eq!(tree.tokens(), prefixes.len());
        }

        #[test]
        fn what_is_merged_in_parts_is_what_is_merged_at_once(prompts in prompts(), cut in 0usize..9) {
            let (whole, _) = tree(&prompts);
            let mut parts = TokenTree::<()>::default();
            for prompt in &prompts {
                let cut = cut.min(prompt.len());
                let middle = parts.insert(start(), &prompt[..cut]);
                let end = parts.insert(middle, &prompt[cut..]).node().unwrap();
                prop_assert_eq!(&parts.ids(end), prompt);
            }
            check(&parts);
            prop_assert_eq!(parts.tokens(), whole.tokens());
        }

        #[test]
        fn realms_share_nothing(prompts in prompts()) {
            let (one, _) = tree(&prompts);
            let mut tree = TokenTree::<()>::default();
            let realms = ["a", "b", ""].map(Realm::of);
            let mut ends = Vec::new();
            for prompt in &prompts {
                for realm in realms {
                    ends.push((realm, tree.insert(Parent::Start(realm), prompt).node().unwrap(), prompt));
                }
            }
            check(&tree);
            prop_assert_eq!(tree.tokens(), realms.len() * one.tokens());
            for (realm, end, prompt) in ends {
                prop_assert_eq!(&tree.ids(end), prompt);
                prop_assert_eq!(tree.node(tree.path(end)[0]).parent, Parent::Start(realm));
            }
        }

        #[test]
        fn removing_leaves_keeps_the_rest(prompts in prompts(), order in any::<u64>()) {
            let (mut tree, ends) = tree(&prompts);
            let mut order = order;
            while tree.iter().next().is_some() {
                let leaves: Vec<_> = tree.iter().filter(|(_, node)| node.children == 0).map(|(id, _)| id).collect();
                let leaf = leaves[order as usize % leaves.len()];
                order = order.rotate_left(7) ^ 0x9e37;
                tree.remove(leaf).unwrap();
                check(&tree);
                for (end, prompt) in ends.iter().zip(&prompts) {
                    if tree.iter().any(|(id, _)| id == *end) {
                        prop_assert_eq!(&tree.ids(*end), prompt);
                    }
                }
            }
            prop_assert_eq!(tree.tokens(), 0);
        }
    }
}
