//! A tiny Llama of seeded weights as a GGUF file, and the same model computed plainly in f64.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use prism_judge::model::{Decoder, Gguf, ModelError};
use prism_judge::numerics::Numerics;

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub layers: usize,
    pub hidden: usize,
    pub feed_forward: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub vocabulary: usize,
    pub context: usize,
    /// Whether the head is the embedding.
    pub tied: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            layers: 2,
            hidden: 48,
            feed_forward: 80,
            heads: 4,
            kv_heads: 2,
            head_dim: 16,
            vocabulary: 160,
            context: 4096,
            tied: true,
        }
    }
}

pub const THETA: f32 = 10_000.0;
pub const EPSILON: f32 = 1e-5;

/// Metadata and tensors, to be changed before they are written. Tensors are `[outputs, inputs]`, rows of query and key
/// heads in the order of GGUF: neighbours are rotated together.
#[derive(Clone)]
pub struct Tiny {
    pub shape: Shape,
    pub metadata: Vec<(String, Value)>,
    pub tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Tiny {
    pub fn new(shape: Shape, seed: u64) -> Self {
        let Shape { layers, hidden, feed_forward, heads, kv_heads, head_dim, vocabulary, context, tied } = shape;
        let mut random = Random(seed);
        let mut tensors = BTreeMap::new();
        let mut projection = |name: String, outputs: usize, inputs: usize, scale: f64| {
            let scale = scale / (inputs as f64).sqrt();
            let data = (0..outputs * inputs).map(|_| (random.next() * scale) as f32).collect();
            tensors.insert(name, (vec![outputs, inputs], data));
        };
        projection("token_embd.weight".to_owned(), vocabulary, hidden, 3.0);
        if !tied {
            projection("output.weight".to_owned(), vocabulary, hidden, 3.0);
        }
        for layer in 0..layers {
            for (part, outputs, inputs) in [
                ("attn_q", heads * head_dim, hidden),
                ("attn_k", kv_heads * head_dim, hidden),
                ("attn_v", kv_heads * head_dim, hidden),
                ("attn_output", hidden, heads * head_dim),
                ("ffn_gate", feed_forward, hidden),
                ("ffn_up", feed_forward, hidden),
                ("ffn_down", hidden, feed_forward),
            ] {
                projection(format!("blk.{layer}.{part}.weight"), outputs, inputs, 2.0);
            }
        }
        let norms = (0..layers).flat_map(|layer| ["attn_norm", "ffn_norm"].map(|part| format!("blk.{layer}.{part}")));
        for name in norms.chain(["output_norm".to_owned()]) {
            let data = (0..hidden).map(|_| (1.0 + 0.3 * random.next()) as f32).collect();
            tensors.insert(format!("{name}.weight"), (vec![hidden], data));
        }
        let mut metadata = vec![("general.architecture".to_owned(), Value::String("llama".to_owned()))];
        for (key, value) in [
            ("embedding_length", hidden),
            ("block_count", layers),
            ("feed_forward_length", feed_forward),
            ("attention.head_count", heads),
            ("attention.head_count_kv", kv_heads),
            ("attention.key_length", head_dim),
            ("context_length", context),
        ] {
            metadata.push((format!("llama.{key}"), Value::U32(value as u32)));
        }
        metadata.push(("llama.rope.freq_base".to_owned(), Value::F32(THETA)));
        metadata.push(("llama.attention.layer_norm_rms_epsilon".to_owned(), Value::F32(EPSILON)));
        Self { shape, metadata, tensors }
    }

    /// A model that tokenises and converses as the one at `path` does, and knows nothing.
    pub fn speaking_as(path: &Path, seed: u64) -> Self {
        let content = gguf_file::Content::read(&mut File::open(path).unwrap()).unwrap();
        let vocabulary = match &content.metadata["tokenizer.ggml.tokens"] {
            Value::Array(tokens) => tokens.len(),
            other => panic!("tokens are {other:?}"),
        };
        let mut tiny = Self::new(Shape { vocabulary, context: 8192, ..Shape::default() }, seed);
        let of_text = content.metadata.into_iter().filter(|(key, _)| key.starts_with("tokenizer."));
        tiny.metadata.extend(of_text);
        tiny
    }

    pub fn values(&self, name: &str) -> &[f32] {
        &self.tensors[name].1
    }

    pub fn values_mut(&mut self, name: &str) -> &mut [f32] {
        &mut self.tensors.get_mut(name).unwrap().1
    }

    /// Multiplies the embedding of one token.
    pub fn scale_embedding(&mut self, token: u32, factor: f32) {
        let hidden = self.shape.hidden;
        let row = &mut self.values_mut("token_embd.weight")[token as usize * hidden..][..hidden];
        row.iter_mut().for_each(|value| *value *= factor);
    }

    pub fn set(&mut self, key: &str, value: Value) {
        self.metadata.iter_mut().find(|(name, _)| name == key).unwrap().1 = value;
    }

    pub fn write(&self, path: &Path) {
        let quantise = |(shape, data): &(Vec<usize>, Vec<f32>)| {
            let tensor = Tensor::from_slice(data, shape.as_slice(), &Device::Cpu).unwrap();
            QTensor::quantize(&tensor, GgmlDType::F32).unwrap()
        };
        let tensors: Vec<_> = self.tensors.iter().map(|(name, tensor)| (name.as_str(), quantise(tensor))).collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let metadata: Vec<_> = self.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
    }

    pub fn load(&self, threads: usize) -> Result<Decoder, ModelError> {
        self.load_in(Numerics::F32, threads)
    }

    fn load_in(&self, numerics: Numerics, threads: usize) -> Result<Decoder, ModelError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        self.write(file.path());
        Decoder::load(&Gguf::open(file.path())?, numerics, threads)
    }

