//! Keys and values of a run of tokens, all layers, in the layout that attention reads.

use std::ops::Range;

use super::DecoderConfig;
use super::kernels::LANES;

/// Rows of keys and values are padded to whole vectors of the widest kernel.
const PAD: usize = LANES;

/// K/V of one run of consecutive tokens on one path.
pub struct KvBlock {
    tokens: usize,
    padded: usize,
    head_dim: usize,
    kv_heads: usize,
    /// `[layer][kv head][head dim][padded tokens]`: transposed, so that scores come out token by token. One vector more
    /// than that, since a vector of keys may begin at any token.
    keys: Vec<f32>,
    /// `[layer][kv head][tokens][value width]`.
    values: Vec<f32>,
}

impl KvBlock {
    /// An empty block for `tokens` tokens (at least one).
    pub fn new(config: &DecoderConfig, tokens: usize) -> Self {
        let padded = padded(tokens);
        let heads = config.layers * config.kv_heads;
        Self {
            tokens,
            padded,
            head_dim: config.head_dim,
            kv_heads: config.kv_heads,
            keys: vec![0.0; heads * config.head_dim * padded + PAD],
            values: vec![0.0; heads * config.head_dim.next_multiple_of(PAD) * tokens],
        }
    }

    /// Memory of the keys and values.
    pub fn bytes(&self) -> usize {
        size_of_val(self.keys.as_slice()) + size_of_val(self.values.as_slice())
    }

    /// The block as two, copied: the first `at` tokens and the rest, at least one each.
    pub fn split(&self, at: usize) -> (Self, Self) {
        assert!((1..self.tokens).contains(&at), "a block of {} tokens cannot be cut at {at}", self.tokens);
        (self.part(0..at), self.part(at..self.tokens))
    }

    fn part(&self, range: Range<usize>) -> Self {
        let padded = padded(range.len());
        let rows = &self.keys[..self.keys.len() - PAD];
        let mut keys = Vec::with_capacity(rows.len() / self.padded * padded + PAD);
        for row in rows.chunks_exact(self.padded) {
            keys.extend_from_slice(&row[range.clone()]);
            keys.resize(keys.len() + padded - range.len(), 0.0);
        }
        keys.resize(keys.len() + PAD, 0.0);
        let width = self.value_width();
        let mut values = Vec::with_capacity(self.values.len() / self.tokens * range.len());
        for head in self.values.chunks_exact(self.tokens * width) {
            values.extend_from_slice(&head[range.start * width..range.end * width]);
        }
        Self { tokens: range.len(), padded, head_dim: self.head_dim, kv_heads: self.kv_heads, keys, values }
    }

    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Tokens with padding: the stride of the transposed keys.
    pub fn padded(&self) -> usize {
        self.padded
    }

    /// Distance of two tokens' values: the head dimension in whole vectors.
    pub fn value_width(&self) -> usize {
        self.head_dim.next_multiple_of(PAD)
    }

    /// Transposed keys of one head, `[head dim, padded]`, and one vector more to read beyond them.
    pub fn keys(&self, layer: usize, head: usize) -> &[f32] {
        let size = self.head_dim * self.padded;
        &self.keys[(layer * self.kv_heads + head) * size..][..size + PAD]
    }

    /// Values of one head: `[tokens, value width]`.
    pub fn values(&self, layer: usize, head: usize) -> &[f32] {
        let size = self.value_width() * self.tokens;
        &self.values[(layer * self.kv_heads + head) * size..][..size]
    }

    /// The keys and values of each head of one layer, to be filled by `store`.
    pub fn heads_mut(&mut self, layer: usize) -> impl Iterator<Item = (&mut [f32], &mut [f32])> {
        let (keys, values) = (self.head_dim * self.padded, self.value_width() * self.tokens);
        let skip = layer * self.kv_heads;
        let keys = self.keys.chunks_exact_mut(keys).skip(skip);
        keys.zip(self.values.chunks_exact_mut(values).skip(skip)).take(self.kv_heads)
    }
}

/// An odd number of vectors: rows that lie a power of two apart would share a few places of the nearest cache.
fn padded(tokens: usize) -> usize {
    (tokens.div_ceil(PAD) | 1) * PAD
}

/// Files one head of a run: `rows` yields the rotated key and the value of each token.
pub fn store<'a>(
    keys: &mut [f32],
    values: &mut [f32],
    padded: usize,
    rows: impl Iterator<Item = (&'a [f32], &'a [f32])>,
) {
    let width = (keys.len() / padded).next_multiple_of(PAD);
    for ((token, (key, value)), values) in rows.enumerate().zip(values.chunks_exact_mut(width)) {
        for (keys, key) in keys.chunks_exact_mut(padded).zip(key) {
            keys[token] = *key;
        }
        values[..value.len()].copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> DecoderConfig {
        DecoderConfig {
            architecture: "llama".to_owned(),
            layers: 2,
            hidden: 12,
            feed_forward: 8,
            heads: 2,
            kv_heads: 2,
            head_dim: 6,
            vocabulary: 4,
            context_length: 64,
            rope_theta: 1e4,
            norm_epsilon: 1e-5,
        }
    }

    /// A block whose numbers name layer, head, token and dimension.
    fn block(range: Range<usize>) -> KvBlock {
        let config = config();
        let mut block = KvBlock::new(&config, range.len());
        let padded = block.padded();
        for layer in 0..config.layers {
            for (head, (keys, values)) in block.heads_mut(layer).enumerate() {
                let row = |token: usize, side: usize| -> Vec<f32> {
                    let at = ((side * 10 + layer) * 10 + head) * 100 + token;
                    (0..config.head_dim).map(|dim| (at * 10 + dim) as f32).collect()
                };
                let rows: Vec<_> = range.clone().map(|token| (row(token, 1), row(token, 2))).collect();
                store(keys, values, padded, rows.iter().map(|(key, value)| (key.as_slice(), value.as_slice())));
            }
        }
        block
    }

    #[test]
    fn the_halves_of_a_block_are_the_blocks_of_its_tokens() {
        for (tokens, at) in [(2, 1), (17, 1), (17, 16), (40, 16), (40, 23), (33, 32)] {
            let (first, rest) = block(0..tokens).split(at);
            for (half, expected) in [(first, block(0..at)), (rest, block(at..tokens))] {
                assert_eq!((half.tokens(), half.bytes()), (expected.tokens(), expected.bytes()));
                for (layer, head) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    assert_eq!(half.keys(layer, head), expected.keys(layer, head), "{tokens} tokens at {at}");
                    assert_eq!(half.values(layer, head), expected.values(layer, head), "{tokens} tokens at {at}");
                }
            }
        }
    }
}
