//! Can one tenant tell by the time of its own calls what another one sent? (CVE-2025-46570)
//!
//! `cargo bench --bench tenants [-- --probes N]`: a victim sends either a secret or another text of its kind, by the toss
//! of a coin; a spy then asks about the secret and takes the time. The area under the curve (AUC) is the chance that the
//! spy's time for a secret that was sent is the shorter one of the two: 0.5 tells nothing, 1 tells all. The control is
//! the same spy with the victim's own name. The spy sits in the judge's process, without a network in between, on a small
//! model with the default backbone's tokenizer. Progress goes to standard error, one JSON object to standard output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// The generator of models that the tests use.
#[allow(dead_code)]
#[path = "../tests/support/tiny.rs"]
mod tiny;

use std::time::Instant;

use prism_judge::model::registry;
use prism_judge::numerics::Numerics;
use prism_judge::persona::{Persona, Polarity, Trait, TraitTarget};
use prism_judge::prism::{Candidate, EvidenceKind, Group, Turn};
use prism_judge::service::{
    AnswerSlot, CacheControl, CacheSettings, Call, EngineSettings, Judge, JudgeConfig, LimitSettings, OptionOverrides,
};
use serde_json::json;
use tiny::{Random, Shape, Tiny};

/// What the spy asks.
#[derive(Clone, Copy)]
enum Probe {
    /// The request that the victim may have sent: is there a verdict?
    Verdict,
    /// Another reply after the same context: are there keys and values?
    Prefix,
}

/// Who the spy is.
const ACROSS: &str = "spy";
const WITHIN: &str = "victim";

fn main() {
    let probes = probes();
    let judge = judge();
    let mut random = Random(5);
    let mut tables = Vec::new();
    for (name, probe) in [("verdict", Probe::Verdict), ("prefix", Probe::Prefix)] {
        for spy in [ACROSS, WITHIN] {
            let mut times: [Vec<f64>; 2] = Default::default();
            for _ in 0..probes {
                let sent = random.below(2) == 1;
                times[usize::from(sent)].push(one(&judge, &mut random, (probe, spy), sent));
            }
            let [not_sent, sent] = &times;
            let auc = auc(sent, not_sent);
            eprintln!(
                "{name:<8} {spy:<7} AUC {auc:.3}, median {:.3} ms sent, {:.3} ms not",
                median(sent),
                median(not_sent)
            );
            tables.push(json!({
                "probe": name, "spy": if spy == ACROSS { "across" } else { "within" }, "probes": probes, "auc": auc,
                "median_ms_sent": median(sent), "median_ms_not_sent": median(not_sent),
            }));
        }
    }
    println!("{}", json!({ "tenants": tables }));
}

/// One probe: the victim's call, and the time of the spy's, in milliseconds.
fn one(judge: &Judge, random: &mut Random, (probe, spy): (Probe, &str), sent: bool) -> f64 {
    let [secret, other] = [0; 2].map(|_| text(random, 150));
    let [reply, other_reply] = [0; 2].map(|_| text(random, 8));
    ask(judge, WITHIN, &group(if sent { &secret } else { &other }, &reply), CacheControl::Use);
    let (question, cache) = match probe {
        Probe::Verdict => (group(&secret, &reply), CacheControl::Use),
        Probe::Prefix => (group(&secret, &other_reply), CacheControl::Off),
    };
    let start = Instant::now();
    ask(judge, spy, &question, cache);
    1e3 * start.elapsed().as_secs_f64()
}

fn ask(judge: &Judge, tenant: &str, group: &Group, cache: CacheControl) {
    let overrides = OptionOverrides { evidence: Some(EvidenceKind::LabelSlot), ..OptionOverrides::default() };
    let call = Call { tenant: tenant.to_owned(), cache, ..Call::default() };
    assert!(judge.score_blocking(group, &overrides, &call).unwrap()[0].is_ok());
}

fn group(context: &str, reply: &str) -> Group {
    Group {
        persona: Persona { traits: vec![TraitTarget::new(Trait::Openness, Polarity::High)], ..Persona::default() },
        context: vec![Turn { speaker: "User".to_owned(), text: context.to_owned() }],
        candidates: vec![Candidate { id: String::new(), response: reply.to_owned() }],
    }
}

/// Words of four letters, of a token or two each.
fn text(random: &mut Random, words: usize) -> String {
    let word = |random: &mut Random| -> String {
        (0..4).map(|at| char::from([b"bdklmnprst", b"aeiouaeiou"][at % 2][random.below(10)])).collect()
    };
    (0..words).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

fn judge() -> Judge {
    let backbone = registry::resolve(registry::DEFAULT_MODEL).unwrap();
    let speaking = Tiny::speaking_as(&backbone, 1);
    let shape =
        Shape { layers: 4, hidden: 128, feed_forward: 256, heads: 4, kv_heads: 2, head_dim: 32, ..speaking.shape };
    let mut small = Tiny::new(shape, 1);
    small.metadata.extend(speaking.metadata.into_iter().filter(|(key, _)| key.starts_with("tokenizer.")));
    let file = tempfile::NamedTempFile::new().unwrap();
    small.write(file.path());
    Judge::open(&JudgeConfig {
        model_name: "small".to_owned(),
        model_path: file.path().to_owned(),
        label_spaces: None,
        prompt_template: None,
        threads: None,
        numerics: Numerics::F32,
        answer_slot: AnswerSlot::Auto,
        overrides: OptionOverrides::default(),
        engine: EngineSettings::default(),
        redis: None,
        cache: CacheSettings::default(),
        limits: LimitSettings::default(),
    })
    .unwrap()
}

/// The chance that one of `less` is below one of `more`; ties count half.
fn auc(less: &[f64], more: &[f64]) -> f64 {
    let wins: f64 = less
        .iter()
        .flat_map(|a| {
            more.iter().map(move |b| {
                if a < b {
                    1.0
                } else if a == b {
                    0.5
                } else {
                    0.0
                }
            })
        })
        .sum();
    wins / (less.len() * more.len()) as f64
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `--probes N`, of each kind; cargo adds `--bench`.
fn probes() -> usize {
    let mut probes = 2000;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--probes" => probes = arguments.next().unwrap().parse().unwrap(),
            "--bench" => {}
            other => panic!("unknown argument {other}; there is --probes N"),
        }
    }
    probes
}
