//! The decoder against two implementations that we did not write, on the default backbone: candle-transformers' Llama
//! with the same dequantised weights, and the recorded log-probabilities of llama.cpp (scripts/peers/llama_cpp).
//!
//! `cargo test --release --test oracle -- --nocapture` prints the measured differences.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use candle_core::quantized::gguf_file::Content;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Config, Llama};
use prism_judge::engine::{Cancel, Prompt, Read, run};
use prism_judge::model::{Decoder, Gguf};
use prism_judge::numerics::Numerics;
use serde_json::Value;

/// What is read from one prompt: six labels after it, and each token of a reply inside it.
#[derive(Clone, Debug)]
struct Readings {
    labels: Vec<f64>,
    span: Vec<f64>,
}

/// One line of a file of golden values.
struct Case {
    ids: Vec<u32>,
    labels: Vec<u32>,
    span: Range<usize>,
    recorded: Readings,
}

fn cases(file: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let ids = |value: &Value| value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
    let numbers = |value: &Value| value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let place = |value: &Value| value.as_u64().unwrap() as usize;
    let cases: Vec<Case> = text
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            Case {
                ids: ids(&line["ids"]),
                labels: ids(&line["labels"]["ids"]),
                span: place(&line["span"]["start"])..place(&line["span"]["end"]),
                recorded: Readings {
                    labels: numbers(&line["labels"]["log_probs"]),
                    span: numbers(&line["span"]["log_probs"]),
                },
            }
        })
        .collect();
    assert_eq!(cases.len(), 50);
    assert!(cases.iter().all(|case| (50..=800).contains(&case.ids.len())));
    cases
}

const F32: &str = "smollm2_logprobs_f32.jsonl";
const QUANTISED: &str = "smollm2_logprobs.jsonl";

/// Our f32 engine on the 50 prompts, which are the same in both files. Made once for all tests.
fn ours(model: &Path) -> &'static [Readings] {
    static OURS: OnceLock<Vec<Readings>> = OnceLock::new();
    OURS.get_or_init(|| ours_in(Numerics::F32, model))
}

fn ours_in(numerics: Numerics, model: &Path) -> Vec<Readings> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let decoder = Decoder::load(&Gguf::open(model).unwrap(), numerics, threads).unwrap();
    let read = |case: Case| {
        let prompts = [
            Prompt { ids: case.ids.clone(), read: Read::Next(case.labels) },
            Prompt { ids: case.ids, read: Read::Span(case.span) },
        ];
        let answers = run(&decoder, &prompts, 512, &Cancel::default()).unwrap();
        let [labels, span] = answers.try_into().unwrap();
        Readings { labels: labels.unwrap().log_probs, span: span.unwrap().log_probs }
    };
    cases(F32).into_iter().map(read).collect()
}

/// Signed differences, ours minus theirs, in nats.
#[derive(Clone, Copy, Default)]
struct Differences {
    count: usize,
    sum: f64,
    squares: f64,
    worst: f64,
}

impl Differences {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut differences = Self::default();
        for (ours, theirs) in pairs {
            let difference = ours - theirs;
            assert!(difference.is_finite());
            differences.count += 1;
            differences.sum += difference;
            differences.squares += difference * difference;
            differences.worst = differences.worst.max(difference.abs());
        }
        assert!(differences.count > 0);
        differences
    }

    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    fn root_mean_square(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mean, rms) = (self.mean(), self.root_mean_square());
        write!(f, "{:>6} values  mean {mean:>+10.2e}  rms {rms:>9.2e}  worst {:>9.2e}", self.count, self.worst)
    }
}

/// Differences of labels, of span tokens, of the means of spans, and of the shares of the letters A, B and C.
struct Comparison {
    labels: Differences,
    tokens: Differences,
    span_means: Differences,
    shares: Differences,
}

