//! Keys and values of a run of tokens, all layers, in the layout that attention reads.

use super::DecoderConfig;

/// Positions of a block are padded to a multiple of this, so that a product over them never takes gemm's other paths.
const PAD: usize = 16;

/// K/V of one run of consecutive tokens on one path.
pub struct KvBlock {
    tokens: usize,
    padded: usize,
    head_dim: usize,
    kv_heads: usize,
    /// `[layer][kv head][head dim][padded tokens]`: transposed, so that scores come out token by token.
    keys: Vec<f32>,
    /// `[layer][kv head][tokens][head dim]`.
    values: Vec<f32>,
}

impl KvBlock {
    /// An empty block for `tokens` tokens (at least one).
    pub fn new(config: &DecoderConfig, tokens: usize) -> Self {
        let padded = tokens.next_multiple_of(PAD);
        let heads = config.layers * config.kv_heads;
        Self {
            tokens,
            padded,
            head_dim: config.head_dim,
            kv_heads: config.kv_heads,
            keys: vec![0.0; heads * config.head_dim * padded],
            values: vec![0.0; heads * config.head_dim * tokens],
        }
    }

    /// Bytes of a block of `tokens` tokens.
    pub fn size(config: &DecoderConfig, tokens: usize) -> usize {
        let floats = config.layers * config.kv_heads * config.head_dim * (tokens.next_multiple_of(PAD) + tokens);
        floats * size_of::<f32>()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.keys.len() + self.values.len()) * size_of::<f32>()
    }

    /// Copies of the first `at` tokens (at least one, not all) and of the rest.
    pub fn split(&self, at: usize) -> (Self, Self) {
        (self.part(0, at), self.part(at, self.tokens))
    }

    fn part(&self, from: usize, to: usize) -> Self {
        let (tokens, padded, dim) = (to - from, (to - from).next_multiple_of(PAD), self.head_dim);
        let mut keys = vec![0.0; self.keys.len() / self.padded * padded];
        for (part, whole) in keys.chunks_exact_mut(padded).zip(self.keys.chunks_exact(self.padded)) {
            part[..tokens].copy_from_slice(&whole[from..to]);
        }
        let heads = self.values.chunks_exact(self.tokens * dim);
        let values = heads.flat_map(|head| &head[from * dim..to * dim]).copied().collect();
        Self { tokens, padded, head_dim: dim, kv_heads: self.kv_heads, keys, values }
    }

    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Tokens with padding: the stride of the transposed keys.
    pub fn padded(&self) -> usize {
        self.padded
    }

    /// Transposed keys of one head: `[head dim, padded]`.
    pub fn keys(&self, layer: usize, head: usize) -> &[f32] {
        let size = self.head_dim * self.padded;
        &self.keys[(layer * self.kv_heads + head) * size..][..size]
    }

    /// Values of one head: `[tokens, head dim]`.
    pub fn values(&self, layer: usize, head: usize) -> &[f32] {
        let size = self.head_dim * self.tokens;
        &self.values[(layer * self.kv_heads + head) * size..][..size]
    }

    /// The keys and values of each head of one layer, to be filled by `store`.
    pub fn heads_mut(&mut self, layer: usize) -> impl Iterator<Item = (&mut [f32], &mut [f32])> {
        let (keys, values) = (self.head_dim * self.padded, self.head_dim * self.tokens);
        let skip = layer * self.kv_heads;
        let keys = self.keys.chunks_exact_mut(keys).skip(skip);
        keys.zip(self.values.chunks_exact_mut(values).skip(skip)).take(self.kv_heads)
    }
}

/// Files one head of a run: `rows` yields the rotated key and the value of each token.
pub fn store<'a>(
    keys: &mut [f32],
    values: &mut [f32],
    padded: usize,
    rows: impl Iterator<Item = (&'a [f32], &'a [f32])>,
) {
    for ((token, (key, value)), values) in rows.enumerate().zip(values.chunks_exact_mut(keys.len() / padded)) {
        for (keys, key) in keys.chunks_exact_mut(padded).zip(key) {
            keys[token] = *key;
        }
        values.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_block_is_what_its_parts_hold() {
        let block = |tokens: usize, first: usize| {
            let padded = tokens.next_multiple_of(PAD);
            let (heads, dim) = (6, 4);
            let mut block = KvBlock {
                tokens,
                padded,
                head_dim: dim,
                kv_heads: 2,
                keys: vec![0.0; heads * dim * padded],
                values: vec![0.0; heads * dim * tokens],
            };
            for head in 0..heads {
                for (token, at) in (first..first + tokens).enumerate() {
                    for d in 0..dim {
                        let value = (at * 1000 + head * 10 + d) as f32;
                        block.keys[(head * dim + d) * padded + token] = value;
                        block.values[(head * tokens + token) * dim + d] = -value;
                    }
                }
            }
            block
        };
        for (tokens, at) in [(2, 1), (16, 15), (17, 16), (40, 3), (40, 33)] {
            let whole = block(tokens, 0);
            let (upper, lower) = whole.split(at);
            for (part, expected) in [(upper, block(at, 0)), (lower, block(tokens - at, at))] {
                assert_eq!((part.tokens, part.padded), (expected.tokens, expected.padded));
                assert_eq!((part.keys, part.values), (expected.keys, expected.values));
            }
        }
    }
}
