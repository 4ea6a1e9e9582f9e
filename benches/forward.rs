//! How near does the forward pass come to the machine's f32 product, and which part takes the time?
//!
//! `cargo bench --bench forward [-- --rounds N --threads N --only TEXT]` takes turns between the products alone (the
//! peak) and pieces of work, on the default backbone. Progress goes to standard error, one JSON object to standard
//! output. Every figure of a case is the median over the rounds; the peak is the best product of the whole run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::time::Instant;

use gemm::Parallelism;
use prism_judge::engine::{Cancel, Prompt, Read, run};
use prism_judge::model::matmul::{Layout, Operand, Output, Rows, Shape, multiply_parallel};
use prism_judge::model::{Decoder, DecoderConfig, Gguf, Part, registry};
use prism_judge::numerics::Numerics;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Value, json};

/// Rows of the products that make the peak.
const PEAK_ROWS: usize = 512;
/// Side of the square product.
const SQUARE: usize = 1536;
/// Products before each case; the best counts.
const PEAK_REPEATS: usize = 3;

/// One piece of work.
struct Case {
    name: String,
    prompts: Vec<Prompt>,
    /// Tokens of one forward pass, at most.
    chunk: usize,
}

/// What a case asks for, counted from its prompts.
struct Work {
    /// Distinct tokens: distinct prefixes of the prompts.
    tokens: usize,
    /// Operations: a multiplication and an addition are two.
    projections: f64,
    head: f64,
    attention: f64,
}

fn main() {
    let options = Options::parse();
    let gguf = Gguf::open(&registry::resolve(registry::DEFAULT_MODEL).unwrap()).unwrap();
    let decoder = Decoder::load(&gguf, Numerics::F32, options.threads).unwrap();
    let mut cases = cases(decoder.config().vocabulary as u64);
    cases.retain(|case| case.name.contains(&options.only));
    let mut peak = Peak::new(decoder.config(), options.threads);
    let mut rounds: Vec<Vec<Sample>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for (case, samples) in cases.iter().zip(&mut rounds) {
            peak.measure();
            samples.push(Sample::take(&decoder, case));
            let seconds = samples.last().map_or(0.0, |sample| sample.total);
            eprintln!("round {}: {} took {seconds:.3} s", round + 1, case.name);
        }
    }
    let best = peak.best();
    let results: Vec<Value> =
        cases.iter().zip(rounds).map(|(case, samples)| report(case, samples, decoder.config(), best)).collect();
    let output = json!({
        "what": "forward pass of the default backbone against the best f32 product of the same run",
        "model": registry::DEFAULT_MODEL,
        "threads": options.threads,
        "rounds": options.rounds,
        "peak_gflops": best / 1e9,
        "peak_of": peak.report(),
        "units": {
            "seconds": "median over the rounds, as all figures of a case",
            "distinct_tokens": "tokens pushed through the model: distinct prefixes of the prompts",
            "gflop": "operations of the distinct tokens (a multiply-add is two), by part; causal attention, half counted",
            "share_of_peak": "all operations over seconds, over the peak",
            "share_of_peak_without_attention": "as before, attention's operations and seconds left out",
            "seconds_by_part": "rest: norms, rotation, gates, K/V, buffers, tree",
        },
        "cases": results,
    });
    println!("{output:#}");
}

struct Options {
    rounds: usize,
    threads: usize,
    /// Part of the names of the cases to run.
    only: String,
}

impl Options {
    fn parse() -> Self {
        let mut options = Self {
            rounds: 1,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            only: String::new(),
        };
        // cargo itself adds `--bench`.
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(name) = arguments.next() {
            let value = arguments.next().unwrap_or_else(|| panic!("{name} needs a value"));
            match name.as_str() {
                "--rounds" => options.rounds = value.parse().expect("--rounds takes a number"),
                "--threads" => options.threads = value.parse().expect("--threads takes a number"),
                "--only" => options.only = value,
                _ => panic!("unknown option {name}; known: --rounds N, --threads N, --only TEXT"),
            }
        }
        assert!(options.rounds > 0 && options.threads > 0, "--rounds and --threads begin at 1");
        options
    }
}

