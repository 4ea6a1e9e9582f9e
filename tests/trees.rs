//! A token tree gives what each prompt alone gives, to the last bit: whatever the other prompts, their order, the size
//! of a chunk and the number of threads. What a prompt alone gives is checked against a plain f64 decoder.
//!
//! A failure prints the smallest set of prompts; proptest keeps its seed beside this file and tries it first.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashSet;

use prism_judge::engine::{Cancel, EngineError, Prompt, Read, Reading, run};
use prism_judge::model::{Decoder, Gguf};
use prism_judge::numerics::Numerics;
use proptest::prelude::*;
use support::tiny::{Random, Shape, Tiny};

const NUMERICS: [Numerics; 2] = [Numerics::F32, Numerics::Int8];

/// Tokens of a chunk when nothing else is said.
const CHUNK: usize = 512;

fn all(decoder: &Decoder, prompts: &[Prompt], chunk: usize) -> Vec<Result<Reading, EngineError>> {
    run(decoder, prompts, chunk, &Cancel::default()).unwrap()
}

fn bits(answer: &Result<Reading, EngineError>) -> Vec<u64> {
    answer.as_ref().unwrap().log_probs.iter().map(|value| value.to_bits()).collect()
}

fn alone(decoder: &Decoder, prompts: &[Prompt]) -> Vec<Vec<u64>> {
    prompts.iter().map(|prompt| bits(&all(decoder, std::slice::from_ref(prompt), CHUNK)[0])).collect()
}

/// Distinct prefixes after which something is read or that lead there, one by one.
fn distinct(prompts: &[Prompt]) -> usize {
    let seen = |prompt: &Prompt| match &prompt.read {
        Read::Next(_) => prompt.ids.len(),
        Read::Span(span) if span.is_empty() => 0,
        Read::Span(span) => span.end - 1,
    };
    let prefixes = prompts.iter().flat_map(|prompt| (1..=seen(prompt)).map(|length| &prompt.ids[..length]));
    prefixes.collect::<HashSet<_>>().len()
}

/// Heads that share keys and values in every way, narrow and wide, odd widths, own and tied heads.
fn shape() -> impl Strategy<Value = Shape> {
    let heads = prop::sample::select(vec![(1, 1), (2, 1), (2, 2), (3, 3), (4, 2), (6, 2), (9, 3), (8, 1), (8, 8)]);
    let head_dim = prop::sample::select(vec![8, 10, 16, 24, 32, 34, 48, 64]);
    (1..4usize, heads, head_dim, 65..140usize, 20..300usize, 144..400usize, any::<bool>()).prop_map(
        |(layers, (heads, kv_heads), head_dim, hidden, feed_forward, vocabulary, tied)| Shape {
            layers,
            hidden,
            feed_forward,
            heads,
            kv_heads,
            head_dim,
            vocabulary,
            context: 4096,
            tied,
        },
    )
}

/// One prompt: a part of an earlier one (or nothing), then tokens of its own, then what is read.
#[derive(Clone, Debug)]
struct Branch {
    parent: prop::sample::Index,
    /// Of the parent, in parts of eight.
    keep: usize,
    own: Vec<u32>,
    next: Option<Vec<u32>>,
    span: (prop::sample::Index, prop::sample::Index),
}

fn branches(longest: usize) -> impl Strategy<Value = Vec<Branch>> {
    let token = prop_oneof![4 => 0..4u32, 1 => 0..144u32];
    let own = prop::collection::vec(token, 0..longest);
    let next = prop::option::of(prop::collection::vec(0..144u32, 1..7));
    let branch =
        (any::<prop::sample::Index>(), 0..=8usize, own, next, any::<(prop::sample::Index, prop::sample::Index)>())
            .prop_map(|(parent, keep, own, next, span)| Branch { parent, keep, own, next, span });
    prop::collection::vec(branch, 1..10)
}

