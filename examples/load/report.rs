//! Percentiles, rates and status codes: as progress, as a table, as JSON.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tonic::Code;

use super::calls::{Call, Log};
use super::memory::Sample;
use super::stream::Stream;

const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// What is kept of a late answer: later than its deadline by more than this, in seconds.
const LATE: f64 = 0.010;

/// Tells on standard error how it is going, until aborted.
pub async fn progress(streams: Vec<Stream>, logs: Vec<Log>, start: Instant, length: Duration) {
    let mut ticks = tokio::time::interval(PROGRESS_EVERY);
    loop {
        ticks.tick().await;
        let counts = streams.iter().zip(&logs).map(|(stream, log)| {
            let (calls, judged) = log.counts();
            format!("{}: {calls} answered, {judged} judged", stream.name)
        });
        let left = length.saturating_sub(start.elapsed()).as_secs();
        eprintln!("{left:>4} s left | {}", counts.collect::<Vec<_>>().join(" | "));
    }
}

/// Everything that was measured. `finished` says whether all calls were answered.
pub fn summary(streams: &[Stream], calls: &[Vec<Call>], memory: &[Sample], took: Duration, finished: bool) -> Value {
    let streams: Vec<Value> = streams.iter().zip(calls).map(|(stream, calls)| of_stream(stream, calls)).collect();
    json!({ "seconds": took.as_secs_f64(), "all_answered": finished, "streams": streams, "resident_mib": memory })
}

fn of_stream(stream: &Stream, calls: &[Call]) -> Value {
    let mut codes: Map<String, Value> = Map::new();
    for call in calls {
        let count = codes.entry(format!("{:?}", call.outcome.code)).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap_or_default() + 1);
    }
    let of = |code: Code| calls.iter().filter(move |call| call.outcome.code == code);
    let refused = of(Code::ResourceExhausted).count();
    let hinted = of(Code::ResourceExhausted).filter(|call| call.outcome.hinted).count();
    let judged: usize = calls.iter().map(|call| call.outcome.judged).sum();
    // From the stream's first call to its last answer.
    let first = calls.iter().map(|call| call.at).fold(f64::INFINITY, f64::min);
    let last = calls.iter().map(|call| call.at + call.latency).fold(0.0, f64::max);
    let seconds = if calls.is_empty() { 0.0 } else { last - first };
    json!({
        "name": stream.name,
        "calls": calls.len(),
        "codes": codes,
        "candidates_judged": judged,
        "candidates_failed_in_ok_calls": of(Code::Ok).map(|call| call.outcome.failed).sum::<usize>(),
        "seconds": seconds,
        "calls_per_second": calls.len() as f64 / seconds.max(1e-9),
        "judged_per_second": judged as f64 / seconds.max(1e-9),
        "ok_ms": percentiles(of(Code::Ok).map(|call| call.latency)),
        "refused_ms": percentiles(of(Code::ResourceExhausted).map(|call| call.latency)),
        "refused_without_hint": refused - hinted,
        "later_than_deadline_by_10_ms": calls.iter().filter(|call| call.late.is_some_and(|late| late > LATE)).count(),
        "latest_after_deadline_ms": calls.iter().filter_map(|call| call.late).reduce(f64::max).map(|late| late * 1e3),
    })
}

/// Nearest rank, in milliseconds; null without values.
fn percentiles(seconds: impl Iterator<Item = f64>) -> Value {
    let mut values: Vec<f64> = seconds.map(|seconds| seconds * 1e3).collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * values.len() as f64).ceil() as usize;
        values.get(rank.saturating_sub(1)).copied()
    };
    json!({
        "count": values.len(), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p99.9": at(0.999), "max": at(1.0),
    })
}

/// The summary for people.
pub fn table(summary: &Value) -> String {
    let mut text = format!(
        "{:<16} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}  codes\n",
        "", "calls", "judged/s", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"
    );
    let number = |value: &Value| value.as_f64().map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    for stream in summary["streams"].as_array().into_iter().flatten() {
        let ms = &stream["ok_ms"];
        let codes = stream["codes"].as_object().into_iter().flatten().map(|(code, count)| format!("{code} {count}"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<16} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}  {}",
            stream["name"].as_str().unwrap_or_default(),
            stream["calls"],
            number(&stream["judged_per_second"]),
            number(&ms["p50"]),
            number(&ms["p90"]),
            number(&ms["p99"]),
            number(&ms["p99.9"]),
            number(&ms["max"]),
            codes.collect::<Vec<_>>().join(", "),
        );
    }
    let memory = summary["resident_mib"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    if let (Some(first), Some(last)) = (memory.first(), memory.last()) {
        let most = memory.iter().filter_map(|sample| sample[1].as_f64()).fold(0.0, f64::max);
        let _ = writeln!(text, "resident MiB: {} first, {most:.2} most, {} last", number(&first[1]), number(&last[1]));
    }
    if summary["all_answered"] == json!(false) {
        text.push_str("some calls were never answered\n");
    }
    text
}

/// One JSON line a call.
pub fn write_calls(path: &Path, streams: &[Stream], calls: &[Vec<Call>]) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    for (stream, calls) in streams.iter().zip(calls) {
        for call in calls {
            let line = json!({
                "stream": stream.name, "at": call.at, "latency": call.latency, "late": call.late,
                "code": format!("{:?}", call.outcome.code), "judged": call.outcome.judged, "hinted": call.outcome.hinted,
            });
            writeln!(file, "{line}")?;
        }
    }
    file.flush()
}
