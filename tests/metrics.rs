//! The contract of /metrics: the catalogue, docs/metrics.md and the running binary say the same, whoever calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use prism_judge::server::pb;
use prism_judge::telemetry::{CATALOGUE, Description, Kind};
use support::server::{Server, request, tiny_model};
use tokio::task::JoinSet;
use tonic::Code;
use tonic_prost::ProstCodec;

/// Series that one server may have, at most (docs/metrics.md).
const MOST_SERIES: usize = 2_000;

const BEGIN: &str = "<!-- generated from the catalogue: make docs -->\n";
const END: &str = "<!-- end -->\n";

fn catalogue() -> Vec<Description> {
    CATALOGUE.iter().map(|metric| metric.description()).collect()
}

/// The table of docs/metrics.md.
fn table() -> String {
    let mut table = "| metric | type | labels | what it says |\n|---|---|---|---|\n".to_owned();
    for Description { name, help, kind, labels } in catalogue() {
        let label = |label: &prism_judge::telemetry::Label| match label.values {
            [] => format!("`{}`", label.name),
            values => format!("`{}`: {}", label.name, values.join(", ")),
        };
        let labels: Vec<String> = labels.iter().map(label).collect();
        let buckets = match kind {
            Kind::Histogram(bounds) => {
                let bounds: Vec<String> = bounds.iter().map(f64::to_string).collect();
                format!(" Buckets: {}.", bounds.join(", "))
            }
            _ => String::new(),
        };
        writeln!(table, "| `{name}` | {} | {} | {help}{buckets} |", kind.name(), labels.join("; ")).unwrap();
    }
    table
}

#[test]
fn the_docs_have_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (found, tail) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, [head, BEGIN, &table(), END, tail].concat()).unwrap();
        return;
    }
    assert_eq!(found, table(), "docs/metrics.md is not the catalogue: run `make docs`");
}

#[test]
fn the_catalogue_holds_what_it_promises() {
    let metrics = catalogue();
    let names: BTreeSet<_> = metrics.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), metrics.len(), "a name is there twice");
    let series: usize = metrics.iter().map(Description::series).sum();
    assert!(series <= MOST_SERIES, "{series} series");
    for Description { name, help, kind, labels } in metrics {
        assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
        assert!(help.ends_with('.') && !help.contains('|'), "{name}: {help}");
        assert!(labels.iter().all(|label| !["tenant", "persona", "le"].contains(&label.name)), "{name}");
        if name.ends_with("_duration_seconds") && !name.contains("redis") {
            let Kind::Histogram(buckets) = kind else { panic!("{name} is no histogram") };
            assert_eq!((buckets[0], buckets[buckets.len() - 1]), (0.0005, 16.0), "{name}");
            assert!([0.05, 0.1, 0.25].iter().all(|bound| buckets.contains(bound)), "{name}");
        }
        if let Kind::Histogram(buckets) = kind {
            assert!(buckets.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
        }
    }
}

/// A scrape.
#[derive(Debug, Default, PartialEq)]
struct Scrape {
    /// By name of the metric: its type.
    types: BTreeMap<String, String>,
    help: BTreeMap<String, String>,
    /// Lines without their values.
    series: BTreeSet<String>,
    values: BTreeMap<String, f64>,
}

impl Scrape {
    fn of(server: &Server) -> Self {
        let (status, text) = server.get("/metrics");
        assert_eq!(status, 200);
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(scrape.types.insert(name.to_owned(), kind.to_owned()), None, "{line}");
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                scrape.help.insert(name.to_owned(), help.to_owned());
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(scrape.series.insert(series.to_owned()), "{line} is there twice");
                scrape.values.insert(series.to_owned(), value.parse().unwrap());
            }
        }
        scrape
    }
}