fn prompts(branches: &[Branch]) -> Vec<Prompt> {
    let mut prompts: Vec<Prompt> = Vec::new();
    for branch in branches {
        let mut ids = match prompts.as_slice() {
            [] => Vec::new(),
            some => {
                let parent = &some[branch.parent.index(some.len())].ids;
                parent[..parent.len() * branch.keep / 8].to_vec()
            }
        };
        ids.extend(&branch.own);
        if ids.is_empty() {
            ids.push(7);
        }
        let read = match &branch.next {
            None if ids.len() > 1 => {
                let ends = [&branch.span.0, &branch.span.1].map(|index| 1 + index.index(ids.len()));
                Read::Span(ends[0].min(ends[1])..ends[0].max(ends[1]))
            }
            next => Read::Next(next.clone().unwrap_or_else(|| vec![0, 143])),
        };
        prompts.push(Prompt { ids, read });
    }
    prompts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn a_tree_is_each_prompt_alone_for_any_chunk_size_and_number_of_threads(
        shape in shape(), seed in any::<u64>(), numerics in prop::sample::select(&NUMERICS), branches in branches(40)
    ) {
        let prompts = prompts(&branches);
        let tiny = Tiny::new(shape, seed);
        let expected = alone(&tiny.decoder_in(numerics, 1), &prompts);
        for threads in 1..=3 {
            let decoder = tiny.decoder_in(numerics, threads);
            for chunk in [1, 2, 3, 7, 16, CHUNK] {
                let answers = all(&decoder, &prompts, chunk);
                for (index, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
                    prop_assert_eq!(
                        &bits(answer), expected, "prompt {} with {} threads, chunks of {}", index, threads, chunk
                    );
                }
                let computed: usize = answers.iter().map(|answer| answer.as_ref().unwrap().computed).sum();
                prop_assert_eq!(computed, distinct(&prompts));
            }
        }
    }

    #[test]
    fn the_order_of_the_prompts_changes_no_bit(
        seed in any::<u64>(),
        numerics in prop::sample::select(&NUMERICS),
        chunk in prop::sample::select(vec![1, 5, 16, 64, CHUNK]),
        (branches, order) in branches(40).prop_flat_map(|branches| {
            let order: Vec<usize> = (0..branches.len()).collect();
            (Just(branches), Just(order).prop_shuffle())
        })
    ) {
        let prompts = prompts(&branches);
        let decoder = Tiny::new(Shape::default(), seed).decoder_in(numerics, 2);
        let expected: Vec<_> = all(&decoder, &prompts, CHUNK).iter().map(bits).collect();
        let shuffled: Vec<_> = order.iter().map(|index| prompts[*index].clone()).collect();
        for (answer, index) in all(&decoder, &shuffled, chunk).iter().zip(order) {
            prop_assert_eq!(&bits(answer), &expected[index]);
        }
    }

    #[test]
    fn the_decoder_is_the_textbook_in_f64(shape in shape(), seed in any::<u64>(), branches in branches(24)) {
        let prompts = prompts(&branches);
        let tiny = Tiny::new(shape, seed);
        for (prompt, answer) in prompts.iter().zip(all(&tiny.decoder(2), &prompts, 16)) {
            let exact = tiny.log_probs(&prompt.ids);
            let expected: Vec<f64> = match &prompt.read {
                Read::Next(targets) => targets.iter().map(|id| exact[prompt.ids.len() - 1][*id as usize]).collect(),
                Read::Span(span) => span.clone().map(|at| exact[at - 1][prompt.ids[at] as usize]).collect(),
            };
            let answer = answer.unwrap().log_probs;
            prop_assert_eq!(answer.len(), expected.len());
            for (ours, exact) in answer.iter().zip(expected) {
                prop_assert!((ours - exact).abs() <= 1e-4, "{} instead of {}", ours, exact);
            }
        }
    }
}

/// Paths around the places where sums over positions are cut, branching right there.
#[test]
fn long_paths_that_branch_around_512_and_1024_tokens_keep_their_bits() {
    let mut random = Random(5);
    let trunk: Vec<u32> = (0..1_100).map(|_| random.below(160) as u32).collect();
    let mut prompts = Vec::new();
    for at in [495, 511, 512, 513, 528, 1_023, 1_024, 1_025, 1_100] {
        prompts.push(Prompt { ids: trunk[..at].to_vec(), read: Read::Next(vec![1, 2, 3]) });
        let mut ids = trunk[..at].to_vec();
        ids.extend((0..20).map(|_| random.below(160) as u32));
        prompts.push(Prompt { ids, read: Read::Span(at - 5..at + 20) });
    }
    for shape in [Shape::default(), Shape { heads: 3, kv_heads: 3, head_dim: 64, hidden: 90, ..Shape::default() }] {
        let tiny = Tiny::new(shape, 11);
        let expected = alone(&tiny.decoder(1), &prompts);
        let exact = &tiny.log_probs(&prompts[16].ids)[1_099];
        for (ours, target) in expected[16].iter().zip([1, 2, 3]) {
            assert!((f64::from_bits(*ours) - exact[target]).abs() <= 1e-4);
        }
        for (threads, chunk) in [(1, 1), (2, 7), (3, 100), (1, 511), (2, 512), (2, 513), (3, 4_096)] {
            let answers = all(&tiny.decoder(threads), &prompts, chunk);
            let answers: Vec<_> = answers.iter().map(bits).collect();
            assert!(answers == expected, "{threads} threads, chunks of {chunk}, {shape:?}");
        }
    }
}