impl Comparison {
    fn with_recorded(title: &str, ours: &[Readings], cases: &[Case]) -> Self {
        Self::new(title, ours.iter().zip(cases.iter().map(|case| &case.recorded)))
    }

    fn new<'a>(title: &str, pairs: impl Iterator<Item = (&'a Readings, &'a Readings)>) -> Self {
        let pairs: Vec<_> = pairs.collect();
        for (ours, theirs) in &pairs {
            assert_eq!((ours.labels.len(), ours.span.len()), (theirs.labels.len(), theirs.span.len()));
        }
        let both = |values: fn(&Readings) -> Vec<f64>| {
            Differences::of(pairs.iter().flat_map(|(ours, theirs)| values(ours).into_iter().zip(values(theirs))))
        };
        let mean = |readings: &Readings| vec![readings.span.iter().sum::<f64>() / readings.span.len() as f64];
        let comparison = Self {
            labels: both(|readings| readings.labels.clone()),
            tokens: both(|readings| readings.span.clone()),
            span_means: both(mean),
            shares: both(|readings| {
                let weights: Vec<f64> = readings.labels[..3].iter().map(|log_prob| log_prob.exp()).collect();
                weights.iter().map(|weight| weight / weights.iter().sum::<f64>()).collect()
            }),
        };
        println!("{title}");
        println!("  labels       {}", comparison.labels);
        println!("  span tokens  {}", comparison.tokens);
        println!("  span means   {}", comparison.span_means);
        println!("  shares       {}", comparison.shares);
        comparison
    }
}

/// candle-transformers' Llama on the file's dequantised weights.
struct Candle {
    llama: Llama,
    config: Config,
}

impl Candle {
    fn load(path: &Path) -> Self {
        let mut file = BufReader::new(File::open(path).unwrap());
        let content = Content::read(&mut file).unwrap();
        let mut tensor =
            |name: &str| content.tensor(&mut file, name, &Device::Cpu).unwrap().dequantize(&Device::Cpu).unwrap();
        let number = |name: &str| content.metadata[&format!("llama.{name}")].to_u32().unwrap() as usize;
        let float = |name: &str| content.metadata[&format!("llama.{name}")].to_f32().unwrap();
        let embedding = tensor("token_embd.weight");
        let config = Config {
            hidden_size: number("embedding_length"),
            intermediate_size: number("feed_forward_length"),
            vocab_size: embedding.dims()[0],
            num_hidden_layers: number("block_count"),
            num_attention_heads: number("attention.head_count"),
            num_key_value_heads: number("attention.head_count_kv"),
            use_flash_attn: false,
            rms_norm_eps: f64::from(float("attention.layer_norm_rms_epsilon")),
            rope_theta: float("rope.freq_base"),
            bos_token_id: None,
            eos_token_id: None,
            rope_scaling: None,
            max_position_embeddings: number("context_length"),
            tie_word_embeddings: true,
        };
        assert!(!content.tensor_infos.contains_key("output.weight"), "this test reads a tied head");
        let mut tensors = HashMap::from([
            ("model.embed_tokens.weight".to_owned(), embedding),
            ("model.norm.weight".to_owned(), tensor("output_norm.weight")),
        ]);
        for layer in 0..config.num_hidden_layers {
            for (theirs, name) in [
                ("input_layernorm", "attn_norm"),
                ("self_attn.q_proj", "attn_q"),
                ("self_attn.k_proj", "attn_k"),
                ("self_attn.v_proj", "attn_v"),
                ("self_attn.o_proj", "attn_output"),
                ("post_attention_layernorm", "ffn_norm"),
                ("mlp.gate_proj", "ffn_gate"),
                ("mlp.up_proj", "ffn_up"),
                ("mlp.down_proj", "ffn_down"),
            ] {
                let mut weight = tensor(&format!("blk.{layer}.{name}.weight"));
                let heads = match name {
                    "attn_q" => Some(config.num_attention_heads),
                    "attn_k" => Some(config.num_key_value_heads),
                    _ => None,
                };
                if let Some(heads) = heads {
                    weight = half_split(&weight, heads);
                }
                tensors.insert(format!("model.layers.{layer}.{theirs}.weight"), weight);
            }
        }
        let llama = Llama::load(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu), &config).unwrap();
        Self { llama, config }
    }

    /// The labels after the prompt, and the tokens of the span if it is wanted. candle gives the logits of the last
    /// token it is fed, so that a span is fed token by token.
    fn read(&self, case: &Case, with_span: bool) -> Readings {
        let mut cache = Cache::new(true, DType::F32, &self.config, &Device::Cpu).unwrap();
        let mut feed = |range: Range<usize>| -> Vec<f64> {
            let ids = Tensor::new(&case.ids[range.clone()], &Device::Cpu).unwrap().unsqueeze(0).unwrap();
            let logits = self.llama.forward(&ids, range.start, &mut cache).unwrap();
            log_softmax(&logits.flatten_all().unwrap().to_vec1::<f32>().unwrap())
        };
        let mut span = Vec::new();
        let mut fed = 0;
        if with_span {
            for target in case.span.clone() {
                span.push(feed(fed..target)[case.ids[target] as usize]);
                fed = target;
            }
        }
        let last = feed(fed..case.ids.len());
        Readings { labels: case.labels.iter().map(|id| last[*id as usize]).collect(), span }
    }
}

