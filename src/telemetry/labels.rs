//! The labels and all values that each can have, so that the number of series is known before the first call.

/// A label and its values. A value that is none of them counts as the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    pub name: &'static str,
    pub values: &'static [&'static str],
}

impl Label {
    const fn new(name: &'static str, values: &'static [&'static str]) -> Self {
        Self { name, values }
    }

    pub(super) fn index(&self, value: &str) -> usize {
        self.values.iter().position(|known| *known == value).unwrap_or(self.values.len() - 1)
    }
}

/// Methods of the judge's service; `other` is everything else that a client can ask for.
pub const METHOD: Label = Label::new(
    "method",
    &[
        "Score",
        "ScoreGroup",
        "ScoreStream",
        "ScoreDialogue",
        "Check",
        "CheckStream",
        "Rank",
        "ListPersonas",
        "GetJudgeInfo",
        "other",
    ],
);

/// gRPC status codes by their numbers.
pub const GRPC_CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Routes of the HTTP port; `other` is everything else that a client can ask for.
pub const ROUTES: [&str; 20] = [
    "/v1/score",
    "/v1/score_group",
    "/v1/score_dialogue",
    "/v1/check",
    "/v1/rank",
    "/v1/info",
    "/v1/personas",
    "/get_reward",
    "/reward",
    "/v1/score/evaluation",
    "/verify",
    "/beta/litellm_basic_guardrail_api",
    "/classify",
    "/api/v1/text/contents",
    "/v1/moderations",
    "/promptfoo",
    "/health",
    "/openapi.json",
    "/",
    "other",
];

pub const ROUTE: Label = Label::new("route", &ROUTES);

/// The class of an answer's status over HTTP; `none` was not answered, because the client went away.
pub const STATUS_CLASS: Label = Label::new("status", &["2xx", "4xx", "5xx", "none"]);

pub const CODE: Label = Label::new("code", &GRPC_CODES);

pub const LANE: Label = Label::new("lane", &["guard", "train", "batch"]);

/// The lane of a call, or `none` where it has none or was not read yet.
pub const CALL_LANE: Label = Label::new("lane", &["guard", "train", "batch", "none"]);

/// Where the time of a judgement goes.
pub const STAGE: Label = Label::new("stage", &["prepare_wait", "prepare", "queue", "model", "outside"]);

/// Where a call was when it ended early.
pub const END_STAGE: Label = Label::new("stage", &["arrival", "prepare", "queue", "model", "follow", "other"]);

/// What became of a candidate.
pub const OUTCOME: Label = Label::new(
    "outcome",
    &[
        "computed",
        "cached",
        "invalid_argument",
        "non_finite",
        "cancelled",
        "deadline_exceeded",
        "overloaded",
        "over_quota",
        "unavailable",
        "not_found",
        "internal",
    ],
);

/// What a guardrail said of a response.
pub const DECISION: Label = Label::new("decision", &["allow", "warn", "block", "abstain"]);

/// What a decision stands on: a verdict, a response that is too short for one, or an error.
pub const GROUND: Label = Label::new("ground", &["verdict", "length", "error"]);

/// Why a call was refused before any work.
pub const SHED_REASON: Label =
    Label::new("reason", &["lane_full", "prepare_full", "quota", "draining", "loading", "other"]);

/// Which limit a request broke.
pub const LIMIT: Label = Label::new(
    "limit",
    &[
        "message_bytes",
        "candidates",
        "turns",
        "persona_bytes",
        "context_bytes",
        "response_bytes",
        "id_bytes",
        "tokens",
        "other",
    ],
);

pub const TIER: Label = Label::new("tier", &["memory", "redis"]);

/// What a look-up in the verdict cache found: `follow` waits for a call that computes the same, `error` is a tier that
/// did not answer, `invalid` a value that was not ours, `skipped` a tier that is known to be away.
pub const LOOKUP: Label = Label::new("result", &["hit", "miss", "follow", "error", "invalid", "skipped"]);

pub const DIMENSION: Label = Label::new("dimension", &["task_framing", "interpersonal_stance", "linguistic_style"]);

/// What a text held that people do not see or that models take for structure.
pub const CONTROL: Label = Label::new("kind", &["control", "bidi", "invisible", "special_token"]);

pub const HEALTH: Label = Label::new("state", &["loading", "ready", "restarting", "dead"]);

/// Why a connection was not served.
pub const REFUSED: Label =
    Label::new("reason", &["limit", "handshake_timeout", "tls", "draining", "accept_error", "other"]);

pub const TLS_FAILURE: Label = Label::new("reason", &["timeout", "client_certificate", "protocol", "other"]);

/// How an attempt to read a file anew ended.
pub const RELOAD: Label = Label::new("result", &["loaded", "unchanged", "failed"]);

/// Why a call was not let in.
pub const AUTH: Label = Label::new("reason", &["missing", "malformed", "unknown_key", "lane", "other"]);

pub const REDIS_COMMAND: Label = Label::new("command", &["get", "set", "other"]);

/// `dropped`: not sent, because too much waited to be written; `skipped`: not sent, because the breaker is open.
pub const REDIS_RESULT: Label = Label::new("result", &["ok", "timeout", "error", "dropped", "skipped"]);

pub const BREAKER: Label = Label::new("state", &["closed", "open", "half_open"]);

/// `sampled_out`: not to be kept; `dropped`: the writer was behind; `failed`: the file could not be written.
pub const AUDIT: Label = Label::new("result", &["written", "sampled_out", "dropped", "failed"]);

/// `dropped`: the exporter was behind; `failed`: the collector did not take them.
pub const SPAN: Label = Label::new("result", &["exported", "dropped", "failed"]);

pub const LEVEL: Label = Label::new("level", &["error", "warn", "info", "debug", "trace"]);

/// jemalloc's own figures.
pub const ALLOCATOR: Label = Label::new("state", &["allocated", "active", "resident", "mapped", "retained"]);
