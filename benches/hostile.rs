//! Can a text stall the tokenizer? Time of texts that are made to be slow, from 4 to 256 KiB.
//!
//! `cargo bench --bench hostile [-- --rounds N --only TEXT]` takes each text as a user's message through everything that
//! happens before the model (breaking of control tokens, chat template, pre-tokenization, merges, checks), under the
//! rules of every supported family, with the default backbone's vocabulary. Progress goes to standard error, one JSON
//! object to standard output: the best of the rounds in ms, and the slope of log time over log size by least squares.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// The generator of models that the tests use: it writes the default backbone's tokenizer with other rules.
#[path = "../tests/support/hostile.rs"]
mod texts;
#[allow(dead_code)]
#[path = "../tests/support/tiny.rs"]
mod tiny;

use std::time::Instant;

use candle_core::quantized::gguf_file::Value;
use prism_judge::model::{ChatMessage, Gguf, TextModel, registry};
use serde_json::json;
use tiny::Tiny;

const RULES: [&str; 4] = ["smollm", "gpt-2", "llama-bpe", "qwen2"];
const KIB: [usize; 7] = [4, 8, 16, 32, 64, 128, 256];

/// The promise (docs/promises.md): no family is steeper, and no text of 64 KiB takes longer.
const STEEPEST: f64 = 1.15;
const SLOWEST_MS: f64 = 250.0;

fn main() {
    let (rounds, only) = options();
    let backbone = registry::resolve(registry::DEFAULT_MODEL).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut results = Vec::new();
    let (mut steepest, mut slowest) = (f64::NEG_INFINITY, 0.0_f64);
    for rules in RULES {
        let mut tiny = Tiny::speaking_as(&backbone, 1);
        tiny.set("tokenizer.ggml.pre", Value::String(rules.to_owned()));
        tiny.write(file.path());
        let model = TextModel::from_gguf(&Gguf::open(file.path()).unwrap()).unwrap();
        for (family, make) in texts::FAMILIES.iter().filter(|(family, _)| family.contains(&only)) {
            let times: Vec<f64> = KIB.iter().map(|kib| best_ms(&model, &make(kib << 10), rounds)).collect();
            let slope = slope(&KIB.map(|kib| kib as f64), &times);
            eprintln!("{rules:<10} {family:<24} slope {slope:.3}, 64 KiB {:.1} ms", times[4]);
            (steepest, slowest) = (steepest.max(slope), slowest.max(times[4]));
            results.push(json!({ "rules": rules, "family": family, "kib": KIB, "ms": times, "slope": slope }));
        }
    }
    let kept = steepest <= STEEPEST && slowest <= SLOWEST_MS;
    let promise = json!({ "slope": STEEPEST, "ms_at_64_kib": SLOWEST_MS, "kept": kept });
    println!(
        "{}",
        json!({ "steepest": steepest, "slowest_ms_at_64_kib": slowest, "promise": promise, "texts": results })
    );
}

/// The best of so many rounds, in milliseconds; each in a session of its own, which remembers nothing.
fn best_ms(model: &TextModel, text: &str, rounds: usize) -> f64 {
    let round = || {
        let start = Instant::now();
        let tokens = model.prompt(&[ChatMessage { role: "user", text }]).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        assert!(!tokens.ids.is_empty());
        1e3 * seconds
    };
    (0..rounds).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn slope(sizes: &[f64], times: &[f64]) -> f64 {
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let (x, y) = (logs(sizes), logs(times));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_x, mean_y) = (mean(&x), mean(&y));
    let over = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    over / x.iter().map(|x| (x - mean_x).powi(2)).sum::<f64>()
}

/// `--rounds N` and `--only TEXT`; cargo adds `--bench`.
fn options() -> (usize, String) {
    let (mut rounds, mut only) = (5, String::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => rounds = arguments.next().unwrap().parse().unwrap(),
            "--only" => only = arguments.next().unwrap(),
            "--bench" => {}
            other => panic!("unknown argument {other}; there are --rounds N and --only TEXT"),
        }
    }
    (rounds, only)
}
