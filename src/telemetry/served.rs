//! A call of a client, from its headers to the status at the end of its answer: counted, timed, logged and, if it is
//! sampled, traced.

use std::time::Instant;

use http::HeaderMap;

use super::catalogue::{CANCELLED, EXPIRED, REQUEST_SECONDS, REQUESTS, REQUESTS_IN_FLIGHT};
use super::labels::{GRPC_CODES, METHOD};
use super::metric::Held;
use super::record::Sizes;
use super::trace::CallSpan;
use super::{CallRecord, trace};

/// The service that the names of methods are taken from.
pub(super) const SERVICE: &str = "prism.judge.v1.JudgeService";

/// A call under way. Dropped without a status it was cancelled: the client went away.
#[derive(Debug)]
pub struct Served {
    record: CallRecord,
    method: &'static str,
    started: Instant,
    code: Option<&'static str>,
    _in_flight: Held,
}

impl Served {
    /// Begins when a call's headers are here; `path` is the HTTP path, `/package.Service/Method`.
    pub fn begin(path: &str, headers: &HeaderMap) -> Self {
        let name = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE)?.strip_prefix('/'));
        Self::of(name.unwrap_or_default(), None, headers)
    }

    /// The same for a call that comes by a route of the HTTP port and amounts to `method`.
    pub fn by_route(route: &'static str, method: &'static str, headers: &HeaderMap) -> Self {
        Self::of(method, Some(route), headers)
    }

    fn of(method: &str, route: Option<&'static str>, headers: &HeaderMap) -> Self {
        // Callers may ask for anything.
        let method = METHOD.values[METHOD.index(method)];
        let record = CallRecord::of(CallSpan::begin(method, route, &trace::parent(headers)));
        Self { record, method, started: Instant::now(), code: None, _in_flight: REQUESTS_IN_FLIGHT.hold([]) }
    }

    /// What the rooms below write into.
    pub fn record(&self) -> &CallRecord {
        &self.record
    }

    /// Ends with the status that headers or trailers name; without one the call goes on.
    pub fn told(self, block: &HeaderMap) -> Option<Self> {
        let Some(status) = block.get("grpc-status") else { return Some(self) };
        let number = status.to_str().ok().and_then(|text| text.parse::<usize>().ok());
        self.end(number.and_then(|number| GRPC_CODES.get(number).copied()).unwrap_or("UNKNOWN"));
        None
    }

    /// Ends with a status, by its name: `OK`, `INVALID_ARGUMENT`.
    pub fn end(mut self, code: &'static str) {
        self.code = Some(code);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let code = self.code.unwrap_or("CANCELLED");
        let (elapsed, lane, stage) = (self.started.elapsed(), self.record.lane(), self.record.stage().name());
        REQUESTS.increment([self.method, code]);
        REQUEST_SECONDS.record([self.method, lane], elapsed.as_secs_f64());
        self.record.spent_outside(elapsed);
        match code {
            "CANCELLED" => CANCELLED.increment([stage]),
            "DEADLINE_EXCEEDED" => EXPIRED.increment([stage]),
            _ => {}
        }
        let span = self.record.span();
        span.end(code, &self.record);
        let Sizes { candidates, cached, prompt_tokens, computed_tokens } = self.record.sizes();
        let ms = elapsed.as_micros() as f64 / 1000.0;
        let (method, request, trace) = (self.method, self.record.request(), span.trace_id());
        let shaping = self.record.shaping();
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    method,
                    code,
                    lane,
                    stage,
                    ms,
                    candidates,
                    cached,
                    prompt_tokens,
                    computed_tokens,
                    shaping,
                    request,
                    trace,
                    "call"
                )
            };
        }
        if code == "OK" { line!(debug) } else { line!(info) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http::HeaderValue;

    use super::*;
    use crate::telemetry::{Stage, install, render};

    fn count(series: &str) -> u64 {
        let text = render();
        text.lines().find_map(|line| line.strip_prefix(series)).unwrap().trim().parse().unwrap()
    }

    /// Begins a call of a method that no other test of this process calls.
    fn begin() -> Served {
        install().unwrap();
        let served = Served::begin("/prism.judge.v1.JudgeService/GetJudgeInfo", &HeaderMap::new());
        served.record().enter(Stage::Follow);
        served
    }

    #[test]
    fn a_call_is_counted_once_by_its_status_and_by_where_it_ended() {
        let of = |code| format!("prism_judge_requests_total{{method=\"GetJudgeInfo\",code=\"{code}\"}}");
        let expired = "prism_judge_expired_total{stage=\"follow\"}";
        let cancelled = "prism_judge_cancelled_total{stage=\"follow\"}";
        let read = || [count(&of("DATA_LOSS")), count(&of("UNKNOWN")), count(expired), count(cancelled)];
        drop(begin());
        let before = read();
        let mut headers = HeaderMap::new();
        for status in ["15", "99", "what"] {
            headers.insert("grpc-status", HeaderValue::from_static(status));
            assert!(begin().told(&headers).is_none());
        }
        // Headers that say nothing of it are not the end.
        let begun = begin().told(&HeaderMap::new()).unwrap();
        assert_eq!(read()[0], before[0] + 1);
        begun.end("DATA_LOSS");
        begin().end("DEADLINE_EXCEEDED");
        // The client went away.
        drop(begin());
        let after = read();
        assert_eq!(std::array::from_fn(|at| after[at] - before[at]), [2, 2, 1, 1]);
    }
}
