//! Scores over the whole vocabulary, reduced to what was asked for while they are in the cache.
//!
//! The head is the largest matrix of a small backbone, so that a block of its rows is read once for many states. The
//! cut of the vocabulary into blocks depends on its size alone: neither other rows nor threads change a bit.

use rayon::ThreadPool;
use rayon::prelude::*;

use super::TokenId;
use super::kernels::{LANES, max_and_exp_sum};
use super::matmul::{Layout, MIN_ROWS, MIN_SHARE, Operand, Output, Rows, Shape, multiply};

/// Tokens of the vocabulary whose scores one thread holds at a time, about.
const BLOCK: usize = 1024;
const _: () = assert!(BLOCK >= MIN_SHARE);

/// Rows that are scored together, at most: bounds the memory of the scores.
const ROWS: usize = 512;

/// Scores of one row over the whole vocabulary, reduced to what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RowScores {
    /// Raw scores of the targets, in the order asked.
    pub scores: Vec<f32>,
    /// Log of the sum of exponentials over the vocabulary.
    pub log_sum_exp: f32,
}

/// What one block of the vocabulary says of one row.
struct BlockScores {
    max: f32,
    /// Sum of `exp(score - max)`.
    sum: f64,
    /// Place in the row's targets, and score.
    found: Vec<(usize, f32)>,
}

/// Scores each row of `states` (`[row][width]`, normed, and one row more) against `head`, `[vocabulary,
/// width]`, for the targets of each row.
pub fn score(
    pool: &ThreadPool,
    head: &[f32],
    width: usize,
    states: &[f32],
    targets: &[Vec<TokenId>],
) -> Vec<RowScores> {
    let batches = targets.chunks(ROWS).enumerate();
    batches
        .flat_map(|(batch, targets)| score_batch(pool, head, width, &states[batch * ROWS * width..], targets))
        .collect()
}

fn score_batch(
    pool: &ThreadPool,
    head: &[f32],
    width: usize,
    states: &[f32],
    targets: &[Vec<TokenId>],
) -> Vec<RowScores> {
    let vocabulary = head.len() / width;
    assert!(targets.iter().flatten().all(|target| (*target as usize) < vocabulary), "a target is no token");
    let blocks = (vocabulary / BLOCK).max(1);
    let border = |block: usize| if block == blocks { vocabulary } else { vocabulary / LANES * block / blocks * LANES };
    let score_block = |scores: &mut Vec<f32>, block: usize| -> Vec<BlockScores> {
        let tokens = border(block)..border(block + 1);
        let shape = Shape { rows: targets.len().max(MIN_ROWS), inner: width, columns: tokens.len() };
        scores.resize(shape.rows * shape.columns, 0.0);
        multiply(
            shape,
            Rows { data: states, stride: width },
            Operand {
                data: &head[tokens.start * width..tokens.end * width],
                layout: Layout::ByOutput { stride: width },
            },
            Output { data: scores, stride: shape.columns, accumulate: false },
        );
        let reduce = |(scores, targets): (&[f32], &Vec<TokenId>)| {
            let (max, sum) = max_and_exp_sum(scores);
            let places = targets.iter().enumerate().filter(|(_, target)| tokens.contains(&(**target as usize)));
            let found = places.map(|(place, target)| (place, scores[*target as usize - tokens.start])).collect();
            BlockScores { max, sum, found }
        };
        scores.chunks_exact(shape.columns).zip(targets).map(reduce).collect()
    };
    let blocks: Vec<_> =
        pool.install(|| (0..blocks).into_par_iter().with_max_len(1).map_init(Vec::new, score_block).collect());
    targets
        .iter()
        .enumerate()
        .map(|(row, targets)| merge(blocks.iter().map(|block| &block[row]), targets.len()))
        .collect()
}

/// Joins the blocks of one row, in order.
fn merge<'a>(blocks: impl Iterator<Item = &'a BlockScores> + Clone, targets: usize) -> RowScores {
    let max = blocks.clone().fold(f32::NEG_INFINITY, |max, block| if block.max > max { block.max } else { max });
    let mut scores = vec![f32::NAN; targets];
    let mut sum = 0.0;
    for block in blocks {
        sum += block.sum * f64::from(block.max - max).exp();
        for (place, score) in &block.found {
            scores[*place] = *score;
        }
    }
    RowScores { scores, log_sum_exp: (f64::from(max) + sum.ln()) as f32 }
}