/// Every line that the catalogue says is there, but for those of infos, whose values are this server's.
fn expected(metric: &Description) -> BTreeSet<String> {
    let mut sets = vec![Vec::new()];
    for label in &metric.labels {
        let with = |set: &Vec<String>, value: &str| [set.as_slice(), &[format!("{}=\"{value}\"", label.name)]].concat();
        sets =
            sets.iter().flat_map(|set| label.values.iter().map(|value| with(set, value)).collect::<Vec<_>>()).collect();
    }
    let line = |suffix: &str, labels: &[String]| match labels {
        [] => format!("{}{suffix}", metric.name),
        labels => format!("{}{suffix}{{{}}}", metric.name, labels.join(",")),
    };
    let lines = |set: Vec<String>| match metric.kind {
        Kind::Histogram(bounds) => {
            let bounds = bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
            let bucket = |bound: String| line("_bucket", &[set.as_slice(), &[format!("le=\"{bound}\"")]].concat());
            bounds.map(bucket).chain([line("_sum", &set), line("_count", &set)]).collect()
        }
        _ => vec![line("", &set)],
    };
    sets.into_iter().flat_map(lines).collect()
}

async fn tiny() -> Option<(tempfile::TempDir, Server)> {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_model(folder.path())?;
    let server = Server::start(&["--model", model.to_str().unwrap()]).ready().await;
    Some((folder, server))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_nobody_has_called_exposes_the_whole_catalogue_and_nothing_else() {
    let Some((_folder, server)) = tiny().await else { return };
    let scrape = Scrape::of(&server);
    let mut left = scrape.series.clone();
    let mut types = scrape.types.clone();
    for metric in catalogue() {
        assert_eq!(types.remove(metric.name).as_deref(), Some(metric.kind.name()), "{}", metric.name);
        assert_eq!(scrape.help.get(metric.name).map(String::as_str), Some(metric.help));
        if metric.kind == Kind::Info {
            let own = |line: &&String| line.split('{').next() == Some(metric.name);
            let lines: Vec<String> = left.iter().filter(own).cloned().collect();
            let [line] = lines.as_slice() else { panic!("{}: {lines:?}", metric.name) };
            assert!(metric.labels.iter().all(|label| line.contains(&format!("{}=\"", label.name))), "{line}");
            assert!(left.remove(line));
            continue;
        }
        for line in expected(&metric) {
            assert!(left.remove(&line), "{line} is not there");
        }
    }
    assert_eq!((types, left), (BTreeMap::new(), BTreeSet::new()), "not in the catalogue");
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_has_nothing_to_say_about_a_scrape() {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = match command.spawn() {
        Ok(promtool) => promtool,
        Err(error) if std::env::var_os("CI").is_some() => panic!("this test needs promtool: {error}"),
        Err(error) => {
            eprintln!("SKIPPED, NOT TESTED: promtool: {error}");
            return;
        }
    };
    let Some((_folder, server)) = tiny().await else { return };
    server.judge().await.score(request("Yes! Who else is in?")).await.unwrap();
    let (_, metrics) = server.get("/metrics");
    promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && told.is_empty(), "{}", String::from_utf8_lossy(&told));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_hostile_names_make_no_new_series() {
    const CALLS: usize = 10_000;
    let Some((_folder, server)) = tiny().await else { return };
    let before = Scrape::of(&server).series;
    assert!(before.len() <= MOST_SERIES, "{} series", before.len());
    let mut calls = JoinSet::new();
    for worker in 0..20 {
        let channel = server.channel().await;
        calls.spawn(async move {
            let mut judge = pb::judge_service_client::JudgeServiceClient::new(channel.clone());
            let mut anything = tonic::client::Grpc::new(channel);
            for call in (worker..CALLS).step_by(20) {
                // What a caller can name: a method, an id, a persona, a speaker, a tenant in a header.
                let name = format!("x{call}\u{202e}\"}} {{evil=\"{call}\"");
                let mut ask = request("Yes!");
                ask.request_id = name.clone();
                ask.persona.as_mut().unwrap().description = name.clone();
                ask.candidate.as_mut().unwrap().id = name;
                let mut ask = tonic::Request::new(ask);
                ask.metadata_mut().insert("x-tenant", format!("tenant-{call}").parse().unwrap());
                ask.metadata_mut().insert("user-agent", format!("agent-{call}").parse().unwrap());
                if call % 100 == 0 {
                    judge.score(ask).await.unwrap();
                    continue;
                }
                anything.ready().await.unwrap();
                let path = format!("/evil.{call}/Method{call}").parse().unwrap();
                let codec: ProstCodec<pb::ScoreRequest, pb::ScoreResponse> = ProstCodec::default();
                let status = anything.unary(ask, path, codec).await.unwrap_err();
                assert_eq!(status.code(), Code::Unimplemented, "call {call}: {status:?}");
            }
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
    let after = Scrape::of(&server);
    assert_eq!(after.series.difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
    let counted = |series: &str| after.values[series];
    let unknown = counted("prism_judge_requests_total{method=\"other\",code=\"UNIMPLEMENTED\"}");
    let known = counted("prism_judge_requests_total{method=\"Score\",code=\"OK\"}");
    assert_eq!((unknown, known), (9_900.0, 100.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_of_a_call_are_what_its_answer_says() {
    let Some((_folder, server)) = tiny().await else { return };
    let before = Scrape::of(&server).values;
    let mut judge = server.judge().await;
    let first = judge.score(request("Yes! Who else is in?")).await.unwrap().into_inner().verdict.unwrap();
    let second = judge.score(request("Yes! Who else is in?")).await.unwrap().into_inner().verdict.unwrap();
    assert!(!first.cached && second.cached);
    let bad = pb::ScoreRequest { candidate: None, ..request("") };
    assert_eq!(judge.score(bad).await.unwrap_err().code(), Code::InvalidArgument);
    let after = Scrape::of(&server).values;
    let more = |series: &str| after[series] - before[series];
    let tokens = first.tokens.unwrap();
    assert_eq!(more("prism_judge_requests_total{method=\"Score\",code=\"OK\"}"), 2.0);
    assert_eq!(more("prism_judge_requests_total{method=\"Score\",code=\"INVALID_ARGUMENT\"}"), 1.0);
    assert_eq!(more("prism_judge_request_duration_seconds_count{method=\"Score\",lane=\"train\"}"), 2.0);
    assert_eq!(more("prism_judge_candidates_total{outcome=\"computed\"}"), 1.0);
    assert_eq!(more("prism_judge_candidates_total{outcome=\"cached\"}"), 1.0);
    assert_eq!(more("prism_judge_computed_tokens_total"), tokens.computed as f64);
    assert_eq!(more("prism_judge_prompt_tokens_total"), 2.0 * tokens.prompt as f64);
    assert_eq!(more("prism_judge_verdict_cache_lookups_total{tier=\"memory\",result=\"miss\"}"), 1.0);
    assert_eq!(more("prism_judge_verdict_cache_lookups_total{tier=\"memory\",result=\"hit\"}"), 1.0);
    // Sums are of all judgements since the start, the self-check's too.
    let close = |sum: f64, value: f64| assert!((sum - value).abs() < 1e-9, "{sum} and not {value}");
    assert_eq!(more("prism_judge_score_count"), 1.0);
    close(more("prism_judge_score_sum"), first.s_prism);
    let dimensions = first.dimensions.unwrap();
    for (name, dimension) in [
        ("task_framing", dimensions.task_framing),
        ("interpersonal_stance", dimensions.interpersonal_stance),
        ("linguistic_style", dimensions.linguistic_style),
    ] {
        close(more(&format!("prism_judge_evidence_sum{{dimension=\"{name}\"}}")), dimension.unwrap().evidence);
    }
    for stage in ["prepare_wait", "prepare", "queue", "model", "outside"] {
        let count = format!("prism_judge_stage_duration_seconds_count{{stage=\"{stage}\",lane=\"train\"}}");
        assert_eq!(more(&count), 1.0, "{stage}");
    }
    let chunks = more("prism_judge_chunk_tokens_count");
    assert!(chunks >= 1.0 && more("prism_judge_chunk_duration_seconds_count") == chunks);
    assert_eq!(more("prism_judge_chunk_tokens_sum"), tokens.computed as f64);
    assert_eq!(after["prism_judge_requests_in_flight"], 0.0);
    assert_eq!(after["prism_judge_queue_tokens{lane=\"train\"}"], 0.0);
    assert!(after["process_resident_memory_bytes"] > 0.0 && after["process_open_fds"] > 3.0);
    assert!(after["prism_judge_allocator_bytes{state=\"allocated\"}"] > 0.0);
}

/// Scrapes until the server says so.
async fn until(server: &Server, what: &str, holds: impl Fn(&BTreeMap<String, f64>) -> bool) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    let waited = tokio::time::timeout(std::time::Duration::from_secs(30), async {
        loop {
            values = Scrape::of(server).values;
            if holds(&values) {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    let waited = waited.await;
    assert!(waited.is_ok(), "{what}: {values:#?}");
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_and_how_it_ends_shows_while_it_happens() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    // The idle model waits for company: a single call stands in the queue for as long as the test needs.
    let delay = ["--batch-delay-ms", "5000", "--queue-tokens-train", "100", "--answer-slot", "bare"];
    let server = Server::start(&[&["--model", model.to_str().unwrap()], &delay[..]].concat()).ready().await;
    let judge = server.judge().await;
    let call = |budget: Option<u64>, response: &'static str| {
        let mut judge = judge.clone();
        let mut ask = tonic::Request::new(request(response));
        if let Some(budget) = budget {
            ask.set_timeout(std::time::Duration::from_millis(budget));
        }
        tokio::spawn(async move { judge.score(ask).await.map(drop).map_err(|status| status.code()) })
    };
    let of_train = |name: &str| format!("prism_judge_queue_{name}{{lane=\"train\"}}");
    let waiting = call(None, "This one waits.");
    let in_queue = |values: &BTreeMap<String, f64>| values[&of_train("age_seconds")] > 0.0;
    let values = until(&server, "a call waits", in_queue).await;
    assert!(values[&of_train("tokens")] > 100.0, "a call that is larger than its lane is let in alone");
    assert_eq!(values[&of_train("limit_tokens")], 100.0);
    assert_eq!((values[&of_train("pieces")], values["prism_judge_requests_in_flight"]), (1.0, 1.0));
    let age = values[&of_train("age_seconds")];
    until(&server, "its age grows", |values| values[&of_train("age_seconds")] > age).await;

    assert_eq!(call(None, "There is no room for this one.").await.unwrap(), Err(Code::ResourceExhausted));
    let values = Scrape::of(&server).values;
    assert_eq!(values["prism_judge_shed_total{lane=\"train\",reason=\"lane_full\"}"], 1.0);
    assert_eq!(values["prism_judge_candidates_total{outcome=\"overloaded\"}"], 1.0);

    waiting.abort();
    let series = ["tokens", "pieces", "age_seconds"].map(of_train);
    let gone = |values: &BTreeMap<String, f64>| {
        let empty =
            series.iter().all(|series| values[series] == 0.0) && values["prism_judge_requests_in_flight"] == 0.0;
        empty && values["prism_judge_cancelled_total{stage=\"queue\"}"] == 1.0
    };
    let values = until(&server, "it was given up", gone).await;
    assert_eq!(values["prism_judge_requests_total{method=\"Score\",code=\"CANCELLED\"}"], 1.0);

    let late = call(Some(300), "This one is late.").await.unwrap();
    assert!([Err(Code::DeadlineExceeded), Err(Code::Cancelled)].contains(&late), "{late:?}");
    // The client's own timer may have been quicker than the server's.
    let ended = |values: &BTreeMap<String, f64>| {
        let by = |name: &str| values[&format!("prism_judge_{name}_total{{stage=\"queue\"}}")];
        by("expired") + by("cancelled") == 2.0
    };
    until(&server, "it ended in the queue", ended).await;
}