/// GGUF stores the rows of each head as pairs that are rotated together; candle rotates halves.
fn half_split(weight: &Tensor, heads: usize) -> Tensor {
    let rows = weight.dims()[0];
    let dim = rows / heads;
    let order: Vec<u32> = (0..rows)
        .map(|row| {
            let (head, at) = (row / dim, row % dim);
            (head * dim + if at < dim / 2 { 2 * at } else { 2 * (at - dim / 2) + 1 }) as u32
        })
        .collect();
    weight.index_select(&Tensor::new(order, &Device::Cpu).unwrap(), 0).unwrap()
}

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let max = logits.iter().fold(f64::NEG_INFINITY, |max, x| max.max(f64::from(*x)));
    let sum = logits.iter().map(|x| (f64::from(*x) - max).exp()).sum::<f64>().ln();
    logits.iter().map(|x| f64::from(*x) - max - sum).collect()
}

/// The bound. Measured: labels 3.3e-5, tokens 4.7e-5.
const CANDLE: f64 = 1e-4;

#[test]
fn labels_and_responses_agree_with_candle_on_the_same_weights() {
    let Some(model) = support::backbone() else { return };
    let (candle, cases) = (Candle::load(&model), cases(F32));
    let (mut labels, mut spans) = (Vec::new(), Vec::new());
    for (index, (case, ours)) in cases.iter().zip(ours(&model)).enumerate() {
        // Token by token is slow: the spans of eight prompts, from the shortest to the longest.
        let with_span = index % 7 == 0;
        let theirs = candle.read(case, with_span);
        labels.extend(ours.labels.iter().copied().zip(theirs.labels));
        if with_span {
            assert_eq!(theirs.span.len(), ours.span.len());
            spans.extend(ours.span.iter().copied().zip(theirs.span));
        }
    }
    assert_eq!(labels.len(), 300);
    let (labels, spans) = (Differences::of(labels.into_iter()), Differences::of(spans.into_iter()));
    println!("candle, same weights\n  labels       {labels}\n  span tokens  {spans}");
    assert!(labels.worst <= CANDLE, "labels: {labels}");
    assert!(spans.worst <= CANDLE, "span tokens: {spans}");
}