    pub fn decoder(&self, threads: usize) -> Decoder {
        self.decoder_in(Numerics::F32, threads)
    }

    pub fn decoder_in(&self, numerics: Numerics, threads: usize) -> Decoder {
        self.load_in(numerics, threads).unwrap()
    }

    /// Log-probabilities of every token after every position of `ids`: the textbook, one number at a time, in f64.
    pub fn log_probs(&self, ids: &[u32]) -> Vec<Vec<f64>> {
        let Shape { layers, hidden, heads, kv_heads, head_dim, .. } = self.shape;
        let embedding = self.values("token_embd.weight");
        let mut states: Vec<Vec<f64>> =
            ids.iter().map(|id| to_f64(&embedding[*id as usize * hidden..][..hidden])).collect();
        for layer in 0..layers {
            let weight = |part: &str| self.values(&format!("blk.{layer}.{part}.weight"));
            let normed: Vec<_> = states.iter().map(|x| rms_norm(x, weight("attn_norm"))).collect();
            let project = |part: &str| normed.iter().map(|x| times(weight(part), x)).collect::<Vec<_>>();
            let (mut queries, mut keys, values) = (project("attn_q"), project("attn_k"), project("attn_v"));
            for rows in [&mut queries, &mut keys] {
                rows.iter_mut().enumerate().for_each(|(position, row)| rotate(row, head_dim, position));
            }
            for (position, query) in queries.iter().enumerate() {
                let mut attended = Vec::with_capacity(heads * head_dim);
                for head in 0..heads {
                    let shared = head / (heads / kv_heads) * head_dim;
                    let query = &query[head * head_dim..][..head_dim];
                    let scores = keys[..=position].iter().map(|key| {
                        let products = query.iter().zip(&key[shared..][..head_dim]).map(|(q, k)| q * k);
                        products.sum::<f64>() / (head_dim as f64).sqrt()
                    });
                    let weights: Vec<f64> = log_softmax(&scores.collect::<Vec<_>>()).iter().map(|x| x.exp()).collect();
                    for at in shared..shared + head_dim {
                        attended.push(weights.iter().zip(&values).map(|(weight, value)| weight * value[at]).sum());
                    }
                }
                add(&mut states[position], &times(weight("attn_output"), &attended));
            }
            for state in &mut states {
                let normed = rms_norm(state, weight("ffn_norm"));
                let (gate, up) = (times(weight("ffn_gate"), &normed), times(weight("ffn_up"), &normed));
                let gated: Vec<f64> = gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
                add(state, &times(weight("ffn_down"), &gated));
            }
        }
        let head = self.values(if self.shape.tied { "token_embd.weight" } else { "output.weight" });
        let norm = self.values("output_norm.weight");
        states.iter().map(|state| log_softmax(&times(head, &rms_norm(state, norm)))).collect()
    }
}

fn to_f64(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

fn times(matrix: &[f32], x: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum()).collect()
}

fn add(to: &mut [f64], what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += what);
}

fn rms_norm(x: &[f64], weight: &[f32]) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().zip(weight).map(|(x, weight)| x / (mean + f64::from(EPSILON)).sqrt() * f64::from(*weight)).collect()
}

fn rotate(row: &mut [f64], dim: usize, position: usize) {
    for head in row.chunks_exact_mut(dim) {
        for (pair, values) in head.chunks_exact_mut(2).enumerate() {
            let angle = position as f64 * f64::from(THETA).powf(-(2.0 * pair as f64) / dim as f64);
            let (x, y) = (values[0], values[1]);
            values[0] = x * angle.cos() - y * angle.sin();
            values[1] = x * angle.sin() + y * angle.cos();
        }
    }
}

pub fn log_softmax(scores: &[f64]) -> Vec<f64> {
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum = scores.iter().map(|score| (score - max).exp()).sum::<f64>().ln();
    scores.iter().map(|score| score - max - sum).collect()
}

/// SplitMix64, uniform with mean 0 and variance 1.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    fn next(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0) * 3f64.sqrt()
    }
}