fn cases(vocabulary: u64) -> Vec<Case> {
    let mut state = 1u64;
    let mut tokens = |count: usize| -> Vec<u32> {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % vocabulary) as u32
        };
        (0..count).map(|_| next()).collect()
    };
    let next = |ids: Vec<u32>| Prompt { ids, read: Read::Next(vec![49, 50, 51]) };
    let mut cases = Vec::new();
    for (length, chunk) in
        [(128, 512), (256, 512), (512, 512), (1_024, 512), (2_048, 512), (4_096, 512), (512, 256), (4_096, 256)]
    {
        let prompts = vec![next(tokens(length))];
        cases.push(Case { name: format!("single {length} tokens, chunk {chunk}"), prompts, chunk });
    }
    for group in [8, 64] {
        let prefix = tokens(300);
        let mut prompts = Vec::new();
        for _ in 0..group {
            let reply = [prefix.clone(), tokens(80)].concat();
            prompts.extend([6, 8, 10].map(|suffix| next([reply.clone(), tokens(suffix)].concat())));
            prompts.push(Prompt { read: Read::Span(prefix.len()..reply.len()), ids: reply });
        }
        let name = format!("group of {group}: 300 shared, replies of 80, suffixes of 6, 8 and 10");
        cases.push(Case { name, prompts, chunk: 512 });
    }
    let prompts = (0..64).map(|_| next(tokens(70))).collect();
    cases.push(Case { name: "64 requests of 70 tokens, nothing shared".to_owned(), prompts, chunk: 512 });
    cases
}

impl Work {
    fn of(prompts: &[Prompt], config: &DecoderConfig) -> Self {
        let mut sorted: Vec<&[u32]> = prompts.iter().map(|prompt| prompt.ids.as_slice()).collect();
        sorted.sort_unstable();
        let (mut tokens, mut visible) = (0, 0);
        let mut last: &[u32] = &[];
        for ids in sorted {
            let common = last.iter().zip(ids).take_while(|(a, b)| a == b).count();
            tokens += ids.len() - common;
            visible += (common + 1..=ids.len()).sum::<usize>();
            last = ids;
        }
        let rows = |prompt: &Prompt| match &prompt.read {
            Read::Next(_) => prompt.ids.len()..prompt.ids.len() + 1,
            Read::Span(span) => span.clone(),
        };
        let read: HashSet<&[u32]> =
            prompts.iter().flat_map(|prompt| rows(prompt).map(|end| &prompt.ids[..end])).collect();
        let [before, after] =
            widths(config).map(|shapes| shapes.iter().map(|(k, n)| 2.0 * (k * n) as f64).sum::<f64>());
        // After the last layer's attention only the rows that are read go on.
        let rows_after = (config.layers - 1) * tokens + read.len();
        Self {
            tokens,
            projections: (config.layers * tokens) as f64 * before + rows_after as f64 * after,
            head: 2.0 * (read.len() * config.hidden * config.vocabulary) as f64,
            attention: 4.0 * (config.layers * config.heads * config.head_dim) as f64 * visible as f64,
        }
    }
}

/// Inputs and outputs of a block's projections: before its attention and after it.
fn widths(config: &DecoderConfig) -> [Vec<(usize, usize)>; 2] {
    let query = config.heads * config.head_dim;
    let qkv = query + 2 * config.kv_heads * config.head_dim;
    let (hidden, inner) = (config.hidden, config.feed_forward);
    [vec![(hidden, qkv)], vec![(query, hidden), (hidden, 2 * inner), (inner, hidden)]]
}

/// Seconds of one run of a case.
struct Sample {
    total: f64,
    projections: f64,
    attention: f64,
    head: f64,
}

impl Sample {
    fn take(decoder: &Decoder, case: &Case) -> Self {
        let spent = || [Part::Projections, Part::Attention, Part::Head].map(|part| decoder.spent(part).as_secs_f64());
        let before = spent();
        let start = Instant::now();
        let answers = run(decoder, &case.prompts, case.chunk, &Cancel::default()).unwrap();
        let total = start.elapsed().as_secs_f64();
        assert!(answers.iter().all(Result::is_ok));
        let [projections, attention, head] = spent();
        Self { total, projections: projections - before[0], attention: attention - before[1], head: head - before[2] }
    }
}