/// Measured: labels 4.6e-5, tokens 1.03e-4, means of spans 4.9e-6 (the file holds six decimals).
#[test]
fn labels_and_responses_agree_with_llama_cpp_on_f32_weights() {
    let Some(model) = support::backbone() else { return };
    let comparison = Comparison::with_recorded("llama.cpp, f32 weights", ours(&model), &cases(F32));
    for (differences, bound) in [(comparison.labels, 2e-4), (comparison.tokens, 2e-4), (comparison.span_means, 2e-5)] {
        assert!(differences.worst <= bound, "{differences}");
    }
}

/// llama.cpp rounds activations to 8 bits on this file. Means of spans, which the likelihood reads, keep the issue's
/// bound: mean 0.01, worst 0.05. Single labels and tokens cannot: llama.cpp itself is as far from its own f32 run as
/// we are, value for value (labels 0.12 nat root mean square, worst 0.47; tokens 0.09 and 0.89; means of spans 0.016
/// and 0.038; shares of A, B and C 0.017 and 0.08).
#[test]
fn quantised_llama_cpp_is_as_far_from_us_as_from_its_own_f32_run() {
    let Some(model) = support::backbone() else { return };
    let (exact, quantised) = (cases(F32), cases(QUANTISED));
    for (a, b) in exact.iter().zip(&quantised) {
        assert_eq!((&a.ids, &a.labels, &a.span), (&b.ids, &b.labels, &b.span));
    }
    let ours = Comparison::with_recorded("ours against llama.cpp with 8-bit activations", ours(&model), &quantised);
    let own = exact.iter().zip(&quantised).map(|(exact, quantised)| (&exact.recorded, &quantised.recorded));
    let own = Comparison::new("llama.cpp with f32 weights against itself with 8-bit activations", own);
    assert!(ours.span_means.mean().abs() <= 0.01 && ours.span_means.worst <= 0.05, "{}", ours.span_means);
    for (ours, own, root_mean_square, worst) in [
        (ours.labels, own.labels, 0.13, 0.5),
        (ours.tokens, own.tokens, 0.1, 0.95),
        (ours.span_means, own.span_means, 0.02, 0.05),
        (ours.shares, own.shares, 0.02, 0.09),
    ] {
        assert!(ours.mean().abs() <= 0.02 && ours.root_mean_square() <= root_mean_square, "{ours}");
        assert!(ours.worst <= worst, "{ours}");
        assert!((ours.root_mean_square() - own.root_mean_square()).abs() <= 2e-4, "{ours}; its own: {own}");
        assert!((ours.worst - own.worst).abs() <= 2e-4, "{ours}; its own: {own}");
    }
}

/// The yardstick is llama.cpp's own rounding of activations to 8 bits, its quantised run against its f32 run. Our int8
/// path keeps 16 bits and the file's weights as they are. Measured, root mean square / worst: labels 4.9e-4 / 1.8e-3,
/// tokens 3.3e-4 / 2.8e-3, means of spans 5.9e-5 / 1.8e-4, shares 5.0e-5 / 1.7e-4; llama.cpp's own are more
/// than 200 times as far.
#[test]
fn int8_is_far_closer_to_llama_cpp_in_f32_than_its_own_quantised_run() {
    let Some(model) = support::backbone() else { return };
    let (exact, quantised) = (cases(F32), cases(QUANTISED));
    let ours =
        Comparison::with_recorded("int8 against llama.cpp, f32 weights", &ours_in(Numerics::Int8, &model), &exact);
    let own = quantised.iter().zip(&exact).map(|(quantised, exact)| (&quantised.recorded, &exact.recorded));
    let own = Comparison::new("llama.cpp with 8-bit activations against itself with f32 weights", own);
    for (ours, own) in [
        (ours.labels, own.labels),
        (ours.tokens, own.tokens),
        (ours.span_means, own.span_means),
        (ours.shares, own.shares),
    ] {
        assert!(ours.root_mean_square() <= own.root_mean_square() / 100.0, "{ours}; its own: {own}");
        assert!(ours.worst <= own.worst / 100.0, "{ours}; its own: {own}");
    }
}