/// Attention reads tiles of 128 absolute positions: nodes that end and begin around their borders, deep paths of short
/// nodes that share a tile, and replies whose blocks of queries reach over several nodes.
#[test]
fn nodes_that_end_inside_and_around_tiles_of_attention_keep_their_bits() {
    let mut random = Random(23);
    let mut tokens = |count: usize| -> Vec<u32> { (0..count).map(|_| random.below(160) as u32).collect() };
    let trunk = tokens(200);
    let mut prompts = Vec::new();
    for at in [1, 15, 16, 17, 63, 64, 65, 80, 126, 127, 128, 129, 130, 191, 192, 193] {
        for own in [1, 2, 31, 64] {
            let ids = [&trunk[..at], &tokens(own)].concat();
            prompts.push(Prompt { read: Read::Span(at..ids.len()), ids: ids.clone() });
            prompts.push(Prompt { ids: [ids, tokens(3)].concat(), read: Read::Next(vec![1, 2, 3]) });
        }
    }
    for (heads, kv_heads, head_dim) in [(4, 2, 16), (3, 1, 64), (5, 1, 34), (2, 2, 10)] {
        let tiny = Tiny::new(Shape { heads, kv_heads, head_dim, ..Shape::default() }, 31);
        let expected = alone(&tiny.decoder(1), &prompts);
        for (threads, chunk) in [(1, 3), (2, 31), (3, 64), (2, 65), (3, CHUNK), (2, 4_096)] {
            let answers: Vec<_> = all(&tiny.decoder(threads), &prompts, chunk).iter().map(bits).collect();
            assert!(answers == expected, "{threads} threads, chunks of {chunk}, {heads} heads of {head_dim}");
        }
    }
}

/// gemm has another path for at most 256 results: no thread's share of a narrow head may fall into it.
#[test]
fn a_single_token_keeps_its_bits_however_the_threads_share_the_head() {
    let prompt = Prompt { ids: vec![7], read: Read::Next((0..144).collect()) };
    for vocabulary in [144, 160, 255, 256, 257, 287, 288, 300, 400] {
        let tiny = Tiny::new(Shape { vocabulary, ..Shape::default() }, 1);
        let expected = alone(&tiny.decoder(1), std::slice::from_ref(&prompt));
        for threads in [2, 3, 5] {
            let prompts = [prompt.clone(), Prompt { ids: vec![7, 3, 4], read: Read::Span(1..3) }];
            assert_eq!(alone(&tiny.decoder(threads), &prompts[..1]), expected, "{vocabulary} {threads}");
            assert_eq!(bits(&all(&tiny.decoder(threads), &prompts, CHUNK)[0]), expected[0], "{vocabulary} {threads}");
        }
    }
}

#[test]
fn one_token_an_empty_span_and_no_prompt_at_all_are_read() {
    let decoder = Tiny::new(Shape::default(), 3).decoder(2);
    assert_eq!(all(&decoder, &[], CHUNK), []);
    let one = Prompt { ids: vec![5], read: Read::Next(vec![9]) };
    let none = Prompt { ids: vec![5, 6], read: Read::Span(2..2) };
    let answers = all(&decoder, &[one.clone(), none.clone(), one], 1);
    assert_eq!(bits(&answers[0]), bits(&answers[2]));
    assert_eq!(bits(&answers[1]), Vec::<u64>::new());
    let computed: Vec<_> = answers.iter().map(|answer| answer.as_ref().unwrap().computed).collect();
    assert_eq!(computed, [1, 0, 0], "nothing is computed for nothing");
}

/// A handful of trees of ids that look like text to the real backbone.
#[test]
fn trees_of_the_real_backbone_are_each_prompt_alone() {
    let Some(path) = support::backbone() else { return };
    let gguf = Gguf::open(&path).unwrap();
    let mut random = Random(17);
    let mut tokens = |count: usize| -> Vec<u32> { (0..count).map(|_| 100 + random.below(40_000) as u32).collect() };
    let mut trees = Vec::new();
    for (trunk, branch, twig) in [(1, 1, 1), (30, 3, 17), (64, 16, 48), (90, 40, 2), (560, 30, 9)] {
        let trunk = tokens(trunk);
        let mut prompts = vec![Prompt { ids: trunk.clone(), read: Read::Next(vec![49, 50, 51]) }];
        for _ in 0..2 {
            let branch = [trunk.clone(), tokens(branch)].concat();
            for _ in 0..2 {
                let ids = [branch.clone(), tokens(twig)].concat();
                prompts.push(Prompt { ids: ids.clone(), read: Read::Next(vec![49, 50, 51]) });
                prompts.push(Prompt { read: Read::Span(trunk.len()..ids.len()), ids });
            }
            prompts.push(Prompt { read: Read::Next(vec![2]), ids: branch });
        }
        prompts.push(prompts[1].clone());
        trees.push(prompts);
    }
    for numerics in NUMERICS {
        let single = Decoder::load(&gguf, numerics, 1).unwrap();
        let expected: Vec<_> = trees.iter().map(|prompts| alone(&single, prompts)).collect();
        drop(single);
        for (threads, chunk) in [(2, CHUNK), (3, 37)] {
            let decoder = Decoder::load(&gguf, numerics, threads).unwrap();
            for (prompts, expected) in trees.iter().zip(&expected) {
                let answers: Vec<_> = all(&decoder, prompts, chunk).iter().map(bits).collect();
                assert!(answers == *expected, "{numerics:?}, {threads} threads, chunks of {chunk}");
            }
        }
    }
}