fn report(case: &Case, samples: Vec<Sample>, config: &DecoderConfig, peak: f64) -> Value {
    let median = |part: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let work = Work::of(&case.prompts, config);
    let total = median(|sample| sample.total);
    let without = median(|sample| sample.total - sample.attention);
    json!({
        "name": case.name,
        "chunk_tokens": case.chunk,
        "distinct_tokens": work.tokens,
        "seconds": total,
        "tokens_per_second": work.tokens as f64 / total,
        "gflop": {"projections": work.projections / 1e9, "head": work.head / 1e9, "attention": work.attention / 1e9},
        "share_of_peak": (work.projections + work.head + work.attention) / total / peak,
        "share_of_peak_without_attention": (work.projections + work.head) / without / peak,
        "microseconds_per_token_without_attention": 1e6 * without / work.tokens as f64,
        "seconds_by_part": {
            "projections": median(|sample| sample.projections),
            "attention": median(|sample| sample.attention),
            "head": median(|sample| sample.head),
            "rest": median(|sample| sample.total - sample.projections - sample.attention - sample.head),
        },
        "gflops_by_part": {
            "projections": work.projections / median(|sample| sample.projections) / 1e9,
            "attention": work.attention / median(|sample| sample.attention) / 1e9,
            "head": work.head / median(|sample| sample.head) / 1e9,
        },
    })
}

/// The fastest product that this run has seen, by shape.
struct Peak {
    pool: ThreadPool,
    threads: usize,
    /// Inner dimension and columns of the model's products, and the best operations per second.
    shapes: Vec<(usize, usize, f64)>,
    square: f64,
    x: Vec<f32>,
    w: Vec<f32>,
    out: Vec<f32>,
}

impl Peak {
    fn new(config: &DecoderConfig, threads: usize) -> Self {
        let shapes: Vec<_> =
            widths(config).concat().into_iter().map(|(inner, columns)| (inner, columns, 0.0)).collect();
        let largest = |size: fn(&(usize, usize, f64)) -> usize| {
            shapes.iter().map(size).chain([SQUARE * SQUARE]).max().unwrap_or_default()
        };
        // Not constant: some machines clock higher on zeros.
        let values = |count: usize| (0..count).map(|at| (at as f32 * 0.7).sin()).collect();
        Self {
            pool: ThreadPoolBuilder::new().num_threads(threads).build().unwrap(),
            threads,
            square: 0.0,
            x: values(largest(|(inner, _, _)| PEAK_ROWS * inner)),
            w: values(largest(|(inner, columns, _)| inner * columns)),
            out: vec![0.0; largest(|(_, columns, _)| PEAK_ROWS * columns)],
            shapes,
        }
    }

    fn measure(&mut self) {
        for _ in 0..PEAK_REPEATS {
            for (inner, columns, best) in &mut self.shapes {
                let (inner, columns) = (*inner, *columns);
                let start = Instant::now();
                multiply_parallel(
                    &self.pool,
                    Shape { rows: PEAK_ROWS, inner, columns },
                    Rows { data: &self.x, stride: inner },
                    Operand { data: &self.w, layout: Layout::ByInput { stride: columns } },
                    Output { data: &mut self.out, stride: columns, accumulate: false },
                );
                *best = best.max(2.0 * (PEAK_ROWS * inner * columns) as f64 / start.elapsed().as_secs_f64());
            }
            let start = Instant::now();
            self.multiply_squares();
            self.square = self.square.max(2.0 * (SQUARE as f64).powi(3) / start.elapsed().as_secs_f64());
        }
    }

    /// A large square product by the gemm crate's own threading.
    fn multiply_squares(&mut self) {
        let side = SQUARE as isize;
        let (out, x, w) = (&mut self.out[..SQUARE * SQUARE], &self.x[..SQUARE * SQUARE], &self.w[..SQUARE * SQUARE]);
        self.pool.install(|| {
            // SAFETY: the three slices hold SQUARE x SQUARE elements each, and `out` is exclusive.
            unsafe {
                gemm::gemm(
                    SQUARE,
                    SQUARE,
                    SQUARE,
                    out.as_mut_ptr(),
                    side,
                    1,
                    false,
                    w.as_ptr(),
                    side,
                    1,
                    x.as_ptr(),
                    side,
                    1,
                    1.0f32,
                    1.0f32,
                    false,
                    false,
                    false,
                    Parallelism::Rayon(self.threads),
                );
            }
        });
    }

    fn best(&self) -> f64 {
        self.shapes.iter().map(|(_, _, best)| *best).fold(self.square, f64::max)
    }

    fn report(&self) -> Value {
        let shapes = self.shapes.iter().map(|(inner, columns, best)| {
            json!({"rows": PEAK_ROWS, "inner": inner, "columns": columns, "gflops": best / 1e9})
        });
        let square = json!({"rows": SQUARE, "inner": SQUARE, "columns": SQUARE, "gflops": self.square / 1e9});
        shapes.chain([square]).collect()
    }
}
